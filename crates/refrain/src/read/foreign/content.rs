//! The decoded content of a file of another format, counted and limited.

use std::io::{self, Read};
use std::sync::Arc;

use refrain_entries::RECORD_BYTES;
use refrain_entries::tar::looks_like_tar;
use refrain_foreign::{Decoder, Error as ForeignError, Format, Resources, decoder};
use refrain_storage::Source;

use refrain_filesystem::Problem;

use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::{Watch, is_cancelled};
use crate::read::content_limit::{ContentLimit, ContentMeter};
use crate::store::frames::ArchiveFeed;
use crate::store::source_stream::SourceStream;

/// A file that can be read again from its beginning.
pub(crate) struct Again<'a> {
    pub source: Arc<dyn Source>,
    pub format: Format,
    pub options: &'a ReadOptions,
}

impl Again<'_> {
    /// The file as a stream.
    pub(crate) fn stream(&self) -> Box<dyn Read + Send> {
        Box::new(SourceStream::new(self.source.clone(), 0))
    }

    /// The content from its beginning.
    pub(crate) fn open(&self) -> Result<Content> {
        let feed = ArchiveFeed::Source(self.source.clone());
        Content::open(feed, self.format, self.options)
    }
}

/// Converts a decoder's error to an error of this crate.
pub(crate) fn engine_error(error: ForeignError) -> Error {
    let kind = match error {
        ForeignError::Io(error) => return Error::from(error),
        ForeignError::Damaged { .. } | ForeignError::Truncated { .. } => ErrorKind::Damaged,
        ForeignError::Memory { .. } => ErrorKind::Limit,
        _ => ErrorKind::Unsupported,
    };
    match error.offset() {
        Some(offset) => Error::new(kind, error).at_offset(offset),
        None => Error::new(kind, error),
    }
}

/// How much is read at once to verify what was read before.
const CHECKED_BYTES: usize = 256 << 10;

/// The error of content past the requested range, covered by the same checksum.
fn unproven(error: Error) -> Error {
    let text = format!(
        "{}; what was written before may be wrong: its checksum could not be compared",
        error.cause
    );
    Error {
        cause: text.into(),
        ..error
    }
}

/// The content, read from front to back.
pub(crate) struct Content {
    decoder: Box<dyn Decoder>,
    meter: ContentMeter,
    content_bytes: u64,
    /// The beginning of the content, examined but not read yet.
    first: Vec<u8>,
}

impl Content {
    /// # Errors
    /// `Unsupported` for a format that contains files, `Io`.
    pub(crate) fn open(
        feed: ArchiveFeed,
        format: Format,
        options: &ReadOptions,
    ) -> Result<Content> {
        let (stream, limit): (Box<dyn Read + Send>, _) = match feed {
            ArchiveFeed::Source(source) => {
                let limit = ContentLimit::new(options, source.size_bytes()?);
                (Box::new(SourceStream::new(source, 0)), limit)
            }
            ArchiveFeed::Stream(stream) => ContentLimit::for_stream(stream, options),
        };
        let resources = Resources {
            memory_bytes: options.memory_bytes,
            threads: options.threads,
        };
        Ok(Content {
            decoder: decoder(format, stream, resources).map_err(engine_error)?,
            meter: ContentMeter::new(limit),
            content_bytes: 0,
            first: Vec::new(),
        })
    }

    /// Whether the content starts like a tar stream.
    pub(crate) fn is_tar(&mut self) -> Result<bool> {
        let mut first = vec![0; RECORD_BYTES];
        let count = self.read_full(&mut first)?;
        first.truncate(count);
        self.content_bytes -= count as u64;
        let is_tar = looks_like_tar(&first);
        self.first = first;
        Ok(is_tar)
    }

    /// The number of bytes read so far.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Continues reading until everything read so far was compared with the checksums that cover
    /// it.
    ///
    /// # Errors
    /// From the content: what was read is wrong, or not known to be right.
    pub(crate) fn check_read(&mut self, watch: &dyn Watch) -> Result<()> {
        let end = self.content_bytes;
        let end = end.saturating_add(self.decoder.check_distance_bytes());
        let mut buffer = vec![0; CHECKED_BYTES];
        while !self.decoder.is_checked() && self.content_bytes < end {
            if self.read(&mut buffer).map_err(unproven)? == 0 {
                break;
            }
            if is_cancelled(watch) {
                return Err(Error::cancelled());
            }
        }
        Ok(())
    }

    /// The bytes of the file decoded so far.
    pub(crate) fn archive_bytes(&self) -> u64 {
        self.decoder.offset()
    }

    /// Reports after the end what was ignored in the file.
    pub(crate) fn report_ignored(&mut self, watch: &dyn Watch) {
        if let Some(ignored) = self.decoder.take_ignored() {
            watch.problem(0, &Problem::damaged(b"", ignored));
        }
    }

    /// The next content; 0 bytes only at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if !self.first.is_empty() {
            let count = self.first.len().min(buffer.len());
            buffer[..count].copy_from_slice(&self.first[..count]);
            self.first.drain(..count);
            self.content_bytes += count as u64;
            return Ok(count);
        }
        let count = self.decoder.read(buffer).map_err(engine_error)?;
        self.meter.add(count as u64)?;
        self.content_bytes = self.content_bytes.saturating_add(count as u64);
        Ok(count)
    }

    /// Fills `buffer`; fewer bytes only at the end.
    pub(crate) fn read_full(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read(&mut buffer[done..])? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }
}

/// The content as a reader, whose errors contain one of this crate. Anything after the compressed
/// data is an error: a reader cannot report otherwise that it was ignored.
pub(crate) struct ContentReader(pub Content);

impl Read for ContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let kind = |error: &Error| match error.kind {
            ErrorKind::Damaged => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        let read = self.0.read(buffer).and_then(|count| {
            let ignored = if count == 0 && !buffer.is_empty() {
                self.0.decoder.take_ignored()
            } else {
                None
            };
            match ignored {
                Some(ignored) => Err(Error::damaged(ignored)),
                None => Ok(count),
            }
        });
        read.map_err(|error| io::Error::new(kind(&error), error))
    }
}
