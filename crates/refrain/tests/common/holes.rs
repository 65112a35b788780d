//! Sources with holes, which count what is read from them.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain::storage::Source;

/// A source of zeros, except for some ranges of data, in order.
#[derive(Default)]
pub struct Holey {
    pub size_bytes: u64,
    pub data: Vec<(u64, Vec<u8>)>,
    pub read_bytes: AtomicU64,
}

impl Holey {
    pub fn new(size_bytes: u64, data: Vec<(u64, Vec<u8>)>) -> Arc<Holey> {
        Arc::new(Holey {
            size_bytes,
            data,
            ..Holey::default()
        })
    }

    /// The parts of data inside a range.
    pub fn inside(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &[u8])> {
        self.data.iter().filter_map(move |(start, bytes)| {
            let from = range.start.max(*start);
            let to = range.end.min(start + bytes.len() as u64);
            let part = (from < to).then(|| (from - start) as usize..(to - start) as usize)?;
            Some((from, &bytes[part]))
        })
    }

    /// All bytes, for a small source.
    pub fn content(&self) -> Vec<u8> {
        let mut content = vec![0; self.size_bytes as usize];
        for (at, bytes) in self.inside(0..self.size_bytes) {
            content[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        }
        content
    }
}

impl Source for Holey {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size_bytes.saturating_sub(offset);
        let count = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..count];
        buffer.fill(0);
        for (at, bytes) in self.inside(offset..offset + count as u64) {
            let at = (at - offset) as usize;
            buffer[at..at + bytes.len()].copy_from_slice(bytes);
        }
        self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        let ends = |(start, bytes): &(u64, Vec<u8>)| start + bytes.len() as u64;
        let next = self.data.iter().find(|data| ends(data) > offset);
        Ok(next.map(|data| (data.0.max(offset), ends(data))))
    }
}
