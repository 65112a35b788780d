//! The most recently used decoded frames of entries: a tree's entries come in slices, and the
//! slices of a frame are consecutive or alternate with those of a few other frames.

use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::Arc;

use refrain_entries::Entry;
use refrain_format::entry_bytes;

use crate::error::Result;

/// Decoded frames may take 1/16 of a reader's memory.
pub(crate) const DECODED_SHARE: u64 = 16;

struct Frame {
    number: u64,
    entries: Arc<Vec<Entry>>,
    bytes: usize,
}

/// Frames within a memory limit; the latest is always kept.
pub(crate) struct DecodedFrames {
    bytes_max: usize,
    bytes: usize,
    /// The most recently used are at the end.
    frames: VecDeque<Frame>,
}

impl DecodedFrames {
    /// `memory_bytes` is the reader's budget.
    pub(crate) fn new(memory_bytes: u64) -> DecodedFrames {
        DecodedFrames::within(memory_bytes / DECODED_SHARE)
    }

    /// Frames of at most so many bytes.
    pub(crate) fn within(bytes_max: u64) -> DecodedFrames {
        DecodedFrames {
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            bytes: 0,
            frames: VecDeque::new(),
        }
    }

    pub(crate) fn get(&mut self, number: u64) -> Option<Arc<Vec<Entry>>> {
        let at = (self.frames.iter()).position(|frame| frame.number == number)?;
        let frame = self.frames.remove(at)?;
        let entries = frame.entries.clone();
        self.frames.push_back(frame);
        Some(entries)
    }

    /// Adds a frame.
    pub(crate) fn add(&mut self, number: u64, entries: &Arc<Vec<Entry>>) {
        let variable: usize = entries.iter().map(entry_bytes).sum();
        let bytes = entries.len() * size_of::<Entry>() + variable;
        while self.bytes + bytes > self.bytes_max
            && let Some(oldest) = self.frames.pop_front()
        {
            self.bytes -= oldest.bytes;
        }
        self.bytes += bytes;
        self.frames.push_back(Frame {
            number,
            entries: entries.clone(),
            bytes,
        });
    }

    /// A frame, decoded by `decode` if missing.
    pub(crate) fn get_or_decode(
        &mut self,
        number: u64,
        decode: impl FnOnce() -> Result<Vec<Entry>>,
    ) -> Result<Arc<Vec<Entry>>> {
        if let Some(found) = self.get(number) {
            return Ok(found);
        }
        let entries = Arc::new(decode()?);
        self.add(number, &entries);
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_used_last_remain() {
        let one = size_of::<Entry>() as u64;
        let mut frames = DecodedFrames::new(2 * one * DECODED_SHARE);
        let mut decoded = vec![];
        for number in [1, 2, 1, 3, 1, 2] {
            let decode = || {
                decoded.push(number);
                Ok(vec![Entry::default()])
            };
            frames.get_or_decode(number, decode).unwrap();
        }
        assert_eq!(decoded, [1, 2, 3, 2]);
        let large = || Ok(vec![Entry::default(); 9]);
        assert_eq!(frames.get_or_decode(4, large).unwrap().len(), 9);
        assert!(frames.get(4).is_some() && frames.get(1).is_none());
    }
}
