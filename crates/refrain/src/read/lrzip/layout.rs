//! Locates chunks and the blocks of their streams, sequentially.

use std::sync::Arc;

use refrain_format::lrzip::{
    BlockHeader, BlockWalk, CHUNK_HEADER_BYTES_MAX, ChunkHeader, DigestKind, EncryptionOverhead,
    HEADER_BYTES_MAX, Header, Stream, Version,
};

use super::block_stream::{Block, Opener};
use super::input::ArchiveInput;
use super::item_decryption::{ItemKind, Items, wrong_password};
use crate::error::{Error, Result};
use crate::options::PasswordSource;

/// A chunk and its blocks.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub header: ChunkHeader,
    /// The archive offset of its first root. Offsets in headers count from here.
    pub base: u64,
    pub records: Vec<Block>,
    pub literals: Vec<Block>,
    /// The decoded size of all blocks.
    pub records_bytes: u64,
    pub literals_bytes: u64,
}

/// The data after the last chunk.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tail {
    pub md5: Option<[u8; 16]>,
    pub archive_bytes: u64,
    /// The number of bytes after the end of the archive.
    pub trailing_bytes: u64,
}

/// Reads the headers of one chunk after the other.
#[derive(Clone)]
pub(super) struct LayoutReader {
    input: Arc<ArchiveInput>,
    items: Items,
    header: Header,
    /// Whether chunk headers have a filter field; only the first chunk shows it.
    has_prefilter: Option<bool>,
    next: u64,
    chunks: u64,
    is_last: bool,
}

/// The limit for blocks of one chunk. With lrzip's smallest blocks, 10 MiB, these are 160 TiB.
const BLOCKS_MAX: usize = 1 << 24;

/// The header between the chunks of an archive that was written to a pipe.
const STREAM_HEADER_BYTES: usize = 24;
const STREAM_MAGIC: &[u8] = b"LRZC";

impl LayoutReader {
    /// Reads the header of an archive.
    pub(super) fn open(
        input: Arc<ArchiveInput>,
        password: Option<&PasswordSource>,
    ) -> Result<LayoutReader> {
        let bytes = input.up_to(0, HEADER_BYTES_MAX)?;
        let header = Header::parse(&bytes).map_err(|error| Error::from(error).at_offset(0))?;
        let next = header.length_bytes as u64;
        Ok(LayoutReader {
            items: Items::new(&header, password)?,
            input,
            has_prefilter: (header.version != Version::V7).then_some(false),
            header,
            next,
            chunks: 0,
            is_last: false,
        })
    }

    /// The decryption of its items.
    pub(super) fn items(&self) -> &Items {
        &self.items
    }

    /// The parameters for decoding its blocks. One decoder uses at most `decoder_bytes_max` of
    /// memory.
    pub(super) fn opener(&self, decoder_bytes_max: u64) -> Opener {
        Opener {
            input: self.input.clone(),
            items: self.items.clone(),
            lzma: self.header.lzma,
            decoder_bytes_max,
        }
    }

    /// The archive's header.
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// The archive offset of the next chunk, or of the data after the last one.
    pub(super) fn offset(&self) -> u64 {
        self.next
    }

    /// Reads the next chunk; `content_bytes` is the content so far. `None` after the last one.
    pub(super) fn next(&mut self, content_bytes: u64) -> Result<Option<Chunk>> {
        let is_complete = |stated| self.chunks > 0 && content_bytes >= stated;
        if self.is_last || self.header.content_bytes.is_some_and(is_complete) {
            return Ok(None);
        }
        let offset = self.next;
        let chunk = self.chunk().map_err(|error| error.at_offset(offset))?;
        self.chunks += 1;
        Ok(Some(chunk))
    }

    /// Reads the data after the last chunk; `content_bytes` is the length of all content.
    pub(super) fn tail(&self, content_bytes: u64) -> Result<Tail> {
        if let Some(stated) = self.header.content_bytes
            && stated != content_bytes
        {
            return Err(Error::damaged(format!(
                "the archive states {stated} bytes of content, the records have {content_bytes}"
            )));
        }
        let at = self.next;
        let (md5, end) = match self.header.digest {
            DigestKind::Crc => (None, at),
            DigestKind::Md5 => {
                let stored = self.items.digest_bytes();
                let bytes = self.input.exact("the MD5 of its content", at, stored)?;
                let md5 = self.items.decrypt(ItemKind::Digest, bytes)?;
                (md5.try_into().ok(), at + stored as u64)
            }
        };
        Ok(Tail {
            md5,
            archive_bytes: end,
            trailing_bytes: self.input.bytes_after(end)?,
        })
    }

