//! Reads the structure of an archive from its headers. Nothing is decoded, so the length of the
//! archive does not matter.

use std::sync::Arc;

use refrain_format::lrzip::{
    BlockHeader, Cipher, DigestKind, EncryptionOverhead, HEADER_BYTES_MAX, Header, Prefilter,
};
use refrain_storage::Source;

use super::chunk_layout::{Chunk, LayoutReader};
use super::coded_bytes::Block;
use super::input::ArchiveInput;
use super::item_decryption::ItemKind;
use super::record_summary::summarize_chunks;
use crate::archive_info::BlockInfo;
use crate::error::{Error, Result};
use crate::options::ReadOptions;

/// The limit for chunks. With lrzip's smallest windows, 100 MiB, this is 100 TiB.
const CHUNKS_MAX: usize = 1 << 20;

/// The structure of an lrzip archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrzipLayout {
    /// The version of lrzip that wrote it.
    pub version: &'static str,
    /// The length of the content, if the header states it. (Archives of empty files and of pipes do
    /// not.)
    pub content_bytes: Option<u64>,
    /// The length of the file.
    pub archive_bytes: u64,
    /// The cipher, if it is encrypted.
    pub cipher: Option<&'static str>,
    /// Whether it ends with an MD5 of the content. Otherwise chunks have a CRC-32.
    pub has_md5: bool,
    /// The MD5.
    pub md5: Option<[u8; 16]>,
    /// The windows of content. Empty for an encrypted archive without a password.
    pub chunks: Vec<LrzipChunk>,
}

/// A window of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrzipChunk {
    /// The number of bytes of each number in its headers.
    pub width_bytes: u8,
    /// The filter applied to its content before deduplication.
    pub prefilter: Option<&'static str>,
    /// The archive offsets of its two streams. Offsets in headers count from the first.
    pub stream_offsets: [u64; 2],
    /// The blocks of records, and of literals.
    pub streams: [Vec<LrzipBlock>; 2],
}

/// A block of one of the streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrzipBlock {
    /// The name of its back end.
    pub back_end: String,
    /// The filters before it; empty if none.
    pub filters: String,
    /// The decoded size in bytes.
    pub raw_bytes: u64,
    /// The size in the archive in bytes, without the overhead of encryption.
    pub coded_bytes: u64,
    /// The archive offset of its header.
    pub header_offset: u64,
}

impl LrzipLayout {
    /// Reads the headers of an archive.
    ///
    /// # Errors
    /// `Damaged` if it is not an lrzip archive or its headers contradict each other; `Unsupported`
    /// for other versions; `Usage` for a wrong password; `Io`.
    pub fn read(source: Arc<dyn Source>, options: &ReadOptions) -> Result<LrzipLayout> {
        let input = Arc::new(ArchiveInput::from_source(source)?);
        let archive_bytes = input.bytes_after(0)?;
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
        let start = reader.clone();
        while let Some(chunk) = reader.next_by_headers()? {
            if self.chunks.len() >= CHUNKS_MAX {
                return Err(Error::limit(format!("more than {CHUNKS_MAX} chunks")));
            }
            self.chunks.push(describe(&chunk, header));
        }
        let digest_bytes = reader.digest_bytes();
        if header.content_bytes.is_some()
            && input.bytes_after(reader.offset())? > digest_bytes as u64
        {
            // Either bytes follow the archive, or a chunk is damaged.
            summarize_chunks(start, options, |_, _, _| ())?;
        }
        if digest_bytes > 0 {
            let stored = input.exact("the digest", reader.offset(), digest_bytes)?;
            let bytes = reader.items().decrypt(ItemKind::Digest, stored)?;
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
    let header_bytes = BlockHeader::length_bytes(width) as u64;
    let header_bytes =
        EncryptionOverhead::for_cipher(header.cipher.as_ref()).stored_bytes(header_bytes);
    let blocks = |blocks: &[Block]| {
        let blocks = blocks
            .iter()
            .map(|block| describe_block(block, header_bytes));
        blocks.collect()
    };
    LrzipChunk {
        width_bytes: chunk.header.width_bytes,
        prefilter: chunk.header.prefilter.map(|prefilter| match prefilter {
            Prefilter::X86 => "x86",
            Prefilter::Arm64 => "arm64",
        }),
        stream_offsets: [chunk.base, chunk.base + header_bytes],
        streams: [blocks(&chunk.records), blocks(&chunk.literals)],
    }
}

fn describe_block(block: &Block, header_bytes: u64) -> LrzipBlock {
    let info = block_info(0, block, 0);
    LrzipBlock {
        back_end: info.codec,
        filters: info.filters,
        raw_bytes: block.found.raw_bytes,
        coded_bytes: block.found.coded_bytes,
        header_offset: block.offset - header_bytes,
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
