//! The verbs add and forget: a generation behind an archive, and which ones are kept.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use refrain_format::{
    ArchiveAssembler, ArchiveHeader, Catalog, FORMAT_MAJOR, FORMAT_MINOR, GenerationInfo,
    REACH_UNLIMITED,
};
use refrain_protect::SEGMENT_BYTES;
use refrain_storage::{GrowingFile, MemorySource, Sink, Source};

use crate::compress::{CompressSummary, compress_behind};
use crate::earlier_members::{EarlierExtents, earlier_members, predecessor};
use crate::earlier_trees::earlier_tree;
use crate::error::{Error, ErrorKind, Result};
use crate::generation::GenerationLabel;
use crate::options::{CompressOptions, Level, ReadOptions};
use crate::progress::Watch;
use crate::read::native::growth::Growth;
use crate::read::native::index_reading::{FoundArchive, find_archives};
use crate::read::native::indexed::IndexedArchive;
use crate::read::opened_archive::{Layout, Serving};
use crate::store::appendix::own_end;
use crate::store::complete_end::{beginning, complete_part};
use crate::store::envelope::open::read_envelope;
use crate::tuning::Tuning;
use crate::write::input::{Content, MemberInput};
use crate::write::native::continuation::{Continuation, KnownAnchors};
use crate::write::native::generation::{GenerationPlan, frames_to_join};
use crate::write::native::output::Output;
use crate::write::native::references::reference_window;
use crate::write::pipeline::pieces::pieces_max;
use crate::write::pipeline::trails::Predecessor;
use crate::write::tree::unchanged::EarlierTree;

/// Where a generation goes.
pub enum AddTo<'a> {
    /// Behind the end of the archive in a file. Nothing before it changes, and until the last byte
    /// is on the disk, readers see what was there before.
    File(&'a mut GrowingFile),
    /// To a new file, behind a copy of the archive, if there is one: one of a single frame cannot
    /// grow in place ([`is_rewritten`]).
    Copy(Option<Arc<dyn Source>>, &'a mut dyn Sink),
}

/// What was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddSummary {
    /// The number of the generation.
    pub generation: u16,
    /// The sums of the new generation alone; `archive_bytes` are those that were appended.
    pub added: CompressSummary,
    /// The length of the archive, in bytes.
    pub archive_bytes: u64,
}

/// The shares of the memory for reading earlier generations, and for pages of them that are used
/// again.
const READ_SHARE: u64 = 3;
const PAGES_SHARE: u64 = 16;

/// The share for the decoded entries of an earlier tree: those of a large directory are in the
/// order of its content, so that the slices of many frames alternate. (A million files of 100
/// bytes: 11 s with 21 MiB, 3 s with 34.)
const ENTRIES_SHARE: u64 = 30;

/// The share for lists of extents, of which a member needs the part that corresponds to what is
/// read.
const EXTENTS_SHARE: u64 = 64;

/// Whether an archive is so small that it cannot grow in place, but is written again as a whole:
/// it is a single frame.
///
/// # Errors
/// `Damaged`, `Unsupported` if it is no archive of the native format; `Io`.
pub fn is_rewritten(source: &Arc<dyn Source>) -> Result<bool> {
    let found = found_archive(&complete_part(source.clone())?)?;
    Ok(found.is_whole)
}

/// Adds a generation with `members` to an archive. Its extents refer to the store of all earlier
/// ones, at any distance: their blocks are read where something repeats.
///
/// The level is that of the options, or the archive's; blocks are at most as large as the
/// archive's. What remains of an earlier run that was killed is cut off.
///
/// Of a directory whose name a member of the last generation of the same host has, only what
/// changed is read and stored: files whose size, times and inode are the same are taken as
/// unchanged, unless it is [forced](CompressOptions::force_read) to be read. Pieces of
/// other members that have the digest of the same place in the last generation are neither compared
/// nor stored.
///
/// # Errors
/// As [`compress`](crate::compress()); `Unsupported` for archives that are encrypted, signed,
/// protected by recovery data, or several in one file. Then the archive is as before.
pub fn add(
    members: Vec<MemberInput>,
    to: AddTo<'_>,
    level: Option<Level>,
    options: &CompressOptions,
    label: GenerationLabel,
    watch: &dyn Watch,
) -> Result<AddSummary> {
    let label = label.checked()?;
    let mut members = members;
    let memory_bytes = Tuning::new(options)?.memory_bytes;
    let (mut sink, earlier) = begin(to, level, options)?;
    let archive = Arc::new(earlier.open(memory_bytes / READ_SHARE, options.threads)?);
    archive.set_cache_bytes(
        memory_bytes / READ_SHARE / 8 * 6,
        memory_bytes / EXTENTS_SHARE,
    );
    archive.set_entries_bytes(memory_bytes / ENTRIES_SHARE);
    let Growth {
        base,
        edges,
        mut catalog,
    } = archive.growth()?;
    let options = CompressOptions {
        level: level.unwrap_or(archive_level(&base.archive)),
        reach_bytes: Some(REACH_UNLIMITED),
        memory_bytes: Some(memory_bytes),
        ..options.clone()
    };
    let block_bytes = Tuning::new(&options)?.rules.block_bytes;
    let options = CompressOptions {
        block_bytes: Some(block_bytes.min(base.archive.block_bytes_max)),
        ..options
    };
    let store_bytes = base.end.store_bytes;
    let content_bytes = base.end.content_bytes;
    let generations = &catalog.generations;
    let predecessors = Predecessors::of(
        &members,
        (&archive, &*earlier.source),
        generations,
        &label,
        content_bytes,
        &options,
    )?;
    with_stamps(&mut members);
    let places = std::mem::take(&mut catalog.anchors);
    let joined = frames_to_join(&places);
    catalog.anchors = places.clone();
    catalog.anchors.retain(|place| !joined.contains(place));
    let continuation = Continuation {
        plan: GenerationPlan {
            base,
            catalog,
            own: Some(described(label)),
        },
        edges,
        anchors: KnownAnchors {
            archive: earlier.source.clone(),
            places: (store_bytes == 0 || !places.is_empty()).then_some(places),
            joined,
            given_back: archive.store_given_back()?,
        },
        store: (store_bytes > 0).then(|| {
            Arc::new(StoreSource {
                archive: archive.clone(),
                store_bytes,
            }) as Arc<dyn Source>
        }),
        read_bytes: memory_bytes / READ_SHARE,
        trees: predecessors.trees,
        content: Arc::new(EarlierExtents(archive)),
        predecessors: predecessors.contents,
        cache_bytes: memory_bytes / PAGES_SHARE,
    };
    let added = compress_behind(members, sink.sink(), &options, continuation, watch)?;
    Ok(AddSummary {
        generation: base.generation.saturating_add(1),
        archive_bytes: base.end.archive_bytes + added.archive_bytes,
        added,
    })
}

