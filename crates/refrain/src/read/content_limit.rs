//! Limits what a verb delivers.
//!
//! An archive of a few hundred bytes may claim any amount of content: a fill of 2^50 bytes, or a
//! million files that share the same gigabyte. The cost of producing and hashing it is not bounded
//! by the archive's size, so it is counted, and refused above a limit.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::options::ReadOptions;

/// The default limit in bytes, unless the archive is large.
const CONTENT_BYTES_MAX: u64 = 16 << 40;

/// The default limit per byte of the archive, in bytes.
const CONTENT_PER_ARCHIVE_BYTE: u64 = 4096;

/// How much content may be delivered.
#[derive(Debug, Clone)]
pub(crate) struct ContentLimit {
    /// The limit in the options.
    stated: Option<u64>,
    /// The bytes of the archive read so far.
    archive_bytes: Arc<AtomicU64>,
}

impl ContentLimit {
    pub(crate) fn new(options: &ReadOptions, archive_bytes: u64) -> ContentLimit {
        ContentLimit {
            stated: options.content_bytes_max,
            archive_bytes: Arc::new(AtomicU64::new(archive_bytes)),
        }
    }

    /// The limit for an archive from a stream, which rises with the bytes read from the returned
    /// stream.
    pub(crate) fn for_stream(
        stream: Box<dyn Read + Send>,
        options: &ReadOptions,
    ) -> (Box<dyn Read + Send>, ContentLimit) {
        let limit = ContentLimit::new(options, 0);
        let bytes = limit.archive_bytes.clone();
        (Box::new(CountedStream { stream, bytes }), limit)
    }

    /// The limit in bytes.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.stated.unwrap_or_else(|| {
            let archive_bytes = self.archive_bytes.load(Ordering::Relaxed);
            let of_archive = archive_bytes.saturating_mul(CONTENT_PER_ARCHIVE_BYTE);
            of_archive.max(CONTENT_BYTES_MAX)
        })
    }

    /// Checks that this many bytes may be delivered.
    ///
    /// # Errors
    /// `Limit`.
    pub(crate) fn check(&self, content_bytes: u64) -> Result<()> {
        let bytes_max = self.bytes_max();
        if content_bytes <= bytes_max {
            return Ok(());
        }
        Err(Error::limit(format!(
            "{content_bytes} bytes of content or more are to be read, the content limit is {bytes_max}: \
             raise the content limit"
        )))
    }
}

/// Counts what one verb delivers.
#[derive(Debug)]
pub(crate) struct ContentMeter {
    limit: ContentLimit,
    content_bytes: AtomicU64,
}

impl ContentMeter {
    pub(crate) fn new(limit: ContentLimit) -> ContentMeter {
        ContentMeter {
            limit,
            content_bytes: AtomicU64::new(0),
        }
    }

    /// Checks that this many more bytes may be delivered.
    ///
    /// # Errors
    /// `Limit`.
    pub(crate) fn check(&self, content_bytes: u64) -> Result<()> {
        let before = self.content_bytes.load(Ordering::Relaxed);
        self.limit.check(before.saturating_add(content_bytes))
    }

    /// Counts bytes about to be delivered.
    ///
    /// # Errors
    /// `Limit`.
    pub(crate) fn add(&self, content_bytes: u64) -> Result<()> {
        let before = self
            .content_bytes
            .fetch_add(content_bytes, Ordering::Relaxed);
        self.limit.check(before.saturating_add(content_bytes))
    }
}

/// A stream whose bytes are counted.
struct CountedStream {
    stream: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
}

impl Read for CountedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn the_default_limit_rises_with_the_archive() {
        let options = ReadOptions::default();
        let limit = ContentLimit::new(&options, 100);
        assert_eq!(limit.bytes_max(), 16 << 40);
        let limit = ContentLimit::new(&options, 8 << 30);
        assert_eq!(limit.bytes_max(), 32 << 40);
        let limit = ContentLimit::new(&options, u64::MAX);
        assert_eq!(limit.bytes_max(), u64::MAX);
        let (mut stream, limit) = ContentLimit::for_stream(Box::new(io::repeat(1)), &options);
        limit.archive_bytes.store(1 << 33, Ordering::Relaxed);
        assert_eq!(stream.read(&mut [0; 10]).unwrap(), 10);
        assert_eq!(limit.bytes_max(), (32 << 40) + 10 * 4096);
    }

    #[test]
    fn a_stated_limit_counts_alone_and_its_error_names_both_numbers() {
        let options = ReadOptions {
            content_bytes_max: Some(1000),
            ..ReadOptions::default()
        };
        let meter = ContentMeter::new(ContentLimit::new(&options, 1 << 40));
        meter.add(600).unwrap();
        meter.check(400).unwrap();
        assert_eq!(meter.check(401).unwrap_err().kind, ErrorKind::Limit);
        meter.add(400).unwrap();
        let error = meter.add(7).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Limit);
        let text = error.to_string();
        assert!(
            text.contains("1007 bytes") && text.contains("is 1000"),
            "{text}"
        );
        assert_eq!(meter.check(u64::MAX).unwrap_err().kind, ErrorKind::Limit);
    }
}
