//! Restores a tree: creates its entries, and writes its files with many threads in the order of
//! their content, so that every block is decoded once.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use refrain_entries::{Entry, EntryKind, Selection};
use refrain_filesystem::restore::{RestoredFile, TreeRestore};
use refrain_format::entry_bytes;
use refrain_pool::Lock;
use refrain_pool::pool::checkpoint;
use refrain_pool::stages::stage;
use refrain_protect::HASH_BYTES;

use refrain_filesystem::Problem;

use crate::error::Result;
use crate::progress::{Progress, Watch};
use crate::read::content_limit::ContentMeter;
use crate::read::store_reader::Depth;
use crate::read::tree::chosen::{Chosen, files_of_links, memory_bytes};
use crate::read::tree::content::TreeContent;
use crate::read::tree::parallel::{Work, run_in_order};
use crate::read::tree::raw_parts::TarCheck;
use crate::read::tree::read_hash::{ReadEntries, ReadHash};
use crate::read::tree::rebased::restored;
use crate::read::tree::recovery::{Recovery, goes_on, inside};

/// The maximum content that one job reads, and the bytes and files that it writes, unless a single
/// file has more.
const READ_BYTES: u64 = 4 << 20;
const WRITE_BYTES: u64 = 16 << 20;
const FILES_MAX: usize = 512;
/// The largest gap of unselected content that a job reads through.
const GAP_BYTES_MAX: u64 = 64 << 10;
/// Files with more data are written by several jobs.
const WHOLE_BYTES_MAX: u64 = 8 << 20;
/// Files waiting for their content may take 1/8 of the memory budget.
const WINDOW_SHARE: u64 = 8;

/// How a tree is restored.
pub(crate) struct RestorePlan<'a> {
    pub content: &'a dyn TreeContent,
    pub target: &'a TreeRestore,
    /// What to restore; `None`: everything.
    pub selection: Option<&'a Selection>,
    pub threads: usize,
    pub memory_bytes: u64,
    /// The hash of the content, compared if all of it is read.
    pub blake3: Option<[u8; HASH_BYTES]>,
    /// Counts the data of files.
    pub meter: &'a ContentMeter,
    /// How to continue after damage; `None`: do not.
    pub recovery: Option<&'a Recovery<'a>>,
}

/// The result of a job.
struct Written {
    content_start: u64,
    bytes: Vec<u8>,
    /// The file whose last piece was written.
    complete: Option<LargeFile>,
    /// Whether some of the bytes are missing.
    is_broken: bool,
}

/// Restores the entries of a tree. The target is not finished. Returns whether all content was read
/// and compared with its hash. The entries, all of which are read, are always compared with theirs.
///
/// # Errors
/// From reading. Problems of single entries are recorded by the target.
pub(crate) fn restore_entries(plan: &RestorePlan<'_>, watch: &dyn Watch) -> Result<bool> {
    let window_bytes = (plan.memory_bytes / WINDOW_SHARE) as usize;
    let content_bytes = plan.content.content_bytes();
    let is_all =
        plan.selection.is_none() && !plan.content.is_open() && plan.content.has_all_content();
    let expected = plan.blake3.as_ref().filter(|_| is_all);
    let mut hash = ReadHash::new(content_bytes, expected, plan.memory_bytes);
    let mut read_entries = ReadEntries::new();
    let mut written_bytes = 0;
    let mut frames = 0..plan.content.entry_frames()?;
    let mut chosen = Chosen::new(plan.selection, plan.content, plan.memory_bytes);
    let mut check = TarCheck::new(plan.content);
    let mut lost = plan.content.lost_entries();
    let mut is_incomplete = !lost.is_none();
    while !frames.is_empty() && !plan.target.has_ended() {
        let (mut files, mut files_bytes) = (vec![], 0);
        while files_bytes < window_bytes
            && !plan.target.has_many_links()
            && let Some(frame) = frames.next()
        {
            let entries = match plan.content.entries_of(frame) {
                Err(error) if goes_on(plan.recovery, &error) => {
                    is_incomplete = true;
                    lost.count += plan.content.stated_count(frame)?;
                    continue;
                }
                entries => entries?,
            };
            read_entries.add(&entries);
            for entry in entries.into_vec() {
                // Incomplete entries are left out.
                match check.look(&entry) {
                    Ok(Some(problem)) => {
                        watch.problem(0, &problem);
                        continue;
                    }
                    // Bytes outside of entries are lost.
                    Err(error) if goes_on(plan.recovery, &error) => {}
                    looked => drop(looked?),
                }
                let take = |entry: Entry| {
                    if entry.kind == EntryKind::Other {
                        watch.problem(0, &Problem::unusual(&entry.path));
                    }
                    if let Some(file) = create(plan.target, entry) {
                        files_bytes += memory_bytes(&file);
                        files.push(file);
                    }
                };
                chosen.choose(entry, take)?;
            }
        }
        files.sort_by_key(|entry| entry.content_offset);
        write_files(plan, files, &mut hash, &mut written_bytes, watch)?;
        plan.target.link_if_many();
    }
    for problem in check.problems() {
        watch.problem(0, &problem);
    }
    expect_others(plan, frames, &mut chosen)?;
    if let Some(recovery) = plan.recovery {
        lost.may_be_more |= is_incomplete;
        recovery.lost_entries(lost);
    }
    // A full disk may have ended it before all of them were read.
    if !is_incomplete {
        read_entries.compare(plan.content)?;
    }
    if plan.selection.is_some() && !plan.target.has_ended() {
        let files = files_of_links(plan.content, plan.target)?;
        write_files(plan, files, &mut hash, &mut written_bytes, watch)?;
    }
    hash.compare()
}

