//! A file of which sectors cannot be read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_storage::Source;

/// What a disk loses at once.
const SECTOR_BYTES: usize = 4096;

/// Reads zeros in place of what cannot be read.
pub(crate) struct Unreadable {
    inner: Arc<dyn Source>,
    bytes: AtomicU64,
}

impl Unreadable {
    pub(crate) fn new(inner: Arc<dyn Source>) -> Unreadable {
        Unreadable {
            inner,
            bytes: AtomicU64::new(0),
        }
    }

    /// How many bytes could not be read; those read twice count twice.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn read_sectors(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.inner.size_bytes()?;
        let wanted = size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        while done < wanted {
            let at = offset + done as u64;
            let to_next = SECTOR_BYTES - (at % SECTOR_BYTES as u64) as usize;
            let end = wanted.min(done + to_next);
            let sector = &mut buffer[done..end];
            match self.inner.read_at(at, sector) {
                Ok(count) => sector[count..].fill(0),
                Err(_) => {
                    sector.fill(0);
                    self.bytes.fetch_add(sector.len() as u64, Ordering::Relaxed);
                }
            }
            done = end;
        }
        Ok(wanted)
    }
}

impl Source for Unreadable {
    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner
            .read_at(offset, buffer)
            .or_else(|_| self.read_sectors(offset, buffer))
    }

    fn has_changed(&self) -> io::Result<bool> {
        self.inner.has_changed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_storage::MemorySource;

    /// Fails every read that touches a sector.
    struct BadSector(MemorySource<Vec<u8>>, u64);

    impl Source for BadSector {
        fn size_bytes(&self) -> io::Result<u64> {
            self.0.size_bytes()
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            let bad = self.1 * SECTOR_BYTES as u64..(self.1 + 1) * SECTOR_BYTES as u64;
            let end = offset + buffer.len() as u64;
            if offset < bad.end && end > bad.start {
                return Err(io::Error::other("unreadable"));
            }
            self.0.read_at(offset, buffer)
        }
    }

    #[test]
    fn only_what_cannot_be_read_is_zeros() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8 + 1).collect();
        let bad = BadSector(MemorySource::new(bytes.clone()), 2);
        let source = Unreadable::new(Arc::new(bad));
        let mut read = vec![9; 30_000];
        assert_eq!(source.read_at(100, &mut read).unwrap(), 19_900);
        let mut expected = bytes;
        expected[8192..12_288].fill(0);
        assert!(read[..19_900] == expected[100..]);
        assert_eq!(source.bytes(), 4096);
        assert_eq!(source.read_at(30_000, &mut read).unwrap(), 0);
    }
}
