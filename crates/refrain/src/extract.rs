//! Extract and verify: every byte of an archive, checked.

use std::io::Read;
use std::sync::Arc;

use refrain_format::{MemberEnd, MemberStart as FormatStart};
use refrain_storage::{Sink, Source};

use crate::archive_info::{Member, MemberStart, member, member_start};
use crate::dialect::reader_of_feed;
use crate::error::Result;
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::content_visitor::{ContentVisitor, WalkTotals};
use crate::store::frames::ArchiveFeed;

/// What a walk over an archive checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractSummary {
    /// Bytes of all members' contents.
    pub content_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Number of members; the BLAKE3 hash of each was compared.
    pub members: usize,
    /// Number of entries in the lists of tree members.
    pub entries: u64,
}

/// Where an extraction puts members. Called in the archive's order, one member after the other.
pub trait Targets {
    /// A sink for a member; `None` checks its bytes and puts them nowhere.
    ///
    /// # Errors
    /// Whatever keeps the member from being written; the extraction ends with it.
    fn open(&mut self, member: &MemberStart) -> Result<Option<Box<dyn Sink>>>;

    /// All bytes of the member were written and its hash is right: publish it.
    ///
    /// # Errors
    /// Whatever keeps the member from being published; the extraction ends with it.
    fn close(&mut self, member: &Member, sink: Option<Box<dyn Sink>>) -> Result<()>;
}

/// Extracts all members of an archive that can be read at any offset.
///
/// Every frame is read and checked, every content hash and further digest compared, before a member is published.
///
/// # Errors
/// `Damaged`, `Unsupported` and `Limit` for the archive, with the place; `Io` for reads and writes; what `targets` returns.
/// Members that were closed before stay published, the one that was open is dropped.
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

/// As [`extract`], for an archive that comes through a pipe. It keeps as many of the archive's latest bytes in memory as the
/// archive says it needs (its reach), at most half of the options' memory.
///
/// # Errors
/// As [`extract`]; `Limit` if the archive needs more of its past than may be kept.
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

/// Checks every frame, every block and every content hash of an archive, and writes nothing.
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

/// As [`verify`], for an archive that comes through a pipe.
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
            Some(sink) => Ok(sink.write_all(bytes)?),
            None => Ok(()),
        }
    }

    fn zeros(&mut self, length_bytes: u64) -> Result<()> {
        match &mut self.sink {
            Some(sink) => Ok(sink.write_zeros(length_bytes)?),
            None => Ok(()),
        }
    }

    fn end(&mut self, start: &FormatStart, end: &MemberEnd) -> Result<()> {
        self.targets.close(&member(start, end), self.sink.take())
    }
}
