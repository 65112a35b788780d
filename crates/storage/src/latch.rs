//! A sink that refuses everything after its first failure.

use std::io;
use std::sync::Arc;

use crate::sink::Sink;
use crate::source::Source;

/// Records the first failure; the rule of [`Latch`].
#[derive(Debug, Default)]
pub(crate) struct FirstFailure {
    first: Option<(io::ErrorKind, String)>,
}

impl FirstFailure {
    pub(crate) fn check(&self) -> io::Result<()> {
        match &self.first {
            None => Ok(()),
            Some((kind, text)) => {
                let text = format!("refused after an earlier failure: {text}");
                Err(io::Error::new(*kind, text))
            }
        }
    }

    pub(crate) fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.set(error.kind(), error.to_string());
        }
        result
    }

    pub(crate) fn set(&mut self, kind: io::ErrorKind, text: String) {
        self.first.get_or_insert((kind, text));
    }
}

/// A sink that fails forever once it has failed, with the kind of the first error.
///
/// A failed write leaves an unknown number of bytes written. Further writes would follow a gap, and
/// publishing would make it visible. (The idea is redb's `CheckedBackend`.) It also refuses
/// everything after [`Sink::publish`].
#[derive(Debug)]
pub struct Latch<K> {
    inner: K,
    failure: FirstFailure,
}

impl<K: Sink> Latch<K> {
    /// A latch over `inner` that has not failed.
    pub fn new(inner: K) -> Self {
        Latch {
            inner,
            failure: FirstFailure::default(),
        }
    }

    /// Returns the inner sink.
    pub fn into_inner(self) -> K {
        self.inner
    }
}

impl<K: Sink> Sink for Latch<K> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.failure.check()?;
        let result = self.inner.write_all(bytes);
        self.failure.note(result)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.failure.check()?;
        let result = self.inner.write_zeros(length_bytes);
        self.failure.note(result)
    }

    /// `None` after a failure.
    fn read_back(&self) -> Option<Arc<dyn Source>> {
        self.failure.check().ok()?;
        self.inner.read_back()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.failure.check()?;
        let result = self.inner.publish();
        let result = self.failure.note(result);
        self.failure
            .set(io::ErrorKind::Other, "already published".to_owned());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultPlan, FaultySink, MemorySink};

    #[test]
    fn first_failure_sticks() {
        let memory = MemorySink::new();
        let output = memory.output();
        let plan = FaultPlan::new(1).fail_write(1, io::ErrorKind::StorageFull);
        let mut latch = Latch::new(FaultySink::new(memory, plan));
        latch.write_all(b"fine").unwrap();
        assert!(latch.read_back().is_some());
        assert!(latch.write_all(b"fails").is_err());
        assert!(latch.read_back().is_none());
        for error in [
            latch.write_all(b"would succeed").unwrap_err(),
            latch.write_zeros(1).unwrap_err(),
            latch.publish().unwrap_err(),
        ] {
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert!(error.to_string().contains("earlier failure"), "{error}");
        }
        assert_eq!(output.published(), None);
    }

    #[test]
    fn published_is_final() {
        let memory = MemorySink::new();
        let output = memory.output();
        let mut latch = Latch::new(memory);
        latch.write_zeros(2).unwrap();
        latch.publish().unwrap();
        assert!(latch.publish().is_err());
        assert!(latch.write_all(b"x").is_err());
        assert_eq!(output.published().unwrap(), [0, 0]);
    }
}
