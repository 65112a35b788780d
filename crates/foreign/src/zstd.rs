//! Zstandard: concatenated frames, including skipped ones.

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use crate::decoder::{Decoder, Resources};
use crate::error::{Error, Result};
use crate::format::{ZSTD_MAGIC, is_skippable};
use crate::input::Input;

pub(crate) const HEADER_BYTES_MAX: usize = 18;
/// The largest window that the library accepts on 64-bit machines: 2 GiB.
const WINDOW_LOG_MAX: u32 = if cfg!(target_pointer_width = "64") { 31 } else { 30 };
/// The memory besides the window in bytes: three blocks and the tables.
const WORK_BYTES: u64 = 1 << 20;
const IN_HEADER: &str = "the header of a zstd frame";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub length_bytes: usize,
    pub window_bytes: u64,
    pub content_bytes: Option<u64>,
    pub dictionary: u32,
    pub has_checksum: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FrameStart {
    Frame(FrameHeader),
    /// A frame that is skipped, with the length of its content.
    Skippable(u32),
    /// The window is too short to tell.
    Cut,
    Other,
}

impl FrameStart {
    pub(crate) fn parse(window: &[u8]) -> FrameStart {
        let Some((magic, rest)) = window.split_first_chunk::<4>() else {
            let is_start = ZSTD_MAGIC.to_le_bytes().starts_with(window)
                || window
                    .get(1..)
                    .is_some_and(|rest| b"\x2a\x4d\x18".starts_with(rest));
            return if is_start { FrameStart::Cut } else { FrameStart::Other };
        };
        match u32::from_le_bytes(*magic) {
            ZSTD_MAGIC => parse_frame(rest).map_or(FrameStart::Cut, FrameStart::Frame),
            magic if is_skippable(magic) => match rest.first_chunk::<4>() {
                Some(length) => FrameStart::Skippable(u32::from_le_bytes(*length)),
                None => FrameStart::Cut,
            },
            _ => FrameStart::Other,
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Parses the fields after the magic number; `None` if they are cut off.
fn parse_frame(rest: &[u8]) -> Option<FrameHeader> {
    let (&descriptor, mut rest) = rest.split_first()?;
    let mut length_bytes = 5;
    let mut take = |count: usize| {
        let (taken, after) = rest.split_at_checked(count)?;
        rest = after;
        length_bytes += count;
        Some(taken)
    };
    let is_single = descriptor & 0x20 != 0;
    let window = if is_single {
        None
    } else {
        let byte = number(take(1)?);
        let base = 1_u64 << (10 + (byte >> 3));
        Some(base + base / 8 * (byte & 7))
    };
    let dictionary = number(take(match descriptor & 3 {
        0 => 0,
        1 => 1,
        2 => 2,
        _ => 4,
    })?);
    let (size_length, added) = match (descriptor >> 6, is_single) {
        (0, false) => (0, 0),
        (0, true) => (1, 0),
        (1, _) => (2, 256),
        (2, _) => (4, 0),
        (_, _) => (8, 0),
    };
    let size = take(size_length)?;
    let content_bytes = (size_length > 0).then(|| number(size).saturating_add(added));
    Some(FrameHeader {
        length_bytes,
        window_bytes: window.or(content_bytes).unwrap_or_default(),
        content_bytes,
        dictionary: u32::try_from(dictionary).unwrap_or(u32::MAX),
        has_checksum: descriptor & 4 != 0,
    })
}

pub(crate) struct ZstdDecoder {
    input: Input,
    context: DCtx<'static>,
    memory_bytes: u64,
    is_in_frame: bool,
    /// The number of frames, including skipped ones.
    frames: u64,
}

impl ZstdDecoder {
    pub(crate) fn new(input: Input, resources: Resources) -> ZstdDecoder {
        ZstdDecoder {
            input,
            context: DCtx::create(),
            memory_bytes: resources.memory_bytes,
            is_in_frame: false,
            frames: 0,
        }
    }

    fn begin(&mut self) -> Result<bool> {
        loop {
            let offset = self.input.offset();
            let window = self.input.show(HEADER_BYTES_MAX)?;
            if window.is_empty() && self.frames > 0 {
                return Ok(false);
            }
            match FrameStart::parse(window) {
                FrameStart::Frame(header) => {
                    self.check(&header, offset)?;
                    self.frames += 1;
                    return Ok(true);
                }
                FrameStart::Skippable(length) => {
                    self.input
                        .skip(u64::from(length) + 8, "a skippable zstd frame")?;
                    self.frames += 1;
                }
                FrameStart::Cut => return Err(self.input.truncated(IN_HEADER)),
                FrameStart::Other => {
                    let what = match self.frames {
                        0 => "this is not a zstd file",
                        _ => "the data after the zstd frame is not a zstd frame",
                    };
                    return Err(Error::damaged(offset, what));
                }
            }
        }
    }

    /// Prepares for a frame, if it can be decoded.
    fn check(&mut self, header: &FrameHeader, offset: u64) -> Result<()> {
        if header.dictionary != 0 {
            let what = format!(
                "the zstd frame needs the dictionary {}: dictionaries are not supported",
                header.dictionary
            );
            return Err(Error::unsupported(offset, what));
        }
        let window_mebibytes = header.window_bytes.div_ceil(1 << 20);
        if header.window_bytes > 1 << WINDOW_LOG_MAX {
            let what = format!("a zstd window of {window_mebibytes} MiB is not supported");
            return Err(Error::unsupported(offset, what));
        }
        if header.window_bytes.saturating_add(WORK_BYTES) > self.memory_bytes {
            return Err(Error::Memory {
                offset,
                what: format!("the zstd frame has a window of {window_mebibytes} MiB"),
                allowed_bytes: self.memory_bytes,
            });
        }
        let prepared = self
            .context
            .reset(ResetDirective::SessionOnly)
            .and_then(|_| {
                let largest = DParameter::WindowLogMax(WINDOW_LOG_MAX);
                self.context.set_parameter(largest)
            });
        prepared.map(|_| ()).map_err(|code| damaged(code, offset))
    }
}

/// The library's name for what is wrong.
fn damaged(code: usize, offset: u64) -> Error {
    let name = zstd_safe::get_error_name(code);
    Error::damaged(offset, format!("the zstd data is damaged: {name}"))
}

impl Decoder for ZstdDecoder {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while !buffer.is_empty() {
            if !self.is_in_frame {
                self.is_in_frame = self.begin()?;
                if self.is_in_frame { continue } else { break }
            }
            self.input.fill()?;
            let mut input = InBuffer::around(self.input.window());
            let mut output = OutBuffer::around(&mut *buffer);
            let hint = self.context.decompress_stream(&mut output, &mut input);
            let (consumed, written) = (input.pos(), output.pos());
            self.input.consume(consumed);
            match hint {
                Err(code) => return Err(damaged(code, self.input.offset())),
                Ok(0) => self.is_in_frame = false,
                Ok(_) if consumed == 0 && written == 0 && self.input.has_ended() => {
                    return Err(self.input.truncated("a zstd frame"));
                }
                Ok(_) => {}
            }
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }

    fn offset(&self) -> u64 {
        self.input.offset()
    }

    fn is_checked(&self) -> bool {
        !self.is_in_frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_frames_are_parsed() {
        let header = |bytes: &[u8]| {
            let frame = [&ZSTD_MAGIC.to_le_bytes(), bytes].concat();
            FrameStart::parse(&frame)
        };
        let expected = |length_bytes, window_bytes, content_bytes, dictionary, has_checksum| {
            FrameStart::Frame(FrameHeader {
                length_bytes,
                window_bytes,
                content_bytes,
                dictionary,
                has_checksum,
            })
        };
        // A window of 2^(10+11) and a quarter; no size; a checksum.
        assert_eq!(
            header(&[0x04, 0x5a]),
            expected(6, (1 << 21) * 5 / 4, None, 0, true)
        );
        // A single segment: its size is the window.
        assert_eq!(header(&[0x20, 200]), expected(6, 200, Some(200), 0, false));
        assert_eq!(header(&[0x60, 1, 0]), expected(7, 257, Some(257), 0, false));
        // A dictionary of two bytes.
        assert_eq!(
            header(&[0x02, 0, 7, 1]),
            expected(8, 1 << 10, None, 263, false)
        );
        assert_eq!(header(&[0x60, 1]), FrameStart::Cut);
        assert_eq!(FrameStart::parse(b"\x28\xb5"), FrameStart::Cut);
        assert_eq!(FrameStart::parse(b"\x53\x2a\x4d"), FrameStart::Cut);
        assert_eq!(FrameStart::parse(b"\x28\xb4"), FrameStart::Other);
        let skippable = b"\x53\x2a\x4d\x18\x07\0\0\0rest";
        assert_eq!(FrameStart::parse(skippable), FrameStart::Skippable(7));
    }
}
