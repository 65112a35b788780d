//! Finds what a pattern matches in an archive.

use std::path::Path;

use refrain::{Archive, Entry, EntryKind};

use super::entries::{for_each, for_each_member, has_entries};
use crate::args::PatternArgs;
use crate::failure::Result;
use crate::names;
use crate::selection::{ListSelection, has_wildcards};

/// Something that a pattern matches.
pub enum Match<'a> {
    /// A member without entries.
    Member(usize),
    /// An entry of a member.
    Entry(usize, &'a Entry),
}

/// Calls `visit` for everything that a path matches as a pattern of `list`, in archive order. A
/// path without wildcards, or that is not a pattern, matches nothing.
///
/// # Errors
/// From reading the entries, and from `visit`.
pub fn for_each_match(
    archive: &Archive,
    archive_path: &Path,
    label: &str,
    pattern: &[u8],
    visit: &mut dyn FnMut(Match<'_>) -> Result<()>,
) -> Result<()> {
    if !has_wildcards(pattern) {
        return Ok(());
    }
    let Ok(selection) = ListSelection::load(&PatternArgs::default(), vec![pattern.to_vec()]) else {
        return Ok(());
    };
    let mut matched = selection.matched();
    let count = archive.member_count();
    for_each_member(archive, label, |index, member| {
        let name = names::of_member(archive_path, &member.name);
        if !has_entries(member) {
            let mut patterns = selection.for_member(b"", 1)?;
            return if patterns.wants(&name, false, &mut matched) {
                visit(Match::Member(index))
            } else {
                Ok(())
            };
        }
        let mut patterns = selection.for_member(&name, count)?;
        for_each(archive, index, label, |entry| {
            let is_directory = entry.kind == EntryKind::Directory;
            if patterns.wants(&entry.path, is_directory, &mut matched) {
                visit(Match::Entry(index, entry))
            } else {
                Ok(())
            }
        })
    })
}
