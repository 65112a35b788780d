//! The entries of archived directories: visited one by one, and found by their path.

use std::path::Path;

use refrain::{Archive, Entry, ErrorKind, Member, MemberKind};

use crate::entry_paths::{inside, normalized, prefix_of};
use crate::failure::{Failure, Result};
use crate::names;

/// Whether a member consists of entries.
pub fn has_entries(member: &Member) -> bool {
    matches!(member.kind, MemberKind::Tree | MemberKind::Tar)
}

/// The prefix of the paths of a member's entries.
pub fn path_prefix(archive: &Archive, member: &Member) -> Vec<u8> {
    prefix_of(&member.name, archive.members().len())
}

/// Calls `visit` for each entry of a member, in the archive's order.
pub fn for_each(
    archive: &Archive,
    member: usize,
    label: &str,
    mut visit: impl FnMut(&Entry) -> Result<()>,
) -> Result<()> {
    let mut stopped = None;
    let visited = archive.for_each_entry(member, &mut |entry| {
        visit(entry).map_err(|failure| {
            let text = failure.to_string();
            stopped = Some(failure);
            refrain::Error::new(ErrorKind::Io, text)
        })
    });
    match stopped {
        Some(failure) => Err(failure),
        None => visited.map_err(|error| Failure::engine(label, error)),
    }
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

/// The entry with this path inside a member. Of several with one path, as a tar stream may have
/// them, the last one counts, as for every tar program.
pub fn find_entry(
    archive: &Archive,
    member: usize,
    label: &str,
    path: &[u8],
) -> Result<Option<Entry>> {
    let wanted = normalized(path);
    let plain = match wanted.is_empty() {
        true => b".".to_vec(),
        false => wanted.join(&b'/'),
    };
    let spellings = match path == plain {
        true => vec![plain],
        false => vec![path.to_vec(), plain],
    };
    for spelling in spellings {
        let found = archive.find_entry(member, &spelling);
        if let Some(entry) = found.map_err(|error| Failure::engine(label, error))? {
            return Ok(Some(entry));
        }
    }
    // The paths of a directory have one spelling, those of a tar stream any.
    let kind = archive.members().get(member).map(|member| member.kind);
    if kind != Some(MemberKind::Tar) {
        return Ok(None);
    }
    let mut found = None;
    for_each(archive, member, label, |entry| {
        if normalized(&entry.path) == wanted {
            found = Some(entry.clone());
        }
        Ok(())
    })?;
    Ok(found)
}
