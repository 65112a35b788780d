//! Memory of a thread that waits, for another thread to fill or to read: its bytes are copied
//! once, without a buffer between the threads.
//!
//! `unsafe`: a pointer has no lifetime. Whoever lends memory keeps it borrowed, and takes back what
//! he has lent before he returns; both sides hold the same lock whenever they use it. So nobody
//! uses memory that is no longer lent, or while another thread does.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// Room for bytes.
#[derive(Debug)]
pub(crate) struct LentRoom {
    start: NonNull<u8>,
    size_bytes: usize,
    filled_bytes: usize,
}

// SAFETY: like the `&mut [u8]` that it stands for.
unsafe impl Send for LentRoom {}

impl LentRoom {
    /// # Safety
    /// The room must stay borrowed until this is dropped.
    pub(crate) unsafe fn new(room: &mut [u8]) -> LentRoom {
        LentRoom {
            size_bytes: room.len(),
            start: NonNull::from(room).cast(),
            filled_bytes: 0,
        }
    }

    pub(crate) fn filled_bytes(&self) -> usize {
        self.filled_bytes
    }

    pub(crate) fn is_full(&self) -> bool {
        self.filled_bytes == self.size_bytes
    }

    /// Takes as many of the bytes as fit, and returns how many.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.size_bytes - self.filled_bytes);
        // SAFETY: the room is still lent, `count` bytes are left of it, and `bytes`, which are
        // borrowed, do not overlap what is borrowed mutably.
        unsafe {
            let start = self.start.add(self.filled_bytes);
            start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), count);
        }
        self.filled_bytes += count;
        count
    }
}

/// Bytes to read.
#[derive(Debug)]
pub(crate) struct LentBytes {
    start: NonNull<u8>,
    size_bytes: usize,
    taken_bytes: usize,
}

// SAFETY: like the `&[u8]` that it stands for.
unsafe impl Send for LentBytes {}

impl LentBytes {
    /// # Safety
    /// The bytes must stay borrowed until this is dropped.
    pub(crate) unsafe fn new(bytes: &[u8]) -> LentBytes {
        LentBytes {
            size_bytes: bytes.len(),
            start: NonNull::from(bytes).cast(),
            taken_bytes: 0,
        }
    }

    pub(crate) fn left_bytes(&self) -> usize {
        self.size_bytes - self.taken_bytes
    }

    /// Copies as many bytes as there are and fit, and returns how many.
    pub(crate) fn take(&mut self, room: &mut [u8]) -> usize {
        let count = room.len().min(self.left_bytes());
        // SAFETY: the bytes are still lent, `count` are left of them, and `room`, which is borrowed
        // mutably, does not overlap them.
        unsafe {
            let start = self.start.add(self.taken_bytes);
            NonNull::from(room)
                .cast()
                .copy_from_nonoverlapping(start, count);
        }
        self.taken_bytes += count;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_piece_by_piece_and_no_more_than_fit() {
        let (mut room, content) = ([0; 10], *b"0123456789abc");
        // SAFETY: both outlive them.
        let (mut lent_room, mut lent_bytes) =
            unsafe { (LentRoom::new(&mut room), LentBytes::new(&content)) };
        assert_eq!(lent_room.fill(b""), 0);
        assert_eq!(lent_room.fill(b"abcd"), 4);
        assert!(!lent_room.is_full() && lent_room.filled_bytes() == 4);
        assert_eq!(lent_room.fill(b"efghijkl"), 6);
        assert_eq!((lent_room.is_full(), lent_room.fill(b"m")), (true, 0));
        assert_eq!(&room, b"abcdefghij");
        assert_eq!(lent_bytes.take(&mut []), 0);
        assert_eq!(lent_bytes.take(&mut room[..4]), 4);
        assert_eq!((lent_bytes.left_bytes(), &room), (9, b"0123efghij"));
        assert_eq!(lent_bytes.take(&mut room), 9);
        assert_eq!((lent_bytes.take(&mut room), &room), (0, b"456789abcj"));
    }
}
