//! Sinks around the sink: one that hashes what passes, one that keeps what is broken.

use std::io;
use std::sync::{Arc, OnceLock};

use refrain::storage::{Sink, Source, in_zero_pieces};
use refrain::{DigestAlgorithm, DigestHasher, DigestValue};

/// The MD5 of all that was written, once it was published.
pub type Md5Cell = Arc<OnceLock<DigestValue>>;

/// Hashes what is written.
pub struct Hashing {
    inner: Box<dyn Sink>,
    hasher: Option<DigestHasher>,
    md5: Md5Cell,
}

impl Hashing {
    /// Around `inner`; the MD5 goes to `md5`.
    pub fn new(inner: Box<dyn Sink>, md5: Md5Cell) -> Hashing {
        let hasher = Some(DigestHasher::new(DigestAlgorithm::Md5));
        Hashing { inner, hasher, md5 }
    }

    fn hash(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }
}

impl Sink for Hashing {
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

    fn publish(&mut self) -> io::Result<()> {
        self.inner.publish()?;
        if let Some(hasher) = self.hasher.take() {
            // Set once: a sink is published once.
            let _ = self.md5.set(hasher.finish());
        }
        Ok(())
    }
}

/// Publishes what is there when it is dropped without having been published: `-K`.
pub struct KeepingBroken {
    inner: Box<dyn Sink>,
    is_published: bool,
}

impl KeepingBroken {
    /// Around `inner`.
    pub fn new(inner: Box<dyn Sink>) -> KeepingBroken {
        let is_published = false;
        KeepingBroken {
            inner,
            is_published,
        }
    }
}

impl Sink for KeepingBroken {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.inner.write_zeros(length_bytes)
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        self.inner.read_back()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.is_published = true;
        self.inner.publish()
    }
}

impl Drop for KeepingBroken {
    fn drop(&mut self) {
        if !self.is_published {
            // The run fails already, for another reason.
            let _ = self.inner.publish();
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain::storage::MemorySink;

    use super::*;

    #[test]
    fn zeros_are_hashed_as_bytes_are() {
        let md5 = |write: fn(&mut Hashing)| {
            let cell = Md5Cell::default();
            let mut sink = Hashing::new(Box::new(MemorySink::new()), Arc::clone(&cell));
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
    fn what_is_broken_is_kept() {
        let inner = MemorySink::new();
        let output = inner.output();
        let mut sink = KeepingBroken::new(Box::new(inner));
        sink.write_all(b"half").unwrap();
        assert_eq!(output.published(), None);
        drop(sink);
        assert_eq!(output.published().as_deref(), Some(&b"half"[..]));
    }
}
