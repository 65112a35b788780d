//! The root hash of an archive: one hash over everything that a reader shows.
//!
//! ```text
//! root ─┬─ member 0 ─┬─ kind, name, mode, time, length, further digests
//!       │            ├─ content: BLAKE3 of the bytes; of a sparse file, without zeros
//!       │            └─ entries: path, owner, time, attributes … of each, in their order
//!       └─ member 1 …
//! ```
//!
//! The hashes of entries, members and the root are BLAKE3 in its mode for deriving keys, each with
//! a context of its own (BLAKE3 paper, section 2.3), so none of them can stand for another. How the
//! archive was compressed (extents, blocks, codecs, levels, threads) does not enter; the order in
//! which a writer puts the files of a tree into its content does, because entries refer to it.

use crate::bytes::put_varint;
use crate::entries::entry_kind_id;
use crate::member::{MemberEnd, MemberStart, put_time};
use refrain_entries::Entry;
use refrain_protect::{ContentHash, HASH_BYTES};

const ENTRIES_CONTEXT: &str = "refrain 1.0 entries";
const MEMBER_CONTEXT: &str = "refrain 1.0 member";
pub(crate) const ROOT_CONTEXT: &str = "refrain 1.0 root";
const GENERATION_CONTEXT: &str = "refrain 1.0 generation";

/// Computes the hash of a member's entries, appended in order.
#[derive(Debug, Clone)]
pub struct EntriesHasher {
    hash: ContentHash,
    /// Bytes of entries that are not hashed yet: hashing many at once is faster.
    pending: Vec<u8>,
}

const PENDING_BYTES: usize = 1 << 16;

impl Default for EntriesHasher {
    fn default() -> Self {
        Self {
            hash: ContentHash::with_context(ENTRIES_CONTEXT),
            pending: Vec::new(),
        }
    }
}

impl EntriesHasher {
    /// Creates a hasher without entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the next entries.
    pub fn update(&mut self, entries: &[Entry]) {
        for entry in entries {
            put_entry(&mut self.pending, entry);
            if self.pending.len() >= PENDING_BYTES {
                self.hash.update(&self.pending);
                self.pending.clear();
            }
        }
    }

    /// Returns the hash of the entries so far. It does not depend on their division into frames.
    #[must_use]
    pub fn value(&self) -> [u8; HASH_BYTES] {
        let mut hash = self.hash.clone();
        hash.update(&self.pending);
        hash.value()
    }
}

/// Returns the hash of a member: what its MemberStart frame shows, and its MemberEnd frame with the
/// hashes of content and entries. The id (except with layers, which are ids too), the place of the
/// content and the expected length are not included.
#[must_use]
pub fn member_hash(start: &MemberStart, end: &MemberEnd) -> [u8; HASH_BYTES] {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, u64::from(start.kind.id()));
    put_text(&mut bytes, &start.name);
    let present = u64::from(start.mode.is_some())
        | u64::from(start.modified.is_some()) << 1
        | u64::from(start.is_sparse) << 3;
    put_varint(&mut bytes, present);
    if let Some(mode) = start.mode {
        put_varint(&mut bytes, u64::from(mode));
    }
    if let Some(modified) = start.modified {
        put_time(&mut bytes, modified);
    }
    if let Some(layers) = &start.layers {
        put_varint(&mut bytes, start.member_id);
        layers.put(start.member_id, &mut bytes);
    }
    end.put_shown(&mut bytes);
    let mut hash = ContentHash::with_context(MEMBER_CONTEXT);
    hash.update(&bytes);
    hash.value()
}

/// Computes the root hash from the hashes of the members, appended in order. Memory: 32 bytes per
/// member.
#[derive(Debug, Clone, Default)]
pub struct RootHasher {
    member_hashes: Vec<u8>,
    /// The root hash of the generation before.
    previous: Option<[u8; HASH_BYTES]>,
    /// A value that is known without the members.
    known: Option<[u8; HASH_BYTES]>,
}

impl RootHasher {
    /// Creates a hasher without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a hasher for the members of a generation from 1 on. Its root hash covers that of the
    /// generation before, so none can be taken away unnoticed.
    #[must_use]
    pub fn after(previous_root_hash: [u8; HASH_BYTES]) -> Self {
        Self {
            member_hashes: Vec::new(),
            previous: Some(previous_root_hash),
            known: None,
        }
    }

    /// A hasher of which only the value is known.
    pub(crate) fn known(root_hash: [u8; HASH_BYTES]) -> Self {
        Self {
            known: Some(root_hash),
            ..Self::default()
        }
    }

    /// The root hash of the generation before, if there is one.
    pub(crate) fn previous(&self) -> Option<[u8; HASH_BYTES]> {
        self.previous
    }

    /// Appends the next member.
    pub fn push(&mut self, member_hash: &[u8; HASH_BYTES]) {
        self.member_hashes.extend_from_slice(member_hash);
    }

    /// Returns the hashes of the members so far.
    #[must_use]
    pub fn member_hashes(&self) -> &[[u8; HASH_BYTES]] {
        self.member_hashes.as_chunks().0
    }

    /// Returns the root hash of the members so far.
    #[must_use]
    pub fn value(&self) -> [u8; HASH_BYTES] {
        if let Some(known) = self.known {
            return known;
        }
        let member_count = self.member_hashes.len() / HASH_BYTES;
        let mut count = Vec::new();
        put_varint(&mut count, member_count as u64);
        let mut hash = match &self.previous {
            None => ContentHash::with_context(ROOT_CONTEXT),
            Some(previous) => {
                let mut hash = ContentHash::with_context(GENERATION_CONTEXT);
                hash.update(previous);
                hash
            }
        };
        hash.update(&count);
        hash.update(&self.member_hashes);
        hash.value()
    }
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    put_varint(out, u64::from(entry_kind_id(entry.kind, entry.is_rebased)));
    put_text(out, &entry.path);
    put_varint(out, u64::from(entry.mode));
    put_varint(out, entry.owner.uid);
    put_varint(out, entry.owner.gid);
    put_text(out, &entry.owner.user);
    put_text(out, &entry.owner.group);
    put_time(out, entry.modified);
    put_varint(out, entry.size_bytes);
    put_varint(out, entry.content_offset);
    put_data_ranges(out, entry);
    put_text(out, entry.link_target.as_deref().unwrap_or_default());
    put_varint(out, u64::from(entry.device.0));
    put_varint(out, u64::from(entry.device.1));
    put_varint(out, entry.attributes.len() as u64);
    for attribute in &entry.attributes {
        put_text(out, &attribute.name);
        put_text(out, &attribute.value);
    }
    put_text(out, &entry.header_recipe);
}

/// 0 if all is data. (A list without ranges means that all is a hole.)
fn put_data_ranges(out: &mut Vec<u8>, entry: &Entry) {
    let Some(ranges) = &entry.data_ranges else {
        return put_varint(out, 0);
    };
    put_varint(out, ranges.len() as u64 + 1);
    for range in ranges {
        put_varint(out, range.start);
        put_varint(out, range.end - range.start);
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}
