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
    Catalog, GONE_RUN_BYTES_MAX, GoneFrames, IndexBlock, block_frame_overhead_max,
};
use refrain_storage::{GrowingFile, MemorySink, Sink, whole_blocks};

use crate::add::Earlier;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::native::growth::Growth;
use crate::read::native::indexed::IndexedArchive;
use crate::read::native::liveness::LiveStore;
use crate::store::complete_end::complete_part;
use crate::write::native::generation::GenerationPlan;
use crate::write::native::output::Output;

/// The share of the memory for reading lists, and for decoded entries.
const READ_SHARE: u64 = 3;
const ENTRIES_SHARE: u64 = 16;

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
    /// are too small. Compressing the archive anew would win them, less what they compress to.
    pub left_store_bytes: u64,
    /// Whether `left_store_bytes` is exact. With little memory for many ranges it is less than
    /// there are, and more blocks stay than must.
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
    /// What is appended, and behind which byte.
    record: Vec<u8>,
    archive_bytes: u64,
}

impl Compaction {
    /// Looks which blocks the kept generations need. Nothing is changed.
    ///
    /// Takes at most an eighth of the memory for ranges of content, as much for those of the store,
    /// half of it for reading, and 16 bytes for each run of blocks to be given back.
    ///
    /// # Errors
    /// `Usage` if nothing was ever added to the archive; `Unsupported` if the file system cannot
    /// take parts of a file back, or for archives that are encrypted, signed, protected by recovery
    /// data, or several in one file; `Damaged` and `Io` for its lists; `Cancelled`.
    pub fn plan(
        file: &mut GrowingFile,
        options: &ReadOptions,
        watch: &dyn Watch,
    ) -> Result<Compaction> {
        file.check_holes().map_err(no_holes)?;
        let earlier = Earlier::of(complete_part(file.source()?)?)?;
        let memory_bytes = options.memory_bytes;
        if earlier.found.is_whole {
            return Err(nothing_added());
        }
        let archive = Arc::new(earlier.open(memory_bytes / READ_SHARE, options.threads)?);
        archive.set_entries_bytes(memory_bytes / ENTRIES_SHARE);
        let growth = archive.growth()?;
        if growth.base.generation == 0 {
            return Err(nothing_added());
        }
        let catalog = &growth.catalog;
        let live = archive.live_store(&catalog.generations, memory_bytes, watch)?;
        let dead = dead_frames(&archive, catalog, &live)?;
        let gone = gone_with(catalog, dead)?;
        let numbers = CompactNumbers {
            generations: catalog.generations.len(),
            list_bytes: archive.list_bytes()?,
            is_exact: live.is_exact,
            gone_bytes: catalog.gone.frame_bytes(),
            ..CompactNumbers::default()
        };
        let mut compaction = Compaction {
            record: record(growth, &gone)?,
            archive_bytes: earlier.source.size_bytes()?,
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
    pub fn run(self, file: &mut GrowingFile, watch: &dyn Watch) -> Result<CompactSummary> {
        let before = file.allocated_bytes()?;
        if !self.record.is_empty() {
            file.append_behind(self.archive_bytes)?;
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
            archive_bytes: self.archive_bytes + self.record.len() as u64,
        })
    }

    /// Counts what is to be given back, and what stays although nothing needs it.
    fn count(&mut self, file: &GrowingFile, live: &LiveStore) -> Result<()> {
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
                numbers.hole_bytes += file.data_bytes(&hole_of(block))?;
                numbers.blocks += u64::from(!self.archive.is_given_back(block));
                Ok(())
            })?;
        self.numbers = numbers;
        Ok(())
    }

    /// Calls `each` for the place of every hole.
    fn for_each_hole(&self, each: &mut dyn FnMut(Range<u64>) -> Result<()>) -> Result<()> {
        self.archive.for_each_indexed_block(&mut |block| {
            if self.gone.contains(block.frame_offset) {
                each(hole_of(block))
            } else {
                Ok(())
            }
        })
    }
}

/// The whole blocks of the file in the data of a block: header and head stay, so that who reads the
/// frames one after the other finds the next.
fn hole_of(block: &IndexBlock) -> Range<u64> {
    let end = block.frame_offset.saturating_add(block.frame_bytes);
    let head_bytes_max = block_frame_overhead_max(block.raw_bytes);
    whole_blocks(&(block.frame_offset.saturating_add(head_bytes_max).min(end)..end))
}

