//! The reference implementation of a reader: decodes an uncoded archive in memory, one frame after
//! the other.

use std::sync::Arc;

use refrain_format::{
    ArchiveEnd, Coding, ContentHash, EntriesHasher, Entry, EntryListChecker, EpochSums, Extent,
    FormatError, Index, IndexNode, IndexSlice, IndexTree, Limits, MAGIC, MemberEnd, MemberKind,
    MemberStart, NodeSource, Payload, StreamChecker, TAIL_BYTES, check_magic, compare_paths,
    content_hash, entries_are_sorted, read_frame, unpack_entries, unpack_extents,
};

use crate::resolve::ResolvedExtents;
use crate::slices::slices_of;

/// One member of a [`SampleArchive`](crate::SampleArchive).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleMember {
    /// Its name.
    pub name: Vec<u8>,
    /// Its content.
    pub content: Vec<u8>,
    /// Its entries, if it is a tree or a tar stream.
    pub entries: Vec<Entry>,
}

/// The result has the same form as the input of the writer.
pub type DecodedMember = SampleMember;

/// The largest content that is decoded (a forged fill may be very long).
const CONTENT_BYTES_MAX: u64 = 1 << 24;

#[derive(Default)]
struct DecodedState {
    store: Vec<u8>,
    content: Vec<u8>,
    introduced_bytes: usize,
    starts: Vec<MemberStart>,
    entries: Vec<Vec<Vec<Entry>>>,
    /// Extents and ends, which need later blocks. They are replayed at the very end.
    extents: Vec<Extent>,
    ends: Vec<MemberEnd>,
    members: Vec<DecodedMember>,
    resolved: ResolvedExtents,
}

/// Decodes an archive whose blocks and sections are uncoded, from front to back.
///
/// # Errors
/// A message that describes the error.
pub fn decode_sequentially(archive: &[u8]) -> Result<Vec<DecodedMember>, String> {
    let limits = Limits::default();
    check_magic(archive).map_err(|error| error.to_string())?;
    let mut checker = StreamChecker::measuring_reach(&limits);
    let mut state = DecodedState::default();
    while checker.offset() < archive.len() as u64 {
        step(archive, &limits, &mut checker, &mut state)
            .map_err(|error| format!("frame at {}: {error}", checker.offset()))?;
    }
    if checker.is_complete() {
        finish(state, checker)
    } else {
        Err("the archive has no End frame".to_owned())
    }
}

/// Replays what was retained, after all blocks have come.
fn finish(
    mut state: DecodedState,
    mut checker: StreamChecker,
) -> Result<Vec<DecodedMember>, String> {
    for extent in std::mem::take(&mut state.extents) {
        replay(&extent, &mut state);
    }
    for end in std::mem::take(&mut state.ends) {
        let slices = slices_of(&state.entries[end.member_id as usize]);
        member(&end, &mut state)?;
        checker.observe_slices(end.member_id, &slices);
    }
    let sliced = checker.check_observed_slices();
    sliced.map_err(|error| error.to_string())?;
    Ok(state.members)
}

/// The hash of a member's content, as the document defines it.
pub(crate) fn stated_hash(start: &MemberStart, content: &[u8]) -> [u8; 32] {
    if !start.is_sparse {
        return content_hash(content);
    }
    let mut records = ContentHash::with_context("refrain 1.0 sparse content");
    for (number, piece) in (0_u64..).zip(content.chunks(65_536)) {
        if piece.iter().any(|byte| *byte != 0) {
            records.update(&number.to_le_bytes());
            records.update(&content_hash(piece));
        }
    }
    records.update(&(content.len() as u64).to_le_bytes());
    records.value()
}

fn member(end: &MemberEnd, state: &mut DecodedState) -> Result<(), String> {
    let id = end.member_id as usize;
    let start = state.starts[id].clone();
    let from = start.content_start as usize;
    let content = state.content[from..from + end.content_bytes as usize].to_vec();
    if stated_hash(&start, &content) != end.blake3 {
        return Err("the hash of the content differs".into());
    }
    let frames = std::mem::take(&mut state.entries[id]);
    let entries = checked_entries(frames, start.kind, end).map_err(|error| error.to_string())?;
    state.members.push(DecodedMember {
        name: start.name,
        content,
        entries,
    });
    Ok(())
}

