//! gzip: concatenated members, each a raw deflate stream with a CRC-32 and a length.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::decoder::Decoder;
use crate::error::{Error, Result};
use crate::input::Input;

const HAS_HEADER_CRC: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

const METHOD_DEFLATE: u8 = 8;
const IN_HEADER: &str = "the header of a gzip member";

enum State {
    /// Before a member, or after the last one.
    Between,
    Member,
    End,
}

pub(crate) struct GzipDecoder {
    input: Input,
    state: State,
    inflate: Decompress,
    crc: Crc,
    member_offset: u64,
    members: u64,
    ignored: Option<String>,
}

impl GzipDecoder {
    pub(crate) fn new(input: Input) -> GzipDecoder {
        GzipDecoder {
            input,
            state: State::Between,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            member_offset: 0,
            members: 0,
            ignored: None,
        }
    }

    fn begin(&mut self) -> Result<State> {
        self.member_offset = self.input.offset();
        match self.input.show(2)? {
            [0x1f, 0x8b, ..] => {}
            [] if self.members > 0 => return Ok(State::End),
            _ if self.members > 0 => return self.pass_garbage(),
            _ => return Err(Error::damaged(0, "this is not a gzip file")),
        }
        pass_header(&mut self.input)?;
        self.inflate.reset(false);
        self.crc.reset();
        self.members += 1;
        Ok(State::Member)
    }

    /// Skips what follows the last member. Zeros, which pad tapes, mean nothing; of anything else
    /// gzip reports that it is ignored, and exits with code 2.
    fn pass_garbage(&mut self) -> Result<State> {
        loop {
            let window = self.input.fill()?;
            if window.is_empty() {
                return Ok(State::End);
            }
            let zeros = window.iter().take_while(|byte| **byte == 0).count();
            let is_all_zero = zeros == window.len();
            self.input.consume(zeros);
            if !is_all_zero {
                let offset = self.input.offset();
                self.ignored = Some(format!(
                    "the data after the gzip data, at offset {offset}, was ignored"
                ));
                return Ok(State::End);
            }
        }
    }

    /// Decodes the next bytes of the member. Returns their number, and whether the member ends.
    fn step(&mut self, buffer: &mut [u8]) -> Result<(usize, bool)> {
        self.input.fill()?;
        let is_last = self.input.has_ended();
        let (in_before, out_before) = (self.inflate.total_in(), self.inflate.total_out());
        let status = (self.inflate).decompress(self.input.window(), buffer, FlushDecompress::None);
        let consumed = usize::try_from(self.inflate.total_in() - in_before).unwrap_or(0);
        let written = usize::try_from(self.inflate.total_out() - out_before).unwrap_or(0);
        let offset = self.input.offset();
        self.input.consume(consumed);
        match status {
            Err(_) => {
                let offset = offset + consumed as u64;
                Err(Error::damaged(offset, "the deflate data is damaged"))
            }
            Ok(Status::StreamEnd) => Ok((written, true)),
            Ok(_) if consumed == 0 && written == 0 && is_last => {
                Err(self.input.truncated("a gzip member"))
            }
            Ok(_) => Ok((written, false)),
        }
    }

    fn end_member(&mut self) -> Result<()> {
        let offset = self.input.offset();
        let trailer: [u8; 8] = self.input.take("the trailer of a gzip member")?;
        let [a, b, c, d, length @ ..] = trailer;
        let (crc, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(length));
        let found = self.crc.sum();
        let start = self.member_offset;
        if crc != found {
            let what = format!(
                "the CRC-32 of the gzip member at offset {start} is {found:08x}, its trailer states {crc:08x}"
            );
            return Err(Error::damaged(offset, what));
        }
        if length != self.crc.amount() {
            let what = format!(
                "the gzip member at offset {start} has {} bytes (modulo 2^32), its trailer states {length}",
                self.crc.amount()
            );
            return Err(Error::damaged(offset + 4, what));
        }
        Ok(())
    }
}

impl Decoder for GzipDecoder {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state {
                State::End => return Ok(0),
                State::Between => self.state = self.begin()?,
                State::Member => {
                    let (written, is_end) = self.step(buffer)?;
                    self.crc.update(buffer.get(..written).unwrap_or_default());
                    if is_end {
                        self.end_member()?;
                        self.state = State::Between;
                    }
                    if written > 0 {
                        return Ok(written);
                    }
                }
            }
        }
    }

    fn offset(&self) -> u64 {
        self.input.offset()
    }

    fn is_checked(&self) -> bool {
        !matches!(self.state, State::Member)
    }

    fn take_ignored(&mut self) -> Option<String> {
        self.ignored.take()
    }
}

fn pass_header(input: &mut Input) -> Result<()> {
    let start = input.offset();
    let mut crc = Crc::new();
    let fixed: [u8; 10] = input.take(IN_HEADER)?;
    crc.update(&fixed);
    let [_, _, method, flags, ..] = fixed;
    if method != METHOD_DEFLATE {
        let what = format!("gzip method {method} is not supported, only deflate (8)");
        return Err(Error::unsupported(start, what));
    }
    if flags & RESERVED != 0 {
        let what = format!("the gzip flags {flags:#04x} are not supported");
        return Err(Error::unsupported(start, what));
    }
    if flags & HAS_EXTRA != 0 {
        let length: [u8; 2] = input.take(IN_HEADER)?;
        crc.update(&length);
        let mut extra = vec![0; usize::from(u16::from_le_bytes(length))];
        input.take_into(&mut extra, IN_HEADER)?;
        crc.update(&extra);
    }
    for flag in [HAS_NAME, HAS_COMMENT] {
        if flags & flag != 0 {
            pass_text(input, &mut crc)?;
        }
    }
    if flags & HAS_HEADER_CRC != 0 {
        let offset = input.offset();
        let stated = u32::from(u16::from_le_bytes(input.take(IN_HEADER)?));
        if stated != crc.sum() & 0xffff {
            return Err(Error::damaged(
                offset,
                "the checksum of the gzip header differs",
            ));
        }
    }
    Ok(())
}

fn pass_text(input: &mut Input, crc: &mut Crc) -> Result<()> {
    loop {
        let window = input.fill()?;
        if window.is_empty() {
            return Err(input.truncated(IN_HEADER));
        }
        let end = window.iter().position(|byte| *byte == 0);
        let count = end.map_or(window.len(), |end| end + 1);
        crc.update(window.get(..count).unwrap_or_default());
        input.consume(count);
        if end.is_some() {
            return Ok(());
        }
    }
}
