//! The verb compact: gives back what no kept generation needs.
//!
//! First a record is appended that says which frames are gone; when it is on the disk, holes are
//! made in them. So nobody takes what is missing for damage, whenever the run ends, and the next
//! one makes the holes that are not there yet.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::limits::CATALOG_BYTES_MAX;
use refrain_format::{
    Catalog, FRAME_HEADER_BYTES, FrameHeader, FrameKind, GONE_RUN_BYTES_MAX, GoneFrames,
    HEAD_SIZE_BYTES_MAX, IndexBlock, head_bytes,
};
use refrain_storage::{GivesBack, MemorySink, whole_blocks};

use crate::add::{Earlier, Growing};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::native::growth::Growth;
use crate::read::native::indexed::IndexedArchive;
use crate::read::native::liveness::LiveStore;
use crate::store::appendix::header_at;
use crate::store::envelope::sink::EnvelopeSink;
use crate::write::native::generation::GenerationPlan;
use crate::write::native::output::Output;

/// The share of the memory for reading lists.
const READ_SHARE: u64 = 3;

/// Runs of frames that are gone take at most this share of a catalog: the rest is for the
/// generations.
const GONE_SHARE: u64 = 2;

/// What can be given back of an archive, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactNumbers {
    /// The generations that are kept.
    pub generations: usize,
    /// The blocks that no kept generation needs, and that were not given back before.
    pub blocks: u64,
    /// The bytes of the file that are to be given back: those of these blocks, and of earlier ones
    /// if a run before was killed.
    pub hole_bytes: u64,
    /// The bytes of the lists of entries and extents of the archive, at most which were read to
    /// know that.
    pub list_bytes: u64,
    /// The bytes to be appended; 0 if there is nothing new to say.
    pub record_bytes: u64,
    /// The bytes of the store that nothing needs, in blocks of which something is needed, or that
    /// are too small. A [new archive](crate::Merge) would be smaller by what they compress to.
    pub left_store_bytes: u64,
    /// Whether `left_store_bytes` is exact. With little memory for many ranges or paths it is less
    /// than there are, and more blocks stay than must.
    pub is_exact: bool,
    /// The bytes of the frames that were given back before.
    pub gone_bytes: u64,
}

/// What was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactSummary {
    /// How much less the file takes on the disk, in bytes, the record included. Negative if it
    /// takes more.
    pub freed_bytes: i64,
    /// What it takes now.
    pub allocated_bytes: u64,
    /// The length of the archive.
    pub archive_bytes: u64,
}

/// A look at an archive: what can be given back of it.
#[must_use]
pub struct Compaction {
    archive: Arc<IndexedArchive>,
    numbers: CompactNumbers,
    /// All frames that are gone, the new ones among them.
    gone: GoneFrames,
    /// What is appended.
    record: Vec<u8>,
    growing: Growing,
}

