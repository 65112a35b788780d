//! LZ4: concatenated frames, including first-version and skipped ones. `lz4_flex` decodes the
//! blocks.

use std::hash::Hasher;

use lz4_flex::block::{decompress_into, decompress_into_with_dict};
use twox_hash::XxHash32;

use crate::decoder::Decoder;
use crate::error::{Error, Result};
use crate::format::{LZ4_LEGACY_MAGIC, LZ4_MAGIC, is_skippable};
use crate::input::Input;

const WINDOW_BYTES: usize = 64 << 10;
/// The size of a block in files of the first version.
pub(crate) const LEGACY_BLOCK_BYTES: usize = 8 << 20;
/// The bit of a block's size that marks stored blocks.
pub(crate) const IS_STORED: u32 = 1 << 31;
const IN_FRAME: &str = "an lz4 frame";
const IN_HEADER: &str = "the header of an lz4 frame";

fn hash(bytes: &[u8]) -> u32 {
    XxHash32::oneshot(0, bytes)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// The bytes of the header, with the magic number.
    pub length_bytes: usize,
    pub block_bytes_max: usize,
    pub are_linked: bool,
    pub has_block_checksums: bool,
    pub has_checksum: bool,
    pub content_bytes: Option<u64>,
    /// A file of the first version: no checksums, no end mark.
    pub is_legacy: bool,
}

impl FrameHeader {
    pub(crate) fn legacy() -> FrameHeader {
        FrameHeader {
            length_bytes: 4,
            block_bytes_max: LEGACY_BLOCK_BYTES,
            are_linked: false,
            has_block_checksums: false,
            has_checksum: false,
            content_bytes: None,
            is_legacy: true,
        }
    }

    /// The length of the fields after the magic number, by their first byte.
    pub(crate) fn descriptor_bytes(flags: u8) -> usize {
        let size_bytes = if flags & 0x08 != 0 { 8 } else { 0 };
        let dictionary_bytes = if flags & 0x01 != 0 { 4 } else { 0 };
        3 + size_bytes + dictionary_bytes
    }

    /// Parses the fields after the magic number at `offset`.
    pub(crate) fn parse(descriptor: &[u8], offset: u64) -> Result<FrameHeader> {
        let damaged = |what: &str| Err(Error::damaged(offset, what));
        let (Some((&checksum, hashed)), &[flags, block, ..]) =
            (descriptor.split_last(), descriptor)
        else {
            return damaged("the header of the lz4 frame is too short");
        };
        let found = hash(hashed).to_le_bytes().get(1).copied();
        if found != Some(checksum) {
            return damaged("the checksum of the lz4 frame header differs");
        }
        if flags >> 6 != 1 || flags & 0x02 != 0 || block & 0x8f != 0 {
            let what = format!("the lz4 frame flags {flags:02x}{block:02x} are not supported");
            return Err(Error::unsupported(offset, what));
        }
        if flags & 0x01 != 0 {
            let what = "the lz4 frame needs a dictionary: dictionaries are not supported";
            return Err(Error::unsupported(offset, what));
        }
        let block_bytes_max = match block >> 4 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => 4 << 20,
            _ => return damaged("the block size of the lz4 frame is invalid"),
        };
        let size = descriptor.get(2..).and_then(|rest| rest.first_chunk::<8>());
        Ok(FrameHeader {
            length_bytes: 4 + descriptor.len(),
            block_bytes_max,
            are_linked: flags & 0x20 == 0,
            has_block_checksums: flags & 0x10 != 0,
            has_checksum: flags & 0x04 != 0,
            content_bytes: size
                .filter(|_| flags & 0x08 != 0)
                .map(|size| u64::from_le_bytes(*size)),
            is_legacy: false,
        })
    }
}

struct Frame {
    header: FrameHeader,
    hasher: XxHash32,
    content_bytes: u64,
}

