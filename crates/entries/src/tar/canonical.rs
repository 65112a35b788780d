//! The header groups of the canonical view: POSIX pax, with GNU's records for sparse files and
//! star's for extended attributes.

use crate::entry::{Entry, EntryKind};
use crate::tar::acl;
use crate::tar::pax::{escape_attribute_name, pax_time, push_pax};
use crate::tar::record::{
    DEVICE_MAJOR, DEVICE_MINOR, Field, GID, GROUP, LINK, MAGIC, MODE, MTIME, NAME, OCTAL_7_MAX,
    OCTAL_11_MAX, RECORD_BYTES, Record, SIZE, TYPE, UID, USER, USTAR, field_mut, put_base_256,
    put_checksum, put_octal, put_text,
};
use crate::tar::sparse;

/// The name of the header that carries pax records. Readers ignore it; a fixed one is
/// deterministic.
const PAX_HEADER_NAME: &[u8] = b"././@PaxHeader";

/// The header group of an entry, whose data ranges the caller has checked.
pub(crate) fn header_group(entry: &Entry) -> Vec<u8> {
    let path = header_path(entry);
    let map = match &entry.data_ranges {
        Some(ranges) => sparse::map_block(ranges, entry.size_bytes),
        None => Vec::new(),
    };
    let stored_bytes = (map.len() as u64).saturating_add(entry.stored_bytes());
    let records = pax_records(entry, &path, stored_bytes);
    let extended_bytes = match records.len() {
        0 => 0,
        bytes => RECORD_BYTES + bytes.next_multiple_of(RECORD_BYTES),
    };
    let mut group = Vec::with_capacity(extended_bytes + RECORD_BYTES + map.len());
    if !records.is_empty() {
        group.extend_from_slice(&pax_carrier(records.len() as u64));
        group.extend_from_slice(&records);
        group.resize(group.len().next_multiple_of(RECORD_BYTES), 0);
    }
    group.extend_from_slice(&main_record(entry, &path, stored_bytes));
    group.extend_from_slice(&map);
    group
}

pub(crate) fn header_group_bytes(entry: &Entry) -> u64 {
    let path = header_path(entry);
    let map_bytes = match &entry.data_ranges {
        Some(ranges) => sparse::map_block_bytes(ranges, entry.size_bytes),
        None => 0,
    };
    let stored_bytes = map_bytes.saturating_add(entry.stored_bytes());
    let record_bytes = RECORD_BYTES as u64;
    let extended_bytes = match pax_records(entry, &path, stored_bytes).len() as u64 {
        0 => 0,
        bytes => record_bytes.saturating_add(bytes.next_multiple_of(record_bytes)),
    };
    record_bytes
        .saturating_add(extended_bytes)
        .saturating_add(map_bytes)
}

/// The path as headers have it: a directory ends in a slash.
fn header_path(entry: &Entry) -> Vec<u8> {
    let mut path = entry.path.clone();
    if entry.kind == EntryKind::Directory && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path
}

fn pax_carrier(records_bytes: u64) -> Record {
    let mut record = [0; RECORD_BYTES];
    put_text(&mut record, NAME, PAX_HEADER_NAME);
    put_octal(&mut record, MODE, 0o644);
    for number in [UID, GID, MTIME, DEVICE_MAJOR, DEVICE_MINOR] {
        put_octal(&mut record, number, 0);
    }
    put_octal(&mut record, SIZE, records_bytes);
    put_text(&mut record, TYPE, b"x");
    put_text(&mut record, MAGIC, USTAR);
    put_checksum(&mut record);
    record
}

