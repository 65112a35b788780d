//! Descriptions of archives, members and blocks.

use refrain_codec::{CodecId, filter_name};
use refrain_entries::Timestamp;
use refrain_format::{
    BlockHeader, MemberEnd, MemberKind as FormatKind, MemberStart as FormatStart,
};
use refrain_protect::{DigestAlgorithm, DigestValue, HASH_BYTES, HashKind, MemberHasher};

use crate::decoder_choice::DecoderInfo;
use crate::digests::stated;
use crate::store::coding::description;

/// The kind of a member's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    /// A file.
    File,
    /// A non-seekable stream.
    Stream,
    /// A directory: a list of entries, and the data of its files.
    Tree,
    /// A tar stream that was taken apart into entries and the data of its files.
    Tar,
}

/// The start of a member. Its length and hash are known at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStart {
    /// 0, 1, 2 … in archive order.
    pub index: usize,
    /// The name in the archive, as bytes; empty if there is none. It must not be trusted as a path.
    pub name: Vec<u8>,
    /// The kind of its content.
    pub kind: MemberKind,
    /// Permission bits.
    pub mode: Option<u32>,
    /// When the content was last modified.
    pub modified: Option<Timestamp>,
    /// The expected length in bytes, if it was known when the member was written.
    pub content_bytes: Option<u64>,
}

/// One named byte sequence in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name in the archive, as bytes; empty if there is none. It must not be trusted as a path.
    pub name: Vec<u8>,
    /// The kind of its content.
    pub kind: MemberKind,
    /// Permission bits.
    pub mode: Option<u32>,
    /// When the content was last modified.
    pub modified: Option<Timestamp>,
    /// Length in bytes; for a directory, its tar stream's. 0 in a file of another format:
    /// [`Archive::measure`](crate::Archive::measure) decodes it.
    pub content_bytes: u64,
    /// BLAKE3 of the content; zeros if the archive does not have it. A sparse member's leaves zeros
    /// out, as the format's documentation describes.
    pub blake3: [u8; 32],
    /// Whether it is a file with so many holes that its hash leaves zeros out.
    pub is_sparse: bool,
    /// Whether it is a directory that consists of directories of earlier generations, and changes.
    /// Then the offsets of its entries' content count from the start of the archive's content.
    pub has_layers: bool,
    /// Further digests of the content, stored on request.
    pub digests: Vec<(DigestAlgorithm, DigestValue)>,
    /// Number of entries of a directory or tar stream; 0 for others.
    pub entries: u64,
}

impl Member {
    /// What a target is opened by; the member is the `index`-th.
    pub fn start(&self, index: usize) -> MemberStart {
        MemberStart {
            index,
            name: self.name.clone(),
            kind: self.kind,
            mode: self.mode,
            modified: self.modified,
            content_bytes: Some(self.content_bytes),
        }
    }
}

/// Everything known about an archive without decoding its blocks.
#[derive(Debug, Clone)]
pub struct ArchiveInfo {
    /// Major and minor version of the format.
    pub format_version: (u16, u16),
    /// Its compression level.
    pub level: u8,
    /// The memory budget of the run that wrote it, in bytes.
    pub memory_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Bytes of all members; a directory counts as a tar stream.
    pub content_bytes: u64,
    /// Bytes of the store: the unique bytes that the codecs compressed.
    pub store_bytes: u64,
    /// Number of extents.
    pub extents: u64,
    /// Bytes of the frames with extents.
    pub extents_frame_bytes: u64,
    /// Bytes of the frames with entries of directories and tar streams.
    pub entries_frame_bytes: u64,
    /// Content bytes that repeat bytes of the store. Includes a directory's duplicate files and the
    /// headers of its tar stream.
    pub matched_bytes: u64,
    /// Content bytes in runs and short periods.
    pub run_bytes: u64,
    /// How many of the archive's latest bytes a decoder that cannot seek has to keep.
    pub reach_bytes: u64,
    /// Number of members.
    pub members: usize,
    /// Number of concatenated archives.
    pub archives: usize,
    /// The root hash, BLAKE3 over everything that a reader shows; only for a single native archive
    /// with an intact End frame.
    pub root_hash: Option<[u8; 32]>,
    /// The codecs of the blocks.
    pub codecs: Vec<CodecUse>,
    /// The decoders that it carries, and the plug-ins that it needs, unless that part is damaged.
    pub decoders: Vec<DecoderInfo>,
    /// Blocks that were not encoded as planned.
    pub fallbacks: u64,
    /// Raw bytes of the largest block: the most that a random read has to decode for one extent.
    pub block_bytes_max: u64,
    /// Bytes of frames that were given back to the file system; most of them are holes.
    pub given_back_bytes: u64,
    /// Properties specific to lrzip archives.
    pub lrzip: Option<LrzipInfo>,
}

