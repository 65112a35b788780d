//! bzip2 files split into blocks, each of which is decoded on its own.
//!
//! Blocks begin at any bit, with a 48-bit number. A compressed block contains that number by chance
//! once in about 2^48 bits: then a part cannot be decoded although the file is good, so a caller
//! decodes the file from front to back before it calls it damaged. [`BlockSplitter`] finds the
//! parts; [`Block::decode`] decodes one; [`StreamCheck`] compares the checksum over the blocks of a
//! stream.

use std::io::Read;

use bzip2::{Decompress, Status};

use crate::error::{Error, Result};
use crate::input::Input;

/// The numbers with which a block and the end of a stream begin, and their length.
const BLOCK: u64 = 0x3141_5926_5359;
const END: u64 = 0x1772_4538_5090;
const NUMBER_BITS: u64 = 48;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// The longest block: 900,000 bytes that grow a little, and the coding tables. Anything longer is
/// damaged.
const BLOCK_BYTES_MAX: usize = 2 << 20;

/// The most content bytes of a block of 900,000 bytes: five of them stand for four equal bytes and
/// up to 251 more.
pub(crate) const CONTENT_BYTES_MAX: usize = 900_000 / 5 * 255 + 900_000;

/// Bits of the file from one number to the next.
#[derive(Debug, Clone)]
pub struct Block {
    /// Where it begins, in bytes of the file.
    pub offset: u64,
    level: u8,
    /// The bits, from the first bit of the first byte.
    bits: Vec<u8>,
    bit_count: u64,
}

/// A part of a file.
#[derive(Debug)]
pub enum BlockPart {
    /// A block, or a piece of one.
    Block(Block),
    /// The end of a stream, with the checksum over its blocks.
    StreamEnd {
        /// Where it is.
        offset: u64,
        /// The checksum.
        crc: u32,
    },
}

/// Compares the checksum over the blocks of a stream.
#[derive(Debug, Default)]
pub struct StreamCheck {
    crc: u32,
}

impl StreamCheck {
    /// Adds the checksum of the next block, which was decoded.
    pub fn add(&mut self, block_crc: u32) {
        self.crc = self.crc.rotate_left(1) ^ block_crc;
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// `Damaged` if the checksum differs.
    pub fn end(&mut self, offset: u64, stated: u32) -> Result<()> {
        let found = std::mem::take(&mut self.crc);
        if found == stated {
            Ok(())
        } else {
            let what = format!(
                "the checksum of the bzip2 stream is {found:08x}, its end states {stated:08x}"
            );
            Err(Error::damaged(offset, what))
        }
    }
}

#[derive(Debug, Default)]
struct BitWriter {
    bytes: Vec<u8>,
    /// The bits that do not fill a byte yet, in the lowest places.
    pending: u64,
    pending_count: u32,
}

impl BitWriter {
    fn push(&mut self, value: u64, count: u32) {
        self.pending = self.pending << count | (value & ((1 << count) - 1));
        self.pending_count += count;
        while self.pending_count >= 8 {
            self.pending_count -= 8;
            // Truncation to the byte is intended.
            self.bytes.push((self.pending >> self.pending_count) as u8);
        }
        self.pending &= (1 << self.pending_count) - 1;
    }

    fn extend(&mut self, bytes: &[u8], count: u64) {
        let whole = usize::try_from(count / 8).unwrap_or(usize::MAX);
        let whole_bytes = bytes.get(..whole).unwrap_or(bytes);
        match self.pending_count {
            0 => self.bytes.extend_from_slice(whole_bytes),
            _ => whole_bytes
                .iter()
                .for_each(|byte| self.push(u64::from(*byte), 8)),
        }
        let rest = (count % 8) as u32;
        if let Some(last) = bytes.get(whole).filter(|_| rest > 0) {
            self.push(u64::from(*last) >> (8 - rest), rest);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.pending_count > 0 {
            self.push(0, 8 - self.pending_count);
        }
        self.bytes
    }
}

impl Block {
    /// The checksum that the block states.
    #[must_use]
    pub fn crc(&self) -> u32 {
        let bytes = self.bits.get(6..).and_then(|rest| rest.first_chunk::<4>());
        u32::from_be_bytes(bytes.copied().unwrap_or_default())
    }

    /// Decodes the block and compares its checksum.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn decode(&self) -> Result<Vec<u8>> {
        // A stream of only this block, with the block's checksum.
        let mut stream = BitWriter::default();
        stream.bytes.reserve(self.bits.len() + 16);
        stream
            .bytes
            .extend_from_slice(&[b'B', b'Z', b'h', self.level]);
        stream.extend(&self.bits, self.bit_count);
        stream.push(END, 48);
        stream.push(u64::from(self.crc()), 32);
        let stream = stream.finish();
        let mut decoder = Decompress::new(false);
        let mut content = Vec::with_capacity(usize::from(self.level - b'0') * 100_000);
        let mut rest = stream.as_slice();
        loop {
            let before = decoder.total_in();
            let length_before = content.len();
            let status = decoder.decompress_vec(rest, &mut content);
            let consumed = usize::try_from(decoder.total_in() - before).unwrap_or(0);
            rest = rest.get(consumed..).unwrap_or_default();
            match status {
                Ok(Status::StreamEnd) => return Ok(content),
                Ok(_) if content.len() > CONTENT_BYTES_MAX => return Err(self.damaged()),
                Ok(_) if content.len() == content.capacity() => content.reserve(1 << 20),
                Ok(_) if consumed > 0 || content.len() > length_before => {}
                _ => return Err(self.damaged()),
            }
        }
    }

