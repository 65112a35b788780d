//! Locates chunks and the blocks of their streams, sequentially.

use std::sync::Arc;

use refrain_format::lrzip::{
    BlockHeader, BlockWalk, CHUNK_HEADER_BYTES_MAX, ChunkHeader, DigestKind, EncryptionOverhead,
    HEADER_BYTES_MAX, Header, Stream, Version,
};

use super::block_stream::Opener;
use super::coded_bytes::Block;
use super::input::ArchiveInput;
use super::item_decryption::{ItemKind, Items, wrong_password};
use crate::error::{Error, ErrorKind, Result};
use crate::options::PasswordSource;

/// A chunk and its blocks.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub header: ChunkHeader,
    /// The archive offset of its first root. Offsets in headers count from here.
    pub base: u64,
    /// The archive offset of its end.
    pub end: u64,
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
    /// Whether the latest chunk is marked as the last one.
    is_marked_last: bool,
}

/// What follows the chunks read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// A chunk; otherwise the archive is damaged.
    Chunk,
    /// A chunk, or bytes that are not part of the archive.
    Perhaps,
    /// A chunk without content, or bytes that are not part of the archive.
    PerhapsEmpty,
    /// No chunk.
    End,
}

/// The limit for blocks of one chunk. With lrzip's smallest blocks, 10 MiB, this is 160 TiB.
const BLOCKS_MAX: usize = 1 << 24;

/// The header between the chunks of an archive written to a pipe.
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
            is_marked_last: false,
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

    /// The number of bytes of the digest at the end of the archive.
    pub(super) fn digest_bytes(&self) -> usize {
        match self.header.digest {
            DigestKind::Crc => 0,
            DigestKind::Md5 => self.items.digest_bytes(),
        }
    }

    /// The archive offset of the next chunk, or of the data after the last one.
    pub(super) fn offset(&self) -> u64 {
        self.next
    }

    /// Reads the next chunk; `content_bytes` is the content so far. `None` after the last one.
    pub(super) fn next(&mut self, content_bytes: u64) -> Result<Option<Chunk>> {
        let follows = self.what_follows(Some(content_bytes))?;
        self.next_if(follows)
    }

    /// Reads the next chunk without knowing the length of the content so far. `None` after the last
    /// one, and also if the latest chunk may be the last one and no chunk follows.
    pub(super) fn next_by_headers(&mut self) -> Result<Option<Chunk>> {
        let follows = self.what_follows(None)?;
        self.next_if(follows)
    }

    /// What follows the chunks so far.
    ///
    /// lrzip (0.651 and 0.7.1) often marks a chunk before the last one as the last: a thread that
    /// writes a chunk's header takes the mark from a variable that the main thread may already have
    /// set for the next chunk. So the length stated by the archive's header decides, or without one
    /// the end of the file.
    fn what_follows(&self, content_bytes: Option<u64>) -> Result<Follows> {
        if self.chunks == 0 {
            return Ok(Follows::Chunk);
        }
        let stated = self.header.content_bytes;
        let digest_bytes = self.digest_bytes();
        if self.input.up_to(self.next, digest_bytes + 1)?.len() <= digest_bytes {
            // Archives without MD5 could be cut between two chunks. If the length is stated,
            // [`LayoutReader::tail`] compares it.
            let needs_mark = digest_bytes == 0 && stated.is_none() && !self.is_marked_last;
            return Ok(if needs_mark { Follows::Chunk } else { Follows::End });
        }
        Ok(match (stated, content_bytes) {
            (Some(stated), Some(found)) if found < stated => Follows::Chunk,
            // All content of a pipe that ended with a full chunk; an empty one follows.
            (Some(_), Some(_)) => Follows::PerhapsEmpty,
            (None, _) if !self.is_marked_last => Follows::Chunk,
            _ => Follows::Perhaps,
        })
    }

    fn next_if(&mut self, follows: Follows) -> Result<Option<Chunk>> {
        if follows == Follows::End {
            return Ok(None);
        }
        let offset = self.next;
        let has_prefilter = self.has_prefilter;
        let chunk = self.chunk(follows).map_err(|error| error.at_offset(offset));
        if matches!(chunk, Ok(Some(_))) {
            self.chunks += 1;
        } else {
            (self.next, self.has_prefilter) = (offset, has_prefilter);
        }
        chunk
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
        let (md5, end) = match self.digest_bytes() {
            0 => (None, at),
            stored => {
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

    /// Reads the headers of the next chunk. `None` if what follows may be something else, and is.
    fn chunk(&mut self, follows: Follows) -> Result<Option<Chunk>> {
        let (header, roots) = match (self.chunk_start(), follows) {
            (Ok(start), _) => start,
            (Err(error), Follows::Perhaps | Follows::PerhapsEmpty)
                if error.kind == ErrorKind::Damaged
                    || error.kind == ErrorKind::Unsupported
                    || error.kind == ErrorKind::Usage =>
            {
                return Ok(None);
            }
            (Err(error), _) => return Err(error),
        };
        match self.blocks(header, roots) {
            Ok(chunk) if follows != Follows::PerhapsEmpty || chunk.literals_bytes == 0 => {
                self.next = chunk.end;
                self.is_marked_last = header.is_last == Some(true);
                Ok(Some(chunk))
            }
            Err(error) if follows != Follows::PerhapsEmpty || error.kind == ErrorKind::Io => {
                Err(error)
            }
            _ => Ok(None),
        }
    }

    /// The header of the next chunk, and the headers of its streams.
    fn chunk_start(&mut self) -> Result<(ChunkHeader, [BlockHeader; 2])> {
        if self.header.is_streaming && self.chunks > 0 {
            let bytes =
                self.input
                    .exact("the header of a chunk", self.next, STREAM_HEADER_BYTES)?;
            if !bytes.starts_with(STREAM_MAGIC) {
                return Err(Error::damaged("no chunk begins here"));
            }
            self.next += STREAM_HEADER_BYTES as u64;
        }
        if let Some(has_prefilter) = self.has_prefilter {
            return self.roots(has_prefilter);
        }
        // The field moves the roots by one byte, so at most one interpretation finds both.
        let found = self.roots(false).map(|found| (false, found));
        let (has_prefilter, found) =
            found.or_else(|_| self.roots(true).map(|found| (true, found)))?;
        self.has_prefilter = Some(has_prefilter);
        Ok(found)
    }

    fn blocks(&self, header: ChunkHeader, roots: [BlockHeader; 2]) -> Result<Chunk> {
        let width = header.number_width_bytes(self.header.version, self.header.cipher.is_some());
        let overhead = EncryptionOverhead::for_cipher(self.header.cipher.as_ref());
        let mut walk = BlockWalk::new(self.header.version, overhead, width, roots)?;
        let base = self.next + header.length_bytes;
        let mut chunk = Chunk {
            header,
            base,
            end: base,
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
        chunk.end = base + walk.position();
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
        let stored =
            EncryptionOverhead::for_cipher(self.header.cipher.as_ref()).stored_bytes(length);
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
