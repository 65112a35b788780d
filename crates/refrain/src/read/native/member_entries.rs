//! The entries of a member that is read from front to back: retained in their packed form until
//! the member is complete, hashed, and checked as a list.

use refrain_codec::Workspace;
use refrain_format::{
    EntriesHasher, EntriesHeader, Entry, EntryListChecker, Limits, LinkTargets, MemberEnd,
    MemberKind,
};

use crate::error::{Error, Result};
use crate::read::content_visitor::EntriesPayload;
use crate::store::coding::decode_entries;

/// One in so many bytes of the memory is for the targets of hard links that are looked up when the
/// member is complete.
const LINKS_SHARE: u64 = 64;
/// The memory of such a target, in bytes.
const TARGET_BYTES: u64 = 32;

/// The entries of a member so far.
pub(super) struct MemberEntries {
    payloads: Vec<EntriesPayload>,
    payload_bytes: u64,
    hasher: EntriesHasher,
    checker: EntryListChecker,
}

impl MemberEntries {
    /// No entries of a member of this kind yet; `None` if such members have none. `memory_bytes` is
    /// the budget of the whole pass.
    pub(super) fn of(kind: MemberKind, memory_bytes: u64) -> Option<Box<MemberEntries>> {
        let targets_max = memory_bytes / LINKS_SHARE / TARGET_BYTES;
        let entries = MemberEntries {
            payloads: Vec::new(),
            payload_bytes: 0,
            hasher: EntriesHasher::new(),
            checker: EntryListChecker::new(kind, targets_max as usize),
        };
        kind.has_entries().then(|| Box::new(entries))
    }

    /// Adds a frame: its payload and the entries in it.
    pub(super) fn add(&mut self, payload: &EntriesPayload, entries: &[Entry]) -> Result<()> {
        self.checker.feed(entries)?;
        self.hasher.update(entries);
        self.payload_bytes += payload.len() as u64;
        self.payloads.push(payload.clone());
        Ok(())
    }

    /// The memory of the entries, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let own = size_of::<MemberEntries>() + self.checker.memory_bytes();
        own as u64 + self.payload_bytes
    }

    /// Compares all entries with the end of their member. Returns their frames.
    pub(super) fn finish(
        self,
        end: &MemberEnd,
        workspace: &mut Workspace,
        limits: &Limits,
    ) -> Result<Vec<EntriesPayload>> {
        let hash = self.hasher.value();
        if end.entries_hash.is_some_and(|stated| stated != hash) {
            return Err(Error::damaged("the entries do not match their hash"));
        }
        let targets = self.checker.finish(end)?;
        find_targets(targets, &self.payloads, workspace, limits)?;
        Ok(self.payloads)
    }
}

/// Looks for the targets of hard links, which are in frames before those of the links. Their
/// payloads are unpacked once more, up to the last target.
fn find_targets(
    mut targets: LinkTargets,
    payloads: &[EntriesPayload],
    workspace: &mut Workspace,
    limits: &Limits,
) -> Result<()> {
    for payload in payloads {
        if targets.is_empty() {
            break;
        }
        let (head, data) = EntriesHeader::parse(payload, limits)?;
        targets.look_up(&decode_entries(workspace, &head, data, limits)?);
    }
    Ok(targets.finish()?)
}
