//! Sinks that wrap another: one hashes the bytes written, one keeps incomplete output.

use std::io;
use std::sync::{Arc, OnceLock};

use refrain::storage::{Sink, Source};
use refrain::{DigestAlgorithm, DigestHasher, DigestValue};
use refrain_storage::{ReadBack, in_zero_pieces};

/// The MD5 of the bytes written, set when they are published.
pub type Md5Cell = Arc<OnceLock<DigestValue>>;

/// Hashes the bytes written.
pub struct HashingSink {
    inner: Box<dyn Sink>,
    hasher: Option<DigestHasher>,
    md5: Md5Cell,
}

impl HashingSink {
    /// Wraps `inner` and stores the MD5 in `md5`.
    pub fn new(inner: Box<dyn Sink>, md5: Md5Cell) -> HashingSink {
        let hasher = Some(DigestHasher::new(DigestAlgorithm::Md5));
        HashingSink { inner, hasher, md5 }
    }

    fn hash(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }
}

impl Sink for HashingSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash(bytes);
        self.inner.write_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        in_zero_pieces(length_bytes, |zeros| -> io::Result<()> {
            self.hash(zeros);
            Ok(())
        })?;
        self.inner.write_zeros(length_bytes)
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        self.inner.read_back()
    }

    fn is_stored(&self) -> bool {
        self.inner.is_stored()
    }

    fn read_back_result(&self) -> Option<ReadBack> {
        self.inner.read_back_result()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.inner.publish()?;
        if let Some(hasher) = self.hasher.take() {
            // It is set once, because a sink is published once.
            let _ = self.md5.set(hasher.finish());
        }
        Ok(())
    }
}

/// Publishes incomplete output if it is dropped unpublished (`-K`).
pub struct KeepBrokenSink {
    inner: Box<dyn Sink>,
    is_published: bool,
}

impl KeepBrokenSink {
    /// Wraps `inner`.
    pub fn new(inner: Box<dyn Sink>) -> KeepBrokenSink {
        let is_published = false;
        KeepBrokenSink {
            inner,
            is_published,
        }
    }
}

impl Sink for KeepBrokenSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.inner.write_zeros(length_bytes)
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        self.inner.read_back()
    }

    fn is_stored(&self) -> bool {
        self.inner.is_stored()
    }

    fn read_back_result(&self) -> Option<ReadBack> {
        self.inner.read_back_result()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.is_published = true;
        self.inner.publish()
    }
}

impl Drop for KeepBrokenSink {
    fn drop(&mut self) {
        if !self.is_published {
            // The run has already failed for another reason.
            let _ = self.inner.publish();
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain::storage::MemorySink;

    use super::*;

    #[test]
    fn zeros_are_hashed_like_bytes() {
        let md5 = |write: fn(&mut HashingSink)| {
            let cell = Md5Cell::default();
            let mut sink = HashingSink::new(Box::new(MemorySink::new()), Arc::clone(&cell));
            write(&mut sink);
            assert!(cell.get().is_none());
            sink.publish().unwrap();
            cell.get().unwrap().to_string()
        };
        let zeros = md5(|sink| sink.write_zeros(100_000).unwrap());
        let bytes = md5(|sink| sink.write_all(&[0; 100_000]).unwrap());
        assert_eq!(zeros, bytes);
        assert_eq!(md5(|_| {}), "d41d8cd98f00b204e9800998ecf8427e");
    }

    #[test]
    fn incomplete_output_is_published_on_drop() {
        let inner = MemorySink::new();
        let output = inner.output();
        let mut sink = KeepBrokenSink::new(Box::new(inner));
        sink.write_all(b"half").unwrap();
        assert_eq!(output.published(), None);
        drop(sink);
        assert_eq!(output.published().as_deref(), Some(&b"half"[..]));
    }
}
