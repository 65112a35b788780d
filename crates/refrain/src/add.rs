//! The verbs add and forget: a generation behind an archive, and which ones are kept.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use refrain_format::{
    ArchiveAssembler, ArchiveHeader, Catalog, FORMAT_MAJOR, FORMAT_MINOR, GenerationInfo,
    REACH_UNLIMITED,
};
use refrain_protect::SEGMENT_BYTES;
use refrain_storage::{GrowingSink, MemorySource, Sink, Source};

use crate::compress::{CompressSummary, compress_behind};
use crate::earlier_decoders::earlier_decoders;
use crate::earlier_members::{EarlierExtents, earlier_members, predecessor};
use crate::earlier_trees::earlier_tree;
use crate::error::{Error, ErrorKind, Result};
use crate::generation::GenerationLabel;
use crate::options::{CompressOptions, Level, ReadOptions};
use crate::progress::{Unwatched, Watch};
use crate::read::native::growth::Growth;
use crate::read::native::index_reading::{FoundArchive, find_archives};
use crate::read::native::indexed::IndexedArchive;
use crate::read::opened_archive::{Layout, Serving};
use crate::recovery::RecoveryOptions;
use crate::recovery::growth::{Covered, growing_share, protect_growth};
use crate::recovery::sink::RecoverySink;
use crate::store::appendix::{appendices_end, own_end};
use crate::store::complete_end::{beginning, complete_part};
use crate::store::ending::protected_end;
use crate::store::envelope::open::{opened_envelope, read_envelope};
use crate::store::envelope::run_ending::{RunOrigin, RunWriter};
use crate::store::envelope::sink::EnvelopeSink;
use crate::store::envelope::source::EnvelopeSource;
use crate::store::envelope::state::StateOwner;
use crate::tuning::Tuning;
use crate::write::input::{Content, MemberInput};
use crate::write::native::continuation::{Continuation, KnownAnchors};
use crate::write::native::generation::{GenerationPlan, frames_to_join};
use crate::write::native::output::Output;
use crate::write::native::references::reference_window;
use crate::write::pipeline::pieces::pieces_max;
use crate::write::pipeline::trails::Predecessor;
use crate::write::tree::unchanged::EarlierTree;
use crate::writer_state::WriterState;

