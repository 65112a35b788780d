//! The format's part of an entry: the ids of the kinds, and the checks.

use refrain_tree::{Entry, EntryKind, ascend};

use crate::check::{check_positive, check_range, check_text, check_timestamp};
use crate::error::{FormatError, Result};
use crate::limits::PATH_BYTES_MAX;

/// All kinds of entries, by ascending id.
pub(super) const ENTRY_KINDS: [EntryKind; 9] = [
    EntryKind::File,
    EntryKind::Directory,
    EntryKind::Symlink,
    EntryKind::Hardlink,
    EntryKind::CharacterDevice,
    EntryKind::BlockDevice,
    EntryKind::Fifo,
    EntryKind::Other,
    EntryKind::Raw,
];

/// The id of a kind in an archive.
pub(super) fn entry_kind_id(kind: EntryKind) -> u8 {
    match kind {
        EntryKind::File => 1,
        EntryKind::Directory => 2,
        EntryKind::Symlink => 3,
        EntryKind::Hardlink => 4,
        EntryKind::CharacterDevice => 5,
        EntryKind::BlockDevice => 6,
        EntryKind::Fifo => 7,
        EntryKind::Other => 8,
        EntryKind::Raw => 9,
    }
}

pub(super) fn entry_kind_from_id(id: u8) -> Result<EntryKind> {
    ENTRY_KINDS
        .into_iter()
        .find(|&kind| entry_kind_id(kind) == id)
        .ok_or(FormatError::Value {
            what: "entry kind",
            value: u64::from(id),
            rule: "from 1 to 9",
        })
}

pub(super) fn check_entry(entry: &Entry) -> Result<()> {
    check_positive("entry path bytes", entry.path.len() as u64)?;
    check_text("entry path", &entry.path, PATH_BYTES_MAX)?;
    check_range("end of an entry", entry.content_offset, entry.size_bytes)?;
    check_timestamp(entry.modified)?;
    match (&entry.link_target, entry.kind.is_link()) {
        (Some(target), true) => check_text("link target", target, PATH_BYTES_MAX),
        (None, false) => Ok(()),
        (target, _) => Err(FormatError::Value {
            what: "link target bytes",
            value: target.as_ref().map_or(0, |target| target.len() as u64),
            rule: "present for links only",
        }),
    }
}

/// Whether the paths of the entries ascend strictly by [`refrain_tree::compare_paths`], so that
/// [`MemberEnd::entries_are_sorted`](crate::MemberEnd::entries_are_sorted) may say so. Entries of
/// kind [`EntryKind::Raw`] have no path and do not count. False for no entries.
#[must_use]
pub fn entries_are_sorted(entries: &[Entry]) -> bool {
    let named = entries.iter().filter(|entry| entry.kind != EntryKind::Raw);
    !entries.is_empty() && ascend(named.map(|entry| entry.path.as_slice()))
}

/// The number of bytes of an entry's path and link target together.
pub(super) fn text_bytes(entry: &Entry) -> usize {
    entry.path.len() + entry.link_target.as_ref().map_or(0, Vec::len)
}
