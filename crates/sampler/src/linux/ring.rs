//! The ring into which the kernel writes samples, and which this process drains.
//!
//! `unsafe`: the memory is shared with the kernel. It writes records between the reader's position
//! and its own only after the reader has moved on, so the bytes between the two do not change while
//! they are read. Both positions are words that both sides read and write atomically.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::event::PerfEvent;
use super::record::Bytes;

/// Offsets of `data_head` and `data_tail` in the first page, `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
/// The first page has the positions; the data follows.
const PAGE_BYTES: usize = 4096;
/// The type and size in the first eight bytes of a record.
const SIZE_SHIFT: u32 = 48;

#[derive(Debug)]
pub(super) struct Ring {
    map: MmapRaw,
    /// A power of two.
    data_bytes: usize,
    /// The reader's position: all bytes ever read.
    tail: u64,
}

impl Ring {
    /// Maps the ring of an event.
    ///
    /// # Errors
    /// The kernel refuses, for example because of the size.
    pub(super) fn map(event: &PerfEvent, data_bytes: usize) -> io::Result<Ring> {
        let mut options = MmapOptions::new();
        let map = options.len(PAGE_BYTES + data_bytes).map_raw(event.file())?;
        Ok(Ring {
            map,
            data_bytes,
            tail: 0,
        })
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the first page, aligned, and accessed only atomically by both sides.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    /// How far the kernel has written.
    pub(super) fn head(&self) -> u64 {
        self.position(HEAD).load(Ordering::Acquire)
    }

    /// Passes each record up to `head`, an earlier result of [`Ring::head`], to `each`.
    pub(super) fn take(&mut self, head: u64, mut each: impl FnMut(u64, Bytes<'_>)) {
        while self.tail < head {
            let Some(header) = self.bytes(self.tail..self.tail + 8).word(0) else {
                return;
            };
            let length = header >> SIZE_SHIFT;
            if length < 8 || length > head - self.tail {
                // Not a valid record: nothing after it can be read either.
                self.tail = head;
            } else {
                each(header, self.bytes(self.tail + 8..self.tail + length));
                self.tail += length;
            }
            self.position(TAIL).store(self.tail, Ordering::Release);
        }
    }

    /// The bytes between two positions within the unread part.
    fn bytes(&self, range: Range<u64>) -> Bytes<'_> {
        let start = range.start as usize & (self.data_bytes - 1);
        let length = (range.end - range.start) as usize;
        let before_end = length.min(self.data_bytes - start);
        // SAFETY: both parts are in the mapping. The kernel does not change them before `TAIL` has
        // passed them, which happens after the last use of the result.
        let part = |offset: usize, length: usize| unsafe {
            let data = self.map.as_ptr().add(PAGE_BYTES);
            std::slice::from_raw_parts(data.add(offset), length)
        };
        Bytes::new(part(start, before_end), part(0, length - before_end))
    }
}
