//! Decodes a block by a library that takes and gives bytes as they come, and counts them.

use crate::error::{Error, Result};
use crate::id::CodecId;

/// The decoder of a library.
pub(super) trait StreamDecoder {
    const CODEC: CodecId;

    /// Decodes what it can, and returns whether the stream has ended.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool>;

    /// How many bytes it has read and written.
    fn totals(&self) -> (u64, u64);
}

pub(super) fn damaged<D: StreamDecoder>(cause: &'static str) -> Error {
    Error::Damaged {
        codec: D::CODEC,
        cause,
    }
}

/// Decodes until `out` is full. Returns whether the stream ended there.
pub(super) fn fill<D: StreamDecoder>(
    stream: &mut D,
    data: &[u8],
    out: &mut [u8],
    raw_length_bytes: u64,
) -> Result<bool> {
    loop {
        let before = totals(stream)?;
        let has_ended = stream.step(data.get(before.0..).unwrap_or(&[]), &mut out[before.1..])?;
        let now = totals(stream)?;
        if now.1 == out.len() {
            return Ok(has_ended);
        }
        if has_ended {
            return Err(length_error::<D>(raw_length_bytes, now.1 as u64));
        }
        if now == before {
            return Err(damaged::<D>("truncated"));
        }
    }
}

/// Decodes all of a block, with which the stream and the data must end.
pub(super) fn decode<D: StreamDecoder>(stream: &mut D, data: &[u8], out: &mut [u8]) -> Result<()> {
    let raw_length_bytes = out.len() as u64;
    let mut has_ended = fill(stream, data, out, raw_length_bytes)?;
    if !has_ended {
        let (consumed, produced) = totals(stream)?;
        has_ended = stream.step(data.get(consumed..).unwrap_or(&[]), &mut [0])?;
        let found = totals(stream)?.1;
        if found > produced {
            return Err(length_error::<D>(raw_length_bytes, found as u64));
        }
    }
    match has_ended {
        false => Err(damaged::<D>("no end of stream")),
        true if totals(stream)?.0 == data.len() => Ok(()),
        true => Err(damaged::<D>("bytes after the end")),
    }
}

fn totals<D: StreamDecoder>(stream: &D) -> Result<(usize, usize)> {
    let to_usize = |total| usize::try_from(total).map_err(|_| damaged::<D>("counter"));
    let (read_bytes, written_bytes) = stream.totals();
    Ok((to_usize(read_bytes)?, to_usize(written_bytes)?))
}

fn length_error<D: StreamDecoder>(expected_bytes: u64, found_bytes: u64) -> Error {
    Error::Length {
        codec: D::CODEC,
        expected_bytes,
        found_bytes,
    }
}