/// Where a generation goes.
pub enum AddTo<'a> {
    /// Behind the end of the archive in a file, or in volumes. Nothing before it changes, and until
    /// the last byte is on the disk, readers see what was there before. The secrets of these
    /// options open an encrypted archive.
    File(&'a mut dyn GrowingSink, &'a ReadOptions),
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
    /// The bytes of recovery data that were appended.
    pub recovery_bytes: u64,
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
/// it is a single frame. An encrypted one always grows: its key must not encrypt another archive.
///
/// # Errors
/// `Damaged`, `Unsupported` if it is no archive of the native format; `Io`.
pub fn is_rewritten(source: &Arc<dyn Source>) -> Result<bool> {
    if read_envelope(&**source)?.is_some() {
        return Ok(false);
    }
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
/// An archive that does not exist is encrypted if the options say for whom, and then only grows
/// encrypted. Of one that exists the secrets are needed, and of these options it counts only
/// whether the size is hidden; it stays so from then on. Signatures stay where they are, and are
/// those of the generation before them.
///
/// What is added to an archive with recovery data gets some as well, behind it and with the share
/// of these options or that of the last: it protects what the earlier does not. With a share, an
/// archive without recovery data gets it for all of its bytes. It is appended when the generation
/// is complete; if that is interrupted, the next run protects both.
///
/// # Errors
/// As [`compress`](crate::compress()); `Usage` if no secret opens the archive, or it is to be
/// encrypted and is not; `Unsupported` for several archives in one file; `Damaged` if its recovery
/// data is. Then the archive is as before.
pub fn add(
    members: Vec<MemberInput>,
    to: AddTo<'_>,
    level: Option<Level>,
    options: &CompressOptions,
    label: GenerationLabel,
    watch: &dyn Watch,
) -> Result<AddSummary> {
    let (sink, secrets) = match to {
        AddTo::Copy(source, sink) => {
            let covered = source.as_ref().map(|source| covered_whole(&**source));
            let covered = covered.transpose()?.flatten();
            let Some(share) = growing_share(options.recovery, covered.as_ref()) else {
                let to = AddTo::Copy(source, sink);
                return Ok(add_generation(members, to, level, options, label, watch)?.0);
            };
            let mut sink = RecoverySink::new(sink, options.with_recovery(share)?)?;
            let to = AddTo::Copy(source, &mut sink);
            let (summary, _) = add_generation(members, to, level, options, label, watch)?;
            return Ok(summary.with_recovery(sink.recovery_bytes()));
        }
        AddTo::File(sink, secrets) => (sink, secrets),
    };
    if options.recovery.is_some() && !sink.grows_again() {
        let text = "an archive in volumes has no place for recovery data";
        return Err(Error::new(ErrorKind::Usage, text));
    }
    let to = AddTo::File(&mut *sink, secrets);
    let (summary, covered) = add_generation(members, to, level, options, label, watch)?;
    let Some(share) = growing_share(options.recovery, covered.as_ref()) else {
        return Ok(summary);
    };
    let recovery = options.with_recovery(share)?;
    let bytes = protect_growth(
        sink,
        covered.as_ref(),
        &recovery,
        summary.added.archive_bytes,
        watch,
    )?;
    Ok(summary.with_recovery(bytes))
}

impl AddSummary {
    fn with_recovery(mut self, recovery_bytes: u64) -> AddSummary {
        self.added.archive_bytes += recovery_bytes;
        AddSummary {
            archive_bytes: self.archive_bytes + recovery_bytes,
            recovery_bytes,
            ..self
        }
    }
}

/// The recovery data of a small archive that is written again.
fn covered_whole(source: &dyn Source) -> Result<Option<Covered>> {
    Covered::before(source, source.size_bytes()?)
}

/// As [`add`], without recovery data. Returns also which one there is.
fn add_generation(
    members: Vec<MemberInput>,
    to: AddTo<'_>,
    level: Option<Level>,
    options: &CompressOptions,
    label: GenerationLabel,
    watch: &dyn Watch,
) -> Result<(AddSummary, Option<Covered>)> {
    let label = label.checked()?;
    let mut members = members;
    let memory_bytes = Tuning::new(options)?.memory_bytes;
    let (mut sink, earlier, covered) = begin(to, level, options)?;
    let archive = Arc::new(earlier.open(memory_bytes / READ_SHARE, options.threads)?);
    archive.set_cache_bytes(
        memory_bytes / READ_SHARE / 8 * 6,
        memory_bytes / EXTENTS_SHARE,
    );
    archive.set_entries_bytes(memory_bytes / ENTRIES_SHARE);
    let growth = archive.growth()?;
    let base = growth.base;
    let options = growing_options(options, level, &base.archive, memory_bytes)?;
    let predecessors = Predecessors::of(
        &members,
        (&archive, &*earlier.source),
        &growth.catalog.generations,
        &label,
        base.end.content_bytes,
        &options,
    )?;
    with_stamps(&mut members);
    let archive = (archive, earlier.source.clone());
    let own = described(label);
    let decoders = earlier_decoders(&archive.0, options.carry_decoders, earlier.is_readable)?;
    let mut continuation = continuation_of(archive, growth, own, predecessors, memory_bytes)?;
    continuation.decoders = decoders;
    if !earlier.is_readable {
        continuation = continuation.without_store();
    }
    let mut added = compress_behind(members, sink.sink(), &options, continuation, watch)?;
    let mut archive_bytes = base.end.archive_bytes + added.archive_bytes;
    if let AddSink::Sealed(sealed, before) = sink {
        added.archive_bytes = sealed.archive_bytes();
        archive_bytes = before + added.archive_bytes;
    }
    let summary = AddSummary {
        generation: base.generation.saturating_add(1),
        archive_bytes,
        added,
        recovery_bytes: 0,
    };
    Ok((summary, covered))
}

/// The options of a generation of an archive that begins like this, at this level or that of the
/// archive.
///
/// # Errors
/// `Usage` for options that cannot be.
pub(crate) fn growing_options(
    options: &CompressOptions,
    level: Option<Level>,
    archive: &ArchiveHeader,
    memory_bytes: u64,
) -> Result<CompressOptions> {
    let options = CompressOptions {
        level: level.unwrap_or(archive_level(archive)),
        reach_bytes: Some(REACH_UNLIMITED),
        memory_bytes: Some(memory_bytes),
        ..options.clone()
    };
    let block_bytes = Tuning::new(&options)?.rules.block_bytes;
    Ok(CompressOptions {
        block_bytes: Some(block_bytes.min(archive.block_bytes_max)),
        ..options
    })
}

/// What a generation continues that is described like this. The archive is given with its bytes.
///
/// # Errors
/// From the index.
pub(crate) fn continuation_of(
    (archive, bytes): (Arc<IndexedArchive>, Arc<dyn Source>),
    growth: Growth,
    own: GenerationInfo,
    predecessors: Predecessors,
    memory_bytes: u64,
) -> Result<Continuation> {
    let Growth {
        base,
        edges,
        mut catalog,
    } = growth;
    let store_bytes = base.end.store_bytes;
    let places = std::mem::take(&mut catalog.anchors);
    let joined = frames_to_join(&places);
    catalog.anchors = places.clone();
    catalog.anchors.retain(|place| !joined.contains(place));
    Ok(Continuation {
        plan: GenerationPlan {
            base,
            catalog,
            own: Some(own),
        },
        edges,
        anchors: KnownAnchors {
            archive: bytes,
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
        decoders: None,
        read_bytes: memory_bytes / READ_SHARE,
        trees: predecessors.trees,
        content: Arc::new(EarlierExtents(archive)),
        predecessors: predecessors.contents,
        cache_bytes: memory_bytes / PAGES_SHARE,
    })
}

/// Takes generations off the list of those that are kept. A small record is appended; their bytes
/// remain. Numbers that are not kept are ignored.
///
/// Returns those that were forgotten. If there are none, nothing is written. Of an archive with
/// recovery data, the record gets some as well.
///
/// # Errors
/// `Usage` if nothing would remain; as [`add`].
pub fn forget(
    file: &mut dyn GrowingSink,
    forgotten: &[u16],
    options: &ReadOptions,
) -> Result<Vec<GenerationInfo>> {
    let growing = Growing::of(file.source()?, options)?;
    let earlier = Earlier::of(growing.archive.clone())?;
    let archive = earlier.open(options.memory_bytes / READ_SHARE, 1)?;
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
    let growing = growing.without_content()?;
    let mut sink = growing.sink(&mut *file, (false, false), None)?;
    Output::of_generation(sink.sink(), plan, &edges)?.publish()?;
    drop(sink);
    if let Some(share) = growing_share(None, growing.covered.as_ref()) {
        let recovery = RecoveryOptions {
            share,
            threads: options.threads,
            memory_bytes: options.memory_bytes,
            temporary: options.temporary.clone(),
        };
        let added_bytes = file.source()?.size_bytes()? - growing.end;
        let covered = growing.covered.as_ref();
        protect_growth(file, covered, &recovery, added_bytes, &Unwatched)?;
    }
    Ok(gone)
}

/// What members correspond to in an earlier generation, by their names.
#[derive(Default)]
pub(crate) struct Predecessors {
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
pub(crate) fn described(label: GenerationLabel) -> GenerationInfo {
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
pub(crate) fn archive_level(archive: &ArchiveHeader) -> Level {
    match archive.level {
        level @ 1..=9 => Level(level),
        _ => Level::default(),
    }
}

/// An archive that is added to.
pub(crate) struct Earlier {
    pub source: Arc<dyn Source>,
    pub found: FoundArchive,
    /// Whether its blocks can be read, so that what repeats them is found.
    pub is_readable: bool,
}

impl Earlier {
    /// # Errors
    /// `Unsupported` for archives that cannot be added to.
    pub(crate) fn of(source: Arc<dyn Source>) -> Result<Earlier> {
        let found = found_archive(&source)?;
        Ok(Earlier {
            source,
            found,
            is_readable: true,
        })
    }

    /// Writes an archive of a single frame as an ordinary one, which can grow.
    fn expanded(self, sink: &mut dyn Sink) -> Result<Earlier> {
        let (ordinary, _) = self.found.expanded(&*self.source)?;
        let mut bytes = vec![0; ordinary.size_bytes()? as usize];
        ordinary.read_at(0, &mut bytes)?;
        sink.write_all(&bytes)?;
        Earlier::of(Arc::new(MemorySource::new(bytes)))
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

/// An archive in a file that grows.
pub(crate) struct Growing {
    /// Up to its end: of an encrypted one, what is inside.
    pub archive: Arc<dyn Source>,
    /// What a run behind an encrypted one continues.
    pub origin: Option<RunOrigin>,
    /// Of an encrypted one that can be read.
    pub envelope: Option<Arc<EnvelopeSource>>,
    /// Where it ends in the file.
    pub end: u64,
    /// The recovery data that it has.
    pub covered: Option<Covered>,
}

impl Growing {
    /// # Errors
    /// `Usage` if it is encrypted, and no secret of the options opens it; `Unsupported` if
    /// something that is no generation follows it; `Damaged`, `Limit`, `Io`.
    pub(crate) fn of(file: Arc<dyn Source>, secrets: &ReadOptions) -> Result<Growing> {
        if let Some(envelope) = opened_envelope(file.clone(), secrets)? {
            let (own_end, end) = envelope.complete_end()?;
            let is_last = end + envelope.incomplete_bytes() == file.size_bytes()?;
            check_appendices(&*file, own_end, end, is_last)?;
            return Ok(Growing {
                archive: envelope.clone(),
                origin: Some(envelope.origin()?),
                envelope: Some(envelope),
                end,
                covered: Covered::before(&*file, end)?,
            });
        }
        let archive = complete_part(file.clone())?;
        let end = archive.size_bytes()?;
        Ok(Growing {
            archive: beginning(archive, end),
            origin: None,
            envelope: None,
            end,
            covered: Covered::before(&*file, end)?,
        })
    }

    /// An encrypted archive, as far as a state of it has it.
    ///
    /// # Errors
    /// `Usage` if the archive is not as the state knows it; as [`of`](Self::of).
    fn known(file: &Arc<dyn Source>, state: &WriterState) -> Result<Growing> {
        let usage = |text: &str| Err(Error::new(ErrorKind::Usage, text.to_owned()));
        let Some(stored) = read_envelope(&**file)? else {
            return usage("the archive is not encrypted: it is added to without a state");
        };
        let Some(known) = state.known(file, &stored)? else {
            return usage(
                "this machine has no state of the archive as it is now: add to it once with a \
                 secret, which renews the state",
            );
        };
        let end = known.origin.append_at;
        check_appendices(&**file, known.own_end, end, true)?;
        Ok(Growing {
            archive: known.inside,
            origin: Some(known.origin),
            envelope: None,
            end,
            covered: Covered::before(&**file, end)?,
        })
    }

    /// This for a run without content.
    ///
    /// # Errors
    /// `Damaged` if the archive has no end.
    pub(crate) fn without_content(mut self) -> Result<Growing> {
        if let Some(envelope) = &self.envelope {
            self.origin = Some(envelope.origin_without_content()?);
        }
        Ok(self)
    }

    /// For whom the state behind the next run is, if it is kept. What the state does not know of
    /// an archive that can be read is written first.
    fn state_owner(
        &self,
        file: &Arc<dyn Source>,
        state: Option<&WriterState>,
    ) -> Result<Option<StateOwner>> {
        let (Some(state), Some(origin)) = (state, &self.origin) else {
            return Ok(None);
        };
        let state = state.clone();
        if let RunWriter::Writer(keys) = &origin.writer {
            let keys = keys.clone();
            return Ok(Some(StateOwner { state, keys }));
        }
        let Some(envelope) = &self.envelope else { return Ok(None) };
        let owner = StateOwner {
            state,
            keys: envelope.writer_keys(),
        };
        let stored = read_envelope(&**file)?;
        let known = stored.map(|stored| owner.state.known(file, &stored));
        if !known.is_some_and(|known| known.is_ok_and(|known| known.is_some())) {
            owner.record(envelope)?;
        }
        Ok(Some(owner))
    }

    /// Whether the blocks of the archive can be read.
    fn is_readable(&self) -> bool {
        self.origin.is_none() || self.envelope.is_some()
    }

    /// What is written to `file` behind the archive, or, if it is encrypted, may be written `anew`.
    fn sink<'a>(
        &self,
        file: &'a mut dyn GrowingSink,
        (is_anew, is_padded): (bool, bool),
        owner: Option<&StateOwner>,
    ) -> Result<AddSink<'a>> {
        file.append_behind(self.end)?;
        let Some(origin) = self.origin.clone() else {
            return Ok(AddSink::Plain(file));
        };
        let place = (origin, &self.archive);
        let sealed = EnvelopeSink::begin_run(file, place, (is_anew, is_padded), owner)?;
        Ok(AddSink::Sealed(sealed, self.end))
    }
}

/// Checks that nothing unknown is between an archive's own end and `end`, where the file ends.
fn check_appendices(file: &dyn Source, archive_end: u64, end: u64, is_last: bool) -> Result<()> {
    let own = own_end(file, archive_end)?.filter(|own| own.offset == archive_end);
    let appended = own.map(|own| appendices_end(file, &own)).transpose()?;
    if is_last && (archive_end == end || appended == Some(end)) {
        return Ok(());
    }
    let text = "something unknown follows the archive: such archives cannot be added to in this \
                version";
    Err(Error::new(ErrorKind::Unsupported, text))
}

/// The only archive of a file, without anything appended.
fn found_archive(source: &Arc<dyn Source>) -> Result<FoundArchive> {
    let refused = |text: &str| Err(Error::new(ErrorKind::Unsupported, text.to_owned()));
    if read_envelope(&**source)?.is_some() {
        return refused("an encrypted archive grows in its own file: it is not written again");
    }
    let mut found = find_archives(&**source)?;
    let size_bytes = source.size_bytes()?;
    let Some(only) = found.pop().filter(|_| found.is_empty()) else {
        return refused("the file has several archives, one behind the other: join them first");
    };
    check_appendices(&**source, only.bytes.end, size_bytes, true)?;
    if only.is_whole && only.bytes.end != protected_end(&**source)? {
        return refused("a small archive that is signed cannot be added to: it would be rewritten");
    }
    Ok(only)
}

/// What a generation is written to, behind the archive.
enum AddSink<'a> {
    Plain(&'a mut dyn Sink),
    /// And how many bytes of the file are before it.
    Sealed(EnvelopeSink<'a>, u64),
}

impl AddSink<'_> {
    fn sink(&mut self) -> &mut dyn Sink {
        match self {
            AddSink::Plain(sink) => *sink,
            AddSink::Sealed(sink, _) => sink,
        }
    }
}

/// Opens the archive to be added to, and what is written behind it. Says which recovery data a file
/// has.
fn begin<'a>(
    to: AddTo<'a>,
    level: Option<Level>,
    options: &CompressOptions,
) -> Result<(AddSink<'a>, Earlier, Option<Covered>)> {
    let usage = |text: &str| Err(Error::new(ErrorKind::Usage, text.to_owned()));
    let plain = "the archive is not encrypted: what is added to it cannot be";
    let encryption = options.encryption.as_ref();
    match to {
        AddTo::File(file, secrets) => {
            let source = file.source()?;
            let state = options.writer_state.as_ref();
            let growing = match state.filter(|_| !secrets.has_secrets()) {
                Some(state) => Growing::known(&source, state)?,
                None => Growing::of(source.clone(), secrets)?,
            };
            let mut earlier = Earlier::of(growing.archive.clone())?;
            earlier.is_readable = growing.is_readable();
            let is_whole = earlier.found.is_whole;
            match growing.origin {
                None if is_whole => {
                    return usage("an archive of a single frame is written again as a whole");
                }
                None if encryption.is_some() => return usage(plain),
                _ => {}
            }
            let is_padded = encryption.is_some_and(|encryption| encryption.is_padded);
            let owner = growing.state_owner(&source, state)?;
            let mut sink = growing.sink(file, (is_whole, is_padded), owner.as_ref())?;
            if is_whole {
                earlier = earlier.expanded(sink.sink())?;
            }
            Ok((sink, earlier, growing.covered))
        }
        AddTo::Copy(Some(source), sink) => {
            if encryption.is_some() {
                return usage(plain);
            }
            let earlier = Earlier::of(source)?.expanded(sink)?;
            Ok((AddSink::Plain(sink), earlier, None))
        }
        AddTo::Copy(None, sink) => {
            let bytes = empty_archive(level.unwrap_or(options.level), options)?;
            let mut sink = match encryption {
                None => AddSink::Plain(sink),
                Some(encryption) => {
                    let memory_bytes = Tuning::new(options)?.memory_bytes;
                    let sealed = EnvelopeSink::begin_with_state(
                        sink,
                        encryption,
                        memory_bytes,
                        options.writer_state.as_ref(),
                    )?;
                    AddSink::Sealed(sealed, 0)
                }
            };
            sink.sink().write_all(&bytes)?;
            let earlier = Earlier::of(Arc::new(MemorySource::new(bytes)))?;
            Ok((sink, earlier, None))
        }
    }
}

/// An archive without members, to be continued by a generation.
pub(crate) fn empty_archive(level: Level, options: &CompressOptions) -> Result<Vec<u8>> {
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
