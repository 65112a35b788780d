//! The format's part of an entry: the ids of the kinds, and the checks.

use refrain_entries::{Entry, EntryKind, ExtendedAttribute, Owner, ascend};

use crate::check::{check_limit, check_range, check_text, check_timestamp};
use crate::error::{FormatError, Result};
use crate::limits::{ENTRY_BYTES_PER_FRAME_MAX, PATH_BYTES_MAX};

/// What an attribute or data range counts besides its bytes: roughly its size in memory.
const ATTRIBUTE_BYTES: usize = 48;
const DATA_RANGE_BYTES: usize = 16;

/// All kinds of entries, by ascending id.
pub(super) const ENTRY_KINDS: [EntryKind; 10] = [
    EntryKind::File,
    EntryKind::Directory,
    EntryKind::Symlink,
    EntryKind::Hardlink,
    EntryKind::CharacterDevice,
    EntryKind::BlockDevice,
    EntryKind::Fifo,
    EntryKind::Other,
    EntryKind::Raw,
    EntryKind::Removed,
];

/// The id of a file whose content is rebased.
pub(super) const REBASED_FILE: u8 = 11;

/// The id of an entry's kind, which tells whether its content is rebased.
pub(crate) fn entry_kind_id(kind: EntryKind, is_rebased: bool) -> u8 {
    match kind {
        EntryKind::File if is_rebased => REBASED_FILE,
        EntryKind::File => 1,
        EntryKind::Directory => 2,
        EntryKind::Symlink => 3,
        EntryKind::Hardlink => 4,
        EntryKind::CharacterDevice => 5,
        EntryKind::BlockDevice => 6,
        EntryKind::Fifo => 7,
        EntryKind::Other => 8,
        EntryKind::Raw => 9,
        EntryKind::Removed => 10,
    }
}

/// The kind with an id, and whether the entry's content is rebased.
pub(super) fn entry_kind_from_id(id: u64) -> Result<(EntryKind, bool)> {
    let kinds = ENTRY_KINDS.map(|kind| (kind, false)).into_iter();
    kinds
        .chain([(EntryKind::File, true)])
        .find(|&(kind, is_rebased)| u64::from(entry_kind_id(kind, is_rebased)) == id)
        .ok_or(FormatError::Reserved {
            what: "entry kind",
            value: id,
        })
}

/// Checks that the format can hold an entry.
///
/// # Errors
/// Values beyond its limits, and entries that contradict themselves.
pub fn check_storable(entry: &Entry) -> Result<()> {
    check_entry(entry)?;
    let frame_bytes_max = ENTRY_BYTES_PER_FRAME_MAX as u64;
    check_limit(
        "bytes of an entry",
        entry_bytes(entry) as u64,
        frame_bytes_max,
    )
}

pub(super) fn check_entry(entry: &Entry) -> Result<()> {
    check_owner(&entry.owner)?;
    check_attributes(&entry.attributes)?;
    check_own_fields(entry)
}