/// The frames that nothing needs any more and of which something can be given back. Those that
/// follow one another are joined.
fn dead_frames(
    archive: &Arc<IndexedArchive>,
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
        if live_bytes > 0 || hole_of(block).is_empty() {
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

/// A generation without members that says what is gone; nothing if all of that is said.
fn record(growth: Growth, gone: &GoneFrames) -> Result<Vec<u8>> {
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
    Output::of_generation(&mut sink, plan, &edges)?.publish()?;
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
    let text = format!(
        "{error}. A new archive has only what is kept: unpack each generation, and `add` it to one"
    );
    Error::new(ErrorKind::Unsupported, text)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use std::fs;
    use std::path::Path;

    use refrain_format::AnchorsPlace;
    use refrain_storage::{FileSource, MemorySource, Source};
    use refrain_testkit::data::random;

    use super::*;
    use crate::{
        AddTo, CompressOptions, Content, GenerationLabel, Level, MemberInput, Unwatched, add,
        verify,
    };

    fn night(path: &Path, content: Vec<u8>) {
        let members = vec![MemberInput {
            name: b"x".to_vec(),
            mode: None,
            modified: None,
            content: Content::Source(Arc::new(MemorySource::new(content))),
        }];
        let options = CompressOptions {
            level: Level(1),
            threads: 1,
            block_bytes: Some(1 << 16),
            ..CompressOptions::default()
        };
        let label = GenerationLabel::default();
        if path.exists() {
            let to = &mut GrowingFile::open(path).unwrap();
            add(members, AddTo::File(to), None, &options, label, &Unwatched).unwrap();
            return;
        }
        let mut sink = MemorySink::new();
        let output = sink.output();
        let to = AddTo::Copy(None, &mut sink);
        add(members, to, None, &options, label, &Unwatched).unwrap();
        sink.publish().ok();
        fs::write(path, output.published().unwrap()).unwrap();
    }

    #[test]
    fn a_record_that_gives_away_what_is_needed_is_found_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.rfn");
        night(&path, random(200_000, 1));
        night(&path, random(200_000, 2));
        let mut file = GrowingFile::open(&path).unwrap();
        let earlier = Earlier::of(file.source().unwrap()).unwrap();
        let archive = earlier.open(64 << 20, 1).unwrap();
        let growth = archive.growth().unwrap();
        let mut frames = vec![];
        archive
            .for_each_indexed_block(&mut |block| {
                frames.push(block.frame_offset..block.frame_offset + block.frame_bytes);
                Ok(())
            })
            .unwrap();
        let end = growth.base.end.archive_bytes;
        let forged = record(growth, &GoneFrames::new(frames)).unwrap();
        file.append_behind(end).unwrap();
        file.write_all(&forged).unwrap();
        file.publish().unwrap();
        let source: Arc<dyn Source> = Arc::new(FileSource::open(&path).unwrap());
        let options = ReadOptions::default();
        let error = verify(source.clone(), &options, &Unwatched).unwrap_err();
        assert!(error.is_given_back(), "{error}");
        let planned = Compaction::plan(&mut file, &options, &Unwatched);
        assert!(planned.map(|_| ()).unwrap_err().is_given_back());
        // All of the data is there, and is not read.
        let archive = crate::Archive::open(source, &options).unwrap();
        let error = archive.read_at(0, 0, &mut [0; 100]).unwrap_err();
        assert!(error.is_given_back(), "{error}");
    }

    #[test]
    fn holes_leave_headers_and_heads() {
        let block = |frame_offset, frame_bytes, raw_bytes| IndexBlock {
            frame_offset,
            frame_bytes,
            store_start: 0,
            raw_bytes,
            codec: 1,
            filter_ids: [0; 2],
        };
        let head = block_frame_overhead_max(1 << 20);
        assert!((32..1024).contains(&head), "{head}");
        assert_eq!(hole_of(&block(8192 - head, 20_000, 1 << 20)), 8192..24_576);
        assert_eq!(
            hole_of(&block(8193 - head, 20_000, 1 << 20)),
            12_288..24_576
        );
        assert!(hole_of(&block(4096, 4500, 5000)).is_empty());
        assert!(
            hole_of(&block(0, 40, 1 << 30)).is_empty(),
            "a head that cannot be"
        );
    }

    #[test]
    fn the_largest_runs_come_first_if_not_all_fit() {
        let anchors = (0..2_084_000).map(|number| AnchorsPlace {
            frame_offset: number << 30,
            frame_bytes: 1 << 29,
            zero_bits: 5,
            anchor_count: 1 << 30,
        });
        let catalog = Catalog {
            anchors: anchors.collect(),
            gone: GoneFrames::new([100..200]),
            ..Catalog::default()
        };
        let dead: Vec<_> = (1..20_000_u64)
            .map(|at| at * 1000..at * 1000 + at / 100 + 1)
            .collect();
        let gone = gone_with(&catalog, dead.clone()).unwrap();
        assert!(gone.contains(100), "what was gone stays gone");
        let count = gone.runs().len() - 1;
        assert!((1..dead.len()).contains(&count), "{count}");
        assert!(gone.contains(19_999_000) && !gone.contains(1000));
        let all = gone_with(&Catalog::default(), dead.clone()).unwrap();
        assert_eq!(all.runs().len(), dead.len());
    }
}
