//! lz4: the headers of all frames and blocks.

use super::bytes::{Bytes, exact, fill, up_to};
use super::description::Description;
use crate::error::{Error, Result};
use crate::format::{LZ4_LEGACY_MAGIC, LZ4_MAGIC, is_skippable};
use crate::lz4::{FrameHeader, IS_STORED};

const IN_FRAME: &str = "an lz4 frame";

pub(super) fn describe(file: &dyn Bytes, mut description: Description) -> Result<Description> {
    let mut offset = 0;
    description.content_bytes = Some(0);
    description.parts = Some(0);
    description.blocks = Some(0);
    while offset < description.file_bytes {
        let magic = u32::from_le_bytes(exact(file, offset, IN_FRAME)?);
        let header = match magic {
            LZ4_LEGACY_MAGIC => FrameHeader::legacy(),
            LZ4_MAGIC => {
                let [flags] = exact(file, offset + 4, IN_FRAME)?;
                let mut descriptor = vec![0; FrameHeader::descriptor_bytes(flags)];
                fill(file, offset + 4, &mut descriptor, IN_FRAME)?;
                FrameHeader::parse(&descriptor, offset)?
            }
            magic if is_skippable(magic) => {
                let length = u32::from_le_bytes(exact(file, offset + 4, IN_FRAME)?);
                description.skipped_frames += 1;
                offset += 8 + u64::from(length);
                continue;
            }
            _ => return Err(Error::damaged(offset, "expected an lz4 frame")),
        };
        description.add_part(header.content_bytes);
        let block_bytes = header.block_bytes_max as u64;
        description.block_bytes_max = description.block_bytes_max.max(Some(block_bytes));
        for (has_check, name) in [
            (header.has_checksum, "XXH32"),
            (header.has_block_checksums, "XXH32 of each block"),
        ] {
            if has_check {
                description.add_check(name);
            }
        }
        offset = pass_blocks(file, offset, &header, &mut description)?;
    }
    if offset <= description.file_bytes {
        Ok(description)
    } else {
        Err(Error::Truncated {
            offset: description.file_bytes,
            what: IN_FRAME,
        })
    }
}

/// Finds the end of the frame that begins at `offset`, and counts its blocks.
fn pass_blocks(
    file: &dyn Bytes,
    offset: u64,
    header: &FrameHeader,
    description: &mut Description,
) -> Result<u64> {
    let mut offset = offset + header.length_bytes as u64;
    loop {
        if header.is_legacy && is_end_of_legacy(file, offset)? {
            return Ok(offset);
        }
        let stated = u32::from_le_bytes(exact(file, offset, IN_FRAME)?);
        offset += 4;
        if stated == 0 && !header.is_legacy {
            return Ok(offset + if header.has_checksum { 4 } else { 0 });
        }
        let length = if header.is_legacy { stated } else { stated & !IS_STORED };
        offset += u64::from(length) + if header.has_block_checksums { 4 } else { 0 };
        description.blocks = description.blocks.map(|count| count + 1);
    }
}

fn is_end_of_legacy(file: &dyn Bytes, offset: u64) -> Result<bool> {
    let next = up_to(file, offset, 4)?;
    Ok(match next.first_chunk::<4>() {
        None => next.is_empty(),
        Some(next) => {
            let next = u32::from_le_bytes(*next);
            next == LZ4_MAGIC || next == LZ4_LEGACY_MAGIC || is_skippable(next)
        }
    })
}