/// Checks all fields but owner and attributes, which belong to the entry's class.
pub(super) fn check_own_fields(entry: &Entry) -> Result<()> {
    check_path(entry)?;
    check_timestamp(entry.modified)?;
    check_data(entry)?;
    if entry.change_stamp != 0 && entry.kind != EntryKind::File {
        return Err(FormatError::Value {
            what: "stamp of an entry",
            value: u64::from(entry.change_stamp),
            rule: "0 except for files",
        });
    }
    if entry.device != (0, 0) && !entry.kind.is_device() {
        return Err(FormatError::Value {
            what: "device number",
            value: u64::from(entry.device.0.max(entry.device.1)),
            rule: "0 except for devices",
        });
    }
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

fn check_path(entry: &Entry) -> Result<()> {
    check_text("entry path", &entry.path, PATH_BYTES_MAX)?;
    if entry.path.is_empty() == (entry.kind == EntryKind::Raw) {
        Ok(())
    } else {
        Err(FormatError::Value {
            what: "entry path bytes",
            value: entry.path.len() as u64,
            rule: "at least 1, but 0 for raw bytes of a tar stream",
        })
    }
}

fn check_data(entry: &Entry) -> Result<()> {
    check_range("size of an entry", entry.size_bytes, 0)?;
    if !entry.kind.has_data() {
        if entry.size_bytes != 0 || entry.data_ranges.is_some() {
            return Err(FormatError::Value {
                what: "size of an entry",
                value: entry.size_bytes,
                rule: "0, without data ranges, for kinds without data",
            });
        }
        check_range("content offset of an entry", entry.content_offset, 0)?;
        return Ok(());
    }
    check_rebased(entry)?;
    let mut previous_end = None;
    for range in entry.data_ranges.iter().flatten() {
        let starts_late = previous_end.is_none_or(|end| range.start > end);
        if !starts_late || range.start >= range.end || range.end > entry.size_bytes {
            return Err(FormatError::Value {
                what: "start of a data range",
                value: range.start,
                rule: "in ascending, not adjacent, not empty ranges inside the file",
            });
        }
        previous_end = Some(range.end);
    }
    check_range(
        "end of an entry",
        entry.content_offset,
        entry.stored_bytes(),
    )?;
    Ok(())
}

/// Only files without holes are rebased.
fn check_rebased(entry: &Entry) -> Result<()> {
    if entry.is_rebased && (entry.kind != EntryKind::File || entry.data_ranges.is_some()) {
        return Err(FormatError::Value {
            what: "data ranges of a rebased file",
            value: entry
                .data_ranges
                .as_ref()
                .map_or(0, |ranges| ranges.len() as u64),
            rule: "none: its content is the whole file",
        });
    }
    Ok(())
}

pub(super) fn check_owner(owner: &Owner) -> Result<()> {
    check_text("user name", &owner.user, PATH_BYTES_MAX)?;
    check_text("group name", &owner.group, PATH_BYTES_MAX)
}

pub(super) fn check_attributes(attributes: &[ExtendedAttribute]) -> Result<()> {
    let mut previous: &[u8] = &[];
    for attribute in attributes {
        check_text("attribute name", &attribute.name, PATH_BYTES_MAX)?;
        if attribute.name.as_slice() <= previous {
            return Err(FormatError::Value {
                what: "bytes of an attribute name",
                value: attribute.name.len() as u64,
                rule: "not empty, and above the previous name",
            });
        }
        previous = &attribute.name;
    }
    Ok(())
}

/// Whether the paths of the entries ascend strictly by [`refrain_entries::compare_paths`], so that
/// [`MemberEnd::entries_are_sorted`](crate::MemberEnd::entries_are_sorted) may be set. Entries of
/// kind [`EntryKind::Raw`] have no path and do not count. False if there are no entries.
#[must_use]
pub fn entries_are_sorted(entries: &[Entry]) -> bool {
    let named = entries.iter().filter(|entry| entry.kind != EntryKind::Raw);
    !entries.is_empty() && ascend(named.map(|entry| entry.path.as_slice()))
}

/// The size of an entry towards a frame's limit: path, link target, header recipe, names and values
/// of attributes, plus 48 for each attribute and 16 for each data range. See
/// [`ENTRY_BYTES_PER_FRAME_MAX`](crate::limits::ENTRY_BYTES_PER_FRAME_MAX).
#[must_use]
pub fn entry_bytes(entry: &Entry) -> usize {
    let attribute_bytes = |attribute: &ExtendedAttribute| {
        ATTRIBUTE_BYTES + attribute.name.len() + attribute.value.len()
    };
    let attributes: usize = entry.attributes.iter().map(attribute_bytes).sum();
    let ranges = entry.data_ranges.as_ref().map_or(0, Vec::len);
    let link_target = entry.link_target.as_ref().map_or(0, Vec::len);
    entry.path.len()
        + link_target
        + DATA_RANGE_BYTES * ranges
        + attributes
        + entry.header_recipe.len()
}
