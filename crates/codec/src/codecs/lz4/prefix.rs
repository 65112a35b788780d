//! An LZ4 decoder that stops when the prefix is complete.

use crate::error::{Error, Result};
use crate::id::CodecId;

const TRUNCATED: Error = Error::Damaged {
    codec: CodecId::LZ4,
    cause: "truncated",
};

/// Fills `out` with the first bytes of the block.
pub(super) fn decode(data: &[u8], raw_length_bytes: u64, out: &mut [u8]) -> Result<()> {
    let mut input = data;
    let mut filled = 0;
    while filled < out.len() {
        let (&token, rest) = input.split_first().ok_or(TRUNCATED)?;
        input = rest;
        let literals = length(token >> 4, &mut input)?;
        let part = input.get(..literals).ok_or(TRUNCATED)?;
        input = &input[literals..];
        filled += copy_into(&mut out[filled..], part);
        if filled == out.len() {
            break;
        }
        if input.is_empty() {
            return Err(Error::Length {
                codec: CodecId::LZ4,
                expected_bytes: raw_length_bytes,
                found_bytes: filled as u64,
            });
        }
        let offset = input.first_chunk::<2>().ok_or(TRUNCATED)?;
        let distance = usize::from(u16::from_le_bytes(*offset));
        input = &input[2..];
        let match_bytes = length(token & 15, &mut input)?.saturating_add(4);
        filled = copy_match(out, filled, distance, match_bytes)?;
    }
    Ok(())
}

/// A length from its nibble and the bytes after it.
fn length(nibble: u8, input: &mut &[u8]) -> Result<usize> {
    let mut length = usize::from(nibble);
    if nibble < 15 {
        return Ok(length);
    }
    loop {
        let (&byte, rest) = input.split_first().ok_or(TRUNCATED)?;
        *input = rest;
        // Each input byte adds at most 255, and they are in memory: this cannot overflow 64 bits.
        // Saturate for 32 bits.
        length = length.saturating_add(usize::from(byte));
        if byte != 255 {
            return Ok(length);
        }
    }
}

/// Copies as much of `part` as fits; returns the number of bytes.
fn copy_into(out: &mut [u8], part: &[u8]) -> usize {
    let count = part.len().min(out.len());
    out[..count].copy_from_slice(&part[..count]);
    count
}

/// Copies the bytes at `distance` before `filled`, up to the end of `out`; returns the new
/// `filled`.
fn copy_match(out: &mut [u8], filled: usize, distance: usize, match_bytes: usize) -> Result<usize> {
    if distance == 0 || distance > filled {
        return Err(Error::Damaged {
            codec: CodecId::LZ4,
            cause: "match before the start",
        });
    }
    let end = filled.saturating_add(match_bytes).min(out.len());
    let mut position = filled;
    while position < end {
        // An overlapping match repeats its period; each round can copy twice as much as before.
        let start = filled - distance;
        let count = (end - position).min(position - start);
        out.copy_within(start..start + count, position);
        position += count;
    }
    Ok(end)
}
