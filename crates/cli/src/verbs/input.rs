//! Opens archives.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refrain::storage::{CachedRanges, NamedRange, Source};
use refrain::{Archive, Dialect, ErrorKind, Input, Progress, ReadOptions, archive_identity};
use refrain_cache::{TieredSource, Tiers};
use refrain_pool::Cancellation;
use refrain_server::SourceWaits;

use super::recognize::{self, PREFIX_BYTES};
use crate::args::OpeningArgs;
use crate::failure::{Failure, Result};
use crate::files;
use crate::plan::{ArchiveInput, SeekableInput, check_password, check_scan};
use crate::report::{Meter, ProgressLine, Report, Total, place_lines};
use crate::session::Session;
use crate::units::bytes_text;

/// The bytes of an input, opened once: what a URL leads to must not change between two steps.
fn source_of(input: &SeekableInput, cancellation: &Cancellation) -> Result<Arc<dyn Source>> {
    if let Some(source) = input.opened.get() {
        return Ok(Arc::clone(source));
    }
    let temporary = input.temporary.as_deref();
    let source = files::file_or_url(&input.open_path, temporary, cancellation)?;
    if input.password_option.is_some() {
        check_encrypted(&input.label, input.password_option, &first_bytes(&*source)?)?;
    }
    Ok(Arc::clone(input.opened.get_or_init(|| source)))
}

/// A source behind caches, if it is an archive that they can tell from others.
///
/// # Errors
/// From reading its end.
pub fn behind_tiers(
    source: Arc<dyn Source>,
    tiers: Option<&Arc<Tiers>>,
) -> refrain::Result<Arc<dyn Source>> {
    let Some(tiers) = tiers else { return Ok(source) };
    Ok(match archive_identity(&*source)? {
        Some(identity) => Arc::new(TieredSource::new(source, identity, Arc::clone(tiers))),
        None => source,
    })
}

/// Opens an archive to read all of it. Returns its content and its first [`PREFIX_BYTES`] bytes.
pub fn open_content(input: &ArchiveInput, session: &Session) -> Result<(Input, Vec<u8>)> {
    if input.is_stream() {
        let stream = files::stream(&input.path, session)?;
        let (first, stream) = files::peek(&input.path, stream, PREFIX_BYTES)?;
        check_encrypted(&input.label, input.password_option, &first)?;
        return Ok((Input::Stream(stream), first));
    }
    let temporary = input.temporary.as_deref();
    let source: Arc<dyn Source> = if input.is_remote() || input.is_in_volumes {
        files::file_or_url(&input.open_path, temporary, session.cancellation())?
    } else {
        files::passing_source(&input.open_path)?
    };
    let first = first_bytes(&*source)?;
    check_encrypted(&input.label, input.password_option, &first)?;
    Ok((Input::Source(source), first))
}

/// Refuses a password for an archive that is not encrypted.
fn check_encrypted(label: &str, option: Option<&'static str>, first: &[u8]) -> Result<()> {
    check_password(label, option, Dialect::may_be_encrypted(first))
}

/// The base of the percentage while a whole archive is read, from front to end: the size of its
/// content is unknown until then, except that the headers of lrzip archives state it.
pub fn read_total(dialect: Option<Dialect>, input: &Input) -> Total {
    match input {
        Input::Source(source) if dialect != Some(Dialect::Lrzip) => source
            .size_bytes()
            .map_or(Total::Reported, Total::ArchiveBytes),
        _ => Total::Reported,
    }
}

/// Opens an archive to describe it.
pub fn open_archive(
    input: &SeekableInput,
    opening: &OpeningArgs,
    options: &ReadOptions,
    meter: &Meter,
    session: &Session,
) -> Result<Archive> {
    let how = if opening.scan { Opening::Scan } else { Opening::Index };
    open_until(input, how, options, meter, session.cancellation())
}

/// Opens an archive to read parts of it, even if its index is damaged.
pub fn open_to_read(
    input: &SeekableInput,
    opening: &OpeningArgs,
    options: &ReadOptions,
    meter: &Meter,
    session: &Session,
) -> Result<Archive> {
    let how = if opening.scan { Opening::Scan } else { Opening::Any };
    open_until(input, how, options, meter, session.cancellation())
}

/// Opens an archive that is read until all clients have their replies, even after a signal, and
/// even if its index is damaged. Reports once what is damaged or missing.
pub fn open_for_service(
    input: &SeekableInput,
    opening: &OpeningArgs,
    options: &ReadOptions,
    meter: &Meter,
    report: &Report,
) -> Result<Archive> {
    let how = if opening.scan { Opening::Scan } else { Opening::Checked };
    let archive = open_until(input, how, options, meter, &Cancellation::new())?;
    for line in place_lines(&input.label, &archive.damaged_places()) {
        report.remark(&line);
    }
    Ok(archive)
}

/// How an archive is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Index,
    /// By its index, or by a scan if its beginning or end is damaged.
    Any,
    /// As above, and also if any part of its index is damaged.
    Checked,
    Scan,
}

