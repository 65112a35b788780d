//! A list of patterns of which the last match decides.

use globset::{Candidate, GlobSet, GlobSetBuilder};

use super::pattern::{Pattern, SelectionError, escape_bytes};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The last pattern that matches it does not begin with `!`.
    Matched,
    /// The last pattern that matches it begins with `!`.
    TakenBack,
    /// No pattern matches it.
    NotMatched,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    patterns: Vec<Pattern>,
    /// The UTF-8 patterns, matched against paths as they are.
    plain: Globs,
    /// Patterns with other bytes, matched against paths whose bytes are escaped in the same way.
    escaped: Globs,
}

/// A set of globs, and the number of each one's pattern.
#[derive(Debug, Clone, Default)]
struct Globs {
    set: GlobSet,
    numbers: Vec<usize>,
}

impl Rules {
    pub(super) fn new(texts: &[Vec<u8>]) -> Result<Rules, SelectionError> {
        let patterns: Vec<_> = texts
            .iter()
            .map(|text| Pattern::parse(text))
            .collect::<Result<_, _>>()?;
        Ok(Rules {
            plain: Globs::new(&patterns, false)?,
            escaped: Globs::new(&patterns, true)?,
            patterns,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// What the patterns say about `path` alone, without the directories above it.
    pub(super) fn verdict(&self, path: &[u8], is_directory: bool) -> Verdict {
        if self.is_empty() {
            return Verdict::NotMatched;
        }
        let plain = self.plain.last_match(path, is_directory, &self.patterns);
        let escaped = if self.escaped.numbers.is_empty() {
            None
        } else {
            let path = escape_bytes(path);
            let path = path.as_bytes();
            self.escaped.last_match(path, is_directory, &self.patterns)
        };
        match plain.max(escaped).and_then(|last| self.patterns.get(last)) {
            None => Verdict::NotMatched,
            Some(pattern) if pattern.takes_back => Verdict::TakenBack,
            Some(_) => Verdict::Matched,
        }
    }

    pub(super) fn may_match_below(&self, directory: &[u8]) -> bool {
        self.patterns
            .iter()
            .any(|pattern| pattern.may_match_below(directory))
    }
}

impl Globs {
    fn new(patterns: &[Pattern], is_escaped: bool) -> Result<Globs, SelectionError> {
        let mut set = GlobSetBuilder::new();
        let mut numbers = Vec::new();
        for (number, pattern) in patterns.iter().enumerate() {
            if pattern.is_escaped == is_escaped {
                set.add(pattern.glob.clone());
                numbers.push(number);
            }
        }
        let set = set.build().map_err(|error| SelectionError::TooLarge {
            patterns: patterns.len(),
            reason: error.kind().to_string(),
        })?;
        Ok(Globs { set, numbers })
    }

    fn last_match(&self, path: &[u8], is_directory: bool, patterns: &[Pattern]) -> Option<usize> {
        if self.numbers.is_empty() {
            return None;
        }
        let matches = self.set.matches_candidate(&Candidate::from_bytes(path));
        let numbers = matches.iter().filter_map(|glob| self.numbers.get(*glob));
        let applies = |number: &&usize| {
            let pattern = patterns.get(**number);
            pattern.is_some_and(|pattern| is_directory || !pattern.is_directory_only)
        };
        numbers.filter(applies).max().copied()
    }
}
