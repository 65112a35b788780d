//! Archives that somebody must vouch for: checked completely before anything of them is used.

use std::path::Path;

use refrain::{Archive, Authenticated, ReadOptions, Trust};

use super::entries::{self, Found, has_entries};
use super::near_names;
use crate::failure::{Failure, Result};
use crate::report::Meter;
use crate::selection::{ArchiveSelection, Wanted};

/// Compares the content of these members with what somebody vouches for. `None` if nobody is asked
/// for. Reads little else.
///
/// # Errors
/// `Damaged` if nobody vouches for it, or it is something else.
pub fn check(
    archive: &Archive,
    trust: &Trust,
    members: &[usize],
    label: &str,
    meter: &Meter,
) -> Result<Option<Authenticated>> {
    if trust.is_none() {
        return Ok(None);
    }
    let failure = |error| Failure::engine(label, error);
    let found = archive
        .authenticate(trust, Some(members))
        .map_err(failure)?;
    check_members(archive, members, label, meter)?;
    Ok(Some(found))
}

/// Compares what is selected of an archive with what somebody vouches for, and all members with the
/// root hash.
///
/// # Errors
/// As [`check`].
pub fn check_selected(
    archive: &Archive,
    (trust, options): (&Trust, &ReadOptions),
    selection: &ArchiveSelection,
    label: &str,
    meter: &Meter,
) -> Result<()> {
    let failure = |error| Failure::engine(label, error);
    let found = archive.authenticate(trust, None).map_err(failure)?;
    match selected_members(archive, selection, label)? {
        None => {
            let checked = archive.check_root(&found.root_hash, options, meter);
            checked.map(|_| ()).map_err(failure)
        }
        Some(members) => check_members(archive, &members, label, meter),
    }
}

/// Compares the content of members with their hashes.
///
/// # Errors
/// `Damaged` if it is something else.
pub fn check_members(
    archive: &Archive,
    members: &[usize],
    label: &str,
    meter: &Meter,
) -> Result<()> {
    let mut members = members.iter();
    let checked = members.try_for_each(|member| archive.check_member(*member, meter));
    checked.map_err(|error| Failure::engine(label, error))
}

/// Refuses to ask for a signature where none can be checked before content is used.
///
/// # Errors
/// `Usage` if one is asked for.
pub fn refuse_stream(trust: &Trust, label: &str) -> Result<()> {
    if trust.is_none() {
        return Ok(());
    }
    let text = "is a pipe: a signature vouches for content only when all of it was compared, so \
                write it to a file first";
    Err(Failure::usage(label, text))
}

/// Refuses what nobody can vouch for.
///
/// # Errors
/// `Refused` if somebody is asked to.
pub fn refuse_other_format(trust: &Trust, label: &str) -> Result<()> {
    if trust.is_none() {
        return Ok(());
    }
    let text = "nobody can vouch for this: only archives of Refrain's own format have a root hash";
    Err(Failure::refused(label, text))
}

/// The members that have what is named: themselves, or as entries.
///
/// # Errors
/// `Usage` if the archive has no such thing.
pub fn members_with<'p>(
    archive: &Archive,
    archive_path: &Path,
    label: &str,
    paths: impl Iterator<Item = &'p [u8]>,
) -> Result<Vec<usize>> {
    let mut members = vec![];
    for path in paths {
        match entries::find(archive, archive_path, label, path)? {
            Some(Found::Member(member) | Found::Entry(member, _)) => members.push(member),
            None => {
                let text = near_names::not_found_text(archive, archive_path, label, path)?;
                return Err(Failure::usage(label, text));
            }
        }
    }
    Ok(members)
}

/// The members of which something is selected; `None`: everything.
///
/// # Errors
/// From the patterns and the index.
fn selected_members(
    archive: &Archive,
    selection: &ArchiveSelection,
    label: &str,
) -> Result<Option<Vec<usize>>> {
    if selection.is_everything() {
        return Ok(None);
    }
    let count = archive.member_count();
    let mut members = vec![];
    entries::for_each_member(archive, label, |number, member| {
        let wanted = if has_entries(member) {
            selection.for_tree(&member.name, Some(count))?
        } else {
            selection.for_file(&member.name)?
        };
        if !matches!(wanted, Wanted::Nothing) {
            members.push(number);
        }
        Ok(())
    })?;
    Ok(Some(members))
}
