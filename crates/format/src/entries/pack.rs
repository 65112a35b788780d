//! The packed section of an Entries frame.
//!
//! It has nine columns: kinds, shared path lengths, own path lengths, own path bytes, modes, times,
//! sizes, offsets, links. A path is front-coded: the length of the prefix that it shares with the
//! path previous, then the rest. An offset is written as its difference from the offset that tar
//! would give: the end of the data previous, rounded up to 512, plus one header of 512 bytes. Only
//! links have a link target.

use super::entry::{check_entry, entry_kind_from_id, entry_kind_id, text_bytes};
use super::header::EntriesHeader;
use crate::bytes::{ByteReader, add_difference, difference, put_varint, unzigzag, zigzag};
use crate::check::{check_limit, check_positive};
use crate::columns;
use crate::error::{FormatError, Result};
use crate::limits::{
    ENTRIES_PER_FRAME_MAX, FIRST_PATH_BYTES_MAX, PACKED_RAW_BYTES_MAX, PATH_BYTES_MAX,
    PATHS_PER_FRAME_BYTES_MAX,
};
use refrain_protect::checksum64;
use refrain_tree::{Entry, Timestamp};

const COLUMN_COUNT: usize = 9;

/// The size of tar's unit in bytes (POSIX.1-2017, pax, "ustar interchange format").
const TAR_BLOCK_BYTES: u64 = 512;

/// A packed section with the values that its header states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedEntries {
    /// The number of entries.
    pub entry_count: u64,
    /// The section, previous coding.
    pub raw: Vec<u8>,
    /// The XXH3-64 of `raw`.
    pub checksum: u64,
    /// [`EntriesHeader::first_path`] of these entries.
    pub first_path: Vec<u8>,
}

/// The values of the previous entry, from which the next one is coded; the encoder and the decoder
/// share it.
#[derive(Debug, Default)]
struct PreviousEntry {
    path: Vec<u8>,
    seconds: i64,
    expected_offset: u64,
    text_bytes: usize,
}

impl PreviousEntry {
    fn step(&mut self, entry: &Entry) -> Result<()> {
        check_entry(entry)?;
        self.text_bytes = self.text_bytes.saturating_add(text_bytes(entry));
        check_limit(
            "path bytes of a frame",
            self.text_bytes as u64,
            PATHS_PER_FRAME_BYTES_MAX as u64,
        )?;
        self.path.clone_from(&entry.path);
        self.seconds = entry.modified.seconds;
        // No overflow: the check has bounded the end of the entry.
        self.expected_offset = (entry.content_offset + entry.size_bytes)
            .next_multiple_of(TAR_BLOCK_BYTES)
            + TAR_BLOCK_BYTES;
        Ok(())
    }
}

