//! What an archive is made of, for those who ask.

use refrain_codec::{CodecId, FilterStep};
use refrain_format::{
    BlockHeader, MemberEnd, MemberKind as FormatKind, MemberStart as FormatStart,
};
use refrain_protect::{DigestAlgorithm, DigestValue};
use refrain_tree::Timestamp;

use crate::digests::stated;
use crate::store::coding::description;

/// What a member's content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    /// A file.
    File,
    /// What came through a pipe.
    Stream,
    /// A directory as a tar stream, with an entry list.
    Tree,
}

/// A member that has begun; its length and hash come at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStart {
    /// 0, 1, 2 … in the archive's order.
    pub index: usize,
    /// As given by whoever made the archive: not a path to trust. Bytes that are no UTF-8 are replaced.
    pub name: String,
    /// What its content is.
    pub kind: MemberKind,
    /// Permission bits.
    pub mode: Option<u32>,
    /// When the content was last modified.
    pub modified: Option<Timestamp>,
    /// The expected length in bytes, if it was known beforehand.
    pub content_bytes: Option<u64>,
}

/// One named byte sequence in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// As given by whoever made the archive: not a path to trust. Bytes that are no UTF-8 are replaced.
    pub name: String,
    /// What its content is.
    pub kind: MemberKind,
    /// Permission bits.
    pub mode: Option<u32>,
    /// When the content was last modified.
    pub modified: Option<Timestamp>,
    /// Length in bytes.
    pub content_bytes: u64,
    /// BLAKE3 of the content; zeros where the archive does not have it.
    pub blake3: [u8; 32],
    /// Further digests of the content, where whoever made the archive asked for them.
    pub digests: Vec<(DigestAlgorithm, DigestValue)>,
}

/// Everything that can be told of an archive without opening its blocks.
#[derive(Debug, Clone)]
pub struct ArchiveInfo {
    /// Major and minor version of the format.
    pub format_version: (u16, u16),
    /// The level that was asked for.
    pub level: u8,
    /// The memory budget of the run that wrote it, in bytes.
    pub memory_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Bytes of all members' contents.
    pub content_bytes: u64,
    /// Unique bytes: what was left for the codec.
    pub store_bytes: u64,
    /// Number of extents.
    pub extents: u64,
    /// Bytes of the frames that hold the extents.
    pub extents_frame_bytes: u64,
    /// Content bytes that were found again in the store.
    pub matched_bytes: u64,
    /// Content bytes in runs and short periods.
    pub run_bytes: u64,
    /// How many of the archive's latest bytes a decoder that cannot seek has to keep.
    pub reach_bytes: u64,
    /// All members.
    pub members: Vec<Member>,
    /// Which codecs the blocks use.
    pub codecs: Vec<CodecUse>,
    /// Blocks that were not coded as planned.
    pub fallbacks: u64,
    /// Bytes of the largest block, opened: what a random read has to open at most for each extent.
    pub block_bytes_max: u64,
    /// What only archives of lrzip have.
    pub lrzip: Option<LrzipInfo>,
}

/// What only archives of lrzip have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrzipInfo {
    /// Which lrzip wrote it.
    pub version: &'static str,
    /// Windows of content on their own.
    pub chunks: u64,
    /// How it is encrypted.
    pub cipher: Option<&'static str>,
}

/// Sums up which codecs hold how much.
pub(crate) struct CodecUses<K> {
    uses: Vec<(K, CodecUse)>,
}

impl<K> Default for CodecUses<K> {
    fn default() -> Self {
        CodecUses { uses: Vec::new() }
    }
}