    fn damaged(&self) -> Error {
        let what = "the bzip2 block is damaged, or its checksum differs";
        Error::damaged(self.offset, what)
    }
}

enum State {
    /// At the header of a stream, which begins at a byte.
    Stream,
    /// At a number, this many bits after the start of the window.
    Number(u64),
}

/// Splits a bzip2 file.
pub struct BlockSplitter {
    input: Input,
    state: State,
    level: u8,
    streams: u64,
    candidates: Candidates,
}

impl BlockSplitter {
    /// A splitter of the file that `reader` delivers.
    #[must_use]
    pub fn new(reader: Box<dyn Read + Send>) -> BlockSplitter {
        BlockSplitter {
            input: Input::new(reader),
            state: State::Stream,
            level: b'9',
            streams: 0,
            candidates: Candidates::new(),
        }
    }

    /// The offset of the next part in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// The next part; `None` at the end of the file.
    ///
    /// # Errors
    /// `Damaged` where neither a block nor an end nor a stream begins, `Truncated`, `Io`.
    pub fn next_part(&mut self) -> Result<Option<BlockPart>> {
        if let State::Stream = self.state {
            if !self.begin_stream()? {
                return Ok(None);
            }
            self.state = State::Number(0);
        }
        let State::Number(shift) = self.state else {
            return Ok(None);
        };
        let offset = self.input.offset();
        match self.bits_at(shift, NUMBER_BITS)? {
            BLOCK => self.take_block(shift).map(Some),
            END => {
                // The checksum has 32 bits, up to a byte.
                let crc = self.bits_at(shift + NUMBER_BITS, 32)?;
                let bytes = (shift + NUMBER_BITS + 32).div_ceil(8);
                self.input
                    .consume(usize::try_from(bytes).unwrap_or(usize::MAX));
                self.state = State::Stream;
                let crc = u32::try_from(crc).unwrap_or_default();
                Ok(Some(BlockPart::StreamEnd { offset, crc }))
            }
            _ => Err(Error::damaged(offset, "expected a bzip2 block")),
        }
    }

    fn begin_stream(&mut self) -> Result<bool> {
        let offset = self.input.offset();
        match (self.input.show(4)?, self.streams) {
            ([], 1..) => return Ok(false),
            ([b'B', b'Z', b'h', level @ b'1'..=b'9', ..], _) => self.level = *level,
            (_, 0) => return Err(Error::damaged(offset, "this is not a bzip2 file")),
            (rest, _) if b"BZh".starts_with(rest.get(..3).unwrap_or(rest)) => {
                return Err(self.input.truncated("the header of a bzip2 stream"));
            }
            (_, _) => {
                let what = "the data after the bzip2 stream is not a bzip2 stream";
                return Err(Error::damaged(offset, what));
            }
        }
        self.input.consume(4);
        self.streams += 1;
        Ok(true)
    }

    /// `count` bits, at most 48, at `shift` bits after the start of the window.
    fn bits_at(&mut self, shift: u64, count: u64) -> Result<u64> {
        let end = usize::try_from((shift + count).div_ceil(8)).unwrap_or(usize::MAX);
        let window = self.input.show(end)?;
        let start = usize::try_from(shift / 8).unwrap_or(usize::MAX);
        let Some(bytes) = window.get(start..end) else {
            return Err(self.input.truncated("a bzip2 stream"));
        };
        let value = bytes
            .iter()
            .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        let after = (end as u64) * 8 - (shift + count);
        Ok((value >> after) & ((1 << count) - 1))
    }