fn step(
    archive: &[u8],
    limits: &Limits,
    checker: &mut StreamChecker,
    state: &mut DecodedState,
) -> Result<(), Box<dyn std::error::Error>> {
    let offset = checker.offset() as usize;
    debug_assert!(offset >= MAGIC.len());
    checker.check_what_follows(&archive[offset..])?;
    if checker.is_ended() {
        let tail = &archive[offset..archive.len().min(offset + TAIL_BYTES)];
        return Ok(checker.tail(tail)?);
    }
    let (header, payload) = read_frame(archive, offset, limits)?;
    checker.feed(&header, &payload)?;
    match payload {
        Payload::Block {
            header: block,
            data,
        } => {
            let data = &plain(&block.coding, data)?;
            block.check_raw(data)?;
            state.store.extend_from_slice(data);
        }
        Payload::Extents {
            header: epoch,
            data,
        } => {
            let data = &plain(&epoch.coding, data)?;
            let extents = unpack_extents(&epoch, data, limits)?;
            let window = checker
                .archive()
                .map_or(0, |archive| archive.reference_window);
            let resolved = state
                .resolved
                .epoch(epoch.content_start, &extents, window)?;
            checker.observe_epoch(&EpochSums::from_extents(&resolved))?;
            if epoch.content_end() > CONTENT_BYTES_MAX {
                return Err("more content than the reference decoder supports".into());
            }
            state.extents.extend(extents);
        }
        Payload::MemberStart(start) => {
            state.entries.push(Vec::new());
            state.starts.push(start);
        }
        Payload::Entries {
            header: batch_header,
            data,
        } => {
            let data = &plain(&batch_header.coding, data)?;
            let batch = unpack_entries(&batch_header, data)?;
            let id = batch_header.member_id as usize;
            state.entries[id].push(batch);
        }
        Payload::MemberEnd(end) => state.ends.push(end),
        Payload::Archive(_)
        | Payload::Index(_)
        | Payload::End { .. }
        | Payload::Generation(_)
        | Payload::Catalog(_)
        | Payload::Skipped => {}
    }
    Ok(())
}

/// Compares all entries of a member with its end. Returns them in their order.
fn checked_entries(
    frames: Vec<Vec<Entry>>,
    kind: MemberKind,
    end: &MemberEnd,
) -> Result<Vec<Entry>, Box<dyn std::error::Error>> {
    let mut entries = frames.concat();
    let Some(stated) = end.entries_hash else {
        return Ok(entries);
    };
    let mut list = EntryListChecker::new(kind, usize::MAX);
    let frames_are_sorted = frames.iter().all(|frame| entries_are_sorted(frame));
    let is_merged = kind == MemberKind::Tree && !entries_are_sorted(&entries) && frames_are_sorted;
    if is_merged && !entries.is_empty() {
        list = EntryListChecker::for_merged_tree(kind, usize::MAX);
        entries.sort_by(|a, b| compare_paths(&a.path, &b.path));
        list.feed(&entries)?;
    } else {
        frames.iter().try_for_each(|frame| list.feed(frame))?
    }
    let mut hasher = EntriesHasher::new();
    hasher.update(&entries);
    if stated != hasher.value() {
        return Err("the hash of the entries differs".into());
    }
    let mut targets = list.finish(end)?;
    targets.look_up(&entries);
    targets.finish()?;
    Ok(entries)
}

fn plain(coding: &Coding, data: &[u8]) -> Result<Vec<u8>, String> {
    if coding.is_uncoded() {
        Ok(data.iter().map(|byte| byte ^ coding.mask()).collect())
    } else {
        Err(format!(
            "codec {} is not supported by the reference decoder",
            coding.codec()
        ))
    }
}

fn replay(extent: &Extent, state: &mut DecodedState) {
    let from = state.content.len();
    let length = extent.length() as usize;
    match extent {
        Extent::Fresh { .. } => {
            let source = state.introduced_bytes;
            state.introduced_bytes += length;
            let source_bytes = &state.store[source..source + length];
            state.content.extend_from_slice(source_bytes);
        }
        Extent::Copy {
            offset_in_store, ..
        } => {
            let source = *offset_in_store as usize;
            let source_bytes = &state.store[source..source + length];
            state.content.extend_from_slice(source_bytes);
        }
        Extent::Reference {
            offset_in_content, ..
        } => {
            let source = *offset_in_content as usize;
            state.content.extend_from_within(source..source + length);
        }
        Extent::Fill { pattern, .. } => {
            state.content.resize(from + length, 0);
            let period = pattern.as_bytes();
            for (index, byte) in state.content[from..].iter_mut().enumerate() {
                *byte = period[index % period.len()];
            }
        }
    }
}

