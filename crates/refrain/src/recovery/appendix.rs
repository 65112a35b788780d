//! Writes Recovery frames, and the tail after them.

use refrain_format::{RecoveryPart, RecoverySet, TAIL_BYTES, Tail};
use refrain_storage::{Sink, Source};

use super::encode::{Encoded, internal};
use crate::error::{Error, Result};

/// How much is written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Writes the frames of a set and, unless they are in a file of their own, a tail that leads as far
/// back as the `tail` before them does.
///
/// # Errors
/// `Io`; `Limit` if an archive has too many frames.
pub(crate) fn write_appendix(
    set: &RecoverySet,
    encoded: &Encoded,
    tail: Option<Tail>,
    sink: &mut dyn Sink,
) -> Result<u64> {
    let pieces = encoded.table.to_pieces().map_err(internal)?;
    let piece_bytes = set.data_bytes(RecoveryPart::Digests);
    let mut parity = ParityReader {
        encoded,
        start: 0,
        bytes: Vec::new(),
    };
    let mut out = Vec::with_capacity(WRITE_BYTES * 2);
    for place in set.places() {
        match place.part {
            RecoveryPart::Digests => {
                let start = place.index as usize * piece_bytes;
                let piece = pieces.get(start..start + piece_bytes);
                set.write(place, piece.unwrap_or_default(), &mut out)?;
            }
            RecoveryPart::Parity => {
                let slice_bytes = set.data_bytes(RecoveryPart::Parity);
                set.write(place, parity.slice(place.index, slice_bytes)?, &mut out)?;
            }
        }
        if out.len() >= WRITE_BYTES {
            sink.write_all(&out)?;
            out.clear();
        }
    }
    let mut written = set.frames_bytes();
    if let Some(tail) = tail.filter(|_| !set.is_apart) {
        let back_bytes = tail.back_bytes + set.frames_bytes() + TAIL_BYTES as u64;
        out.extend_from_slice(&Tail { back_bytes }.to_bytes());
        written += TAIL_BYTES as u64;
    }
    sink.write_all(&out)?;
    Ok(written)
}

/// Reads slices of parity one after the other.
struct ParityReader<'a> {
    encoded: &'a Encoded,
    start: u64,
    bytes: Vec<u8>,
}

impl ParityReader<'_> {
    fn slice(&mut self, index: u64, slice_bytes: usize) -> Result<&[u8]> {
        let offset = index * slice_bytes as u64;
        let end = self.start + self.bytes.len() as u64;
        if offset < self.start || offset + slice_bytes as u64 > end {
            self.bytes.resize(WRITE_BYTES.max(slice_bytes), 0);
            let count = self.encoded.parity.read_at(offset, &mut self.bytes)?;
            self.bytes.truncate(count);
            self.start = offset;
        }
        let from = (offset - self.start) as usize;
        let slice = self.bytes.get(from..from + slice_bytes);
        slice.ok_or_else(|| Error::damaged("temporary parity became shorter"))
    }
}