    /// Takes the block that begins `shift` bits after the start of the window.
    fn take_block(&mut self, shift: u64) -> Result<BlockPart> {
        let mut from = shift + NUMBER_BITS;
        let mut visible = 64 << 10;
        let end = loop {
            self.input.show(visible)?;
            let window = self.input.window();
            if let Some(end) = self.candidates.find(window, from) {
                break end;
            }
            if self.input.has_ended() {
                return Err(self.input.truncated("a bzip2 stream"));
            }
            if window.len() > BLOCK_BYTES_MAX {
                let what = "a bzip2 block has no end";
                return Err(Error::damaged(self.input.offset(), what));
            }
            // A number may have begun in the last bytes.
            from = from.max((window.len() as u64 * 8).saturating_sub(NUMBER_BITS));
            visible = window.len() + (256 << 10);
        };
        let offset = self.input.offset() + shift / 8;
        let block = Block {
            offset,
            level: self.level,
            bits: copied_bits(self.input.window(), shift, end),
            bit_count: end - shift,
        };
        self.input
            .consume(usize::try_from(end / 8).unwrap_or(usize::MAX));
        self.state = State::Number(end % 8);
        Ok(BlockPart::Block(block))
    }
}

/// The bits of `bytes` between two positions, moved to the start of a byte.
fn copied_bits(bytes: &[u8], from: u64, to: u64) -> Vec<u8> {
    let first = usize::try_from(from / 8).unwrap_or(usize::MAX);
    let last = usize::try_from(to.div_ceil(8)).unwrap_or(usize::MAX);
    let bytes = bytes.get(first..last).unwrap_or_default();
    let shift = (from % 8) as u32;
    let following = bytes.iter().skip(1).chain([&0]);
    let moved = bytes.iter().zip(following).map(|(byte, next)| {
        let both = u16::from_be_bytes([*byte, *next]);
        // Truncation to the byte is intended.
        (both << shift >> 8) as u8
    });
    let count = usize::try_from((to - from).div_ceil(8)).unwrap_or(usize::MAX);
    moved.take(count).collect()
}

struct Candidates {
    /// For each value of a byte, the shifts at which it may be the second byte of a number, that
    /// is, hold the number's bits from 8 minus the shift.
    shifts_of: [u8; 256],
}

impl Candidates {
    fn new() -> Candidates {
        let mut shifts_of = [0_u8; 256];
        for number in [BLOCK, END] {
            for shift in 0..8_u32 {
                // The number begins `shift` bits into its first byte.
                let second = (number >> (32 + shift)) & 0xff;
                if let Some(shifts) = usize::try_from(second)
                    .ok()
                    .and_then(|second| shifts_of.get_mut(second))
                {
                    *shifts |= 1 << shift;
                }
            }
        }
        Candidates { shifts_of }
    }

    /// The first bit at or after `from` at which a completely visible number begins.
    fn find(&self, bytes: &[u8], from: u64) -> Option<u64> {
        let start = usize::try_from(from / 8).unwrap_or(usize::MAX);
        let rest = bytes.get(start..)?;
        for (index, window) in rest.windows(7).enumerate() {
            let &[a, b, c, d, e, f, g] = window else {
                continue;
            };
            let shifts = self.shifts_of.get(usize::from(b)).copied().unwrap_or(0);
            if shifts == 0 {
                continue;
            }
            let value = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
            for shift in (0..8).filter(|shift| shifts & (1 << shift) != 0) {
                let number = (value >> (8 - shift)) & NUMBER_MASK;
                let at = ((start + index) as u64) * 8 + shift;
                if at >= from && (number == BLOCK || number == END) {
                    return Some(at);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn split(file: &[u8]) -> Result<Vec<u8>> {
        let mut splitter = BlockSplitter::new(Box::new(std::io::Cursor::new(file.to_vec())));
        let (mut content, mut check) = (Vec::new(), StreamCheck::default());
        while let Some(part) = splitter.next_part()? {
            match part {
                BlockPart::Block(block) => {
                    content.extend(block.decode()?);
                    check.add(block.crc());
                }
                BlockPart::StreamEnd { offset, crc } => check.end(offset, crc)?,
            }
        }
        Ok(content)
    }

    fn content(length_bytes: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 59) as u8
        };
        (0..length_bytes).map(|_| next()).collect()
    }

    fn encode(content: &[u8], level: u32) -> Vec<u8> {
        let level = bzip2::Compression::new(level);
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), level);
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn blocks_are_decoded_on_their_own() {
        for length_bytes in [0, 1, 99_000, 750_000] {
            let content = content(length_bytes);
            for level in [1, 9] {
                let file = encode(&content, level);
                assert!(split(&file).unwrap() == content, "{length_bytes} bytes");
            }
        }
        let zeros = vec![0; 60_000_000];
        assert!(split(&encode(&zeros, 9)).unwrap() == zeros);
        let (one, other) = (content(250_000), content(3_000));
        let joined = [encode(&one, 1), encode(b"", 1), encode(&other, 5)].concat();
        assert!(split(&joined).unwrap() == [one, other].concat());
    }

    #[test]
    fn cut_and_changed_files_are_refused() {
        let content = content(2_000);
        let file = [encode(&content[..1_500], 1), encode(&content[1_500..], 1)].concat();
        let first = encode(&content[..1_500], 1).len();
        for length in (0..file.len()).filter(|length| *length != first) {
            assert!(split(&file[..length]).is_err(), "cut at {length}");
        }
        for bit in 0..file.len() * 8 {
            let mut changed = file.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Ok(found) = split(&changed) {
                assert!(found == content, "bit {bit}");
            }
        }
        assert!(split(&[&file[..], b"garbage"].concat()).is_err());
    }
}
