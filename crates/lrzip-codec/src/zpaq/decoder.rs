//! The structure around the encoded bytes: tags, blocks, segments and postprocessing.

use super::arithmetic::ArithmeticDecoder;
use super::error::damaged;
use super::header::Header;
use super::machine::{Machine, RunEnd};
use super::predictor::Predictor;
use crate::stage::{Progress, Stage};
use refrain_codec::CodecId;
use refrain_codec::{Error, Result};

/// The thirteen bytes that mark a block in other data.
const TAG: [u8; 13] = [
    0x37, 0x6B, 0x53, 0x74, 0xA0, 0x31, 0x83, 0xD3, 0x8C, 0xB2, 0x28, 0xB0, 0xD3,
];

pub(crate) fn without_tag(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(&TAG).unwrap_or(bytes)
}

/// Returns the memory in bytes of a decoder for the block that begins with `start`.
///
/// # Errors
/// `Damaged` if `start` does not contain a complete block header.
pub(crate) fn memory_bytes(start: &[u8]) -> Result<u64> {
    match Header::parse(without_tag(start))? {
        Some((header, _)) => Ok(header.memory_bytes()),
        None => Err(damaged("a truncated block header")),
    }
}

/// The capacity of the input buffer, which holds the longest header.
const INPUT_BUFFER_BYTES: usize = (64 << 10) + 64;
/// The largest input of one decoded byte: nine decisions of at most four bytes.
const INPUT_PER_BYTE: usize = 36;
/// The longest file name or comment. Both are skipped.
const TEXT_BYTES_MAX: u32 = 1 << 20;
/// The number of instructions that PCOMP may execute for each byte of its input, and for each raw
/// byte of the block, because it may do all of its work at the end. An inverse Burrows-Wheeler
/// transform takes about 20 per byte.
const POST_STEPS_PER_BYTE: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextPart {
    /// A block, or the end of the data.
    Block,
    /// A segment of the block, or the end of the block.
    Segment,
    /// A text that ends with a zero, of which `length` bytes have been read. A comment follows a
    /// name.
    Text {
        is_name: bool,
        length: u32,
    },
    /// The first four bytes of encoded data.
    Begin,
    Data,
    /// The end of the segment, with or without a checksum.
    SegmentEnd,
}

enum Postprocessing {
    /// The first decoded byte selects it.
    Unknown,
    /// Decoded bytes are raw bytes.
    None,
    /// The program is being read: its length and the bytes decoded so far.
    Loading(Vec<u8>),
    Run(Box<Machine>),
}

struct BlockDecoder {
    /// `None` if the bytes are stored.
    predictor: Option<Box<Predictor>>,
    post: Postprocessing,
    post_hash_bits: u8,
    post_memory_bits: u8,
}

pub(crate) struct ZpaqStage {
    coder: ArithmeticDecoder,
    next: NextPart,
    block: Option<BlockDecoder>,
    /// The number of stored bytes before the next length.
    stored_remaining: u32,
    /// Produced raw bytes, of which `delivered` have been returned.
    produced: Vec<u8>,
    delivered: usize,
    /// Whether a program is suspended until there is space for its output.
    is_suspended: bool,
    raw_length_bytes: u64,
    memory_bytes_max: u64,
}

impl ZpaqStage {
    pub(crate) fn new(raw_length_bytes: u64, memory_bytes_max: u64) -> ZpaqStage {
        ZpaqStage {
            coder: ArithmeticDecoder::new(),
            next: NextPart::Block,
            block: None,
            stored_remaining: 0,
            produced: Vec::new(),
            delivered: 0,
            is_suspended: false,
            raw_length_bytes,
            memory_bytes_max,
        }
    }

    /// Whether there is enough input for any next part.
    fn has_enough_input(&self, is_last: bool) -> bool {
        let needed = match self.next {
            NextPart::Block => INPUT_BUFFER_BYTES,
            _ => INPUT_PER_BYTE,
        };
        is_last || self.coder.input.unread().len() >= needed
    }

    fn byte(&mut self) -> Result<u8> {
        self.coder.input.byte()
    }

    /// Reads one part. At most `room` raw bytes may be pending. Returns false when all blocks are
    /// decoded.
    fn advance(&mut self, room: usize) -> Result<bool> {
        match self.next {
            NextPart::Block if self.coder.input.unread().is_empty() => return Ok(false),
            NextPart::Block => self.begin_block()?,
            NextPart::Segment => {
                self.next = match self.byte()? {
                    1 => NextPart::Text {
                        is_name: true,
                        length: 0,
                    },
                    255 => NextPart::Block,
                    _ => return Err(damaged("neither a segment nor the end of a block")),
                };
            }
            NextPart::Text { is_name, length } => self.skip_text(is_name, length)?,
            NextPart::Begin => {
                let code = self.coder.read_code()?;
                let block = self.block.as_ref();
                if block.is_some_and(|block| block.predictor.is_none()) {
                    self.stored_remaining = code;
                }
                self.next = NextPart::Data;
            }
            NextPart::Data => {
                let decoded = self.decode_byte()?;
                if decoded.is_none() {
                    self.next = NextPart::SegmentEnd;
                }
                self.postprocess(decoded, room)?;
            }
            NextPart::SegmentEnd => {
                match self.byte()? {
                    254 => {}
                    253 => {
                        for _ in 0..20 {
                            self.byte()?;
                        }
                    }
                    _ => return Err(damaged("a segment without its end marker")),
                }
                self.next = NextPart::Segment;
            }
        }
        Ok(true)
    }