impl Opening {
    fn open(self, source: Arc<dyn Source>, options: &ReadOptions) -> refrain::Result<Archive> {
        match self {
            Opening::Index => Archive::open(source, options),
            Opening::Scan => Archive::open_by_scan(source, options),
            Opening::Checked => Archive::open_or_scan(source, options),
            Opening::Any => match Archive::open(source.clone(), options) {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    Archive::open_by_scan(source, options).map_err(|_| error)
                }
                opened => opened,
            },
        }
    }
}

/// The error of opening an archive by its index, with a remedy.
fn with_remedy(mut error: refrain::Error, is_by_index: bool) -> refrain::Error {
    if error.kind == ErrorKind::Damaged && is_by_index {
        let text = match error.cut_off_at() {
            Some(at) => {
                error.location.archive_offset = None;
                format!("archive is cut off at {}", bytes_text(at))
            }
            None => error.cause.to_string(),
        };
        error.cause = format!("{text}; --scan reads what is left").into();
    }
    error
}

/// Opens an archive whose reads fail once `cancellation` is cancelled.
fn open_until(
    input: &SeekableInput,
    how: Opening,
    options: &ReadOptions,
    meter: &Meter,
    cancellation: &Cancellation,
) -> Result<Archive> {
    let source = source_of(input, cancellation)?;
    let first = first_bytes(&*source)?;
    let dialect = match how {
        Opening::Scan => scannable(&input.label, &first)?,
        Opening::Checked => recognize::check(&input.label, &first)?,
        Opening::Index | Opening::Any => recognize::dialect(&input.label, &first)?,
    };
    let is_by_index = how == Opening::Index && dialect == Some(Dialect::Native);
    let is_scan = how == Opening::Scan;
    let bytes_total = is_scan.then(|| source.size_bytes().ok()).flatten();
    let is_opening = Arc::new(AtomicBool::new(true));
    let tiers = input.tiers.as_ref().filter(|_| !is_scan);
    let source =
        behind_tiers(source, tiers).map_err(|error| Failure::engine(&input.label, error))?;
    let watched: Arc<dyn Source> = Arc::new(WatchedSource {
        inner: source,
        is_opening: Arc::clone(&is_opening),
        line: meter.line(),
        bytes_total,
        bytes_done: AtomicU64::new(0),
        waits: Arc::clone(&input.waits),
        cancellation: cancellation.clone(),
    });
    let archive = how
        .open(watched, options)
        .map_err(|error| Failure::engine(&input.label, with_remedy(error, is_by_index)))?;
    is_opening.store(false, Ordering::Relaxed);
    meter.erase();
    Ok(archive)
}

/// The dialect of an input that is scanned for frames: Refrain's own, or one that is not
/// recognized.
fn scannable(label: &str, first: &[u8]) -> Result<Option<Dialect>> {
    match Dialect::from_prefix(first) {
        Some(Dialect::Lrzip) => check_scan(label, "lrzip")?,
        Some(Dialect::Foreign(format)) => check_scan(label, format.name())?,
        _ => {}
    }
    Ok(Dialect::from_prefix(first))
}

/// The first [`PREFIX_BYTES`] bytes, or all of a shorter input.
pub fn first_bytes(source: &dyn Source) -> Result<Vec<u8>> {
    let mut first = vec![0; PREFIX_BYTES];
    let count = source.read_at(0, &mut first).map_err(Failure::Storage)?;
    first.truncate(count);
    Ok(first)
}

/// Shows the bytes read while an archive is opened, and aborts the opening when the run is
/// cancelled.
struct WatchedSource {
    inner: Arc<dyn Source>,
    /// Later reads show nothing: the verb reports their progress.
    is_opening: Arc<AtomicBool>,
    line: Arc<ProgressLine>,
    bytes_total: Option<u64>,
    bytes_done: AtomicU64,
    waits: Arc<SourceWaits>,
    cancellation: Cancellation,
}

impl WatchedSource {
    /// Runs a read and notes how long it takes.
    fn read(&self, read: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
        if self.cancellation.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.waits.during(read)
    }
}

impl CachedRanges for WatchedSource {
    fn read_cached(
        &self,
        offset: u64,
        buffer: &mut [u8],
        named: Option<&dyn NamedRange>,
    ) -> io::Result<usize> {
        self.read(|| match self.inner.cache() {
            Some(cache) => cache.read_cached(offset, buffer, named),
            None => self.inner.read_at(offset, buffer),
        })
    }

    fn read_anew(
        &self,
        offset: u64,
        buffer: &mut [u8],
        named: Option<&dyn NamedRange>,
    ) -> io::Result<bool> {
        let cache = self.inner.cache();
        cache.map_or(Ok(false), |cache| cache.read_anew(offset, buffer, named))
    }
}

impl Source for WatchedSource {
    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read(|| self.inner.read_at(offset, buffer))?;
        if !self.is_opening.load(Ordering::Relaxed) {
            return Ok(count);
        }
        let before = self.bytes_done.fetch_add(count as u64, Ordering::Relaxed);
        self.line.update(&Progress {
            content_bytes_done: before.saturating_add(count as u64),
            content_bytes_total: self.bytes_total,
            archive_bytes: 0,
        });
        Ok(count)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        self.inner.next_data(offset)
    }
    fn cache(&self) -> Option<&dyn CachedRanges> {
        self.inner.cache().map(|_| self as &dyn CachedRanges)
    }
}