/// Counts the entries of frames left unread because of a full disk.
fn expect_others(
    plan: &RestorePlan<'_>,
    frames: Range<usize>,
    chosen: &mut Chosen<'_>,
) -> Result<()> {
    for frame in frames {
        for entry in plan.content.entries_of(frame)?.into_vec() {
            chosen.choose(entry, |entry| plan.target.expect(&entry))?;
        }
    }
    Ok(())
}

/// Creates an entry, unless it is a file, which is returned.
fn create(target: &TreeRestore, entry: Entry) -> Option<Entry> {
    target.expect(&entry);
    match entry.kind {
        EntryKind::Directory => target.directory(&entry),
        EntryKind::File | EntryKind::Other => return Some(entry),
        _ => target.other(&entry),
    }
    None
}

/// Writes files in the order of their content.
fn write_files(
    plan: &RestorePlan<'_>,
    files: Vec<Entry>,
    hash: &mut ReadHash<'_>,
    written_bytes: &mut u64,
    watch: &dyn Watch,
) -> Result<()> {
    // Files may share their content: millions of them may claim any total.
    let sizes = files.iter().map(Entry::stored_bytes);
    let total = sizes.fold(0, u64::saturating_add);
    plan.meter.add(total)?;
    let total = written_bytes.saturating_add(total);
    let mut queue = FileQueue {
        target: plan.target,
        content: plan.content,
        recovery: plan.recovery,
        files: files.into(),
        large: None,
    };
    run_in_order(
        plan.content,
        plan.threads,
        watch,
        &mut || Ok(queue.next()),
        &mut |written: Written| {
            if written.is_broken {
                hash.end()
            } else {
                hash.add(written.content_start, &written.bytes)
            }
            if let Some(large) = written.complete {
                large.finish(plan.recovery);
            }
            *written_bytes += written.bytes.len() as u64;
            watch.progress(&Progress {
                content_bytes_done: *written_bytes,
                content_bytes_total: Some(total),
                archive_bytes: 0,
            });
            Ok(())
        },
    )
}

/// The files not written yet.
struct FileQueue<'a> {
    target: &'a TreeRestore,
    content: &'a dyn TreeContent,
    recovery: Option<&'a Recovery<'a>>,
    files: VecDeque<Entry>,
    /// A file being written in pieces, and its unplanned data.
    large: Option<(LargeFile, Range<u64>)>,
}

/// A file being written in pieces.
#[derive(Clone)]
struct LargeFile {
    file: Arc<RestoredFile>,
    entry: Arc<Entry>,
    /// The missing content.
    missing: Arc<Lock<Vec<Range<u64>>>>,
}

impl LargeFile {
    /// Completes the file after its last piece. A broken file is removed, or kept.
    fn finish(self, recovery: Option<&Recovery<'_>>) {
        let mut missing = std::mem::take(&mut *self.missing.lock());
        // Pieces are written in any order.
        missing.sort_by_key(|range| range.start);
        let Some(file) = Arc::into_inner(self.file) else {
            return;
        };
        let is_kept = match recovery {
            Some(recovery) if !missing.is_empty() => recovery.is_kept(&self.entry, &missing),
            _ => true,
        };
        if is_kept {
            // A failure is recorded.
            let _ = file.finish();
        }
    }
}

