//! A file put together from slices in several places.

use std::io;
use std::sync::Arc;

use refrain_protect::recovery::{RecoveryParameters, SlicePlaces};
use refrain_storage::Source;

use super::pieces::Pieces;
use crate::error::Result;

/// A file whose slices are in several inputs. Slices that are nowhere read as zeros.
pub(crate) struct Patchwork {
    pub parameters: RecoveryParameters,
    pub places: SlicePlaces,
    pub inputs: Vec<Arc<dyn Source>>,
}

impl Patchwork {
    /// How many bytes at an offset are in one piece in an input, and where; at most `count`.
    fn piece(&self, offset: u64, count: usize) -> (Option<(usize, u64)>, usize) {
        let slice_bytes = u64::from(self.parameters.slice_bytes);
        let slice = offset / slice_bytes;
        let inside = offset - slice * slice_bytes;
        let place = self.places.place(slice);
        let mut bytes = slice_bytes - inside;
        let mut next = slice + 1;
        while bytes < count as u64 && next < self.parameters.slice_count() {
            let expected = place.map(|(input, at)| (input, at + (next - slice) * slice_bytes));
            if self.places.place(next) != expected {
                break;
            }
            (bytes, next) = (bytes + slice_bytes, next + 1);
        }
        let start = place.map(|(input, at)| (input, at + inside));
        (start, bytes.min(count as u64) as usize)
    }
}

impl Source for Patchwork {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.parameters.protected_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.parameters.protected_bytes.saturating_sub(offset);
        let wanted = left.min(buffer.len() as u64) as usize;
        let mut done = 0;
        while done < wanted {
            let (start, count) = self.piece(offset + done as u64, wanted - done);
            let piece = &mut buffer[done..done + count];
            match start.and_then(|(input, at)| Some((self.inputs.get(input)?, at))) {
                None => piece.fill(0),
                Some((input, at)) => {
                    if input.read_at(at, piece)? < count {
                        let text = "a file became shorter while it was repaired";
                        return Err(io::Error::other(text));
                    }
                }
            }
            done += count;
        }
        Ok(wanted)
    }

    fn has_changed(&self) -> io::Result<bool> {
        for input in &self.inputs {
            if input.has_changed()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Patchwork {
    /// Adds an input that has these slices, one after the other, from an offset on.
    pub(crate) fn add(&mut self, input: Arc<dyn Source>, offset: u64, slices: &[u64]) {
        let number = self.inputs.len() as u8;
        for (slot, slice) in (0_u64..).zip(slices) {
            let slot_offset = slot * u64::from(self.parameters.slice_bytes);
            self.places.note(*slice, number, offset + slot_offset);
        }
        self.inputs.push(input);
    }

    /// The same file as ranges of its inputs, each of which is a window from a `base` on.
    ///
    /// # Errors
    /// `Limit` for too many pieces.
    pub(crate) fn to_pieces(&self, bases: &[u64], pieces: &mut Pieces) -> Result<()> {
        for slice in 0..self.parameters.slice_count() {
            let place = self.places.place(slice);
            let place = place
                .map(|(input, offset)| (input, offset + bases.get(input).copied().unwrap_or(0)));
            pieces.push(place, self.parameters.bytes_of_slice(slice) as u64)?;
        }
        Ok(())
    }
}