impl<K: Ord> CodecUses<K> {
    /// Adds a block; `names` are those of its codec and filters.
    pub(crate) fn add(
        &mut self,
        key: K,
        raw_bytes: u64,
        stored_bytes: u64,
        names: impl FnOnce() -> (String, String),
    ) {
        let place = self.uses.iter().position(|(other, _)| *other == key);
        let place = place.unwrap_or_else(|| {
            let (codec, filters) = names();
            let (blocks, raw_bytes, stored_bytes) = (0, 0, 0);
            let fresh = CodecUse {
                codec,
                filters,
                blocks,
                raw_bytes,
                stored_bytes,
            };
            self.uses.push((key, fresh));
            self.uses.len() - 1
        });
        let codec_use = &mut self.uses[place].1;
        codec_use.blocks += 1;
        codec_use.raw_bytes += raw_bytes;
        codec_use.stored_bytes += stored_bytes;
    }

    /// All uses, by rising key.
    pub(crate) fn finish(mut self) -> Vec<CodecUse> {
        self.uses.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.uses
            .into_iter()
            .map(|(_, codec_use)| codec_use)
            .collect()
    }
}

/// How much of the store one codec holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecUse {
    /// Its name.
    pub codec: String,
    /// Filters before it, joined by `+`; empty for none.
    pub filters: String,
    /// Number of blocks.
    pub blocks: u64,
    /// Their bytes in the store.
    pub raw_bytes: u64,
    /// Their bytes in the archive.
    pub stored_bytes: u64,
}

/// One block of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockInfo {
    /// 0, 1, 2 … in the archive's order.
    pub block: u64,
    /// Where its frame begins.
    pub archive_offset: u64,
    /// Where its bytes begin in the store.
    pub offset_in_store: u64,
    /// Its bytes in the store.
    pub raw_bytes: u64,
    /// Bytes of its frame.
    pub stored_bytes: u64,
    /// Name of its codec.
    pub codec: String,
    /// Filters before it, joined by `+`; empty for none.
    pub filters: String,
    /// Why it was not coded as planned.
    pub fallback: Option<String>,
}

impl BlockInfo {
    /// Of a block whose frame is at `place.0`, `place.1` bytes long.
    pub(crate) fn new(head: &BlockHeader, place: (u64, u64)) -> BlockInfo {
        let description = description(&head.coding, head.raw_bytes).ok();
        let fallback = description.and_then(|description| description.fallback);
        BlockInfo {
            block: head.block_id,
            archive_offset: place.0,
            offset_in_store: head.store_start,
            raw_bytes: head.raw_bytes,
            stored_bytes: place.1,
            codec: codec_name(head.coding.codec()),
            filters: filters_text(head.coding.filter_ids()),
            fallback: fallback.map(|reason| reason.text().to_owned()),
        }
    }
}

/// A codec's name, for people.
pub(crate) fn codec_name(id: u16) -> String {
    CodecId(id).to_string()
}

/// Names of filters, for people. The index keeps no parameters, so none is shown.
pub(crate) fn filters_text(ids: [u8; 2]) -> String {
    let name = |id| {
        let step = (0..=u8::MAX).find_map(|parameter| FilterStep::new(id, parameter).ok());
        match step {
            Some(FilterStep::Delta { .. }) => "delta".to_owned(),
            Some(step) => step.to_string(),
            None => format!("#{id}"),
        }
    };
    let ids = ids.into_iter().filter(|&id| id != 0);
    ids.map(name).collect::<Vec<_>>().join("+")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn kind(kind: FormatKind) -> MemberKind {
    match kind {
        FormatKind::File => MemberKind::File,
        FormatKind::Stream => MemberKind::Stream,
        FormatKind::Tree => MemberKind::Tree,
    }
}

pub(crate) fn member_start(start: &FormatStart) -> MemberStart {
    MemberStart {
        index: start.member_id as usize,
        name: text(&start.name),
        kind: kind(start.kind),
        mode: start.mode,
        modified: start.modified,
        content_bytes: start.content_bytes_hint,
    }
}

pub(crate) fn member(start: &FormatStart, end: &MemberEnd) -> Member {
    Member {
        name: text(&start.name),
        kind: kind(start.kind),
        mode: start.mode,
        modified: start.modified,
        content_bytes: end.content_bytes,
        blake3: end.blake3,
        digests: stated(end),
    }
}