    fn begin_block(&mut self) -> Result<()> {
        let bytes = self.coder.input.unread();
        let tag_bytes = bytes.len() - without_tag(bytes).len();
        let parsed = Header::parse(without_tag(bytes))?;
        let (header, length) = parsed.ok_or_else(|| damaged("a truncated block header"))?;
        self.coder.input.skip(tag_bytes + length);
        let wanted_bytes = header.memory_bytes();
        if wanted_bytes > self.memory_bytes_max {
            return Err(Error::OutOfMemory {
                codec: CodecId::ZPAQ,
                wanted_bytes,
            });
        }
        // Frees the memory of the previous block first.
        self.block = None;
        let predictor = if header.components.is_empty() {
            None
        } else {
            Some(Box::new(Predictor::new(&header)?))
        };
        self.block = Some(BlockDecoder {
            predictor,
            post: Postprocessing::Unknown,
            post_hash_bits: header.post_hash_bits,
            post_memory_bits: header.post_memory_bits,
        });
        self.next = NextPart::Segment;
        Ok(())
    }

    fn skip_text(&mut self, is_name: bool, length: u32) -> Result<()> {
        if length > TEXT_BYTES_MAX {
            return Err(damaged("a name or comment exceeds the limit"));
        }
        self.next = match (self.byte()?, is_name) {
            (0, true) => NextPart::Text {
                is_name: false,
                length: 0,
            },
            (0, false) => {
                if self.byte()? != 0 {
                    return Err(damaged("a reserved byte is not zero"));
                }
                self.coder.reset();
                NextPart::Begin
            }
            (_, is_name) => NextPart::Text {
                is_name,
                length: length + 1,
            },
        };
        Ok(())
    }

    /// Decodes the next byte of a segment; `None` at its end.
    fn decode_byte(&mut self) -> Result<Option<u8>> {
        let Some(block) = &mut self.block else {
            return Err(damaged("data without a block"));
        };
        match &mut block.predictor {
            Some(predictor) => self.coder.decode_byte(predictor),
            None => self.decode_stored(),
        }
    }

    fn decode_stored(&mut self) -> Result<Option<u8>> {
        if self.stored_remaining == 0 {
            if self.coder.code == 0 {
                return Ok(None);
            }
            self.stored_remaining = self.coder.read_code()?;
            if self.stored_remaining == 0 {
                return Ok(None);
            }
        }
        self.stored_remaining -= 1;
        self.byte().map(Some)
    }

    /// Postprocesses a decoded byte, or the end of a segment.
    fn postprocess(&mut self, decoded: Option<u8>, room: usize) -> Result<()> {
        let Some(block) = &mut self.block else {
            return Ok(());
        };
        match (&mut block.post, decoded) {
            (Postprocessing::Unknown, None) => return Err(damaged("an empty block")),
            (Postprocessing::Unknown, Some(0)) => block.post = Postprocessing::None,
            (Postprocessing::Unknown, Some(1)) => block.post = Postprocessing::Loading(Vec::new()),
            (Postprocessing::Unknown, Some(_)) => {
                return Err(damaged("an unknown kind of postprocessing"));
            }
            (Postprocessing::None, Some(byte)) => self.produced.push(byte),
            (Postprocessing::None, None) => {}
            (Postprocessing::Loading(_), None) => return Err(damaged("a truncated program")),
            (Postprocessing::Loading(program), Some(byte)) => {
                program.push(byte);
                if let [a, b, rest @ ..] = &program[..]
                    && rest.len() == usize::from(u16::from_le_bytes([*a, *b]))
                {
                    let machine = Machine::new(rest, block.post_hash_bits, block.post_memory_bits);
                    let mut machine = Box::new(machine?);
                    machine.allow_steps(self.raw_length_bytes.saturating_mul(POST_STEPS_PER_BYTE));
                    block.post = Postprocessing::Run(machine);
                }
            }
            (Postprocessing::Run(machine), decoded) => {
                machine.allow_steps(POST_STEPS_PER_BYTE);
                let input = decoded.map_or(u32::MAX, u32::from);
                let run = machine.start(input, &mut self.produced, room)?;
                self.is_suspended = run == RunEnd::OutputFull;
            }
        }
        Ok(())
    }

    fn resume_program(&mut self, room: usize) -> Result<()> {
        if let Some(BlockDecoder {
            post: Postprocessing::Run(machine),
            ..
        }) = &mut self.block
        {
            let run = machine.resume(&mut self.produced, room)?;
            self.is_suspended = run == RunEnd::OutputFull;
        }
        Ok(())
    }
}

impl Stage for ZpaqStage {
    fn step(&mut self, input: &[u8], is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let consumed_bytes = self.coder.input.fill(input, INPUT_BUFFER_BYTES);
        let is_last = is_last && consumed_bytes == input.len();
        let mut produced_bytes = 0;
        loop {
            let count = (self.produced.len() - self.delivered).min(out.len() - produced_bytes);
            let from = &self.produced[self.delivered..self.delivered + count];
            out[produced_bytes..produced_bytes + count].copy_from_slice(from);
            self.delivered += count;
            produced_bytes += count;
            if self.delivered < self.produced.len() || produced_bytes == out.len() {
                break;
            }
            self.produced.clear();
            self.delivered = 0;
            let room = out.len() - produced_bytes;
            if self.is_suspended {
                self.resume_program(room)?;
            } else if !self.has_enough_input(is_last) || !self.advance(room)? {
                break;
            }
        }
        Ok(Progress {
            consumed_bytes,
            produced_bytes,
        })
    }
}