impl Compaction {
    /// Looks which blocks the kept generations need. Nothing is changed.
    ///
    /// Takes at most an eighth of the memory for ranges of content, as much for those of the store
    /// and for paths that changed, a third for reading, and 16 bytes for each run of blocks to be
    /// given back.
    ///
    /// # Errors
    /// `Usage` if nothing was ever added to the archive, or no secret of the options opens it;
    /// `Unsupported` if the file system cannot take parts of a file back, or for archives that are
    /// protected by recovery data, or several in one file; `Damaged` and `Io` for its lists;
    /// `Cancelled`.
    pub fn plan(
        file: &mut dyn GivesBack,
        options: &ReadOptions,
        watch: &dyn Watch,
    ) -> Result<Compaction> {
        file.check_holes().map_err(no_holes)?;
        let growing = Growing::of(file.source()?, options)?.without_content()?;
        if growing.covered.is_some() {
            let text = "the archive has recovery data, which would take what is given back for \
                        damage: `refrain merge` writes a new archive without it";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let earlier = Earlier::of(growing.archive.clone())?;
        let memory_bytes = options.memory_bytes;
        if earlier.found.is_whole {
            return Err(nothing_added());
        }
        let archive = Arc::new(earlier.open(memory_bytes / READ_SHARE, options.threads)?);
        let growth = archive.growth()?;
        if growth.base.generation == 0 {
            return Err(nothing_added());
        }
        let catalog = &growth.catalog;
        let live = archive.live_store(&catalog.generations, memory_bytes, watch)?;
        let dead = dead_frames((&archive, &growing), catalog, &live)?;
        let gone = gone_with(catalog, dead)?;
        let numbers = CompactNumbers {
            generations: catalog.generations.len(),
            list_bytes: archive.list_bytes()?,
            is_exact: live.is_exact,
            gone_bytes: catalog.gone.frame_bytes(),
            ..CompactNumbers::default()
        };
        let mut compaction = Compaction {
            record: record(growth, &gone, &growing)?,
            growing,
            archive,
            numbers,
            gone,
        };
        compaction.count(file, &live)?;
        Ok(compaction)
    }

    /// What can be given back, and what that costs.
    pub fn numbers(&self) -> &CompactNumbers {
        &self.numbers
    }

    /// Says in the archive what is gone, and then gives it back to the file system.
    ///
    /// # Errors
    /// `Io`; `Cancelled`. What the record says may then not be given back yet: the next run does
    /// that.
    pub fn run(self, file: &mut dyn GivesBack, watch: &dyn Watch) -> Result<CompactSummary> {
        let before = file.allocated_bytes()?;
        if !self.record.is_empty() {
            file.append_behind(self.growing.end)?;
            file.write_all(&self.record)?;
            file.publish()?;
        }
        let mut done_bytes = 0;
        self.for_each_hole(&mut |hole| {
            if is_cancelled(watch) {
                return Err(Error::cancelled());
            }
            let bytes = file.data_bytes(&hole)?;
            if bytes > 0 {
                file.punch(hole)?;
                done_bytes += bytes;
                watch.progress(&Progress {
                    content_bytes_done: done_bytes,
                    content_bytes_total: Some(self.numbers.hole_bytes),
                    archive_bytes: done_bytes,
                });
            }
            Ok(())
        })?;
        file.sync_holes()?;
        let after = file.allocated_bytes()?;
        Ok(CompactSummary {
            freed_bytes: before as i64 - after as i64,
            allocated_bytes: after,
            archive_bytes: self.growing.end + self.record.len() as u64,
        })
    }

    /// Counts what is to be given back, and what stays although nothing needs it.
    fn count(&mut self, file: &dyn GivesBack, live: &LiveStore) -> Result<()> {
        let mut numbers = CompactNumbers {
            record_bytes: self.record.len() as u64,
            ..self.numbers
        };
        self.archive
            .for_each_block_use(live, &mut |block, live_bytes| {
                if !self.gone.contains(block.frame_offset) {
                    numbers.left_store_bytes += block.raw_bytes.saturating_sub(live_bytes);
                    return Ok(());
                }
                numbers.hole_bytes += file.data_bytes(&hole_of(&self.growing, block)?)?;
                numbers.blocks += u64::from(!self.archive.is_given_back(block));
                Ok(())
            })?;
        self.numbers = numbers;
        Ok(())
    }

    /// Calls `each` for the place of every hole.
    fn for_each_hole(&self, each: &mut dyn FnMut(Range<u64>) -> Result<()>) -> Result<()> {
        self.archive.for_each_indexed_block(&mut |block| {
            let is_gone = self.gone.contains(block.frame_offset);
            if is_gone { each(hole_of(&self.growing, block)?) } else { Ok(()) }
        })
    }
}

/// The whole blocks of the file in the data of a block: header and head stay, so that who reads the
/// frames one after the other finds the next. Of an encrypted archive, those of the records that
/// have nothing else.
///
/// # Errors
/// `Damaged` if the block is not where the index says: a hole elsewhere would be damage; `Io`.
fn hole_of(growing: &Growing, block: &IndexBlock) -> Result<Range<u64>> {
    let (start, bytes) = (block.frame_offset, block.frame_bytes);
    let source = &*growing.archive;
    let found = header_at(source, start)?;
    let is_it =
        |header: &FrameHeader| header.kind == FrameKind::Block && header.frame_bytes() == bytes;
    if !found.as_ref().is_some_and(is_it) {
        let text = "the index leads to a block that is not there: nothing is given back";
        return Err(Error::damaged(text).at_offset(start));
    }
    let (end, payload) = (
        start.saturating_add(bytes),
        start + FRAME_HEADER_BYTES as u64,
    );
    let mut size = [0; HEAD_SIZE_BYTES_MAX];
    let count = source.read_at(payload, &mut size)?;
    let head_bytes =
        head_bytes(&size[..count]).map_err(|error| Error::from(error).at_offset(start))?;
    let data = payload.saturating_add(head_bytes).min(end)..end;
    Ok(whole_blocks(&match &growing.envelope {
        None => data,
        Some(envelope) => envelope.sealed_range(&data)?,
    }))
}

/// The frames that nothing needs any more and of which something can be given back. Those that
/// follow one another are joined.
fn dead_frames(
    (archive, growing): (&Arc<IndexedArchive>, &Growing),
    catalog: &Catalog,
    live: &LiveStore,
) -> Result<Vec<Range<u64>>> {
    let mut dead: Vec<Range<u64>> = Vec::new();
    archive.for_each_block_use(live, &mut |block, live_bytes| {
        let start = block.frame_offset;
        if catalog.gone.contains(start) {
            // Ranges that were rounded may reach into it.
            let is_needed = live_bytes > 0 && live.is_exact;
            return if is_needed { Err(Error::given_back().at_offset(start)) } else { Ok(()) };
        }
        if live_bytes > 0 || hole_of(growing, block)?.is_empty() {
            return Ok(());
        }
        let end = start.saturating_add(block.frame_bytes);
        match dead.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => dead.push(start..end),
        }
        Ok(())
    })?;
    Ok(dead)
}