pub(crate) struct Lz4Decoder {
    input: Input,
    frame: Option<Frame>,
    frames: u64,
    block: Vec<u8>,
    /// The bytes before the current block, to which its matches may refer, and the block.
    content: Vec<u8>,
    window_bytes: usize,
    /// Where the content begins that was not delivered yet.
    start: usize,
    end: usize,
}

impl Lz4Decoder {
    pub(crate) fn new(input: Input) -> Lz4Decoder {
        Lz4Decoder {
            input,
            frame: None,
            frames: 0,
            block: Vec::new(),
            content: Vec::new(),
            window_bytes: 0,
            start: 0,
            end: 0,
        }
    }

    fn begin(&mut self) -> Result<Option<Frame>> {
        loop {
            let offset = self.input.offset();
            let window = self.input.show(5)?;
            if window.is_empty() && self.frames > 0 {
                return Ok(None);
            }
            let Some(magic) = window.first_chunk::<4>() else {
                return Err(match self.frames {
                    0 => Error::damaged(offset, "this is not an lz4 file"),
                    _ => self.input.truncated(IN_HEADER),
                });
            };
            let flags = window.get(4).copied();
            let header = match u32::from_le_bytes(*magic) {
                LZ4_LEGACY_MAGIC => {
                    self.input.consume(4);
                    FrameHeader::legacy()
                }
                LZ4_MAGIC => {
                    let Some(flags) = flags else {
                        return Err(self.input.truncated(IN_HEADER));
                    };
                    self.input.consume(4);
                    let mut descriptor = vec![0; FrameHeader::descriptor_bytes(flags)];
                    self.input.take_into(&mut descriptor, IN_HEADER)?;
                    FrameHeader::parse(&descriptor, offset)?
                }
                magic if is_skippable(magic) => {
                    self.input.consume(4);
                    let length = u32::from_le_bytes(self.input.take(IN_HEADER)?);
                    self.input.skip(length.into(), "a skippable lz4 frame")?;
                    self.frames += 1;
                    continue;
                }
                _ => {
                    let what = match self.frames {
                        0 => "this is not an lz4 file",
                        _ => "the data after the lz4 frame is not an lz4 frame",
                    };
                    return Err(Error::damaged(offset, what));
                }
            };
            self.frames += 1;
            self.window_bytes = 0;
            let room = if header.are_linked {
                WINDOW_BYTES + header.block_bytes_max
            } else {
                header.block_bytes_max
            };
            self.content.resize(room, 0);
            return Ok(Some(Frame {
                header,
                hasher: XxHash32::with_seed(0),
                content_bytes: 0,
            }));
        }
    }

    /// Decodes the next block. Returns false if there is none.
    fn next_block(&mut self, frame: &mut Frame) -> Result<bool> {
        let header = &frame.header;
        let offset = self.input.offset();
        if header.is_legacy && self.is_end_of_legacy()? {
            return Ok(false);
        }
        let stated = u32::from_le_bytes(self.input.take(IN_FRAME)?);
        if stated == 0 && !header.is_legacy {
            self.end_frame(frame)?;
            return Ok(false);
        }
        let is_stored = stated & IS_STORED != 0 && !header.is_legacy;
        let length = if is_stored { stated & !IS_STORED } else { stated } as usize;
        let length_max = if header.is_legacy {
            LEGACY_BLOCK_BYTES + LEGACY_BLOCK_BYTES / 255 + 16
        } else {
            header.block_bytes_max
        };
        if length > length_max {
            let what = format!("an lz4 block of {length} bytes; at most {length_max} are allowed");
            return Err(Error::damaged(offset, what));
        }
        self.block.resize(length, 0);
        self.input.take_into(&mut self.block, IN_FRAME)?;
        if header.has_block_checksums {
            let stated = u32::from_le_bytes(self.input.take(IN_FRAME)?);
            if stated != hash(&self.block) {
                return Err(Error::damaged(
                    offset,
                    "the checksum of the lz4 block differs",
                ));
            }
        }
        self.decode_block(header, is_stored, offset)?;
        let decoded = self.content.get(self.start..self.end).unwrap_or_default();
        if header.has_checksum {
            frame.hasher.write(decoded);
        }
        frame.content_bytes = frame.content_bytes.saturating_add(decoded.len() as u64);
        Ok(true)
    }

