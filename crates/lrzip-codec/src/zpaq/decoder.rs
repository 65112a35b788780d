//! What lies around coded bytes: tags, blocks, segments, and the program that undoes what was done to the data.

use super::arithmetic::ArithmeticDecoder;
use super::error::damaged;
use super::header::Header;
use super::machine::{Machine, Run};
use super::predictor::Predictor;
use crate::stage::{Progress, Stage};
use refrain_codec::CodecId;
use refrain_codec::{Error, Result};

/// Thirteen bytes by which a block is found in other data.
const TAG: [u8; 13] = [
    0x37, 0x6B, 0x53, 0x74, 0xA0, 0x31, 0x83, 0xD3, 0x8C, 0xB2, 0x28, 0xB0, 0xD3,
];

/// `bytes` without a tag in front.
pub(crate) fn after_tag(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(&TAG).unwrap_or(bytes)
}

/// The memory of a decoder for the block that begins with `header_bytes`, in bytes.
///
/// # Errors
/// `Damaged` if no complete block header is there.
pub(crate) fn memory_bytes(header_bytes: &[u8]) -> Result<u64> {
    match Header::parse(after_tag(header_bytes))? {
        Some((header, _)) => Ok(header.memory_bytes()),
        None => Err(damaged("the block header is cut short")),
    }
}

/// Input that is gathered: the longest header.
const GATHER_BYTES: usize = (64 << 10) + 64;
/// A byte takes at most this much input: nine decisions of at most four bytes.
const INPUT_PER_BYTE: usize = 36;
/// Bytes of a file name or comment; nobody reads them.
const TEXT_BYTES_MAX: u32 = 1 << 20;
/// Instructions that PCOMP may execute for each byte it is given, and for each raw byte of the block: it may do all of its work at
/// the end (an inverse Burrows-Wheeler transform takes some 20 for each byte).
const POST_STEPS_PER_BYTE: u64 = 512;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A block, or the end of the data.
    Block,
    /// A segment of the block, or the end of the block.
    Segment,
    /// A text that ends with a zero, of which so much was read; `is_name`: another one follows.
    Text {
        is_name: bool,
        length: u32,
    },
    /// The first four bytes of coded data.
    Begin,
    Data,
    /// The end of the segment: its checksum may be there.
    SegmentEnd,
}

/// What is done with decoded bytes.
enum Post {
    /// The first one says it.
    Unknown,
    /// Nothing.
    Pass,
    /// The program comes first: its length, as far as it came, then the program.
    Loading(Vec<u8>),
    Run(Box<Machine>),
}

/// Decodes one block of bits.
struct Model {
    /// `None`: the bytes are stored.
    predictor: Option<Box<Predictor>>,
    post: Post,
    post_hash_bits: u8,
    post_memory_bits: u8,
}

/// One or more ZPAQ blocks, one after the other.
pub(crate) struct Zpaq {
    coder: ArithmeticDecoder,
    place: Place,
    model: Option<Model>,
    /// Stored bytes until the next length.
    stored_left: u32,
    /// Raw bytes that are made and wait, the first of them at `given`.
    made: Vec<u8>,
    given: usize,
    /// A program waits for room.
    is_full: bool,
    raw_length_bytes: u64,
    memory_bytes_max: u64,
}

impl Zpaq {
    pub(crate) fn new(raw_length_bytes: u64, memory_bytes_max: u64) -> Zpaq {
        Zpaq {
            coder: ArithmeticDecoder::new(),
            place: Place::Block,
            model: None,
            stored_left: 0,
            made: Vec::new(),
            given: 0,
            is_full: false,
            raw_length_bytes,
            memory_bytes_max,
        }
    }

    /// Whether enough input is there for whatever comes.
    fn has_input(&self, is_last: bool) -> bool {
        let needed = match self.place {
            Place::Block => GATHER_BYTES,
            _ => INPUT_PER_BYTE,
        };
        is_last || self.coder.input.waiting().len() >= needed
    }

    fn byte(&mut self) -> Result<u8> {
        self.coder.input.byte()
    }

    /// One step of what comes next. `room`: how many raw bytes may wait. False when all blocks are decoded.
    fn go_on(&mut self, room: usize) -> Result<bool> {
        match self.place {
            Place::Block if self.coder.input.waiting().is_empty() => return Ok(false),
            Place::Block => self.begin_block()?,
            Place::Segment => {
                self.place = match self.byte()? {
                    1 => Place::Text {
                        is_name: true,
                        length: 0,
                    },
                    255 => Place::Block,
                    _ => return Err(damaged("neither a segment nor the end of a block")),
                };
            }
            Place::Text { is_name, length } => self.skip_text(is_name, length)?,
            Place::Begin => {
                let code = self.coder.read_code()?;
                let model = self.model.as_ref();
                if model.is_some_and(|model| model.predictor.is_none()) {
                    self.stored_left = code;
                }
                self.place = Place::Data;
            }
            Place::Data => {
                let decoded = self.decode_byte()?;
                if decoded.is_none() {
                    self.place = Place::SegmentEnd;
                }
                self.give(decoded, room)?;
            }
            Place::SegmentEnd => {
                match self.byte()? {
                    254 => {}
                    253 => {
                        for _ in 0..20 {
                            self.byte()?;
                        }
                    }
                    _ => return Err(damaged("a segment without its end")),
                }
                self.place = Place::Segment;
            }
        }
        Ok(true)
    }

