//! The entries of archived directories: visited one by one, and found by their path.

use std::path::Path;

use refrain::{Archive, Entry, EntryKind, Member, MemberKind};

use crate::failure::{Failure, Result};
use crate::names;

/// Whether a member consists of entries.
pub fn has_entries(member: &Member) -> bool {
    matches!(member.kind, MemberKind::Tree | MemberKind::Tar)
}

/// The prefix of the paths of a member's entries: empty if it is the only member, else its name and
/// a slash.
pub fn path_prefix(archive: &Archive, member: &Member) -> Vec<u8> {
    match archive.members().len() {
        1 => Vec::new(),
        _ => [&member.name, &b"/"[..]].concat(),
    }
}

/// The path of an entry below `prefix`. That of a directory member itself is the prefix without its
/// slash.
pub fn full_path(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    match (prefix.strip_suffix(b"/"), normalized(path).is_empty()) {
        (Some(name), true) => name.to_vec(),
        _ => [prefix, path].concat(),
    }
}

/// Calls `visit` for each entry of a member, in the archive's order.
pub fn for_each(
    archive: &Archive,
    member: usize,
    label: &str,
    mut visit: impl FnMut(&Entry) -> Result<()>,
) -> Result<()> {
    let entries = archive
        .entries(member)
        .map_err(|error| Failure::engine(label, error))?;
    let listed = entries.iter().filter(|entry| entry.kind != EntryKind::Raw);
    for entry in listed {
        visit(entry)?;
    }
    Ok(())
}

/// What a path in an archive means.
#[derive(Debug)]
pub enum Found {
    /// A whole member.
    Member(usize),
    /// An entry of a member.
    Entry(usize, Box<Entry>),
}

/// Finds a path as `list` prints it: a member by its name, or an entry of a member. Bytes are
/// compared; only `.` as a component, doubled slashes and slashes at the end do not count.
pub fn find(
    archive: &Archive,
    archive_path: &Path,
    label: &str,
    path: &[u8],
) -> Result<Option<Found>> {
    let members = archive.members();
    let is_called = |member: &Member| names::of_member(archive_path, &member.name) == path;
    if let Some(index) = members.iter().position(is_called) {
        return Ok(Some(Found::Member(index)));
    }
    for (index, member) in members.iter().enumerate() {
        let prefix = path_prefix(archive, member);
        let Some(inside) = inside(path, &prefix).filter(|_| has_entries(member)) else {
            continue;
        };
        if let Some(entry) = find_entry(archive, index, label, inside)? {
            return Ok(Some(Found::Entry(index, Box::new(entry))));
        }
    }
    Ok(None)
}

/// The part of `path` below a member with this prefix; `.` is the member itself.
fn inside<'a>(path: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let path = path.strip_prefix(b"./").unwrap_or(path);
    let rest = path.strip_prefix(prefix)?;
    Some(if rest.is_empty() { b"." } else { rest })
}

/// The entry with this path inside a member. Of several with one path, as a tar stream may have
/// them, the last one counts, as for every tar program.
pub fn find_entry(
    archive: &Archive,
    member: usize,
    label: &str,
    path: &[u8],
) -> Result<Option<Entry>> {
    let wanted = normalized(path);
    let mut found = None;
    for_each(archive, member, label, |entry| {
        if normalized(&entry.path) == wanted {
            found = Some(entry.clone());
        }
        Ok(())
    })?;
    Ok(found)
}

/// The components of a path, without those that mean nothing. An absolute path is none of a
/// relative one.
pub fn normalized(path: &[u8]) -> Vec<&[u8]> {
    let root = path.first().filter(|&&first| first == b'/');
    let components = path.split(|&byte| byte == b'/');
    let components = components.filter(|part| !part.is_empty() && *part != b".");
    root.map(|_| &b"/"[..])
        .into_iter()
        .chain(components)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_are_equal() {
        for path in ["a/b", "./a/b", "a/b/", "a//b", "./a/./b//"] {
            assert_eq!(normalized(path.as_bytes()), [b"a", b"b"], "{path}");
        }
        for path in ["/a/b", "a/b/c", "a/../a/b", "a\u{fffd}/b"] {
            assert_ne!(normalized(path.as_bytes()), [b"a", b"b"], "{path}");
        }
        assert_ne!(normalized(b"a\xff"), normalized(b"a\xfe"));
    }

    #[test]
    fn the_prefix_alone_is_the_member() {
        assert_eq!(inside(b"tree/", b"tree/"), Some(&b"."[..]));
        assert_eq!(inside(b"./tree/a", b"tree/"), Some(&b"a"[..]));
        assert_eq!(inside(b"tree2/a", b"tree/"), None);
        assert_eq!(inside(b"a", b""), Some(&b"a"[..]));
        assert_eq!(full_path(b"tree/", b"."), b"tree");
        assert_eq!(full_path(b"tree/", b"a"), b"tree/a");
        assert_eq!(full_path(b"", b"."), b".");
    }
}
