//! The verbs extract and verify: every byte of an archive is read and checked.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use refrain_format::{MemberEnd, MemberKind as FormatKind, MemberStart as FormatStart};
use refrain_protect::{ContentHash, DigestHasher};
use refrain_storage::{Sink, Source, in_zero_pieces};
use refrain_tree::restore::TreeRestore;
use refrain_tree::{Problem, Selection};

use crate::archive::Archive;
use crate::archive_info::{Member, MemberKind, MemberStart, member, member_start};
use crate::dialect::{Dialect, reader_of_feed};
use crate::digests::hashers;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::content_limit::{ContentLimit, ContentMeter};
use crate::read::content_visitor::{ContentVisitor, EntriesPayload, WalkTotals};
use crate::read::native::frame_check::check_frames;
use crate::read::tree::restore::{RestorePlan, restore_entries};
use crate::read::tree::spill::SpilledContent;
use crate::read::tree::view::{ViewOutput, write_view};
use crate::store::frames::{ArchiveFeed, limits_for};

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

/// Where a member goes.
pub enum Target {
    /// Nowhere: its bytes are checked and not written.
    Nowhere,
    /// Nowhere, and its bytes are not read where that can be avoided.
    Skipped,
    /// Its bytes go to a sink; those of a directory are its tar stream.
    Sink(Box<dyn Sink>),
    /// A directory or tar member is restored as files. The engine writes the files; the caller gets
    /// the target back and finishes it.
    Tree(Box<TreeTarget>),
}

impl Target {
    /// The sink, if it is one.
    pub fn into_sink(self) -> Option<Box<dyn Sink>> {
        match self {
            Target::Sink(sink) => Some(sink),
            Target::Nowhere | Target::Skipped | Target::Tree(_) => None,
        }
    }
}

/// Where a directory or tar member is restored.
pub struct TreeTarget {
    /// The directory.
    pub restore: TreeRestore,
    /// What is restored; `None`: everything.
    pub selection: Option<Selection>,
}

/// Receives the members of an extraction, one after the other in the archive's order.
pub trait Targets {
    /// Returns the target of a member.
    ///
    /// # Errors
    /// Any error ends the extraction.
    fn open(&mut self, member: &MemberStart) -> Result<Target>;

    /// All bytes of the member were written and its hash is correct: publish it.
    ///
    /// # Errors
    /// Any error ends the extraction.
    fn close(&mut self, member: &Member, target: Target) -> Result<()>;