/// All frames that are gone, with the largest of these: as many as fit into a catalog.
fn gone_with(catalog: &Catalog, mut dead: Vec<Range<u64>>) -> Result<GoneFrames> {
    let known_bytes = catalog.to_payload()?.len() as u64;
    let room_bytes = (CATALOG_BYTES_MAX / GONE_SHARE).saturating_sub(known_bytes);
    let runs_max = (room_bytes / GONE_RUN_BYTES_MAX) as usize;
    if dead.len() > runs_max {
        dead.sort_unstable_by_key(|run| (run.start.wrapping_sub(run.end), run.start));
        dead.truncate(runs_max);
    }
    Ok(GoneFrames::new(
        catalog.gone.runs().iter().cloned().chain(dead),
    ))
}

/// A generation without members that says what is gone; nothing if all of that is said. Of an
/// encrypted archive it is the run that has it.
fn record(growth: Growth, gone: &GoneFrames, growing: &Growing) -> Result<Vec<u8>> {
    let Growth {
        base,
        edges,
        catalog,
    } = growth;
    if catalog.gone == *gone {
        return Ok(Vec::new());
    }
    let plan = GenerationPlan {
        base,
        catalog: Catalog {
            gone: gone.clone(),
            ..catalog
        },
        own: None,
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    match growing.origin.clone() {
        None => drop(Output::of_generation(&mut sink, plan, &edges)?.publish()?),
        Some(origin) => {
            let place = (origin, &growing.archive);
            let mut sealed = EnvelopeSink::begin_run(&mut sink, place, (false, false), None)?;
            Output::of_generation(&mut sealed, plan, &edges)?.publish()?;
        }
    }
    Ok(output.published().unwrap_or_default())
}

fn nothing_added() -> Error {
    let text = "nothing was added to this archive: all of it is needed";
    Error::new(ErrorKind::Usage, text)
}

fn no_holes(error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::Unsupported {
        return error.into();
    }
    let text =
        format!("{error}. A new archive has only what is kept: `refrain merge ARCHIVE -o NEW`");
    Error::new(ErrorKind::Unsupported, text)
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
