//! The verbs extract and verify: every byte of an archive is read and checked.

use std::io::{self, Read};
use std::sync::Arc;

use refrain_format::{MemberEnd, MemberStart as FormatStart};
use refrain_storage::{Sink, Source};

use crate::archive_info::{Member, MemberStart, member, member_start};
use crate::dialect::reader_of_feed;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::content_visitor::{ContentVisitor, WalkTotals};
use crate::store::frames::ArchiveFeed;

/// What was read and checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractSummary {
    /// Bytes of all members' contents.
    pub content_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Number of members. The BLAKE3 hash of each was compared.
    pub members: usize,
    /// Number of entries in the lists of tree members.
    pub entries: u64,
}

/// Receives the members of an extraction, one after the other in the archive's order.
pub trait Targets {
    /// Returns a sink for a member; `None` checks its bytes without writing them.
    ///
    /// # Errors
    /// Any error ends the extraction.
    fn open(&mut self, member: &MemberStart) -> Result<Option<Box<dyn Sink>>>;

    /// All bytes of the member were written and its hash is correct: publish it.
    ///
    /// # Errors
    /// Any error ends the extraction.
    fn close(&mut self, member: &Member, sink: Option<Box<dyn Sink>>) -> Result<()>;
}

/// Extracts all members of an archive that can be read at any offset.
///
/// Every frame is read and checked, and the content hash and further digests of a member are
/// compared before it is published.
///
/// # Errors
/// `Damaged`, `Unsupported` and `Limit` for the archive, with the location; `Io` for reads and
/// writes; any error of `targets`. Members that were closed before remain published; the one that
/// is open is dropped.
pub fn extract(
    source: Arc<dyn Source>,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    run(
        ArchiveFeed::Source(source),
        &mut Extraction {
            targets,
            sink: None,
        },
        options,
        watch,
    )
}

/// Like [`extract`], for an archive from a non-seekable stream. It retains as many of the archive's
/// latest bytes in memory as the archive states (its reach), at most half of the options' memory.
///
/// # Errors
/// As [`extract`]; `Limit` if the reach is larger than what may be retained.
pub fn extract_stream(
    stream: Box<dyn Read + Send>,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    run(
        ArchiveFeed::Stream(stream),
        &mut Extraction {
            targets,
            sink: None,
        },
        options,
        watch,
    )
}

/// Checks every frame, every block and every content hash of an archive without writing anything.
///
/// # Errors
/// As [`extract`].
pub fn verify(
    source: Arc<dyn Source>,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    run(
        ArchiveFeed::Source(source),
        &mut Verification,
        options,
        watch,
    )
}

/// Like [`verify`], for an archive from a non-seekable stream.
///
/// # Errors
/// As [`extract_stream`].
pub fn verify_stream(
    stream: Box<dyn Read + Send>,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    run(
        ArchiveFeed::Stream(stream),
        &mut Verification,
        options,
        watch,
    )
}

fn run(
    feed: ArchiveFeed,
    visitor: &mut dyn ContentVisitor,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let (reader, feed) = reader_of_feed(feed)?;
    Ok((reader.walk)(feed, options, visitor, watch)?.into())
}

impl From<WalkTotals> for ExtractSummary {
    fn from(totals: WalkTotals) -> ExtractSummary {
        ExtractSummary {
            content_bytes: totals.content_bytes,
            archive_bytes: totals.archive_bytes,
            members: totals.members,
            entries: totals.entries,
        }
    }
}

struct Verification;

impl ContentVisitor for Verification {
    fn start(&mut self, _start: &FormatStart) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }
    fn content(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
    fn zeros(&mut self, _length_bytes: u64) -> Result<()> {
        Ok(())
    }
    fn end(&mut self, _start: &FormatStart, _end: &MemberEnd) -> Result<()> {
        Ok(())
    }
}

/// The error of a sink. `InvalidData` means that the sink refuses the content itself, as a
/// directory's sink refuses a path that leaves its root.
fn sink_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData => Error::new(ErrorKind::Damaged, error),
        _ => Error::from(error),
    }
}

struct Extraction<'a> {
    targets: &'a mut dyn Targets,
    sink: Option<Box<dyn Sink>>,
}

impl ContentVisitor for Extraction<'_> {
    fn start(&mut self, start: &FormatStart) -> Result<Option<Arc<dyn Source>>> {
        self.sink = self.targets.open(&member_start(start))?;
        Ok(self.sink.as_ref().and_then(|sink| sink.read_back()))
    }

    fn content(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.sink {
            Some(sink) => sink.write_all(bytes).map_err(sink_error),
            None => Ok(()),
        }
    }

    fn zeros(&mut self, length_bytes: u64) -> Result<()> {
        match &mut self.sink {
            Some(sink) => sink.write_zeros(length_bytes).map_err(sink_error),
            None => Ok(()),
        }
    }

    fn end(&mut self, start: &FormatStart, end: &MemberEnd) -> Result<()> {
        self.targets.close(&member(start, end), self.sink.take())
    }
}
