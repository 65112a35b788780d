//! Sources and sinks in memory.

use std::io;
use std::sync::Arc;

use refrain_pool::Lock;

use crate::sink::Sink;
use crate::source::Source;
use crate::transfer::slice_at;

/// Bytes in memory: a `Vec<u8>`, an `Arc<[u8]>`, a `&[u8]`, a memory map.
#[derive(Debug, Clone)]
pub struct MemorySource<T> {
    bytes: T,
}

impl<T: AsRef<[u8]> + Send + Sync> MemorySource<T> {
    /// A source over all of `bytes`.
    pub fn new(bytes: T) -> Self {
        MemorySource { bytes }
    }
}

impl<T: AsRef<[u8]> + Send + Sync> Source for MemorySource<T> {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.as_ref().len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = slice_at(self.bytes.as_ref(), offset, buffer.len());
        buffer[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

#[derive(Debug, Default)]
struct MemoryContent {
    bytes: Vec<u8>,
    published: bool,
}

/// A sink that collects bytes in memory, up to a limit.
#[derive(Debug)]
pub struct MemorySink {
    written: Arc<Lock<MemoryContent>>,
    limit_bytes: u64,
    is_pipe: bool,
}

impl MemorySink {
    /// A sink whose only limit is memory.
    pub fn new() -> Self {
        Self::with_limit(u64::MAX)
    }

    /// A sink that fails with [`io::ErrorKind::StorageFull`] beyond `limit_bytes`.
    pub fn with_limit(limit_bytes: u64) -> Self {
        MemorySink {
            written: Arc::default(),
            limit_bytes,
            is_pipe: false,
        }
    }

    /// Makes the sink behave like a pipe: written bytes cannot be read back.
    #[must_use]
    pub fn as_pipe(self) -> Self {
        MemorySink {
            is_pipe: true,
            ..self
        }
    }

    /// A handle to the published bytes, which outlives the sink.
    pub fn output(&self) -> MemoryOutput {
        MemoryOutput {
            written: Arc::clone(&self.written),
        }
    }

    fn append(
        &mut self,
        length_bytes: u64,
        fill: impl FnOnce(&mut Vec<u8>, usize),
    ) -> io::Result<()> {
        let mut written = self.written.lock();
        if written.published {
            return Err(io::Error::other("write after publish"));
        }
        let total = (written.bytes.len() as u64).checked_add(length_bytes);
        if total.is_none_or(|total| total > self.limit_bytes) {
            let text = format!("more than the limit of {} bytes", self.limit_bytes);
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        let added = usize::try_from(length_bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let reserved = written.bytes.try_reserve(added);
        reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
        fill(&mut written.bytes, added);
        Ok(())
    }
}

impl Default for MemorySink {
    fn default() -> Self {
        Self::new()
    }
}

impl Sink for MemorySink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.append(bytes.len() as u64, |written, _| {
            written.extend_from_slice(bytes);
        })
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.append(length_bytes, |written, added| {
            written.resize(written.len() + added, 0);
        })
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        (!self.is_pipe).then(|| Arc::new(self.output()) as Arc<dyn Source>)
    }

    fn publish(&mut self) -> io::Result<()> {
        self.written.lock().published = true;
        Ok(())
    }
}

/// The content of a [`MemorySink`]. Read as a [`Source`], it includes unpublished bytes.
#[derive(Debug, Clone)]
pub struct MemoryOutput {
    written: Arc<Lock<MemoryContent>>,
}

impl MemoryOutput {
    /// A copy of all bytes; `None` until they are published.
    pub fn published(&self) -> Option<Vec<u8>> {
        let written = self.written.lock();
        written.published.then(|| written.bytes.clone())
    }
}

impl Source for MemoryOutput {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.written.lock().bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let written = self.written.lock();
        let piece = slice_at(&written.bytes, offset, buffer.len());
        buffer[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_end_at_the_end() {
        let source = MemorySource::new(b"0123456789".to_vec());
        let mut buffer = [0; 4];
        assert_eq!(source.size_bytes().unwrap(), 10);
        assert_eq!(source.read_at(8, &mut buffer).unwrap(), 2);
        assert_eq!(&buffer[..2], b"89");
        assert_eq!(source.read_at(u64::MAX, &mut buffer).unwrap(), 0);
        assert_eq!(source.next_data(3).unwrap(), Some((3, 10)));
        assert_eq!(source.next_data(10).unwrap(), None);
    }

    #[test]
    fn byte_containers_and_pointers_to_sources_are_sources() {
        let shared: Arc<[u8]> = Arc::from(&b"abc"[..]);
        let sources: Vec<Box<dyn Source>> = vec![
            Box::new(MemorySource::new(Arc::clone(&shared))),
            Box::new(MemorySource::new(&b"abc"[..])),
            Box::new(Arc::new(MemorySource::new(vec![b'a', b'b', b'c']))),
        ];
        for source in &sources {
            assert_eq!(source.size_bytes().unwrap(), 3);
        }
    }

    #[test]
    fn bytes_are_readable_by_view_before_and_by_handle_after_publish() {
        let mut sink = MemorySink::new();
        let (output, view) = (sink.output(), sink.read_back().unwrap());
        sink.write_all(b"ab").unwrap();
        sink.write_zeros(3).unwrap();
        sink.write_all(b"c").unwrap();
        let mut buffer = [9; 8];
        assert_eq!(view.read_at(1, &mut buffer).unwrap(), 5);
        assert_eq!(&buffer[..5], b"b\0\0\0c");
        assert_eq!(output.published(), None);
        sink.publish().unwrap();
        assert_eq!(output.published().unwrap(), b"ab\0\0\0c");
        assert!(sink.write_all(b"late").is_err());
    }

    #[test]
    fn the_limit_is_exact_and_huge_requests_are_errors() {
        let mut sink = MemorySink::with_limit(10);
        sink.write_all(b"12345").unwrap();
        sink.write_zeros(5).unwrap();
        sink.write_all(b"").unwrap();
        let error = sink.write_all(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(sink.write_zeros(u64::MAX).is_err());
        assert!(MemorySink::new().write_zeros(u64::MAX).is_err());
    }
}
