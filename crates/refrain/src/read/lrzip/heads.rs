//! What an archive is made of, by its heads alone: nothing is opened, so it takes no time however long the archive is.

use std::sync::Arc;

use refrain_format::lrzip::{
    BlockHeader, Cipher, DigestKind, EncryptionOverhead, HEADER_BYTES_MAX, Header, Prefilter,
    Version,
};
use refrain_storage::Source;

use super::coded::Block;
use super::input::ArchiveInput;
use super::items::ItemKind;
use super::layout::{Chunk, LayoutReader};
use crate::archive_info::BlockInfo;
use crate::error::{Error, Result};
use crate::options::ReadOptions;

/// Chunks that are told of: with lrzip's smallest windows, 100 MiB, these are 100 TiB.
const CHUNKS_MAX: usize = 1 << 20;

/// An archive of lrzip's, by its heads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrzipLayout {
    /// Which lrzip wrote it.
    pub version: &'static str,
    /// Length of the content, where the header states it. (A file without content and a pipe's archive do not.)
    pub content_bytes: Option<u64>,
    /// Length of the file.
    pub archive_bytes: u64,
    /// How it is encrypted.
    pub cipher: Option<&'static str>,
    /// Whether an MD5 of the content ends it; chunks have a CRC-32 else.
    pub has_md5: bool,
    /// The MD5.
    pub md5: Option<[u8; 16]>,
    /// Windows of content. None are told of an encrypted archive without a password.
    pub chunks: Vec<LrzipChunk>,
}

/// A window of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrzipChunk {
    /// Bytes of each of its numbers.
    pub width_bytes: u8,
    /// What was done to its content before repeats were looked for.
    pub prefilter: Option<&'static str>,
    /// Where its two streams begin in the archive; heads count from the first.
    pub streams_at: [u64; 2],
    /// Blocks of records, and of literals.
    pub streams: [Vec<LrzipBlock>; 2],
}

/// A block of one of the streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrzipBlock {
    /// Name of its back end.
    pub back_end: String,
    /// Filters before it; empty for none.
    pub filters: String,
    /// Bytes when open.
    pub raw_bytes: u64,
    /// Bytes in the archive, without what encryption adds.
    pub coded_bytes: u64,
    /// Where its head is in the archive.
    pub head_at: u64,
}

impl LrzipLayout {
    /// Reads the heads of an archive.
    ///
    /// # Errors
    /// `Damaged` if it is none or heads contradict each other; `Unsupported` for versions that nobody reads; `Usage` for a
    /// wrong password; `Io`.
    pub fn read(source: Arc<dyn Source>, options: &ReadOptions) -> Result<LrzipLayout> {
        let input = Arc::new(ArchiveInput::from_source(source)?);
        let archive_bytes = input.bytes_behind(0)?;
        let bytes = input.up_to(0, HEADER_BYTES_MAX)?;
        let header = Header::parse(&bytes).map_err(|error| Error::from(error).at_offset(0))?;
        let mut layout = LrzipLayout {
            version: header.version.name(),
            content_bytes: header.content_bytes,
            archive_bytes,
            cipher: header.cipher.as_ref().map(Cipher::name),
            has_md5: header.digest == DigestKind::Md5,
            md5: None,
            chunks: Vec::new(),
        };
        if header.cipher.is_none() || options.password.is_some() {
            layout.walk(input, &header, options)?;
        }
        Ok(layout)
    }

    fn walk(
        &mut self,
        input: Arc<ArchiveInput>,
        header: &Header,
        options: &ReadOptions,
    ) -> Result<()> {
        let mut reader = LayoutReader::open(Arc::clone(&input), options.password.as_ref())?;
        let digest_bytes = match header.digest {
            DigestKind::Md5 => reader.items().digest_bytes(),
            DigestKind::Crc => 0,
        };
        // Not every archive says which chunk is the last one, but then its content ends with the file. (How much content there
        // was so far, which ends it for readers, stands in the records.)
        while self.chunks.is_empty()
            || (header.version != Version::V4
                && input.bytes_behind(reader.offset())? > digest_bytes as u64)
        {
            let Some(chunk) = reader.next(0)? else { break };
            if self.chunks.len() >= CHUNKS_MAX {
                return Err(Error::limit(format!("more than {CHUNKS_MAX} chunks")));
            }
            self.chunks.push(describe(&chunk, header));
        }
        if header.digest == DigestKind::Md5 {
            let stored = input.exact("the digest", reader.offset(), digest_bytes)?;
            let bytes = reader.items().open(ItemKind::Digest, stored)?;
            self.md5 = bytes.try_into().ok();
        }
        Ok(())
    }
}

fn describe(chunk: &Chunk, header: &Header) -> LrzipChunk {
    let is_encrypted = header.cipher.is_some();
    let width = chunk
        .header
        .number_width_bytes(header.version, is_encrypted);
    let head_bytes = BlockHeader::length_bytes(width) as u64;
    let head_bytes = EncryptionOverhead::of(header.cipher.as_ref()).stored_bytes(head_bytes);
    let blocks = |blocks: &[Block]| {
        let blocks = blocks.iter().map(|block| describe_block(block, head_bytes));
        blocks.collect()
    };
    LrzipChunk {
        width_bytes: chunk.header.width_bytes,
        prefilter: chunk.header.prefilter.map(|prefilter| match prefilter {
            Prefilter::X86 => "x86",
            Prefilter::Arm64 => "arm64",
        }),
        streams_at: [chunk.base, chunk.base + head_bytes],
        streams: [blocks(&chunk.records), blocks(&chunk.literals)],
    }
}

fn describe_block(block: &Block, head_bytes: u64) -> LrzipBlock {
    let info = block_info(0, block, 0);
    LrzipBlock {
        back_end: info.codec,
        filters: info.filters,
        raw_bytes: block.found.raw_bytes,
        coded_bytes: block.found.coded_bytes,
        head_at: block.offset - head_bytes,
    }
}

/// One block of literals.
pub(super) fn block_info(number: u64, block: &Block, offset_in_store: u64) -> BlockInfo {
    use refrain_format::lrzip::BackEnd;
    BlockInfo {
        block: number,
        archive_offset: block.offset,
        offset_in_store,
        raw_bytes: block.found.raw_bytes,
        stored_bytes: block.found.stored_bytes,
        codec: block.found.back_end.name().to_owned(),
        filters: match block.found.back_end {
            BackEnd::LzmaX86 => "x86".to_owned(),
            BackEnd::LzmaArm64 => "arm64".to_owned(),
            BackEnd::LzmaDelta(distance) => format!("delta{distance}"),
            _ => String::new(),
        },
        fallback: None,
    }
}
