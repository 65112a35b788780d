//! zstd: the headers of all frames and blocks.

use super::bytes::{Bytes, exact, up_to};
use super::description::Description;
use crate::error::{Error, Result};
use crate::zstd::{FrameStart, HEADER_BYTES_MAX};

const IN_FRAME: &str = "a zstd frame";
const BLOCK_BYTES_MAX: u64 = 128 << 10;

pub(super) fn describe(file: &dyn Bytes, mut description: Description) -> Result<Description> {
    let mut offset = 0;
    let mut blocks = 0;
    description.content_bytes = Some(0);
    description.parts = Some(0);
    while offset < description.file_bytes {
        match FrameStart::parse(&up_to(file, offset, HEADER_BYTES_MAX)?) {
            FrameStart::Skippable(length) => {
                description.skipped_frames += 1;
                offset += 8 + u64::from(length);
            }
            FrameStart::Frame(header) => {
                description.add_part(header.content_bytes);
                let window = description.window_bytes.max(Some(header.window_bytes));
                description.window_bytes = window;
                let block_bytes = header.window_bytes.min(BLOCK_BYTES_MAX);
                description.block_bytes_max = description.block_bytes_max.max(Some(block_bytes));
                let (end, count) = frame_end(file, offset + header.length_bytes as u64)?;
                blocks += count;
                offset = end;
                if header.has_checksum {
                    description.add_check("XXH64");
                    offset += 4;
                }
            }
            FrameStart::Cut => {
                return Err(Error::Truncated {
                    offset: description.file_bytes,
                    what: IN_FRAME,
                });
            }
            FrameStart::Other => return Err(Error::damaged(offset, "expected a zstd frame")),
        }
    }
    if offset > description.file_bytes {
        return Err(Error::Truncated {
            offset: description.file_bytes,
            what: IN_FRAME,
        });
    }
    description.blocks = Some(blocks);
    Ok(description)
}

/// The end of the last block of a frame whose first block is at `offset`, and the number of blocks.
pub(crate) fn frame_end(file: &dyn Bytes, mut offset: u64) -> Result<(u64, u64)> {
    let mut blocks = 0;
    loop {
        let [a, b, c] = exact::<3>(file, offset, IN_FRAME)?;
        let header = u32::from_le_bytes([a, b, c, 0]);
        let length = match header >> 1 & 3 {
            0 | 2 => u64::from(header >> 3),
            1 => 1,
            _ => return Err(Error::damaged(offset, "a zstd block of an unknown type")),
        };
        blocks += 1;
        offset += 3 + length;
        if header & 1 != 0 {
            return Ok((offset, blocks));
        }
    }
}