    /// Decodes the block that was read, after the window of earlier content.
    fn decode_block(&mut self, header: &FrameHeader, is_stored: bool, offset: u64) -> Result<()> {
        if header.are_linked {
            let kept = self.end.min(WINDOW_BYTES).min(self.window_bytes);
            self.content.copy_within(self.end - kept..self.end, 0);
            self.window_bytes = kept;
        }
        let (window, room) = self.content.split_at_mut(self.window_bytes);
        let room_bytes = room.len().min(header.block_bytes_max);
        let room = room.get_mut(..room_bytes).unwrap_or_default();
        let decoded = match (is_stored, window.is_empty()) {
            (true, _) => match room.get_mut(..self.block.len()) {
                Some(target) => {
                    target.copy_from_slice(&self.block);
                    Ok(self.block.len())
                }
                None => return Err(Error::damaged(offset, "the stored lz4 block is too long")),
            },
            (false, true) => decompress_into(&self.block, room),
            (false, false) => decompress_into_with_dict(&self.block, room, window),
        };
        let decoded = decoded.map_err(|error| {
            Error::damaged(offset, format!("the lz4 block is damaged: {error}"))
        })?;
        self.start = self.window_bytes;
        self.end = self.start + decoded;
        if header.are_linked {
            self.window_bytes = self.end;
        }
        Ok(())
    }

    /// Whether the frame of the first version ends here: at the end of the file, or at the
    /// beginning of another frame.
    fn is_end_of_legacy(&mut self) -> Result<bool> {
        Ok(match self.input.show(4)?.first_chunk::<4>() {
            None => self.input.window().is_empty(),
            Some(next) => {
                let next = u32::from_le_bytes(*next);
                next == LZ4_MAGIC || next == LZ4_LEGACY_MAGIC || is_skippable(next)
            }
        })
    }

    fn end_frame(&mut self, frame: &Frame) -> Result<()> {
        let offset = self.input.offset();
        if let Some(stated) = frame
            .header
            .content_bytes
            .filter(|it| *it != frame.content_bytes)
        {
            let what = format!(
                "the lz4 frame has {} bytes, its header states {stated}",
                frame.content_bytes
            );
            return Err(Error::damaged(offset, what));
        }
        if !frame.header.has_checksum {
            return Ok(());
        }
        let stated = u32::from_le_bytes(self.input.take(IN_FRAME)?);
        let found = frame.hasher.finish_32();
        if stated == found {
            Ok(())
        } else {
            let what = format!(
                "the checksum of the lz4 frame is {found:08x}, its end states {stated:08x}"
            );
            Err(Error::damaged(offset, what))
        }
    }
}

impl Decoder for Lz4Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while !buffer.is_empty() {
            let decoded = self.content.get(self.start..self.end).unwrap_or_default();
            if !decoded.is_empty() {
                let count = decoded.len().min(buffer.len());
                if let (Some(to), Some(from)) = (buffer.get_mut(..count), decoded.get(..count)) {
                    to.copy_from_slice(from);
                }
                self.start += count;
                return Ok(count);
            }
            let mut frame = match self.frame.take() {
                Some(frame) => frame,
                None => match self.begin()? {
                    Some(frame) => frame,
                    None => break,
                },
            };
            if self.next_block(&mut frame)? {
                self.frame = Some(frame);
            }
        }
        Ok(0)
    }

    fn offset(&self) -> u64 {
        self.input.offset()
    }

    fn is_checked(&self) -> bool {
        let is_checked = |frame: &Frame| frame.header.has_block_checksums;
        self.frame.as_ref().is_none_or(is_checked)
    }
}
