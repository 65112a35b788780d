//! Which entries of a tree are wanted: patterns and paths.
//!
//! | module | contents |
//! |---|---|
//! | `class` | classes of characters in patterns |
//! | `pattern` | one pattern in gitignore's syntax |
//! | `rules` | a list of patterns of which the last match decides |

mod class;
mod pattern;
mod rules;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use pattern::SelectionError;
use rules::{Rules, Verdict};

/// What to do with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is wanted.
    Include,
    /// It is not wanted, and neither is anything below it.
    Exclude,
    /// A directory that is wanted only if something below it is.
    Descend,
}

/// Which entries of a tree are wanted. The same rules hold when a tree is compressed, restored and
/// listed. By default everything is wanted.
///
/// # Patterns
///
/// Patterns have the syntax of `gitignore`; paths are relative to the root of the tree.
///
/// - `*` stands for any bytes of one name, `?` for one byte of a name, `[a-z]` for one of these
///   bytes, `[!a-z]` for one other byte. `\` before a character takes it literally.
/// - A pattern without `/`, or with one at its end only, matches names at any depth: `*.o`.
/// - A pattern with `/` at its beginning or inside matches paths from the root: `/build`,
///   `docs/*.html`. `**` stands for any number of names there: `a/**/z`, `**/a/z`; `a/**` is
///   everything inside `a`.
/// - A pattern that ends with `/` matches directories only.
/// - `!` before a pattern takes back what earlier patterns of the same kind matched; of all
///   patterns that match a path, the last decides. What lies below an excluded directory cannot be
///   taken back.
/// - In files of patterns, lines that are empty or begin with `#` are comments, and spaces at the
///   end of a line do not count unless `\` is before them. A pattern for a name that begins with
///   `!` or `#` begins with `\`.
///
/// # Which entries are wanted
///
/// 1. What an exclude pattern matches is not wanted, nor is anything below it.
/// 2. If there are paths or include patterns, only what they name is wanted: a path names that very
///    entry and everything below it, an include pattern what it matches and everything below that.
///    The directories above a wanted entry are wanted with it, for their modes and owners.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    excludes: Rules,
    includes: Rules,
    paths: BTreeSet<Vec<u8>>,
    /// Whether there are paths or include patterns.
    is_limited: bool,
}

/// Collects the patterns and paths of a [`Selection`].
#[derive(Debug, Clone, Default)]
pub struct SelectionBuilder {
    excludes: Vec<Vec<u8>>,
    includes: Vec<Vec<u8>>,
    paths: BTreeSet<Vec<u8>>,
    is_limited: bool,
}

impl SelectionBuilder {
    /// Adds a pattern to exclude.
    pub fn exclude(&mut self, pattern: &[u8]) -> &mut Self {
        self.excludes.push(pattern.to_vec());
        self
    }

    /// Adds the exclude patterns of a file, with comments and blank lines.
    pub fn exclude_lines(&mut self, text: &[u8]) -> &mut Self {
        self.excludes.extend(pattern::lines(text));
        self
    }

    /// Adds a pattern to include.
    pub fn include(&mut self, pattern: &[u8]) -> &mut Self {
        self.is_limited = true;
        self.includes.push(pattern.to_vec());
        self
    }

    /// Adds the include patterns of a file, with comments and blank lines. If it has none, nothing
    /// is wanted.
    pub fn include_lines(&mut self, text: &[u8]) -> &mut Self {
        self.is_limited = true;
        self.includes.extend(pattern::lines(text));
        self
    }

    /// Adds a wanted path with everything below it: its bytes, not a pattern. `.` is the whole
    /// tree.
    pub fn path(&mut self, path: &[u8]) -> &mut Self {
        self.is_limited = true;
        self.paths
            .insert(names(path).collect::<Vec<_>>().join(&b'/'));
        self
    }

    /// Makes the selection.
    ///
    /// # Errors
    /// The first malformed or meaningless pattern.
    pub fn build(&self) -> Result<Selection, SelectionError> {
        Ok(Selection {
            excludes: Rules::new(&self.excludes)?,
            includes: Rules::new(&self.includes)?,
            paths: self.paths.clone(),
            is_limited: self.is_limited,
        })
    }
}

impl Selection {
    /// A selection without patterns or paths, to add some.
    #[must_use]
    pub fn builder() -> SelectionBuilder {
        SelectionBuilder::default()
    }

    /// Whether there are neither patterns nor paths.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        !self.is_limited && self.excludes.is_empty()
    }

    /// Decides about an entry by its path inside the tree: relative to the root, which is `.` or
    /// empty. The directories above it are taken into account.
    #[must_use]
    pub fn decide(&self, path: &[u8], is_directory: bool) -> Decision {
        if self.is_everything() {
            return Decision::Include;
        }
        let mut is_included = !self.is_limited || self.paths.contains(&b""[..]);
        let mut parent = Vec::new();
        let mut names = names(path).peekable();
        while let Some(name) = names.next() {
            if !parent.is_empty() {
                parent.push(b'/');
            }
            parent.extend_from_slice(name);
            let is_directory = is_directory || names.peek().is_some();
            if self.excludes.verdict(&parent, is_directory) == Verdict::Matched {
                return Decision::Exclude;
            }
            is_included = match self.includes.verdict(&parent, is_directory) {
                Verdict::Matched => true,
                Verdict::TakenBack => false,
                Verdict::NotMatched => is_included,
            } || self.paths.contains(&parent);
        }
        match is_included {
            true => Decision::Include,
            false if is_directory && self.may_hold_wanted(&parent) => Decision::Descend,
            false => Decision::Exclude,
        }
    }

    fn may_hold_wanted(&self, directory: &[u8]) -> bool {
        if directory.is_empty() || self.includes.may_match_below(directory) {
            return true;
        }
        let below = [directory, b"/"].concat();
        let next = self.paths.range(below.clone()..).next();
        next.is_some_and(|path| path.starts_with(&below))
    }
}

/// The names of a path, without `.` and empty ones.
fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let names = path.split(|byte| *byte == b'/');
    names.filter(|name| !matches!(*name, b"" | b"."))
}