impl<'a> FileQueue<'a> {
    /// The next job.
    fn next(&mut self) -> Option<Work<'a, Written>> {
        loop {
            if self.target.has_ended() {
                return None;
            }
            if let Some(work) = self.next_piece() {
                return Some(work);
            }
            let first = self.files.front()?;
            if first.stored_bytes() <= WHOLE_BYTES_MAX {
                return Some(self.next_files());
            }
            let entry = self.files.pop_front()?;
            let stored_bytes = entry.stored_bytes();
            let known_bytes = self.known_bytes(&entry);
            let mut missing = vec![];
            if known_bytes < stored_bytes {
                let start = entry.content_offset.saturating_add(known_bytes);
                missing.push(start..entry.content_range().end);
            }
            let (true, Some(recovery)) = (known_bytes == 0, self.recovery) else {
                // Without a file, the failure was recorded.
                self.large = self.target.file(&entry).map(|file| {
                    // Unwritten zeros are a hole.
                    let _ = file.write_zeros_at(known_bytes, stored_bytes - known_bytes);
                    let large = LargeFile {
                        file: Arc::new(file),
                        entry: Arc::new(entry),
                        missing: Arc::new(Lock::new(missing)),
                    };
                    (large, 0..known_bytes)
                });
                continue;
            };
            if recovery.is_kept(&entry, &missing)
                && let Some(file) = self.target.file(&entry)
            {
                let _ = file.write_zeros_at(0, stored_bytes);
                // A failure is recorded.
                let _ = file.finish();
            }
        }
    }

    /// How much of a file's data is inside the known content.
    fn known_bytes(&self, entry: &Entry) -> u64 {
        let stored_bytes = entry.stored_bytes();
        match (self.recovery, self.content.is_open()) {
            (Some(_), true) => {
                let known = self.content.content_bytes();
                known.saturating_sub(entry.content_offset).min(stored_bytes)
            }
            _ => stored_bytes,
        }
    }

    fn next_piece(&mut self) -> Option<Work<'a, Written>> {
        let (large, left) = self.large.as_mut()?;
        let start = left.start;
        let end = (start + READ_BYTES).min(left.end);
        left.start = end;
        let is_last = left.is_empty();
        let large = large.clone();
        if is_last {
            self.large = None;
        }
        let content_start = large.entry.content_offset + start;
        let (content, recovery) = (self.content, self.recovery);
        Some(Work {
            content: content_start..content_start + (end - start),
            held_bytes: 0,
            run: Box::new(move || {
                let mut bytes = vec![0; (end - start) as usize];
                let mut missing = read(content, recovery, content_start, &mut bytes)?;
                let _stage = stage("restore", end - start);
                let part = (content_start, &bytes[..]);
                let data = data_of(content, recovery, &large.entry, part, &mut missing)?;
                // A failure is recorded.
                let _ = large.file.write_at(start, &data);
                let is_broken = !missing.is_empty();
                large.missing.lock().extend(missing);
                Ok(Written {
                    content_start,
                    bytes,
                    complete: is_last.then_some(large),
                    is_broken,
                })
            }),
        })
    }

    fn next_files(&mut self) -> Work<'a, Written> {
        let start = self.files.front().map_or(0, |entry| entry.content_offset);
        let (mut end, mut write_bytes, mut count) = (start, 0, 0);
        for entry in self.files.iter().take(FILES_MAX) {
            let range = entry.content_range();
            let is_far = range.start > end.saturating_add(GAP_BYTES_MAX);
            let is_much = write_bytes + entry.stored_bytes() > WRITE_BYTES;
            let is_large = entry.stored_bytes() > WHOLE_BYTES_MAX;
            if count > 0 && (is_far || is_much || is_large || range.end - start > 2 * READ_BYTES) {
                break;
            }
            end = end.max(range.end);
            write_bytes += entry.stored_bytes();
            count += 1;
        }
        let files: Vec<Entry> = self.files.drain(..count).collect();
        let (content, target, recovery) = (self.content, self.target, self.recovery);
        Work {
            content: start..end,
            held_bytes: files.iter().map(entry_bytes).sum::<usize>() as u64,
            run: Box::new(move || {
                let mut bytes = vec![0; (end - start) as usize];
                let missing = read(content, recovery, start, &mut bytes)?;
                let _stage = stage("restore", write_bytes);
                for entry in &files {
                    checkpoint();
                    let range = entry.content_range();
                    let mut lost = inside(&missing, &range);
                    let from = (range.start.saturating_sub(start)) as usize;
                    let stored = bytes.get(from..from + entry.stored_bytes() as usize);
                    let part = (range.start, stored.unwrap_or_default());
                    let data = data_of(content, recovery, entry, part, &mut lost)?;
                    if let (false, Some(recovery)) = (lost.is_empty(), recovery)
                        && !recovery.is_kept(entry, &lost)
                    {
                        continue;
                    }
                    // A failure is recorded.
                    target.write_file(entry, &data);
                }
                Ok(Written {
                    content_start: start,
                    bytes,
                    complete: None,
                    is_broken: !missing.is_empty(),
                })
            }),
        }
    }
}

/// The data of an entry, from a part of its content.
fn data_of<'b>(
    content: &dyn TreeContent,
    recovery: Option<&Recovery<'_>>,
    entry: &Entry,
    part: (u64, &'b [u8]),
    missing: &mut Vec<Range<u64>>,
) -> Result<Cow<'b, [u8]>> {
    if !entry.is_rebased {
        return Ok(Cow::Borrowed(part.1));
    }
    let file = entry.content_range();
    restored(content, recovery, file, part, missing).map(Cow::Owned)
}

/// Reads content. Returns the missing ranges, if the pass continues after damage.
fn read(
    content: &dyn TreeContent,
    recovery: Option<&Recovery<'_>>,
    start: u64,
    bytes: &mut [u8],
) -> Result<Vec<Range<u64>>> {
    match content.read(start, bytes, Depth::Whole) {
        Ok(()) => Ok(Vec::new()),
        Err(error) if goes_on(recovery, &error) => content.read_remains(start, bytes),
        Err(error) => Err(error),
    }
}
