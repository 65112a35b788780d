//! Suggestions for mistyped names.

use std::path::Path;

use refrain::Archive;

use super::entries::{for_each, for_each_member, has_entries, path_prefix};
use crate::entry_paths::full_path;
use crate::failure::Result;
use crate::names;
use crate::text::quoted;

/// The maximum number of suggestions.
const SUGGESTIONS_MAX: usize = 3;
/// The maximum number of single-byte changes between a name and a suggestion.
const CHANGES_MAX: usize = 2;
/// Longer paths are not compared byte by byte.
const COMPARED_BYTES_MAX: usize = 512;

/// The names most similar to one that does not exist, best first.
#[derive(Debug)]
struct NearNames {
    wanted: Vec<u8>,
    best: Vec<(usize, Vec<u8>)>,
}

impl NearNames {
    /// No names so far.
    fn new(wanted: &[u8]) -> NearNames {
        NearNames {
            wanted: wanted.to_vec(),
            best: Vec::new(),
        }
    }

    /// Considers an existing name.
    fn offer(&mut self, path: &[u8]) {
        let worst = match self.best.get(SUGGESTIONS_MAX - 1) {
            Some((distance, _)) => *distance,
            None => usize::MAX,
        };
        let Some(distance) = distance(&self.wanted, path).filter(|found| *found < worst) else {
            return;
        };
        let position = self.best.partition_point(|(other, _)| *other <= distance);
        self.best.insert(position, (distance, path.to_vec()));
        self.best.truncate(SUGGESTIONS_MAX);
    }

    /// `; did you mean "a" or "b"?`, or another hint.
    fn text(&self) -> String {
        let names: Vec<String> = self.best.iter().map(|(_, path)| quoted(path)).collect();
        match names.as_slice() {
            [] => " (see `refrain list`)".to_string(),
            [only] => format!("; did you mean {only}?"),
            [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
        }
    }
}

/// What to say about a path that an archive does not have. Reads all entries.
///
/// # Errors
/// From reading the entries.
pub fn not_found_text(
    archive: &Archive,
    archive_path: &Path,
    label: &str,
    path: &[u8],
) -> Result<String> {
    let mut near = NearNames::new(path);
    for_each_member(archive, label, |index, member| {
        let prefix = path_prefix(archive, member);
        if !has_entries(member) {
            near.offer(&names::of_member(archive_path, &member.name))
        } else {
            for_each(archive, index, label, |entry| {
                near.offer(&full_path(&prefix, &entry.path));
                Ok(())
            })?
        }
        Ok(())
    })?;
    Ok(format!("holds no {}{}", quoted(path), near.text()))
}

/// The distance between two paths; `None` if they are not similar.
fn distance(wanted: &[u8], path: &[u8]) -> Option<usize> {
    if wanted.eq_ignore_ascii_case(path) {
        return Some(0);
    }
    // The user left out a part of the path before the name, or gave too much of it.
    if ends_with_path(path, wanted) || ends_with_path(wanted, path) {
        return Some(1);
    }
    if let Some(changes) = changes(wanted, path) {
        return Some(1 + changes);
    }
    let name = last_component(path);
    if name.len() > 1 && name.eq_ignore_ascii_case(last_component(wanted)) {
        Some(2 + CHANGES_MAX)
    } else {
        None
    }
}

fn ends_with_path(path: &[u8], end: &[u8]) -> bool {
    let rest = path.strip_suffix(end);
    !end.is_empty() && rest.is_some_and(|rest| rest.ends_with(b"/"))
}

fn last_component(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The number of bytes to insert, remove or replace (Levenshtein distance), if at most
/// [`CHANGES_MAX`] and less than half of the name.
fn changes(one: &[u8], other: &[u8]) -> Option<usize> {
    let max = CHANGES_MAX.min((one.len().saturating_sub(1)) / 2);
    if one.len().abs_diff(other.len()) > max || one.len() > COMPARED_BYTES_MAX {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, left) in one.iter().enumerate() {
        let mut diagonal = line;
        let mut previous = line + 1;
        let mut least = previous;
        for (right, above) in other.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(left != right);
            diagonal = *above;
            previous = replaced.min(*above + 1).min(previous + 1);
            *above = previous;
            least = least.min(previous);
        }
        if least > max {
            return None;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().filter(|changes| *changes <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_up_to_the_limit() {
        for (one, other, expected) in [
            ("main.rs", "main.rs", Some(0)),
            ("main.rs", "mian.rs", Some(2)),
            ("main.rs", "main.rss", Some(1)),
            ("main.rs", "ain.rs", Some(1)),
            ("main.rs", "maim.rs", Some(1)),
            ("main.rs", "other.c", None),
            ("a", "b", None),
            ("abc", "abd", Some(1)),
            ("abc", "xyz", None),
        ] {
            assert_eq!(
                changes(one.as_bytes(), other.as_bytes()),
                expected,
                "{one} {other}"
            );
        }
    }

    #[test]
    fn the_nearest_names_are_suggested_first() {
        let mut near = NearNames::new(b"src/Main.rs");
        for path in [
            "x",
            "deep/src/Main.rs",
            "src/mains.rs",
            "old/main.rs",
            "src/main.rs",
        ] {
            near.offer(path.as_bytes());
        }
        let text = near.text();
        assert_eq!(
            text,
            "; did you mean \"src/main.rs\", \"deep/src/Main.rs\" or \"src/mains.rs\"?"
        );
        assert_eq!(NearNames::new(b"x").text(), " (see `refrain list`)");
    }
}
