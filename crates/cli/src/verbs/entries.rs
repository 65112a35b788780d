//! Entries of archived directories: visits them, and finds them by path.

use std::path::Path;
use std::sync::Arc;

use refrain::directory::Problem;
use refrain::{Archive, Entry, ErrorKind, Member, MemberKind};
use refrain_pool::{SignalDelivery, start_detached};

use crate::entry_paths::{full_path, inside, normalized, prefix_of};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::names;
use crate::text::{counted, escaped, printable};

/// Whether a member consists of entries.
pub fn has_entries(member: &Member) -> bool {
    matches!(member.kind, MemberKind::Tree | MemberKind::Tar)
}

/// The prefix of the paths of a member's entries.
pub fn path_prefix(archive: &Archive, member: &Member) -> Vec<u8> {
    prefix_of(&member.name, archive.member_count())
}

/// Calls `visit` for each entry of a member, in archive order.
pub fn for_each(
    archive: &Archive,
    member: usize,
    label: &str,
    mut visit: impl FnMut(&Entry) -> Result<()>,
) -> Result<()> {
    let mut stopped = None;
    let visited = archive.for_each_entry(member, &mut |entry| stop(&mut stopped, visit(entry)));
    ended(stopped, visited, label)
}

/// Calls `visit` for each member and its number, in archive order.
pub fn for_each_member(
    archive: &Archive,
    label: &str,
    mut visit: impl FnMut(usize, &Member) -> Result<()>,
) -> Result<()> {
    let mut stopped = None;
    let visited =
        archive.for_each_member(&mut |index, member| stop(&mut stopped, visit(index, member)));
    ended(stopped, visited, label)
}

/// Ends the engine's loop after a failure, which is kept.
pub fn stop(stopped: &mut Option<Failure>, visited: Result<()>) -> refrain::Result<()> {
    visited.map_err(|failure| {
        let text = failure.to_string();
        *stopped = Some(failure);
        refrain::Error::new(ErrorKind::Io, text)
    })
}

/// The result of an engine's loop.
pub fn ended(stopped: Option<Failure>, visited: refrain::Result<()>, label: &str) -> Result<()> {
    match stopped {
        Some(failure) => Err(failure),
        None => visited.map_err(|error| Failure::engine(label, error)),
    }
}

/// What an archive contains besides files: data after its end, and parts of tar streams and zip
/// files that are not entries. Reads all entries of tar members.
pub fn unread(archive: &Archive, label: &str) -> Result<Vec<Problem>> {
    let mut problems: Vec<Problem> = skipped(archive).into_iter().collect();
    for_each_member(archive, label, |index, member| {
        if has_entries(member) {
            let found = archive.tar_problems(index);
            let found = found.map_err(|error| Failure::engine(label, error))?;
            let prefix = path_prefix(archive, member);
            problems.extend(found.into_iter().map(|problem| {
                if problem.path.is_empty() {
                    problem
                } else {
                    Problem {
                        path: full_path(&prefix, &problem.path),
                        ..problem
                    }
                }
            }));
        }
        Ok(())
    })?;
    Ok(problems)
}

/// The number of bytes of a file that belong to no archive.
pub fn skipped(archive: &Archive) -> Option<Problem> {
    // A scan reports such bytes as damaged places.
    let bytes = if archive.is_scanned() { 0 } else { archive.skipped_bytes() };
    let text = format!("{bytes} bytes of the file are not part of the archive and were ignored");
    (bytes > 0).then(|| Problem::damaged(b"", text))
}

/// Reports what cannot be shown of a served or mounted archive, while it is already in use.
pub fn tell_unread(archive: Arc<Archive>, label: &str, tell: impl Fn(&str) + Send + 'static) {
    let label = label.to_owned();
    let work = move || {
        // Damage is an error for whoever reads it.
        for problem in unread(&archive, &label).unwrap_or_default() {
            let text = printable(&problem.text);
            if problem.path.is_empty() {
                tell(&format!("{}: {text}", printable(&label)))
            } else {
                tell(&format!("{}: {text}", escaped(&problem.path)))
            }
        }
        match unsafe_paths(&archive, &label) {
            Ok(0) | Err(_) => {}
            Ok(count) => {
                let entries = counted(count, "entry");
                let label = printable(&label);
                tell(&format!(
                    "{label}: {entries} cannot be shown: their paths are unsafe"
                ));
            }
        }
    };
    start_detached("unread", SignalDelivery::OwnFaults, work);
}