    /// A sink for the content of a directory that comes from a non-seekable stream. Its names are
    /// known only after its content, so the content is written there first and read back. The sink
    /// must support [`Sink::read_back`]; it is dropped without being published.
    ///
    /// # Errors
    /// Any error ends the extraction. Without an implementation, directories are not extracted from
    /// streams.
    fn spill(&mut self) -> Result<Box<dyn Sink>> {
        let message = "a directory in an archive from a pipe needs room for temporary content";
        Err(Error::new(ErrorKind::Usage, message))
    }
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
    if Dialect::of(&*source)? == Dialect::Native {
        match Archive::open(source.clone(), options) {
            Ok(archive) if matches!(has_trees(&archive), Ok(true)) => {
                archive.use_memory_for_blocks();
                return extract_members(&archive, &source, targets, options, watch);
            }
            // Damage is found again by what follows, with its location.
            Err(error) if error.kind == ErrorKind::Io => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    extract_feed(ArchiveFeed::Source(source), targets, options, watch)
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
    extract_feed(ArchiveFeed::Stream(stream), targets, options, watch)
}

/// Extracts an archive from front to back.
fn extract_feed(
    feed: ArchiveFeed,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let (feed, limit) = limited(feed, options)?;
    let mut extraction = Extraction {
        targets,
        options,
        watch,
        of_trees: ContentMeter::new(limit.clone()),
        target: Target::Nowhere,
        spill: None,
    };
    run((feed, limit), &mut extraction, options, watch)
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
    let feed = limited(ArchiveFeed::Source(source), options)?;
    run(feed, &mut Verification, options, watch)
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
    let feed = limited(ArchiveFeed::Stream(stream), options)?;
    run(feed, &mut Verification, options, watch)
}

/// An archive and the limit of its content.
fn limited(feed: ArchiveFeed, options: &ReadOptions) -> Result<(ArchiveFeed, ContentLimit)> {
    Ok(match feed {
        ArchiveFeed::Source(source) => {
            let limit = ContentLimit::new(options, source.size_bytes()?);
            (ArchiveFeed::Source(source), limit)
        }
        ArchiveFeed::Stream(stream) => {
            let (stream, limit) = ContentLimit::of_stream(stream, options);
            (ArchiveFeed::Stream(stream), limit)
        }
    })
}

/// Reads an archive from front to back.
fn run(
    (feed, limit): (ArchiveFeed, ContentLimit),
    visitor: &mut dyn ContentVisitor,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let (reader, feed) = reader_of_feed(feed)?;
    Ok((reader.walk)(feed, options, &limit, visitor, watch)?.into())
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
    fn end(&mut self, _: &FormatStart, _: &MemberEnd, _: Vec<EntriesPayload>) -> Result<()> {
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

/// Whether any member has entries.
fn has_trees(archive: &Archive) -> Result<bool> {
    let mut found = false;
    archive.for_each_member(&mut |_, member| {
        found |= matches!(member.kind, MemberKind::Tree | MemberKind::Tar);
        Ok(())
    })?;
    Ok(found)
}

/// Extracts an archive with directories: member by member, each in the order that suits it.
fn extract_members(
    archive: &Archive,
    source: &Arc<dyn Source>,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let mut entries = 0;
    let limits = limits_for(options.memory_bytes);
    let meter = ContentMeter::new(ContentLimit::new(options, source.size_bytes()?));
    let mut is_verified = false;
    let mut is_checked = false;
    let mut content_bytes = 0_u64;
    for number in 0..archive.member_count() {
        let member = archive.member(number)?;
        content_bytes = content_bytes.saturating_add(member.content_bytes);
        let mut target = targets.open(&start_of(&member, number))?;
        entries += member.entries;
        let is_compared = extract_member(archive, (number, &member), &mut target, &meter, watch)
            .map_err(|error| in_member(error, &member))?;
        if !is_compared && !is_verified {
            // The view of a directory has not the order of its content.
            verify(source.clone(), options, watch)?;
            is_verified = true;
        }
        if !matches!(target, Target::Skipped) && !is_verified && !is_checked {
            check_frames(source.clone(), &limits)?;
            is_checked = true;
        }
        targets.close(&member, target)?;
    }
    Ok(ExtractSummary {
        content_bytes,
        archive_bytes: source.size_bytes()?,
        members: archive.member_count(),
        entries,
    })
}

/// Extracts one member. Returns whether its content was compared with its hash, as far as it was
/// asked for.
fn extract_member(
    archive: &Archive,
    (number, member): (usize, &Member),
    target: &mut Target,
    meter: &ContentMeter,
    watch: &dyn Watch,
) -> Result<bool> {
    Ok(match target {
        Target::Tree(tree) => {
            let selection = tree.selection.as_ref();
            let target = (&tree.restore, selection);
            let is_compared = archive.restore_counted(number, target, meter, watch)?;
            is_compared || selection.is_some()
        }
        Target::Sink(sink) => {
            let mut checked = CheckedSink::new(member, Some(sink.as_mut()));
            let is_compared = archive.write_counted(number, &mut checked, meter, watch)?;
            checked.check()? || is_compared
        }
        Target::Nowhere => {
            let mut checked = CheckedSink::new(member, None);
            let is_compared = archive.write_counted(number, &mut checked, meter, watch)?;
            checked.check()? || is_compared
        }
        Target::Skipped => true,
    })
}

/// Names the member in an error about its content.
fn in_member(error: Error, member: &Member) -> Error {
    match error.kind {
        ErrorKind::Damaged => error.in_file(String::from_utf8_lossy(&member.name).into_owned()),
        _ => error,
    }
}

/// What is known of a member when it begins.
fn start_of(member: &Member, index: usize) -> MemberStart {
    MemberStart {
        index,
        name: member.name.clone(),
        kind: member.kind,
        mode: member.mode,
        modified: member.modified,
        content_bytes: Some(member.content_bytes),
    }
}

/// A sink that compares what is written with the hash and the digests of a member.
struct CheckedSink<'a> {
    inner: Option<&'a mut dyn Sink>,
    member: &'a Member,
    /// `None` for a directory: what is written is not its content.
    hash: Option<ContentHash>,
    hashers: Vec<DigestHasher>,
}

impl<'a> CheckedSink<'a> {
    fn new(member: &'a Member, inner: Option<&'a mut dyn Sink>) -> CheckedSink<'a> {
        let is_content = matches!(member.kind, MemberKind::File | MemberKind::Stream);
        let algorithms = member.digests.iter().map(|(algorithm, _)| *algorithm);
        CheckedSink {
            inner,
            member,
            hash: is_content.then(ContentHash::new),
            hashers: match member.kind {
                MemberKind::Tree => Vec::new(),
                _ => hashers(&algorithms.collect::<Vec<_>>()),
            },
        }
    }

    /// Returns whether the content was compared.
    fn check(self) -> Result<bool> {
        let is_content = self.hash.is_some();
        let name = || String::from_utf8_lossy(&self.member.name).into_owned();
        if self
            .hash
            .is_some_and(|hash| hash.value() != self.member.blake3)
        {
            let message = "the content does not match its BLAKE3 hash";
            return Err(Error::damaged(message).in_file(name()));
        }
        let made: Vec<_> = (self.hashers.into_iter())
            .map(|hasher| (hasher.algorithm(), hasher.finish()))
            .collect();
        for (algorithm, value) in &self.member.digests {
            if made
                .iter()
                .any(|(other, made)| other == algorithm && made != value)
            {
                let algorithm = algorithm.name();
                let message = format!("the content does not match its {algorithm} digest");
                return Err(Error::damaged(message).in_file(name()));
            }
        }
        Ok(is_content)
    }
}

impl Sink for CheckedSink<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        self.hashers
            .iter_mut()
            .for_each(|hasher| hasher.update(bytes));
        match &mut self.inner {
            Some(inner) => inner.write_all(bytes),
            None => Ok(()),
        }
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        in_zero_pieces(length_bytes, |zeros| self.write_all(zeros))
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An extraction from front to back.
struct Extraction<'a> {
    targets: &'a mut dyn Targets,
    options: &'a ReadOptions,
    watch: &'a dyn Watch,
    /// Counts what is delivered of directories, in addition to the content that is spilled first.
    of_trees: ContentMeter,
    target: Target,
    /// Holds the content of a directory until its entries are known.
    spill: Option<Box<dyn Sink>>,
}

impl Extraction<'_> {
    /// The sink of the content, if it is written.
    fn sink(&mut self) -> Option<&mut dyn Sink> {
        match (&mut self.spill, &mut self.target) {
            (Some(spill), _) => Some(spill.as_mut()),
            (None, Target::Sink(sink)) => Some(sink.as_mut()),
            (None, _) => None,
        }
    }

