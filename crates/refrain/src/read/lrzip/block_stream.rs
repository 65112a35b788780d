//! One block as a stream of raw bytes.

use std::sync::Arc;

use refrain_format::lrzip::{BackEnd, FoundBlock, LzmaProperties};
use refrain_lrzip_codec::{HEADER_BYTES_MAX, LrzipCodec, LrzipDecoder, LrzipFilter};

use super::coded_bytes::{Block, CodedBytes};
use super::input::ArchiveInput;
use super::item_decryption::Items;
use crate::error::{Error, ErrorKind, Result, mebibytes};

/// The parameters for decoding the blocks of an archive.
#[derive(Clone)]
pub(super) struct Opener {
    pub input: Arc<ArchiveInput>,
    pub items: Items,
    pub lzma: LzmaProperties,
    /// The memory limit of one decoder, in bytes.
    pub decoder_bytes_max: u64,
}

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
    coded: CodedBytes,
    /// The number of raw bytes read by complete reads.
    passed: u64,
    memory_bytes: u64,
}

/// What earlier decoding of a block has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockKnowledge {
    pub dictionary: Dictionary,
    /// Whether its tag and its own checksum were compared.
    pub is_checked: bool,
}

impl BlockKnowledge {
    /// Before the block was decoded.
    pub(super) const NOTHING: BlockKnowledge = BlockKnowledge {
        dictionary: Dictionary::Stated,
        is_checked: false,
    };
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
    fn codec(&self, found: &FoundBlock, dictionary: Dictionary) -> Result<LrzipCodec> {
        let lzma = |filter| LrzipCodec::Lzma {
            properties: self.lzma.packed,
            dictionary_bytes: self.dictionary_bytes(found, dictionary),
            filter,
        };
        Ok(match found.back_end {
            BackEnd::None => LrzipCodec::Stored,
            BackEnd::Bzip2 => LrzipCodec::Bzip2,
            BackEnd::Lzo => LrzipCodec::Lzo,
            BackEnd::Gzip => LrzipCodec::Zlib,
            BackEnd::Zpaq => LrzipCodec::Zpaq,
            BackEnd::Lzma => lzma(None),
            BackEnd::LzmaX86 => lzma(Some(LrzipFilter::X86)),
            BackEnd::LzmaArm64 => lzma(Some(LrzipFilter::Arm64)),
            BackEnd::LzmaDelta(distance_bytes) => lzma(Some(LrzipFilter::Delta { distance_bytes })),
            BackEnd::Zstd => LrzipCodec::Zstd,
            BackEnd::Bzip3 => {
                let message = "a block of bzip3, which this program cannot decode: lrzip-next can";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        })
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

    pub(super) fn memory_bytes(&self, block: &Block) -> Result<u64> {
        let found = &block.found;
        let codec = self.codec(found, Dictionary::Stated)?;
        let whole_bytes =
            if self.items.is_encrypted() && found.stored_bytes <= self.whole_bytes_max() {
                found.stored_bytes
            } else {
                0
            };
        let raw_bytes = if self.is_decoded_whole(codec, found) { found.raw_bytes } else { 0 };
        let decoder_bytes = match codec {
            // The ZPAQ model is known only after decryption. One block at a time is always allowed.
            LrzipCodec::Zpaq | LrzipCodec::Zstd if self.items.is_encrypted() => {
                self.decoder_bytes_max / 2
            }
            LrzipCodec::Zpaq | LrzipCodec::Zstd => {
                let head_bytes = found.coded_bytes.min(HEADER_BYTES_MAX as u64) as usize;
                codec.memory_bytes(&self.input.exact("a block", block.offset, head_bytes)?)?
            }
            _ => codec.memory_bytes(&[])?,
        };
        Ok(decoder_bytes + whole_bytes + raw_bytes)
    }

    /// The largest block that is decrypted at once.
    fn whole_bytes_max(&self) -> u64 {
        self.decoder_bytes_max / 8
    }

    /// Whether a block with a checksum is decoded completely before any of it is used. Two such
    /// blocks fit into the memory of all decoders.
    fn is_decoded_whole(&self, codec: LrzipCodec, found: &FoundBlock) -> bool {
        codec.has_checksum() && found.raw_bytes <= self.decoder_bytes_max / 2
    }

    /// Starts to decode a block. A block with its own checksum (bzip2, zlib, zstd) yields no bytes
    /// if the checksum is wrong: small ones are decoded completely, large ones twice.
    pub(super) fn open(
        &self,
        block: &Block,
        knowledge: &mut BlockKnowledge,
    ) -> Result<BlockStream> {
        let opened = self.begin(block, *knowledge);
        let stream = opened.map_err(|error| error.at_offset(block.offset))?;
        knowledge.is_checked = true;
        Ok(stream)
    }

    fn begin(&self, block: &Block, knowledge: BlockKnowledge) -> Result<BlockStream> {
        let codec = self.codec(&block.found, knowledge.dictionary)?;
        let mut stream = self.begin_unchecked(block, codec, knowledge.is_checked)?;
        if !codec.has_checksum() || knowledge.is_checked {
            return Ok(stream);
        }
        if self.is_decoded_whole(codec, &block.found) {
            let mut raw = Vec::new();
            let raw_bytes = block.found.raw_bytes as usize;
            raw.try_reserve_exact(raw_bytes).map_err(|_| {
                let needed = mebibytes(block.found.raw_bytes);
                Error::limit(format!("{needed} of memory for a block are not available"))
            })?;
            stream.decode_all(&self.input, |piece| raw.extend_from_slice(piece))?;
            stream.decoder = LrzipDecoder::new(LrzipCodec::Stored, block.found.raw_bytes, 0)?;
            stream.coded = CodedBytes::from_bytes(raw);
            stream.memory_bytes = stream.coded.memory_bytes();
        } else {
            stream.decode_all(&self.input, |_| ())?;
            stream = self.begin_unchecked(block, codec, true)?;
        }
        stream.passed = 0;
        Ok(stream)
    }

    fn begin_unchecked(
        &self,
        block: &Block,
        codec: LrzipCodec,
        is_authentic: bool,
    ) -> Result<BlockStream> {
        let (input, whole_bytes_max) = (&self.input, self.whole_bytes_max());
        let mut coded = CodedBytes::open(input, &self.items, block, whole_bytes_max, is_authentic)?;
        coded.refill(input)?;
        let decoder_bytes = codec.memory_bytes(coded.rest())?;
        self.check_memory(decoder_bytes, codec.id())?;
        Ok(BlockStream {
            block: *block,
            decoder: LrzipDecoder::new(codec, block.found.raw_bytes, self.decoder_bytes_max)?,
            passed: 0,
            memory_bytes: decoder_bytes + coded.memory_bytes(),
            coded,
        })
    }

    fn check_memory(&self, needed_bytes: u64, what: impl std::fmt::Display) -> Result<()> {
        if needed_bytes <= self.decoder_bytes_max {
            return Ok(());
        }
        Err(Error::limit(format!(
            "decoding a block needs {} of memory for {what}, the limit is {} (a quarter of all): raise the memory limit",
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
    /// A new stream with a larger dictionary for a block that failed, and the number of bytes that
    /// this stream had read; the error if there is no larger dictionary.
    pub(super) fn again_with_larger_dictionary(
        &self,
        opener: &Opener,
        knowledge: &mut BlockKnowledge,
        error: Error,
    ) -> Result<(BlockStream, u64)> {
        let may_open = error.kind == ErrorKind::Damaged
            && knowledge.dictionary == Dictionary::Stated
            && opener.has_larger_dictionary(&self.block.found);
        if !may_open {
            return Err(error);
        }
        knowledge.dictionary = Dictionary::Whole;
        Ok((opener.open(&self.block, knowledge)?, self.passed))
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

    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The number of raw bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.passed
    }

    /// Fills `out` with the next raw bytes; at least `out.len()` must remain.
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
            self.coded.refill(input)?;
            let is_last = self.coded.is_last();
            let (rest, out) = (self.coded.rest(), &mut out[produced..]);
            let progress = self.decoder.step(rest, is_last, out)?;
            self.coded.consume(progress.consumed_bytes);
            produced += progress.produced_bytes;
            if progress.consumed_bytes == 0 && progress.produced_bytes == 0 {
                return Err(Error::damaged("a block is shorter than its header states"));
            }
        }
        Ok(())
    }

    /// Decodes all of a block with a checksum, and compares the checksum.
    fn decode_all(&mut self, input: &ArchiveInput, mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut left = self.block.found.raw_bytes;
        let mut piece = vec![0; left.min(1 << 20) as usize];
        while left > 0 {
            let count = left.min(piece.len() as u64);
            let piece = &mut piece[..count as usize];
            self.fill(input, piece)?;
            take(piece);
            left -= count;
        }
        while !self.decoder.has_checked_end() {
            self.coded.refill(input)?;
            let is_last = self.coded.is_last();
            let consumed = self.decoder.check_end(self.coded.rest(), is_last)?;
            self.coded.consume(consumed);
        }
        Ok(())
    }
}
