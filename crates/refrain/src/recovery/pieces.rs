//! A file put together from ranges of others.

use std::io;
use std::sync::Arc;

use refrain_storage::Source;

use crate::error::{Error, Result};

/// More pieces than any damage makes that can be healed: they take 64 MiB.
const PIECES_MAX: usize = 1 << 22;

/// The bits of an offset in an input.
const OFFSET_BITS: u32 = 56;

/// The place of what is nowhere, and reads as zeros.
const NOWHERE: u64 = u64::MAX;

/// A file of which each piece is in one of several inputs.
#[derive(Clone, Default)]
pub(crate) struct Pieces {
    /// Where each piece ends, and where it begins: the input, and the offset in it.
    pieces: Vec<(u64, u64)>,
    inputs: Vec<Arc<dyn Source>>,
}

impl Pieces {
    pub(crate) fn new(inputs: Vec<Arc<dyn Source>>) -> Pieces {
        Pieces {
            pieces: Vec::new(),
            inputs,
        }
    }

    pub(crate) fn length_bytes(&self) -> u64 {
        self.pieces.last().map_or(0, |(end, _)| *end)
    }

    /// Adds a range of an input, or zeros.
    ///
    /// # Errors
    /// `Limit` for too many pieces.
    pub(crate) fn push(&mut self, from: Option<(usize, u64)>, bytes: u64) -> Result<()> {
        let start = self.length_bytes();
        let place = from.map_or(NOWHERE, |(input, offset)| {
            ((input as u64) << OFFSET_BITS) | offset
        });
        let before = self.pieces.len().checked_sub(2);
        let last_start = before.and_then(|before| self.pieces.get(before));
        let last_start = last_start.map_or(0, |(end, _)| *end);
        if let Some((end, last)) = self.pieces.last_mut() {
            let is_next = match *last {
                NOWHERE => place == NOWHERE,
                last => place == last + (start - last_start),
            };
            if is_next {
                *end += bytes;
                return Ok(());
            }
        }
        if self.pieces.len() == PIECES_MAX {
            return Err(Error::limit(format!(
                "more than {PIECES_MAX} places are damaged"
            )));
        }
        self.pieces.push((start + bytes, place));
        Ok(())
    }

    /// Adds all pieces of another file that has the same inputs.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn append(&mut self, other: &Pieces) -> Result<()> {
        let mut start = 0;
        for (end, place) in &other.pieces {
            self.push(Self::place_of(*place), end - start)?;
            start = *end;
        }
        Ok(())
    }

    fn place_of(place: u64) -> Option<(usize, u64)> {
        let offset = place & ((1 << OFFSET_BITS) - 1);
        (place != NOWHERE).then_some(((place >> OFFSET_BITS) as usize, offset))
    }
}

impl Source for Pieces {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.length_bytes())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut piece = self.pieces.partition_point(|(end, _)| *end <= offset);
        let before = piece
            .checked_sub(1)
            .and_then(|before| self.pieces.get(before));
        let mut start = before.map_or(0, |(end, _)| *end);
        let mut done = 0;
        while let Some((end, place)) = self.pieces.get(piece)
            && done < buffer.len()
        {
            let at = offset + done as u64;
            let count = (end - at).min((buffer.len() - done) as u64) as usize;
            let part = &mut buffer[done..done + count];
            match Self::place_of(*place) {
                None => part.fill(0),
                Some((input, from)) => {
                    let input = self.inputs.get(input);
                    let read = input.map_or(Ok(0), |input| input.read_at(from + at - start, part));
                    if read? < count {
                        let text = "a file became shorter while it was repaired";
                        return Err(io::Error::other(text));
                    }
                }
            }
            (done, piece, start) = (done + count, piece + 1, *end);
        }
        Ok(done)
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

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_storage::MemorySource;

    #[test]
    fn pieces_read_as_one_file() {
        let inputs: Vec<Arc<dyn Source>> = [b"abcdefgh".to_vec(), b"0123456789".to_vec()]
            .into_iter()
            .map(|bytes| Arc::new(MemorySource::new(bytes)) as Arc<dyn Source>)
            .collect();
        let mut file = Pieces::new(inputs.clone());
        file.push(Some((1, 2)), 3).unwrap();
        file.push(Some((1, 5)), 1).unwrap();
        assert_eq!(file.pieces.len(), 1);
        file.push(None, 2).unwrap();
        let mut more = Pieces::new(inputs);
        more.push(None, 1).unwrap();
        more.push(Some((0, 0)), 2).unwrap();
        more.push(Some((0, 6)), 2).unwrap();
        file.append(&more).unwrap();
        assert_eq!(file.pieces.len(), 4);
        let expected = b"2345\0\0\0abgh";
        for from in 0..expected.len() + 2 {
            for length in 0..expected.len() + 2 {
                let mut read = vec![1; length];
                let count = file.read_at(from as u64, &mut read).unwrap();
                let to = expected.len().min(from + length);
                assert_eq!(read[..count], expected[from.min(to)..to]);
            }
        }
    }
}
