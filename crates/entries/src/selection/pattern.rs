//! One pattern in gitignore's syntax, as a glob.

use std::fmt;

use globset::{Glob, GlobBuilder};

use super::class::translate_class;

/// Why a pattern is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectionError {
    /// The pattern has only marks (`!`, `/`).
    Empty {
        /// The pattern.
        pattern: String,
    },
    /// The pattern is malformed.
    Malformed {
        /// The pattern.
        pattern: String,
        /// What is wrong.
        reason: String,
    },
    /// The patterns together are too large.
    TooLarge {
        /// Their number.
        patterns: usize,
        /// What is wrong.
        reason: String,
    },
}

impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { pattern } => write!(f, "pattern {pattern:?} is empty"),
            Self::Malformed { pattern, reason } => write!(f, "pattern {pattern:?}: {reason}"),
            Self::TooLarge { patterns, reason } => write!(f, "{patterns} patterns: {reason}"),
        }
    }
}

impl std::error::Error for SelectionError {}

/// Bytes that are not UTF-8 are written as characters of this private range, and so are the range's
/// own characters, byte by byte; so different bytes stay different.
const ESCAPES_START: u32 = 0xF_FE00;

#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) glob: Glob,
    pub(super) takes_back: bool,
    pub(super) is_directory_only: bool,
    pub(super) is_escaped: bool,
    /// The names without wildcards with which all its paths begin; `None` for patterns that match
    /// at any depth.
    first_names: Option<Vec<Vec<u8>>>,
    /// Whether `first_names` is the whole pattern.
    is_literal: bool,
}

/// The patterns of a file: its lines without comments, blank lines and trailing spaces.
pub(super) fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| !line.starts_with(b"#"));
    let lines = lines.map(without_spaces_at_end);
    lines
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// Removes trailing spaces; one after `\` stays.
fn without_spaces_at_end(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut position = 0;
    while let Some(byte) = line.get(position) {
        position += if *byte == b'\\' { 2 } else { 1 };
        if *byte != b' ' {
            end = position.min(line.len());
        }
    }
    line.get(..end).unwrap_or(line)
}

impl Pattern {
    pub(super) fn parse(text: &[u8]) -> Result<Pattern, SelectionError> {
        let shown = || String::from_utf8_lossy(text).into_owned();
        let (takes_back, rest) = match text.strip_prefix(b"!") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (is_directory_only, rest) = match rest.strip_suffix(b"/") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let is_anchored = rest.contains(&b'/');
        let path = rest.strip_prefix(b"/").unwrap_or(rest);
        if path.is_empty() {
            return Err(SelectionError::Empty { pattern: shown() });
        }
        let is_escaped = std::str::from_utf8(path).is_err();
        let escaped = if is_escaped {
            escape_bytes(path)
        } else {
            String::from_utf8_lossy(path).into_owned()
        };
        let malformed = |reason: &str| SelectionError::Malformed {
            pattern: shown(),
            reason: reason.to_string(),
        };
        check_names(path).map_err(malformed)?;
        let glob = glob_text(&escaped, is_anchored).map_err(malformed)?;
        let built = GlobBuilder::new(&glob)
            .literal_separator(true)
            .backslash_escape(true)
            .build();
        let glob = built.map_err(|error| malformed(&error.kind().to_string()))?;
        let (first_names, is_literal) = literal_names(path);
        Ok(Pattern {
            glob,
            takes_back,
            is_directory_only,
            is_escaped,
            first_names: is_anchored.then_some(first_names),
            is_literal,
        })
    }

    /// Whether it may match something below a directory.
    pub(super) fn may_match_below(&self, directory: &[u8]) -> bool {
        let Some(first) = &self.first_names else {
            return true;
        };
        let names: Vec<_> = directory.split(|byte| *byte == b'/').collect();
        if self.is_literal && names.len() >= first.len() {
            return false;
        }
        first.iter().zip(&names).all(|(first, name)| first == name)
    }
}

/// The glob of a pattern: gitignore's meaning in globset's syntax.
fn glob_text(path: &str, is_anchored: bool) -> Result<String, &'static str> {
    let mut glob = String::with_capacity(path.len() + 8);
    if !is_anchored {
        glob.push_str("**/");
    }
    let mut characters = path.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => glob.extend(['\\', characters.next().ok_or("it ends with '\\'")?]),
            // gitignore has no alternatives.
            '{' | '}' => glob.extend(['\\', character]),
            '[' => glob.push_str(&translate_class(&mut characters, is_escape)?),
            character => glob.push(character),
        }
    }
    if glob.ends_with("/**") {
        // Everything inside, but not the directory itself.
        glob.push_str("/*");
    }
    Ok(glob)
}

/// Refuses names that no path has: such a pattern would silently match nothing.
fn check_names(path: &[u8]) -> Result<(), &'static str> {
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" => return Err("a name between two '/' is empty"),
            b"." | b".." => return Err("no path contains '.' or '..'; '/' is the root"),
            _ => {}
        }
    }
    Ok(())
}

/// The names without wildcards at the beginning of a pattern, and whether they are all of it.
fn literal_names(path: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut names = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        if name.iter().any(|byte| b"*?[\\".contains(byte)) {
            return (names, false);
        }
        names.push(name.to_vec());
    }
    (names, true)
}

/// Replaces bytes that are not UTF-8, and the characters that stand for them, by characters of a
/// private range. Different bytes give different texts.
pub(super) fn escape_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_escape(character) {
                push_escapes(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes())
            } else {
                text.push(character)
            }
        }
        push_escapes(&mut text, chunk.invalid());
    }
    text
}

fn is_escape(character: char) -> bool {
    (ESCAPES_START..ESCAPES_START + 0x100).contains(&u32::from(character))
}

fn push_escapes(text: &mut String, bytes: &[u8]) {
    let escape = |byte: &u8| char::from_u32(ESCAPES_START + u32::from(*byte));
    text.extend(bytes.iter().filter_map(escape));
}