/// Takes generations off the list of those that are kept. A small record is appended; their bytes
/// remain. Numbers that are not kept are ignored.
///
/// Returns those that were forgotten. If there are none, nothing is written.
///
/// # Errors
/// `Usage` if nothing would remain; as [`add`].
pub fn forget(
    file: &mut GrowingFile,
    forgotten: &[u16],
    options: &CompressOptions,
) -> Result<Vec<GenerationInfo>> {
    let source = complete_part(file.source()?)?;
    let earlier = Earlier::of(source)?;
    let archive = earlier.open(Tuning::new(options)?.memory_bytes / READ_SHARE, 1)?;
    let Growth {
        base,
        edges,
        catalog,
    } = archive.growth()?;
    let is_forgotten = |row: &GenerationInfo| forgotten.contains(&row.number);
    let (gone, kept): (Vec<_>, Vec<_>) = catalog.generations.into_iter().partition(is_forgotten);
    if kept.is_empty() {
        let text = "one generation must be kept: to forget all, delete the archive";
        return Err(Error::new(ErrorKind::Usage, text));
    }
    if gone.is_empty() {
        return Ok(gone);
    }
    let plan = GenerationPlan {
        base,
        catalog: Catalog {
            generations: kept,
            ..catalog
        },
        own: None,
    };
    file.append_behind(base.end.archive_bytes)?;
    Output::of_generation(file, plan, &edges)?.publish()?;
    Ok(gone)
}

/// What members correspond to in an earlier generation, by their names.
#[derive(Default)]
struct Predecessors {
    /// Trees to which directories are compared.
    trees: HashMap<Vec<u8>, EarlierTree>,
    /// The others.
    contents: HashMap<Vec<u8>, Predecessor>,
}

impl Predecessors {
    fn of(
        members: &[MemberInput],
        (archive, source): (&Arc<IndexedArchive>, &dyn Source),
        generations: &[GenerationInfo],
        label: &GenerationLabel,
        earlier_bytes: u64,
        options: &CompressOptions,
    ) -> Result<Predecessors> {
        let names = members.iter().map(|member| &member.name[..]).collect();
        let earlier = earlier_members(archive, generations, &label.host, &names)?;
        let mut predecessors = Predecessors::default();
        let mut pieces_left = match options.memory_bytes {
            Some(memory_bytes) if !options.force_read => pieces_max(memory_bytes),
            _ => 0,
        };
        for member in members {
            let Some(row) = earlier.get(&member.name) else {
                continue;
            };
            match &member.content {
                Content::Directory(_) => {
                    if row.start.kind.is_tree() && !options.force_read {
                        let tree = earlier_tree(archive, row, earlier_bytes)?;
                        (predecessors.trees).extend(tree.map(|tree| (member.name.clone(), tree)));
                    }
                }
                _ => {
                    let found = predecessor(source, row, pieces_left)?;
                    pieces_left -= found.pieces.count();
                    predecessors.contents.insert(member.name.clone(), found);
                }
            }
        }
        Ok(predecessors)
    }
}

/// A later generation sees by their stamps that files did not change.
fn with_stamps(members: &mut [MemberInput]) {
    for member in members {
        if let Content::Directory(directory) = &mut member.content {
            directory.walk.stamps = true;
        }
    }
}

