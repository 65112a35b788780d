//! Hard links that wait for their files.

use std::io;

use super::summary::HardLink;

/// Waiting hard links may take 1/8 of the memory budget.
const SHARE: u64 = 8;

/// Links are tried early when they take 1/4 of that.
const EARLY_SHARE: usize = 4;

/// The memory of a link, without its paths.
const LINK_BYTES: usize = 80;

#[derive(Debug)]
pub(super) struct WaitingLinks {
    pub(super) links: Vec<HardLink>,
    bytes: usize,
    bytes_max: usize,
    /// With this many bytes, trying is worthwhile.
    many_bytes: usize,
}

impl WaitingLinks {
    pub(super) fn new(memory_bytes: u64) -> WaitingLinks {
        let bytes_max = usize::try_from(memory_bytes / SHARE).unwrap_or(usize::MAX);
        WaitingLinks {
            links: Vec::new(),
            bytes: 0,
            bytes_max,
            many_bytes: bytes_max / EARLY_SHARE,
        }
    }

    /// # Errors
    ///
    /// `OutOfMemory` if too many wait.
    pub(super) fn add(&mut self, link: HardLink) -> io::Result<()> {
        if self.links.is_empty() {
            self.bytes = 0;
        }
        self.bytes += bytes_of(&link);
        if self.bytes > self.bytes_max {
            let text = "more hard links wait for their files than the memory of this run can hold";
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, text));
        }
        self.links.push(link);
        Ok(())
    }

    pub(super) fn are_many(&self) -> bool {
        self.bytes > self.many_bytes
    }

    /// Takes back links that keep waiting. They are tried again when twice as many wait.
    pub(super) fn put_back(&mut self, waiting: Vec<HardLink>) {
        self.bytes = waiting.iter().map(bytes_of).sum();
        self.many_bytes = (self.bytes_max / EARLY_SHARE).max(self.bytes.saturating_mul(2));
        self.links = waiting;
    }
}

fn bytes_of(link: &HardLink) -> usize {
    LINK_BYTES + link.path.len() + link.target.len()
}
