//! The entries of a member read from front to back: kept packed until the member is complete,
//! hashed, and checked as a list.

use refrain_codec::Workspace;
use refrain_format::{
    EntriesHasher, EntriesHeader, Entry, EntryListChecker, IndexSlice, Limits, LinkTargets,
    MemberEnd, MemberKind, compare_paths,
};

use crate::error::{Error, Result};
use crate::read::content_visitor::EntriesPayload;
use crate::read::tree::decoded_frames::DecodedFrames;
use crate::read::tree::path_order::path_order;
use crate::store::decoders::Decoders;
use crate::store::sections::decode_entries;

/// Targets of hard links to look up when the member is complete may take 1/64 of the memory budget.
const LINKS_SHARE: u64 = 64;
/// The memory of such a target, in bytes.
const TARGET_BYTES: u64 = 32;

pub(super) struct MemberEntries {
    kind: MemberKind,
    memory_bytes: u64,
    payloads: Vec<EntriesPayload>,
    payload_bytes: u64,
    last_path: Vec<u8>,
    /// For a tree: whether its frames are in path order. Otherwise its entries are hashed and
    /// checked at its end.
    is_in_order: bool,
    list: ReadList,
}

/// Entries hashed and checked in order.
struct ReadList {
    hasher: EntriesHasher,
    checker: EntryListChecker,
}

fn targets_max(memory_bytes: u64) -> usize {
    (memory_bytes / LINKS_SHARE / TARGET_BYTES) as usize
}

impl ReadList {
    fn for_kind(kind: MemberKind, memory_bytes: u64) -> ReadList {
        ReadList {
            hasher: EntriesHasher::new(),
            checker: EntryListChecker::new(kind, targets_max(memory_bytes)),
        }
    }

    fn for_merged_tree(kind: MemberKind, memory_bytes: u64) -> ReadList {
        ReadList {
            hasher: EntriesHasher::new(),
            checker: EntryListChecker::for_merged_tree(kind, targets_max(memory_bytes)),
        }
    }

    fn add(&mut self, entries: &[Entry]) -> Result<()> {
        self.checker.feed(entries)?;
        self.hasher.update(entries);
        Ok(())
    }
}

impl MemberEntries {
    /// For a member of this kind; `None` if such members have no entries. `memory_bytes` is the
    /// budget of the whole pass.
    pub(super) fn for_kind(kind: MemberKind, memory_bytes: u64) -> Option<Box<MemberEntries>> {
        let entries = MemberEntries {
            kind,
            memory_bytes,
            payloads: Vec::new(),
            payload_bytes: 0,
            last_path: Vec::new(),
            is_in_order: true,
            list: ReadList::for_kind(kind, memory_bytes),
        };
        kind.has_entries().then(|| Box::new(entries))
    }

    /// Adds a frame: its payload and its entries.
    pub(super) fn add(&mut self, payload: EntriesPayload, entries: &[Entry]) -> Result<()> {
        if self.kind.is_tree() {
            let first = entries.first().map_or(&[][..], |entry| &entry.path);
            let follows = compare_paths(&self.last_path, first).is_lt();
            self.is_in_order &= follows || self.payloads.is_empty();
            let last = entries.last().map_or(&[][..], |entry| &entry.path);
            self.last_path.clear();
            self.last_path.extend_from_slice(last);
        }
        if self.is_in_order {
            self.list.add(entries)?;
        }
        self.payload_bytes += payload.bytes.len() as u64;
        self.payloads.push(payload);
        Ok(())
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let own = size_of::<MemberEntries>() + self.list.checker.memory_bytes();
        own as u64 + self.payload_bytes
    }

    pub(super) fn into_payloads(self) -> Vec<EntriesPayload> {
        self.payloads
    }

    /// Compares all entries with their member's end. Returns their frames, and slices in path order
    /// if the frames are not.
    pub(super) fn finish(
        mut self,
        end: &MemberEnd,
        (workspace, decoders): (&mut Workspace, &Decoders),
        limits: &Limits,
    ) -> Result<(Vec<EntriesPayload>, Vec<IndexSlice>)> {
        let mut slices = Vec::new();
        if !self.is_in_order {
            (self.list, slices) = self.read_in_path_order((&mut *workspace, decoders), limits)?;
        }
        let hash = self.list.hasher.value();
        if end.entries_hash.is_some_and(|stated| stated != hash) {
            return Err(Error::damaged("the entries do not match their hash"));
        }
        let targets = self.list.checker.finish(end)?;
        find_targets(targets, &self.payloads, (workspace, decoders), limits)?;
        Ok((self.payloads, slices))
    }

    /// Hashes and checks the entries of a tree in path order.
    fn read_in_path_order(
        &self,
        (workspace, decoders): (&mut Workspace, &Decoders),
        limits: &Limits,
    ) -> Result<(ReadList, Vec<IndexSlice>)> {
        let mut decoded = DecodedFrames::new(self.memory_bytes);
        let mut frame = |number: usize| {
            decoded.get_or_decode(number as u64, || {
                let payload = self.payloads.get(number);
                let payload = payload.ok_or_else(|| Error::damaged("no such frame of entries"))?;
                let (head, data) = EntriesHeader::parse(&payload.bytes, limits)?;
                decode_entries(workspace, decoders, &head, data, limits)
            })
        };
        let slices = path_order(0..self.payloads.len(), self.memory_bytes, &mut frame)?;
        let mut list = ReadList::for_merged_tree(self.kind, self.memory_bytes);
        for slice in &slices {
            let entries = frame(slice.frame as usize)?;
            let start = slice.first_entry as usize;
            let part = entries.get(start..start + slice.entry_count as usize);
            list.add(part.unwrap_or_default())?;
        }
        Ok((list, slices))
    }
}

/// Looks for the targets of hard links, in frames before the links. Unpacks their payloads again,
/// up to the last target.
fn find_targets(
    mut targets: LinkTargets,
    payloads: &[EntriesPayload],
    (workspace, decoders): (&mut Workspace, &Decoders),
    limits: &Limits,
) -> Result<()> {
    for payload in payloads {
        if targets.is_empty() {
            break;
        }
        let (head, data) = EntriesHeader::parse(&payload.bytes, limits)?;
        targets.look_up(&decode_entries(workspace, decoders, &head, data, limits)?);
    }
    Ok(targets.finish()?)
}