/// A generation whose places and sums are not known yet.
fn described(label: GenerationLabel) -> GenerationInfo {
    GenerationInfo {
        number: 0,
        start: 0,
        end: None,
        first_member: 0,
        member_count: 0,
        content_start: 0,
        content_bytes: 0,
        store_bytes: 0,
        created: label.created,
        host: label.host,
        comment: label.comment,
        tags: label.tags,
    }
}

/// The level of an archive; the default if it has another version's.
fn archive_level(archive: &ArchiveHeader) -> Level {
    match archive.level {
        level @ 1..=9 => Level(level),
        _ => Level::default(),
    }
}

/// An archive that is added to.
pub(crate) struct Earlier {
    pub source: Arc<dyn Source>,
    pub found: FoundArchive,
}

impl Earlier {
    /// # Errors
    /// `Unsupported` for archives that cannot be added to.
    pub(crate) fn of(source: Arc<dyn Source>) -> Result<Earlier> {
        let found = found_archive(&source)?;
        Ok(Earlier { source, found })
    }

    pub(crate) fn open(&self, memory_bytes: u64, threads: usize) -> Result<IndexedArchive> {
        let options = ReadOptions {
            threads,
            memory_bytes,
            ..ReadOptions::default()
        };
        IndexedArchive::open(self.source.clone(), &self.found, &options, 1)
    }
}

/// The only archive of a file, without anything appended.
fn found_archive(source: &Arc<dyn Source>) -> Result<FoundArchive> {
    let refused = |text: &str| Err(Error::new(ErrorKind::Unsupported, text.to_owned()));
    if read_envelope(&**source)?.is_some() {
        return refused("encrypted archives cannot be added to in this version");
    }
    let mut found = find_archives(&**source)?;
    let size_bytes = source.size_bytes()?;
    let Some(only) = found.pop().filter(|_| found.is_empty()) else {
        return refused("the file has several archives, one behind the other: join them first");
    };
    let own = own_end(&**source, size_bytes)?;
    if own.is_some_and(|own| own.offset != size_bytes) {
        return refused(
            "a signature or recovery data follows the archive: such archives cannot be added to \
             in this version",
        );
    }
    Ok(only)
}

/// What a generation is written to, behind the archive.
enum AddSink<'a> {
    File(&'a mut GrowingFile),
    Copy(&'a mut dyn Sink),
}

impl AddSink<'_> {
    fn sink(&mut self) -> &mut dyn Sink {
        match self {
            AddSink::File(file) => *file,
            AddSink::Copy(sink) => *sink,
        }
    }
}

/// Opens the archive to be added to, and what is written behind it.
fn begin<'a>(
    to: AddTo<'a>,
    level: Option<Level>,
    options: &CompressOptions,
) -> Result<(AddSink<'a>, Earlier)> {
    match to {
        AddTo::File(file) => {
            let source = complete_part(file.source()?)?;
            let end = source.size_bytes()?;
            let earlier = Earlier::of(beginning(source, end))?;
            if earlier.found.is_whole {
                let text = "an archive of a single frame is written again as a whole";
                return Err(Error::new(ErrorKind::Usage, text));
            }
            file.append_behind(end)?;
            Ok((AddSink::File(file), earlier))
        }
        AddTo::Copy(source, sink) => {
            let bytes = match source {
                None => empty_archive(level.unwrap_or(options.level), options)?,
                Some(source) => {
                    let (ordinary, _) = found_archive(&source)?.expanded(&*source)?;
                    let mut bytes = vec![0; ordinary.size_bytes()? as usize];
                    ordinary.read_at(0, &mut bytes)?;
                    bytes
                }
            };
            sink.write_all(&bytes)?;
            let earlier = Earlier::of(Arc::new(MemorySource::new(bytes)))?;
            Ok((AddSink::Copy(sink), earlier))
        }
    }
}

/// An archive without members, to be continued by a generation.
fn empty_archive(level: Level, options: &CompressOptions) -> Result<Vec<u8>> {
    let options = CompressOptions {
        level,
        ..options.clone()
    };
    let tuning = Tuning::new(&options)?;
    let header = ArchiveHeader {
        version: (FORMAT_MAJOR, FORMAT_MINOR),
        required_features: 0,
        level: tuning.level,
        segment_bytes: SEGMENT_BYTES as u64,
        epoch_bytes: refrain_format::limits::EPOCH_BYTES_MAX,
        block_bytes_max: tuning.rules.block_bytes,
        memory_budget_bytes: tuning.memory_bytes,
        reach_bytes: REACH_UNLIMITED,
        reference_window: reference_window(tuning.memory_bytes),
    };
    let archive_id = refrain_format::archive_id(&header, [].iter(), None)?;
    let (archive, mut bytes) = ArchiveAssembler::new(&header, archive_id)?;
    bytes.extend(archive.finish()?.last_bytes);
    Ok(bytes)
}

/// The store of an archive.
struct StoreSource {
    archive: Arc<IndexedArchive>,
    store_bytes: u64,
}

impl Source for StoreSource {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.store_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.archive.read_store(offset, buffer);
        read.map_err(io::Error::other)
    }
}