    /// Passes a directory, whose content and entries are complete, to its target.
    fn deliver_tree(
        &mut self,
        spill: Box<dyn Sink>,
        start: &FormatStart,
        end: &MemberEnd,
        entries: Vec<EntriesPayload>,
    ) -> Result<()> {
        let content = SpilledContent::new(&*spill, start, end, entries, self.options)?;
        // The progress is that of the archive.
        let watch = &CancelOnly(self.watch);
        match &mut self.target {
            Target::Tree(tree) => {
                let plan = RestorePlan {
                    content: &content,
                    target: &tree.restore,
                    selection: tree.selection.as_ref(),
                    threads: self.options.threads.max(1),
                    memory_bytes: self.options.memory_bytes,
                    // The hash was compared when the content was spilled.
                    blake3: None,
                    meter: &self.of_trees,
                };
                restore_entries(&plan, watch)?;
                Ok(())
            }
            Target::Sink(sink) => {
                let output = ViewOutput {
                    sink: sink.as_mut(),
                    threads: self.options.threads.max(1),
                    total_bytes: end.view_bytes,
                    blake3: &end.blake3,
                    meter: &self.of_trees,
                };
                write_view(&content, output, watch)?;
                Ok(())
            }
            Target::Nowhere | Target::Skipped => Ok(()),
        }
    }
}

/// Passes on problems and the request to stop, and no progress.
struct CancelOnly<'a>(&'a dyn Watch);

impl Watch for CancelOnly<'_> {
    fn problem(&self, member: usize, problem: &Problem) {
        self.0.problem(member, problem);
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        self.0.cancel_flag()
    }
}

impl ContentVisitor for Extraction<'_> {
    fn start(&mut self, start: &FormatStart) -> Result<Option<Arc<dyn Source>>> {
        let opened = member_start(start);
        self.target = self.targets.open(&opened)?;
        let is_tree = matches!(start.kind, FormatKind::Tree | FormatKind::Tar);
        self.spill = match self.target {
            Target::Nowhere | Target::Skipped => None,
            _ if is_tree => Some(self.targets.spill()?),
            _ => None,
        };
        Ok(match &self.target {
            Target::Sink(sink) if self.spill.is_none() => sink.read_back(),
            _ => None,
        })
    }

    fn content(&mut self, bytes: &[u8]) -> Result<()> {
        match self.sink() {
            Some(sink) => sink.write_all(bytes).map_err(sink_error),
            None => Ok(()),
        }
    }

    fn zeros(&mut self, length_bytes: u64) -> Result<()> {
        match self.sink() {
            Some(sink) => sink.write_zeros(length_bytes).map_err(sink_error),
            None => Ok(()),
        }
    }

    fn end(
        &mut self,
        start: &FormatStart,
        end: &MemberEnd,
        entries: Vec<EntriesPayload>,
    ) -> Result<()> {
        if let Some(spill) = self.spill.take() {
            self.deliver_tree(spill, start, end, entries)?;
        }
        let target = std::mem::replace(&mut self.target, Target::Nowhere);
        self.targets.close(&member(start, end), target)
    }
}