/// Decodes an archive through the End frame and the index, without reading other frames, as a
/// reader that can seek does.
///
/// # Errors
/// A message that describes the error.
pub fn decode_by_index(archive: &[u8]) -> Result<Vec<DecodedMember>, String> {
    read_by_index(archive).map_err(|error| error.to_string())
}

struct NodesOf<'a>(&'a [u8]);

impl NodeSource for NodesOf<'_> {
    type Error = FormatError;

    fn node(&self, (offset, bytes): (u64, u64), _: bool) -> Result<Arc<IndexNode>, FormatError> {
        let (header, payload) = read_frame(self.0, offset as usize, &Limits::default())?;
        match payload {
            Payload::Index(node) if header.frame_bytes() == bytes => Ok(Arc::new(node)),
            _ => Err(FormatError::Value {
                what: "offset of a node of the index",
                value: offset,
                rule: "the offset of a node of this size",
            }),
        }
    }
}

fn read_by_index(archive: &[u8]) -> Result<Vec<DecodedMember>, Box<dyn std::error::Error>> {
    let limits = Limits::default();
    check_magic(archive)?;
    let (_, Payload::Archive(_)) = read_frame(archive, MAGIC.len(), &limits)? else {
        return Err("the first frame is not Archive".into());
    };
    let (end, roots) = ArchiveEnd::from_end_of_file(archive, archive.len() as u64)?;
    if end.content_bytes > CONTENT_BYTES_MAX {
        return Err("more content than the reference decoder supports".into());
    }
    let index = Index::read(&IndexTree::new(roots, NodesOf(archive)))?;
    let mut state = DecodedState::default();
    for (id, row) in index.blocks.iter().enumerate() {
        let (header, payload) = read_frame(archive, row.frame_offset as usize, &limits)?;
        let Payload::Block {
            header: block,
            data,
        } = payload
        else {
            return Err("the frame of a block is not Block".into());
        };
        row.check(id as u64, &header, &block)?;
        let data = &plain(&block.coding, data)?;
        block.check_raw(data)?;
        state.store.extend_from_slice(data);
    }
    for (id, row) in index.epochs.iter().enumerate() {
        let (header, payload) = read_frame(archive, row.frame_offset as usize, &limits)?;
        let Payload::Extents {
            header: epoch,
            data,
        } = payload
        else {
            return Err("the frame of an epoch is not Extents".into());
        };
        row.check(id as u64, &header, &epoch)?;
        let data = &plain(&epoch.coding, data)?;
        let extents = unpack_extents(&epoch, data, &limits)?;
        extents.iter().for_each(|extent| replay(extent, &mut state));
    }
    (0..index.members.len())
        .map(|id| member_by_index(archive, &index, id, &state.content))
        .collect()
}

fn member_by_index(
    archive: &[u8],
    index: &Index,
    id: usize,
    content: &[u8],
) -> Result<DecodedMember, Box<dyn std::error::Error>> {
    let member = &index.members[id];
    let from = member.start.content_start as usize;
    let content = content[from..from + member.end.content_bytes as usize].to_vec();
    if stated_hash(&member.start, &content) != member.end.blake3 {
        return Err("the hash of the content differs".into());
    }
    let mut frames = Vec::new();
    let rows = index.entries.iter();
    for row in rows.filter(|row| row.member_id == id as u64) {
        let (header, payload) = read_frame(archive, row.frame_offset as usize, &Limits::default())?;
        let Payload::Entries {
            header: batch_header,
            data,
        } = payload
        else {
            return Err("the frame of a batch of entries is not Entries".into());
        };
        row.check(&header, &batch_header)?;
        let data = &plain(&batch_header.coding, data)?;
        frames.push(unpack_entries(&batch_header, data)?);
    }
    let numbers = index.entries_of_member(id as u64);
    let expected = slices_of(&frames).into_iter().map(|slice| IndexSlice {
        frame: numbers.start + slice.frame,
        ..slice
    });
    let expected: Vec<_> = expected.collect();
    let entries = checked_entries(frames, member.start.kind, &member.end)?;
    let found = index.slices_of_frames(&numbers);
    let found = &index.slices[found.start as usize..found.end as usize];
    if member.start.kind.has_slices(&member.end) && found != expected {
        return Err("the slices are not in path order".into());
    }
    Ok(DecodedMember {
        name: member.start.name.clone(),
        content,
        entries,
    })
}
