//! One block as a stream of raw bytes.

use std::sync::Arc;

use refrain_format::lrzip::{BackEnd, FoundBlock, LzmaProperties};
use refrain_lrzip_codec::{HEADER_BYTES_MAX, LrzipCodec, LrzipDecoder, LrzipFilter};

use super::input::ArchiveInput;
use super::item_decryption::{ItemKind, Items};
use crate::error::{Error, ErrorKind, Result, mebibytes};

/// A block of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub found: FoundBlock,
    /// The archive offset of its coded bytes, including the overhead of encryption.
    pub offset: u64,
}

/// The parameters for decoding the blocks of an archive.
#[derive(Clone)]
pub(super) struct Opener {
    pub input: Arc<ArchiveInput>,
    pub items: Items,
    pub lzma: LzmaProperties,
    /// The memory limit of one decoder, in bytes.
    pub decoder_bytes_max: u64,
}

/// The number of coded bytes that are read at a time.
const INPUT_BYTES: usize = 128 << 10;

/// The first dictionary size to try if the archive does not state it: four times that of lrzip's
/// default level.
const DICTIONARY_BYTES_UNKNOWN: u64 = 64 << 20;
/// The smallest dictionary of LZMA.
const DICTIONARY_BYTES_MIN: u64 = 4096;
/// The largest dictionary of liblzma.
const DICTIONARY_BYTES_MAX: u64 = 3 << 29;
/// The memory of an LZMA decoder besides the dictionary.
const DICTIONARY_SPARE_BYTES: u64 = 1 << 20;

/// Decodes one block sequentially.
pub(super) struct BlockStream {
    block: Block,
    decoder: LrzipDecoder,
    /// The archive offsets of the next coded byte and of the end.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    taken: usize,
    /// The number of raw bytes read by complete reads.
    passed: u64,
    memory_bytes: u64,
}

/// The dictionary size for decoding an LZMA block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dictionary {
    /// The stated size, or a guess.
    Stated,
    /// The size of the block: the stated size is wrong in archives that lrzip wrote to a pipe or
    /// with little memory.
    Whole,
}

impl Opener {
    /// The codec of a block.
    fn codec(&self, found: &FoundBlock, dictionary: Dictionary) -> LrzipCodec {
        let lzma = |filter| LrzipCodec::Lzma {
            properties: self.lzma.packed,
            dictionary_bytes: self.dictionary_bytes(found, dictionary),
            filter,
        };
        match found.back_end {
            BackEnd::None => LrzipCodec::Stored,
            BackEnd::Bzip2 => LrzipCodec::Bzip2,
            BackEnd::Lzo => LrzipCodec::Lzo,
            BackEnd::Gzip => LrzipCodec::Zlib,
            BackEnd::Zpaq => LrzipCodec::Zpaq,
            BackEnd::Lzma => lzma(None),
            BackEnd::LzmaX86 => lzma(Some(LrzipFilter::X86)),
            BackEnd::LzmaArm64 => lzma(Some(LrzipFilter::Arm64)),
            BackEnd::LzmaDelta(distance_bytes) => lzma(Some(LrzipFilter::Delta { distance_bytes })),
        }
    }

    fn dictionary_bytes(&self, found: &FoundBlock, dictionary: Dictionary) -> u32 {
        let largest = found.raw_bytes.max(DICTIONARY_BYTES_MIN);
        let room = self
            .decoder_bytes_max
            .saturating_sub(DICTIONARY_SPARE_BYTES);
        let bytes = match (dictionary, u64::from(self.lzma.dictionary_bytes)) {
            (Dictionary::Stated, 0) => largest.min(DICTIONARY_BYTES_UNKNOWN),
            (Dictionary::Stated, stated) => largest.min(stated.max(DICTIONARY_BYTES_MIN)),
            (Dictionary::Whole, _) => largest.min(room).min(DICTIONARY_BYTES_MAX),
        };
        bytes.min(u64::from(u32::MAX)) as u32
    }

    /// Whether a larger dictionary may help to decode a block that failed.
    pub(super) fn has_larger_dictionary(&self, found: &FoundBlock) -> bool {
        matches!(found.back_end.name(), "lzma")
            && self.dictionary_bytes(found, Dictionary::Whole)
                > self.dictionary_bytes(found, Dictionary::Stated)
    }

    /// The memory for decoding a block, in bytes.
    pub(super) fn memory_bytes(&self, block: &Block) -> Result<u64> {
        if self.items.is_encrypted() {
            // The model of ZPAQ is known only after decryption. One block at a time is always
            // allowed.
            return Ok(block.found.stored_bytes.max(self.decoder_bytes_max / 2));
        }
        let codec = self.codec(&block.found, Dictionary::Stated);
        Ok(codec.memory_bytes(&self.head(block, codec)?)?)
    }

    /// The first coded bytes of a block if they determine the memory for decoding.
    fn head(&self, block: &Block, codec: LrzipCodec) -> Result<Vec<u8>> {
        let head_bytes = block.found.coded_bytes.min(HEADER_BYTES_MAX as u64) as usize;
        match codec {
            LrzipCodec::Zpaq => self.input.exact("a block", block.offset, head_bytes),
            _ => Ok(Vec::new()),
        }
    }

    /// Starts to decode a block.
    pub(super) fn open(&self, block: &Block, dictionary: Dictionary) -> Result<BlockStream> {
        self.begin(block, dictionary)
            .map_err(|error| error.at_offset(block.offset))
    }