/// The number of entries of tar members whose paths lead out of them.
fn unsafe_paths(archive: &Archive, label: &str) -> Result<u64> {
    let mut count = 0;
    for_each_member(archive, label, |index, member| {
        if member.kind != MemberKind::Tar {
            return Ok(());
        }
        for_each(archive, index, label, |entry| {
            let mut names = entry.path.split(|byte| *byte == b'/');
            count += u64::from(entry.path.starts_with(b"/") || names.any(|name| name == b".."));
            Ok(())
        })
    })?;
    Ok(count)
}

/// What a path in an archive means.
#[derive(Debug)]
pub enum Found {
    /// A whole member.
    Member(usize),
    /// An entry of a member.
    Entry(usize, Box<Entry>),
}

/// Finds a path as printed by `list`: a member by its name, or an entry of a member. Bytes are
/// compared; only `.` components, doubled and trailing slashes are ignored.
pub fn find(
    archive: &Archive,
    archive_path: &Path,
    label: &str,
    path: &[u8],
) -> Result<Option<Found>> {
    if let Some(member) =
        find_member(archive, archive_path, path).map_err(|error| Failure::engine(label, error))?
    {
        return Ok(Some(Found::Member(member)));
    }
    let (mut found, mut damaged) = (None, None);
    for_each_member(archive, label, |index, member| {
        let prefix = path_prefix(archive, member);
        let inside = inside(path, &prefix).filter(|_| found.is_none() && has_entries(member));
        let Some(inside) = inside else {
            return Ok(());
        };
        match find_entry(archive, index, label, inside) {
            // Another member may have it.
            Err(failure) if failure.exit() == Exit::Damaged => damaged = Some(failure),
            entry => {
                let entry = entry?;
                found = entry.map(|entry| Found::Entry(index, Box::new(entry)));
            }
        }
        Ok(())
    })?;
    match (found, damaged) {
        (None, Some(failure)) => Err(failure),
        (found, _) => Ok(found),
    }
}

/// The first member with this name. One without a name has the archive's, unless it is a directory,
/// which then is all of a zip file: it may have an entry of that name.
fn find_member(
    archive: &Archive,
    archive_path: &Path,
    path: &[u8],
) -> refrain::Result<Option<usize>> {
    let mut unnamed = None;
    if names::of_member(archive_path, b"") == path
        && let Some(found) = archive.find_member(b"")?
        && archive.member(found)?.kind != MemberKind::Tree
    {
        unnamed = Some(found);
    }
    let named = if path.is_empty() { None } else { archive.find_member(path)? };
    // The names of an index may be forged where those of its members are not.
    if let Some(found) = named
        && archive.member(found)?.name != path
    {
        let text = "the names in the index are not those of the members";
        return Err(refrain::Error::new(ErrorKind::Damaged, text));
    }
    Ok(unnamed.into_iter().chain(named).min())
}

/// The entry with this path inside a member. Of several with one path, as in a tar stream, the last
/// one wins, as in every tar program.
pub fn find_entry(
    archive: &Archive,
    member: usize,
    label: &str,
    path: &[u8],
) -> Result<Option<Entry>> {
    let wanted = normalized(path);
    let plain = if wanted.is_empty() { b".".to_vec() } else { wanted.join(&b'/') };
    let spellings = if path == plain { vec![plain] } else { vec![path.to_vec(), plain] };
    for spelling in spellings {
        let found = archive.find_entry(member, &spelling);
        if let Some(entry) = found.map_err(|error| Failure::engine(label, error))? {
            return Ok(Some(entry));
        }
    }
    // Paths in a directory have one spelling, paths in a tar stream any.
    let member_found = archive.member(member);
    let kind = member_found
        .map_err(|error| Failure::engine(label, error))?
        .kind;
    if kind != MemberKind::Tar {
        return Ok(None);
    }
    let mut found = None;
    let visited = for_each(archive, member, label, |entry| {
        if normalized(&entry.path) == wanted {
            found = Some(entry.clone());
        }
        Ok(())
    });
    match (found, visited) {
        (None, Err(failure)) => Err(failure),
        (found, _) => Ok(found),
    }
}