/// Properties specific to lrzip archives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrzipInfo {
    /// The version of lrzip that wrote it.
    pub version: &'static str,
    /// The number of independent windows of content.
    pub chunks: u64,
    /// The cipher, if it is encrypted.
    pub cipher: Option<&'static str>,
}

/// Sums up how many bytes each codec encoded.
pub(crate) struct CodecUses<K> {
    uses: Vec<(K, CodecUse)>,
}

impl<K> Default for CodecUses<K> {
    fn default() -> Self {
        CodecUses { uses: Vec::new() }
    }
}

impl<K: Ord> CodecUses<K> {
    /// Adds a block; `names` are its codec's and filters'.
    pub(crate) fn add(
        &mut self,
        key: K,
        raw_bytes: u64,
        stored_bytes: u64,
        names: impl FnOnce() -> (String, String),
    ) {
        let index = self.uses.iter().position(|(other, _)| *other == key);
        let index = index.unwrap_or_else(|| {
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
        let codec_use = &mut self.uses[index].1;
        codec_use.blocks += 1;
        codec_use.raw_bytes += raw_bytes;
        codec_use.stored_bytes += stored_bytes;
    }

    /// All uses, by ascending key.
    pub(crate) fn finish(mut self) -> Vec<CodecUse> {
        self.uses.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.uses
            .into_iter()
            .map(|(_, codec_use)| codec_use)
            .collect()
    }
}

/// How much of the store one codec encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecUse {
    /// Its name.
    pub codec: String,
    /// Filters before it, joined by `+`; empty if none.
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
    /// 0, 1, 2 … in archive order.
    pub block: u64,
    /// Where its frame starts.
    pub archive_offset: u64,
    /// Where its bytes start in the store.
    pub offset_in_store: u64,
    /// Its bytes in the store.
    pub raw_bytes: u64,
    /// Bytes of its frame.
    pub stored_bytes: u64,
    /// Name of its codec.
    pub codec: String,
    /// Filters before it, joined by `+`; empty if none.
    pub filters: String,
    /// Why it was not encoded as planned.
    pub fallback: Option<String>,
}

impl BlockInfo {
    /// Describes a block by its header, and the offset and length of its frame.
    pub(crate) fn new(
        header: &BlockHeader,
        (archive_offset, stored_bytes): (u64, u64),
    ) -> BlockInfo {
        let description = description(&header.coding, header.raw_bytes).ok();
        let fallback = description.and_then(|description| description.fallback);
        BlockInfo {
            block: header.block_id,
            archive_offset,
            offset_in_store: header.store_start,
            raw_bytes: header.raw_bytes,
            stored_bytes,
            codec: codec_name(header.coding.codec()),
            filters: filters_text(header.coding.filter_ids()),
            fallback: fallback.map(|reason| reason.text().to_owned()),
        }
    }
}

pub(crate) fn codec_name(id: u16) -> String {
    CodecId(id).to_string()
}

/// The display names of filters. The index has no parameters, so none are shown.
pub(crate) fn filters_text(ids: [u8; 2]) -> String {
    let name = |id| filter_name(id).map_or_else(|| format!("#{id}"), str::to_owned);
    let ids = ids.into_iter().filter(|&id| id != 0);
    ids.map(name).collect::<Vec<_>>().join("+")
}

fn kind(kind: FormatKind) -> MemberKind {
    match kind {
        FormatKind::File => MemberKind::File,
        FormatKind::Stream => MemberKind::Stream,
        FormatKind::Tree | FormatKind::LayeredTree => MemberKind::Tree,
        FormatKind::Tar => MemberKind::Tar,
    }
}

impl Member {
    /// A hasher that computes [`Member::blake3`] from the content.
    pub(crate) fn hasher(&self) -> MemberHasher {
        MemberHasher::new(self.hash_kind())
    }

    /// How its content is hashed.
    pub(crate) fn hash_kind(&self) -> HashKind {
        if self.is_sparse { HashKind::Sparse } else { HashKind::Plain }
    }
}

pub(crate) fn member_start(start: &FormatStart) -> MemberStart {
    MemberStart {
        index: start.member_id as usize,
        name: start.name.clone(),
        kind: kind(start.kind),
        mode: start.mode,
        modified: start.modified,
        content_bytes: start.content_bytes_hint,
    }
}

pub(crate) fn member(start: &FormatStart, end: &MemberEnd) -> Member {
    Member {
        name: start.name.clone(),
        kind: kind(start.kind),
        mode: start.mode,
        modified: start.modified,
        content_bytes: end.view_bytes,
        // A layered tree's is of its own content only: equal ones do not mean equal trees.
        blake3: if start.layers.is_some() { [0; HASH_BYTES] } else { end.blake3 },
        is_sparse: start.is_sparse,
        has_layers: start.layers.is_some(),
        digests: stated(end),
        entries: end.tree_entry_count.unwrap_or(end.entry_count),
    }
}