    fn begin(&self, block: &Block, dictionary: Dictionary) -> Result<BlockStream> {
        let codec = self.codec(&block.found, dictionary);
        let decrypted = self.decrypted(block)?;
        let head = match &decrypted {
            Some(bytes) => bytes[..bytes.len().min(HEADER_BYTES_MAX)].to_vec(),
            None => self.head(block, codec)?,
        };
        let decoder_bytes = codec.memory_bytes(&head)?;
        let decrypted_bytes = decrypted.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.check_memory(decoder_bytes.saturating_add(decrypted_bytes), codec.id())?;
        let end = block.offset.saturating_add(block.found.coded_bytes);
        Ok(BlockStream {
            block: *block,
            decoder: LrzipDecoder::new(codec, block.found.raw_bytes, self.decoder_bytes_max)?,
            next: if decrypted.is_some() {
                end
            } else {
                block.offset
            },
            end,
            buffer: decrypted.unwrap_or_default(),
            taken: 0,
            passed: 0,
            memory_bytes: decoder_bytes + decrypted_bytes + INPUT_BYTES as u64,
        })
    }

    /// All coded bytes of an encrypted block: their authenticity can only be checked as a whole.
    fn decrypted(&self, block: &Block) -> Result<Option<Vec<u8>>> {
        if !self.items.is_encrypted() {
            return Ok(None);
        }
        let stored_bytes = block.found.stored_bytes;
        self.check_memory(stored_bytes, "its decryption")?;
        let stored = self
            .input
            .exact("a block", block.offset, stored_bytes as usize)?;
        let mut coded = self.items.decrypt(ItemKind::Data, stored)?;
        // Encryption pads short blocks.
        coded.truncate(block.found.coded_bytes as usize);
        Ok(Some(coded))
    }

    fn check_memory(&self, needed_bytes: u64, what: impl std::fmt::Display) -> Result<()> {
        if needed_bytes <= self.decoder_bytes_max {
            return Ok(());
        }
        Err(Error::limit(format!(
            "decoding a block needs {} of memory for {what}, the limit is {}: raise the memory limit",
            mebibytes(needed_bytes),
            mebibytes(self.decoder_bytes_max)
        )))
    }

    /// Reads bytes of an uncompressed block directly. Returns false for other blocks.
    pub(super) fn read_stored(&self, block: &Block, inside: u64, out: &mut [u8]) -> Result<bool> {
        if block.found.back_end != BackEnd::None || self.items.is_encrypted() {
            return Ok(false);
        }
        let offset = block.offset.saturating_add(inside);
        let count = self.input.read_at(offset, out)?;
        if count < out.len() {
            return Err(Error::damaged("the archive ends inside a block").at_offset(offset));
        }
        Ok(true)
    }
}

impl BlockStream {
    /// Returns a new stream with a larger dictionary for a block that failed, and the number of
    /// bytes that this stream had read; or the error if there is no larger dictionary.
    pub(super) fn again_with_larger_dictionary(
        &self,
        opener: &Opener,
        dictionary: Dictionary,
        error: Error,
    ) -> Result<(BlockStream, u64)> {
        let may_open = error.kind == ErrorKind::Damaged
            && dictionary == Dictionary::Stated
            && opener.has_larger_dictionary(&self.block.found);
        match may_open {
            true => Ok((opener.open(&self.block, Dictionary::Whole)?, self.passed)),
            false => Err(error),
        }
    }

    /// Skips `length` raw bytes.
    pub(super) fn skip(&mut self, input: &ArchiveInput, mut length: u64) -> Result<()> {
        let mut passed = vec![0; length.min(1 << 20) as usize];
        while length > 0 {
            let count = length.min(passed.len() as u64);
            self.read(input, &mut passed[..count as usize])?;
            length -= count;
        }
        Ok(())
    }

    /// The memory of the stream, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The number of raw bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.passed
    }

    /// Fills `out` with the next raw bytes, of which at least `out.len()` must remain.
    pub(super) fn read(&mut self, input: &ArchiveInput, out: &mut [u8]) -> Result<()> {
        let offset = self.block.offset;
        self.fill(input, out)
            .map_err(|error| error.at_offset(offset))?;
        self.passed += out.len() as u64;
        Ok(())
    }

    fn fill(&mut self, input: &ArchiveInput, out: &mut [u8]) -> Result<()> {
        let mut produced = 0;
        while produced < out.len() {
            if self.taken == self.buffer.len() && self.next < self.end {
                self.pull(input)?;
            }
            let is_last = self.next == self.end;
            let rest = &self.buffer[self.taken..];
            let progress = self.decoder.step(rest, is_last, &mut out[produced..])?;
            self.taken += progress.consumed_bytes;
            produced += progress.produced_bytes;
            if progress.consumed_bytes == 0 && progress.produced_bytes == 0 {
                return Err(Error::damaged("a block is shorter than its header states"));
            }
        }
        Ok(())
    }

    fn pull(&mut self, input: &ArchiveInput) -> Result<()> {
        let left = self.end - self.next;
        let count = usize::try_from(left)
            .unwrap_or(INPUT_BYTES)
            .min(INPUT_BYTES);
        self.buffer.resize(count, 0);
        let found = input.read_at(self.next, &mut self.buffer)?;
        if found < count {
            return Err(Error::damaged("the archive ends inside a block"));
        }
        self.next += count as u64;
        self.taken = 0;
        Ok(())
    }
}