/// What the plain header cannot hold.
fn pax_records(entry: &Entry, path: &[u8], stored_bytes: u64) -> Vec<u8> {
    let mut records = Vec::new();
    let mut text = |key: &[u8], value: &[u8], field: Field| {
        if value.len() > field.1 {
            push_pax(&mut records, key, value);
        }
    };
    let link = entry.link_target.as_deref().unwrap_or_default();
    // Readers of sparse files find the path in a separate record.
    if entry.data_ranges.is_none() {
        text(b"path", path, NAME);
    }
    text(b"linkpath", link, LINK);
    text(b"uname", &entry.owner.user, USER);
    text(b"gname", &entry.owner.group, GROUP);
    let numbers: [(&[u8], u64, u64); 3] = [
        (b"size", stored_bytes, OCTAL_11_MAX),
        (b"uid", entry.owner.uid, OCTAL_7_MAX),
        (b"gid", entry.owner.gid, OCTAL_7_MAX),
    ];
    for (key, number, max) in numbers {
        if number > max {
            push_pax(&mut records, key, number.to_string().as_bytes());
        }
    }
    let modified = entry.modified;
    if modified.nanoseconds != 0 || octal_seconds(modified.seconds).is_none() {
        push_pax(&mut records, b"mtime", &pax_time(modified));
    }
    if entry.data_ranges.is_some() {
        push_pax(&mut records, b"GNU.sparse.major", b"1");
        push_pax(&mut records, b"GNU.sparse.minor", b"0");
        push_pax(&mut records, b"GNU.sparse.name", path);
        let size = entry.size_bytes.to_string();
        push_pax(&mut records, b"GNU.sparse.realsize", size.as_bytes());
    }
    for (attribute, key) in [acl::ACCESS, acl::DEFAULT] {
        // Programs restore lists from their text, and may leave such attributes out.
        let list = entry.attributes.iter().find(|held| held.name == attribute);
        if let Some(text) = list.and_then(|list| acl::text(&list.value)) {
            push_pax(&mut records, key, &text);
        }
    }
    for attribute in &entry.attributes {
        let name = escape_attribute_name(&attribute.name);
        let key = [b"SCHILY.xattr.", name.as_slice()].concat();
        push_pax(&mut records, &key, &attribute.value);
    }
    records
}

/// The ustar record, which every tar program since 1988 can read.
fn main_record(entry: &Entry, path: &[u8], stored_bytes: u64) -> Record {
    let or_zero = |number: u64, max: u64| if number > max { 0 } else { number };
    let mut record = [0; RECORD_BYTES];
    put_text(&mut record, NAME, path);
    put_octal(&mut record, MODE, u64::from(entry.mode & 0o7777));
    put_octal(&mut record, UID, or_zero(entry.owner.uid, OCTAL_7_MAX));
    put_octal(&mut record, GID, or_zero(entry.owner.gid, OCTAL_7_MAX));
    put_octal(&mut record, SIZE, or_zero(stored_bytes, OCTAL_11_MAX));
    let seconds = octal_seconds(entry.modified.seconds).unwrap_or(0);
    put_octal(&mut record, MTIME, seconds);
    put_text(&mut record, TYPE, &[type_flag(entry.kind)]);
    let link = entry.link_target.as_deref().unwrap_or_default();
    put_text(&mut record, LINK, link);
    put_text(&mut record, MAGIC, USTAR);
    put_text(&mut record, USER, &entry.owner.user);
    put_text(&mut record, GROUP, &entry.owner.group);
    put_device_number(&mut record, DEVICE_MAJOR, entry.device.0);
    put_device_number(&mut record, DEVICE_MINOR, entry.device.1);
    put_checksum(&mut record);
    record
}

/// Linux's minor numbers have up to 20 bits. pax has no record for large ones, so they are written
/// in base 256.
fn put_device_number(record: &mut Record, field: Field, number: u32) {
    if u64::from(number) > OCTAL_7_MAX {
        put_base_256(field_mut(record, field), i128::from(number))
    } else {
        put_octal(record, field, u64::from(number))
    }
}

fn octal_seconds(seconds: i64) -> Option<u64> {
    (u64::try_from(seconds).ok()).filter(|seconds| *seconds <= OCTAL_11_MAX)
}

pub(crate) fn type_flag(kind: EntryKind) -> u8 {
    match kind {
        EntryKind::File | EntryKind::Other | EntryKind::Raw | EntryKind::Removed => b'0',
        EntryKind::Hardlink => b'1',
        EntryKind::Symlink => b'2',
        EntryKind::CharacterDevice => b'3',
        EntryKind::BlockDevice => b'4',
        EntryKind::Directory => b'5',
        EntryKind::Fifo => b'6',
    }
}