    fn begin_block(&mut self) -> Result<()> {
        let bytes = self.coder.input.waiting();
        let tag_bytes = bytes.len() - after_tag(bytes).len();
        let parsed = Header::parse(after_tag(bytes))?;
        let (header, length) = parsed.ok_or_else(|| damaged("the block header is cut short"))?;
        self.coder.input.skip(tag_bytes + length);
        let wanted_bytes = header.memory_bytes();
        if wanted_bytes > self.memory_bytes_max {
            return Err(Error::OutOfMemory {
                codec: CodecId::ZPAQ,
                wanted_bytes,
            });
        }
        // The memory of the block before goes first.
        self.model = None;
        let predictor = match header.components.is_empty() {
            true => None,
            false => Some(Box::new(Predictor::new(&header)?)),
        };
        self.model = Some(Model {
            predictor,
            post: Post::Unknown,
            post_hash_bits: header.post_hash_bits,
            post_memory_bits: header.post_memory_bits,
        });
        self.place = Place::Segment;
        Ok(())
    }

    fn skip_text(&mut self, is_name: bool, length: u32) -> Result<()> {
        if length > TEXT_BYTES_MAX {
            return Err(damaged("a name or comment without an end"));
        }
        self.place = match (self.byte()?, is_name) {
            (0, true) => Place::Text {
                is_name: false,
                length: 0,
            },
            (0, false) => {
                if self.byte()? != 0 {
                    return Err(damaged("a reserved byte is in use"));
                }
                self.coder.reset();
                Place::Begin
            }
            (_, is_name) => Place::Text {
                is_name,
                length: length + 1,
            },
        };
        Ok(())
    }

    /// The next byte of a segment; `None` at its end.
    fn decode_byte(&mut self) -> Result<Option<u8>> {
        let Some(model) = &mut self.model else {
            return Err(damaged("data without a block"));
        };
        match &mut model.predictor {
            Some(predictor) => self.coder.decode_byte(predictor),
            None => self.decode_stored(),
        }
    }

    fn decode_stored(&mut self) -> Result<Option<u8>> {
        if self.stored_left == 0 {
            if self.coder.code == 0 {
                return Ok(None);
            }
            self.stored_left = self.coder.read_code()?;
            if self.stored_left == 0 {
                return Ok(None);
            }
        }
        self.stored_left -= 1;
        self.byte().map(Some)
    }

    /// Gives a decoded byte, or the end of a segment, to what is done with it.
    fn give(&mut self, decoded: Option<u8>, room: usize) -> Result<()> {
        let Some(model) = &mut self.model else {
            return Ok(());
        };
        match (&mut model.post, decoded) {
            (Post::Unknown, None) => return Err(damaged("an empty block")),
            (Post::Unknown, Some(0)) => model.post = Post::Pass,
            (Post::Unknown, Some(1)) => model.post = Post::Loading(Vec::new()),
            (Post::Unknown, Some(_)) => return Err(damaged("an unknown way of processing")),
            (Post::Pass, Some(byte)) => self.made.push(byte),
            (Post::Pass, None) => {}
            (Post::Loading(_), None) => return Err(damaged("a program is cut short")),
            (Post::Loading(program), Some(byte)) => {
                program.push(byte);
                if let [a, b, rest @ ..] = &program[..]
                    && rest.len() == usize::from(u16::from_le_bytes([*a, *b]))
                {
                    let machine = Machine::new(rest, model.post_hash_bits, model.post_memory_bits);
                    let mut machine = Box::new(machine?);
                    machine.allow(self.raw_length_bytes.saturating_mul(POST_STEPS_PER_BYTE));
                    model.post = Post::Run(machine);
                }
            }
            (Post::Run(machine), decoded) => {
                machine.allow(POST_STEPS_PER_BYTE);
                let input = decoded.map_or(u32::MAX, u32::from);
                let run = machine.start(input, &mut self.made, room)?;
                self.is_full = run == Run::Full;
            }
        }
        Ok(())
    }

    /// Lets a program go on that waited for room.
    fn go_on_program(&mut self, room: usize) -> Result<()> {
        if let Some(Model {
            post: Post::Run(machine),
            ..
        }) = &mut self.model
        {
            let run = machine.go_on(&mut self.made, room)?;
            self.is_full = run == Run::Full;
        }
        Ok(())
    }
}

impl Stage for Zpaq {
    fn step(&mut self, input: &[u8], is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let consumed_bytes = self.coder.input.gather(input, GATHER_BYTES);
        let is_last = is_last && consumed_bytes == input.len();
        let mut produced_bytes = 0;
        loop {
            let count = (self.made.len() - self.given).min(out.len() - produced_bytes);
            let from = &self.made[self.given..self.given + count];
            out[produced_bytes..produced_bytes + count].copy_from_slice(from);
            self.given += count;
            produced_bytes += count;
            if self.given < self.made.len() || produced_bytes == out.len() {
                break;
            }
            self.made.clear();
            self.given = 0;
            let room = out.len() - produced_bytes;
            if self.is_full {
                self.go_on_program(room)?;
            } else if !self.has_input(is_last) || !self.go_on(room)? {
                break;
            }
        }
        Ok(Progress {
            consumed_bytes,
            produced_bytes,
        })
    }
}