/// Cuts a member's entries into batches, each of which fits one frame.
pub fn entry_batches(mut entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    std::iter::from_fn(move || {
        let (batch, rest) = entries.split_at_checked(batch_count(entries))?;
        entries = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

fn batch_count(entries: &[Entry]) -> usize {
    let mut sum_bytes = 0_usize;
    entries
        .iter()
        .take(ENTRIES_PER_FRAME_MAX as usize)
        .take_while(|entry| {
            sum_bytes = sum_bytes.saturating_add(text_bytes(entry));
            sum_bytes <= PATHS_PER_FRAME_BYTES_MAX
        })
        .count()
        // `pack_entries` rejects an entry that is too long for any frame.
        .max(usize::from(!entries.is_empty()))
}

/// Packs a batch of entries.
///
/// # Errors
/// Entries that [`unpack_entries`] rejects.
pub fn pack_entries(entries: &[Entry]) -> Result<PackedEntries> {
    check_positive("entries", entries.len() as u64)?;
    check_limit("entries", entries.len() as u64, ENTRIES_PER_FRAME_MAX)?;
    let mut columns: [Vec<u8>; COLUMN_COUNT] = Default::default();
    let mut previous = PreviousEntry::default();
    for entry in entries {
        put_entry(&mut columns, &previous, entry);
        previous.step(entry)?;
    }
    let raw = columns::join(&columns);
    check_limit(
        "packed entries bytes",
        raw.len() as u64,
        PACKED_RAW_BYTES_MAX,
    )?;
    Ok(PackedEntries {
        entry_count: entries.len() as u64,
        checksum: checksum64(&raw),
        raw,
        first_path: first_path(entries).to_vec(),
    })
}

/// The beginning of the first path, as the header of the frame states it.
fn first_path(entries: &[Entry]) -> &[u8] {
    let mut paths = entries.iter().map(|entry| entry.path.as_slice());
    let path = paths.find(|path| !path.is_empty()).unwrap_or_default();
    path.get(..FIRST_PATH_BYTES_MAX).unwrap_or(path)
}

fn put_entry(columns: &mut [Vec<u8>; COLUMN_COUNT], previous: &PreviousEntry, entry: &Entry) {
    let [
        kinds,
        shared,
        own,
        paths,
        modes,
        times,
        sizes,
        offsets,
        links,
    ] = columns;
    let shared_bytes = shared_prefix(&previous.path, &entry.path);
    let rest = entry.path.get(shared_bytes..).unwrap_or_default();
    kinds.push(entry_kind_id(entry.kind));
    put_varint(shared, shared_bytes as u64);
    put_varint(own, rest.len() as u64);
    paths.extend_from_slice(rest);
    put_varint(modes, u64::from(entry.mode));
    put_varint(
        times,
        zigzag(entry.modified.seconds.wrapping_sub(previous.seconds)),
    );
    put_varint(times, u64::from(entry.modified.nanoseconds));
    put_varint(sizes, entry.size_bytes);
    put_varint(
        offsets,
        difference(entry.content_offset, previous.expected_offset),
    );
    if let Some(target) = &entry.link_target {
        put_varint(links, target.len() as u64);
        links.extend_from_slice(target);
    }
}

fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

/// Unpacks the decoded section `raw` of the frame with this (checked) header.
///
/// # Errors
/// A wrong length or checksum; an entry or count that contradicts the header; bytes at the end;
/// paths above the limit.
pub fn unpack_entries(header: &EntriesHeader, raw: &[u8]) -> Result<Vec<Entry>> {
    header.check_raw(raw)?;
    let mut columns = columns::split::<COLUMN_COUNT>("entries", raw)?;
    let [kinds, ..] = &columns;
    let count = kinds.remaining();
    if count as u64 != header.entry_count {
        return Err(FormatError::Mismatch {
            what: "number of entries",
            found: count as u64,
            expected: header.entry_count,
        });
    }
    check_limit("entries", count as u64, ENTRIES_PER_FRAME_MAX)?;
    let mut entries = Vec::with_capacity(count);
    let mut previous = PreviousEntry::default();
    for _ in 0..count {
        let entry = take_entry(&mut columns, &previous)?;
        previous.step(&entry)?;
        entries.push(entry);
    }
    for column in columns {
        column.finish()?;
    }
    match first_path(&entries) == header.first_path {
        true => Ok(entries),
        false => Err(FormatError::Value {
            what: "bytes of the first path of a frame of entries",
            value: header.first_path.len() as u64,
            rule: "the path of the first entry",
        }),
    }
}

fn take_entry(
    columns: &mut [ByteReader<'_>; COLUMN_COUNT],
    previous: &PreviousEntry,
) -> Result<Entry> {
    let [
        kinds,
        shared,
        own,
        paths,
        modes,
        times,
        sizes,
        offsets,
        links,
    ] = columns;
    let kind = entry_kind_from_id(kinds.u8()?)?;
    Ok(Entry {
        path: take_path(shared.varint()?, own.varint()?, paths, &previous.path)?,
        kind,
        mode: take_u32("entry mode", modes)?,
        modified: Timestamp {
            seconds: previous.seconds.wrapping_add(unzigzag(times.varint()?)),
            nanoseconds: take_u32("nanoseconds of a time", times)?,
        },
        size_bytes: sizes.varint()?,
        content_offset: add_difference(previous.expected_offset, offsets.varint()?),
        link_target: match kind.is_link() {
            true => Some(take_text(links)?),
            false => None,
        },
        ..Entry::default()
    })
}

fn take_path(
    shared_bytes: u64,
    own_bytes: u64,
    paths: &mut ByteReader<'_>,
    previous: &[u8],
) -> Result<Vec<u8>> {
    check_limit(
        "entry path bytes",
        shared_bytes.saturating_add(own_bytes),
        PATH_BYTES_MAX as u64,
    )?;
    let shared = previous
        .get(..shared_bytes as usize)
        .ok_or(FormatError::Value {
            what: "shared bytes of a path",
            value: shared_bytes,
            rule: "at most the length of the previous path",
        })?;
    let own = paths.take(own_bytes as usize)?;
    let mut path = shared.to_vec();
    path.extend_from_slice(own);
    // Each path has one encoding: the whole common prefix must be marked as shared.
    if shared_prefix(previous, &path) != shared.len() {
        return Err(FormatError::Value {
            what: "shared bytes of a path",
            value: shared_bytes,
            rule: "the length of the whole common prefix",
        });
    }
    Ok(path)
}

fn take_text(links: &mut ByteReader<'_>) -> Result<Vec<u8>> {
    let length = links.varint()?;
    check_limit("link target bytes", length, PATH_BYTES_MAX as u64)?;
    Ok(links.take(length as usize)?.to_vec())
}

fn take_u32(what: &'static str, reader: &mut ByteReader<'_>) -> Result<u32> {
    let value = reader.varint()?;
    u32::try_from(value).map_err(|_| FormatError::OverLimit {
        what,
        value,
        limit: u64::from(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::Coding;
    use crate::entries::entry::ENTRY_KINDS;
    use crate::limits::Limits;
    use crate::property::{entries_from_seed, entries_round_trip};
    use refrain_tree::EntryKind;

    fn header_for(packed: &PackedEntries) -> EntriesHeader {
        EntriesHeader::new(0, 0, packed, Coding::none())
    }

    fn entry(path: &[u8]) -> Entry {
        Entry {
            path: path.to_vec(),
            kind: EntryKind::File,
            mode: 0o644,
            modified: Timestamp::default(),
            size_bytes: 10,
            content_offset: 512,
            ..Entry::default()
        }
    }

    #[test]
    fn ids_and_kinds_match_one_to_one() {
        for kind in ENTRY_KINDS {
            assert_eq!(entry_kind_from_id(entry_kind_id(kind)), Ok(kind));
        }
        assert!(entry_kind_from_id(0).is_err() && entry_kind_from_id(10).is_err());
    }

    #[test]
    fn a_frame_parses_as_written() {
        let entries = entries_from_seed(5, 300);
        let packed = pack_entries(&entries).unwrap();
        let header = header_for(&packed);
        let mut builder = EntriesHeader::builder(&packed, Vec::new());
        builder.payload().extend_from_slice(&packed.raw);
        let frame = header.finish(builder).unwrap();
        let payload = &frame[crate::layout::FRAME_HEADER_BYTES..];
        let (parsed, data) = EntriesHeader::parse(payload, &Limits::default()).unwrap();
        assert_eq!(parsed, header);
        assert_eq!(unpack_entries(&parsed, data), Ok(entries));
    }

    #[test]
    fn rejects_invalid_entries() {
        assert!(pack_entries(&[]).is_err());
        assert!(pack_entries(&[entry(b"")]).is_err());
        assert!(pack_entries(&[entry(b"a\0b")]).is_err());
        assert!(pack_entries(&[entry(&[b'a'; PATH_BYTES_MAX + 1])]).is_err());
        let mut linked = entry(b"x");
        linked.link_target = Some(b"y".to_vec());
        assert!(pack_entries(std::slice::from_ref(&linked)).is_err());
        linked.kind = EntryKind::Symlink;
        assert!(pack_entries(std::slice::from_ref(&linked)).is_ok());
        let mut far = entry(b"x");
        far.content_offset = u64::MAX;
        assert!(pack_entries(&[far]).is_err());
    }

    /// Front coding could expand one megabyte to gigabytes; the sum of all paths is limited in both
    /// directions.
    #[test]
    fn rejects_batches_whose_paths_exceed_the_limit() {
        let count = PATHS_PER_FRAME_BYTES_MAX / PATH_BYTES_MAX + 2;
        let entries: Vec<Entry> = (0..count)
            .map(|index| {
                let mut path = vec![b'a'; PATH_BYTES_MAX - 8];
                path.extend(format!("{index:08}").bytes());
                entry(&path)
            })
            .collect();
        assert!(matches!(
            pack_entries(&entries),
            Err(FormatError::OverLimit { .. })
        ));
        let batches: Vec<_> = entry_batches(&entries).collect();
        assert_eq!(batches.len(), 2);
        assert_eq!(
            batches.iter().map(|batch| batch.len()).sum::<usize>(),
            count
        );
        for batch in batches {
            assert!(pack_entries(batch).unwrap().raw.len() < 1 << 17);
        }
    }

    #[test]
    fn batches_hold_at_most_the_limit() {
        let entries = vec![entry(b"x"); ENTRIES_PER_FRAME_MAX as usize + 1];
        let lengths: Vec<_> = entry_batches(&entries).map(<[Entry]>::len).collect();
        assert_eq!(lengths, [ENTRIES_PER_FRAME_MAX as usize, 1]);
        assert_eq!(entry_batches(&[]).count(), 0);
    }

    #[test]
    fn accepted_sections_pack_to_the_same_bytes() {
        let packed = pack_entries(&entries_from_seed(3, 12)).unwrap();
        for at in 0..packed.raw.len() {
            for value in [0, 1, 5, 0x7f, 0x80, 0xff] {
                let mut raw = packed.raw.clone();
                raw[at] = value;
                let mut header = header_for(&packed);
                header.packed_checksum = checksum64(&raw);
                if let Ok(entries) = unpack_entries(&header, &raw) {
                    assert_eq!(pack_entries(&entries).unwrap().raw, raw);
                }
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
        #[test]
        fn any_entries_round_trip(seed in 0_u64..u64::MAX, count in 1_usize..100) {
            entries_round_trip(seed, count);
        }
    }
}