    fn chunk(&mut self) -> Result<Chunk> {
        if self.header.is_streaming && self.chunks > 0 {
            let bytes =
                self.input
                    .exact("the header of a chunk", self.next, STREAM_HEADER_BYTES)?;
            if !bytes.starts_with(STREAM_MAGIC) {
                return Err(Error::damaged("no chunk begins here"));
            }
            self.next += STREAM_HEADER_BYTES as u64;
        }
        let (header, roots) = match self.has_prefilter {
            Some(has_prefilter) => self.roots(has_prefilter)?,
            None => {
                // The field moves the roots by one byte, so at most one interpretation finds both.
                let found = self.roots(false).map(|found| (false, found));
                let (has_prefilter, found) =
                    found.or_else(|_| self.roots(true).map(|found| (true, found)))?;
                self.has_prefilter = Some(has_prefilter);
                found
            }
        };
        self.is_last = header.is_last == Some(true);
        let width = header.number_width_bytes(self.header.version, self.header.cipher.is_some());
        let overhead = EncryptionOverhead::of(self.header.cipher.as_ref());
        let mut walk = BlockWalk::new(self.header.version, overhead, width, roots)?;
        let base = self.next + header.length_bytes;
        let mut chunk = Chunk {
            header,
            base,
            records: Vec::new(),
            literals: Vec::new(),
            records_bytes: 0,
            literals_bytes: 0,
        };
        while let Some(stream) = walk.next_stream()? {
            let at = base + walk.position();
            self.block(&mut walk, stream, at, width, &mut chunk)
                .map_err(|error| error.at_offset(at))?;
        }
        self.next = base + walk.position();
        Ok(chunk)
    }

    fn block(
        &self,
        walk: &mut BlockWalk,
        stream: Stream,
        at: u64,
        width: u8,
        chunk: &mut Chunk,
    ) -> Result<()> {
        let (head, payload_at) = self.head(at, width)?;
        let Some(found) = walk.take(stream, &head)? else {
            return Ok(());
        };
        self.input
            .check_range("a block", payload_at, found.stored_bytes)?;
        let (blocks, bytes) = match stream {
            Stream::Records => (&mut chunk.records, &mut chunk.records_bytes),
            Stream::Literals => (&mut chunk.literals, &mut chunk.literals_bytes),
        };
        if blocks.len() >= BLOCKS_MAX {
            return Err(Error::limit(format!(
                "a chunk of more than {BLOCKS_MAX} blocks"
            )));
        }
        blocks.push(Block {
            found,
            offset: payload_at,
        });
        // The walk has limited the sum.
        *bytes += found.raw_bytes;
        Ok(())
    }

    /// Reads the header at `at`; also returns the offset of its block.
    fn head(&self, at: u64, width: u8) -> Result<(BlockHeader, u64)> {
        let length = BlockHeader::length_bytes(width) as u64;
        let stored = EncryptionOverhead::of(self.header.cipher.as_ref()).stored_bytes(length);
        let bytes = self
            .input
            .exact("the header of a block", at, stored as usize)?;
        let bytes = self.items.decrypt(ItemKind::BlockHeader, bytes)?;
        Ok((BlockHeader::parse(&bytes, width)?, at + stored))
    }

    /// The header of the chunk that begins next, and its two roots.
    fn roots(&self, has_prefilter: bool) -> Result<(ChunkHeader, [BlockHeader; 2])> {
        let version = self.header.version;
        let is_encrypted = self.header.cipher.is_some();
        let bytes = self.input.up_to(self.next, CHUNK_HEADER_BYTES_MAX)?;
        let header = ChunkHeader::parse(version, is_encrypted, has_prefilter, &bytes)?;
        let width = header.number_width_bytes(version, is_encrypted);
        let (first, second_at) = self.head(self.next + header.length_bytes, width)?;
        let (second, _) = self.head(second_at, width)?;
        if !first.is_root() || !second.is_root() {
            if is_encrypted && self.chunks == 0 {
                return Err(wrong_password());
            }
            return Err(Error::damaged(
                "a chunk does not begin with the headers of its streams",
            ));
        }
        Ok((header, [first, second]))
    }
}
