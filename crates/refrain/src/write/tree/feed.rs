//! The content of a directory: any thread reads its files in batches, which are taken in an order
//! decided only by the entries.
//!
//! Equal files are stored once: the entry of a file whose BLAKE3 hash is known refers to the
//! content that is there already. New contents are appended to the member's content, in which
//! sibling versions of a file lie side by side ([`content_order`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_entries::{Entry, content_order};
use refrain_pool::{Lane, Lock};
use refrain_protect::SEGMENT_BYTES;

use refrain_filesystem::{FileRoot, OpenedFile, Prefetcher, Problem, Walker};

use crate::error::{Error, ErrorKind, Result};
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::feed::{ContentFeed, FeedStep};
use crate::write::tree::batch::{
    FileReading, LargeCode, Outcome, ReadBatch, ReadObject, path_below,
};
use crate::write::tree::content::ContentWriter;
use crate::write::tree::entry_list::{EntryList, PackJob, SharedEntries};
use crate::write::tree::file_data::{
    Follows, Piece, WHOLE_BYTES_MAX, end_at, piece_behind, pieces,
};
use crate::write::tree::jobs::Jobs;
use crate::write::tree::runs::RunSchedule;
use crate::write::tree::unchanged::{EarlierTree, Unchanged};
use crate::write::tree::window::{ListedWindow, Window};

/// The data of one batch, in bytes, unless a single file is larger.
const BATCH_BYTES: u64 = 1 << 20;
/// The maximum number of files in a batch.
const BATCH_FILES_MAX: usize = 512;
/// The memory of an entry in a window, in bytes: an estimate.
const ENTRY_BYTES: u64 = 256;

/// What could not be read, or changed while it was read, with the members' numbers.
pub(crate) type Problems = Arc<Lock<Vec<(usize, Problem)>>>;

enum JobResult {
    Listed {
        lister: Box<Lister>,
        window: Result<ListedWindow>,
    },
    Read {
        batch: u64,
        planned_bytes: u64,
        read: Result<ReadBatch>,
    },
    Packed(Result<()>),
}

/// A large file whose pieces are being read.
#[derive(Clone)]
struct LargeFile {
    index: u32,
    /// As opened.
    entry: Arc<Entry>,
    file: Arc<OpenedFile>,
    code: Option<Arc<LargeCode>>,
}

/// The window whose files are being read.
struct OpenWindow {
    window: Window,
    reading: Arc<FileReading>,
    /// The files in the order of their contents; unplanned starting at `next`.
    order: Vec<u32>,
    next: usize,
    /// The number of its batches planned and not taken.
    batches_left: u64,
}

pub(crate) struct DirectoryFeed {
    root: Arc<FileRoot>,
    root_path: PathBuf,
    name: PathBuf,
    is_strict: bool,
    code_bytes_min: u64,
    /// `None` while a job lists, and at the end.
    lister: Option<Box<Lister>>,
    /// The content before the member's own, to which its entries refer, too.
    earlier_bytes: Option<u64>,
    is_listed: bool,
    entries_per_window: usize,
    window: Option<OpenWindow>,
    /// Large files with unplanned pieces. They precede the next batch.
    large: VecDeque<(LargeFile, VecDeque<Piece>)>,
    /// Large files whose end was not taken yet, by the numbers of their entries.
    open_files: BTreeMap<u32, LargeFile>,
    /// Files that have more data than listed. They come last in the window, so that the order does
    /// not depend on when that was found.
    later: VecDeque<u32>,
    /// Whether a batch in flight may turn out to be a large file, whose pieces precede everything
    /// else.
    may_be_large: bool,
    next_batch: u64,
    next_taken: u64,
    read: BTreeMap<u64, ReadBatch>,
    bytes_in_flight: u64,
    jobs: Jobs<JobResult>,
    /// Buffers of taken batches.
    spare: Arc<Lock<Vec<Vec<u8>>>>,
    content: ContentWriter,
    list: EntryList,
    schedule: RunSchedule,
    runs: VecDeque<PackJob>,
    /// The paths of unreadable entries, which are also among the problems.
    lost: BTreeSet<Vec<u8>>,
    problems: Problems,
}

/// Lists what is to be stored.
struct Lister {
    walker: Walker,
    unchanged: Option<Unchanged>,
    list: SharedEntries,
}

impl Lister {
    fn next_window(&mut self, count: usize) -> Result<ListedWindow> {
        let Some(unchanged) = &mut self.unchanged else {
            let entries = self.walker.next_entries(count)?;
            let order = content_order(&entries);
            return Ok(ListedWindow::new(entries, order, BTreeMap::new()));
        };
        let walker = &mut self.walker;
        let mut walk = |count| walker.next_entries(count).map_err(Error::from);
        let changed = unchanged.next(count, &mut walk)?;
        self.list
            .add_layers(changed.more_entries, changed.more_view_bytes);
        self.list.add_unchanged(changed.unchanged_files);
        let mut order = content_order(&changed.entries);
        order.retain(|index| changed.known.binary_search(index).is_err());
        let predecessors = changed.predecessors;
        Ok(ListedWindow::new(changed.entries, order, predecessors))
    }
}

/// The files and lists of a directory member.
pub(crate) struct DirectoryInput {
    pub walker: Walker,
    pub root: FileRoot,
    pub root_path: PathBuf,
    /// The prefix of every path.
    pub name: PathBuf,
    pub is_strict: bool,
    /// The memory for entries, in bytes.
    pub window_bytes: u64,
    /// Entries are written at least this often, in bytes of content.
    pub run_bytes_max: u64,
    /// How much code makes a program one whose code is rebased, bytes.
    pub code_bytes_min: u64,
    /// The tree of an earlier generation, of which only the changes are stored.
    pub earlier: Option<EarlierTree>,
}

impl DirectoryFeed {
    pub(crate) fn new(
        input: DirectoryInput,
        content: ContentWriter,
        list: EntryList,
        problems: Problems,
    ) -> DirectoryFeed {
        DirectoryFeed {
            root: Arc::new(input.root),
            root_path: input.root_path,
            name: input.name,
            is_strict: input.is_strict,
            code_bytes_min: input.code_bytes_min,
            earlier_bytes: input.earlier.as_ref().map(|tree| tree.layers.earlier_bytes),
            lister: Some(Box::new(Lister {
                walker: input.walker,
                unchanged: input.earlier.map(Unchanged::new),
                list: list.shared(),
            })),
            is_listed: false,
            entries_per_window: (input.window_bytes / ENTRY_BYTES).max(64) as usize,
            window: None,
            large: VecDeque::new(),
            open_files: BTreeMap::new(),
            later: VecDeque::new(),
            may_be_large: false,
            next_batch: 0,
            next_taken: 0,
            read: BTreeMap::new(),
            bytes_in_flight: 0,
            jobs: Jobs::new(),
            spare: Arc::default(),
            content,
            list,
            schedule: RunSchedule::new(input.run_bytes_max),
            runs: VecDeque::new(),
            lost: BTreeSet::new(),
            problems,
        }
    }

    fn collect(&mut self, context: &PipelineContext) -> Result<()> {
        while let Some(result) = self.jobs.take() {
            match result {
                JobResult::Listed { mut lister, window } => {
                    self.report(lister.walker.take_problems());
                    self.open_window(lister, window?);
                }
                JobResult::Read {
                    batch,
                    planned_bytes,
                    read,
                } => {
                    let read = read?;
                    self.bytes_in_flight -= planned_bytes;
                    self.bytes_in_flight += read.bytes.len() as u64;
                    self.read.insert(batch, read);
                }
                JobResult::Packed(packed) => packed?,
            }
        }
        while let Some(batch) = self.read.remove(&self.next_taken) {
            self.next_taken += 1;
            self.take(batch, context)?;
            self.end_run();
        }
        Ok(())
    }

    /// Ends a run of entries, if there is enough content.
    fn end_run(&mut self) {
        let content_bytes = self.content.length_bytes();
        if let Some(open) = &mut self.window
            && self.schedule.is_due(content_bytes)
        {
            self.schedule.end_run(content_bytes);
            let picked = open.window.pick(self.list.next_run(), &self.lost);
            if !picked.picks.is_empty() {
                self.runs
                    .push_back(self.list.add_picked(picked, content_bytes));
            }
        }
    }

    fn report(&self, problems: Vec<Problem>) {
        let member = self.list.member_number();
        let problems = problems.into_iter().map(|problem| (member, problem));
        self.problems.lock().extend(problems);
    }

    fn open_window(&mut self, lister: Box<Lister>, listed: ListedWindow) {
        if listed.is_empty() {
            self.is_listed = true;
            return;
        }
        self.lister = Some(lister);
        let order = listed.order.clone();
        let window = Window::new(listed);
        let files = order
            .iter()
            .filter_map(|&index| window.entries().get(index as usize));
        let path = |entry| PathBuf::from(OsStr::from_bytes(path_below(&self.name, entry)));
        let prefetcher = Prefetcher::new(&self.root_path, files.map(path));
        self.window = Some(OpenWindow {
            reading: Arc::new(FileReading {
                root: self.root.clone(),
                window: window.entries().clone(),
                name: self.name.clone(),
                is_strict: self.is_strict,
                code_bytes_min: self.code_bytes_min,
                prefetcher,
            }),
            window,
            order,
            next: 0,
            batches_left: 0,
        });
    }

    /// Takes the next batch in order.
    fn take(&mut self, mut batch: ReadBatch, context: &PipelineContext) -> Result<()> {
        self.bytes_in_flight -= batch.bytes.len() as u64;
        self.report(std::mem::take(&mut batch.problems));
        self.open_window_mut()?.batches_left -= 1;
        for object in std::mem::take(&mut batch.objects) {
            self.take_object(object, &batch, context)?;
        }
        self.spare.lock().extend(batch.bytes.into_memory());
        self.may_be_large &= self.next_taken < self.next_batch;
        Ok(())
    }

    fn open_window_mut(&mut self) -> Result<&mut OpenWindow> {
        let internal = || Error::new(ErrorKind::Internal, "a batch without a window");
        self.window.as_mut().ok_or_else(internal)
    }

    fn take_object(
        &mut self,
        object: ReadObject,
        batch: &ReadBatch,
        context: &PipelineContext,
    ) -> Result<()> {
        let index = object.entry;
        let earlier_bytes = self.earlier_bytes.unwrap_or_default();
        match object.outcome {
            Outcome::Whole {
                range,
                hash,
                code,
                changed,
            } => {
                let listed = self.open_window_mut()?.reading.window.clone();
                let path = (listed.get(index as usize)).map_or(&[][..], |entry| &entry.path);
                let bytes = batch.bytes.get(range);
                let ranges = changed
                    .as_ref()
                    .and_then(|entry| entry.data_ranges.as_deref());
                let earlier = self.open_window_mut()?.window.predecessor(index, 0);
                let content = &mut self.content;
                let length_bytes = bytes.len() as u64;
                let offset = content.add_whole(bytes, hash, path, ranges, earlier, context)?;
                if code.is_some() {
                    content.note_rebased(offset..offset + length_bytes);
                }
                let open = self.open_window_mut()?;
                open.window.place(index, earlier_bytes + offset);
                if let Some(entry) = changed {
                    open.window.replace(index, Some(entry));
                }
                open.window.settle(index);
            }
            Outcome::Piece {
                range,
                piece,
                follows,
                problem,
            } if self.open_files.contains_key(&index) => {
                self.report(problem.into_iter().collect());
                self.take_piece(index, batch.bytes.get(range), &piece, follows, context)?;
            }
            Outcome::Unreadable(problem) if self.open_files.contains_key(&index) => {
                self.report(vec![problem]);
                self.open_window_mut()?.window.replace(index, None);
                self.end_file(index);
            }
            // Past the end of its file.
            Outcome::Piece { .. } | Outcome::Unreadable(_) => {}
            Outcome::Large { entry, file, code } => {
                let window = &mut self.open_window_mut()?.window;
                window.replace(index, Some(entry.clone()));
                let pieces = pieces(&entry).into();
                let file = LargeFile {
                    index,
                    entry: Arc::from(entry),
                    file,
                    code,
                };
                self.open_files.insert(index, file.clone());
                self.large.push_back((file, pieces));
            }
            Outcome::Later => self.later.push_back(index),
            Outcome::Gone => {
                let window = &mut self.open_window_mut()?.window;
                window.replace(index, None);
                window.settle(index);
            }
        }
        Ok(())
    }

    /// Takes a piece of a large file.
    fn take_piece(
        &mut self,
        index: u32,
        bytes: &[u8],
        piece: &Piece,
        follows: Follows,
        context: &PipelineContext,
    ) -> Result<()> {
        let Some(file) = self.open_files.get(&index).cloned() else {
            return Ok(());
        };
        let start = piece.range.start;
        let earlier_bytes = self.earlier_bytes.unwrap_or_default();
        if !bytes.is_empty() {
            let path = &file.entry.path;
            let earlier = self.open_window_mut()?.window.predecessor(index, start);
            let offset = self
                .content
                .add_piece(bytes, path, start, earlier, context)?;
            if piece.is_first {
                if file.code.is_some() {
                    let end = offset + file.entry.size_bytes;
                    self.content.note_rebased(offset..end);
                }
                self.open_window_mut()?
                    .window
                    .place(index, earlier_bytes + offset);
            }
        }
        let end = start + bytes.len() as u64;
        match follows {
            Follows::Next => {}
            Follows::More => {
                let piece = VecDeque::from([piece_behind(end)]);
                self.large.push_front((file, piece));
            }
            Follows::End => {
                let mut entry = Entry::clone(&file.entry);
                let is_whole = piece.is_last && end == piece.range.end;
                if !is_whole || entry.data_ranges.is_none() {
                    end_at(&mut entry, end);
                }
                if entry != *file.entry {
                    let window = &mut self.open_window_mut()?.window;
                    window.replace(index, Some(Box::new(entry)));
                }
                self.end_file(index);
            }
        }
        Ok(())
    }

    /// Nothing more of this file is read or taken.
    fn end_file(&mut self, index: u32) {
        self.large.retain(|(file, _)| file.index != index);
        self.open_files.remove(&index);
        if let Some(open) = &mut self.window {
            open.window.settle(index);
        }
    }

    /// The job that reads the next batch; `None` if the whole window is planned.
    fn plan_batch(&mut self) -> Option<FeedStep> {
        if !self.large.is_empty() {
            return self.plan_piece();
        }
        let open = self.window.as_mut()?;
        let entries = &open.reading.window;
        let size = |index: u32| {
            entries
                .get(index as usize)
                .map_or(0, |entry| entry.size_bytes)
        };
        let (mut bytes, mut count) = (0, 0);
        for &index in open.order[open.next..].iter().take(BATCH_FILES_MAX) {
            let next = size(index);
            if count > 0 && bytes + next > BATCH_BYTES {
                break;
            }
            bytes += next;
            count += 1;
        }
        if count == 0 {
            return self.plan_later();
        }
        let indices = open.order[open.next..open.next + count].to_vec();
        open.next += count;
        open.batches_left += 1;
        // No batch is planned until it is known, so that the order does not depend on the threads.
        self.may_be_large = bytes > WHOLE_BYTES_MAX;
        let planned_bytes = if self.may_be_large { 0 } else { bytes };
        let (reading, may_be_large) = (open.reading.clone(), self.may_be_large);
        Some(self.read_job(planned_bytes, move |memory| {
            reading.read_files(&indices, may_be_large, memory)
        }))
    }

    fn plan_piece(&mut self) -> Option<FeedStep> {
        let (file, pieces) = self.large.front_mut()?;
        let (file, piece) = (file.clone(), pieces.pop_front());
        if pieces.is_empty() {
            self.large.pop_front();
        }
        let piece = piece?;
        // Where a file ends is known when its last piece was read: more may follow.
        self.may_be_large |= piece.is_last && file.entry.data_ranges.is_none();
        let open = self.window.as_mut()?;
        open.batches_left += 1;
        let reading = open.reading.clone();
        let planned_bytes = piece.range.end - piece.range.start;
        Some(self.read_job(planned_bytes, move |memory| {
            let opened = (&*file.file, &*file.entry, file.code.as_deref());
            reading.read_piece(file.index, piece, opened, memory)
        }))
    }

    /// The job that reads the next file with more data than listed, once all others of the window
    /// were taken.
    fn plan_later(&mut self) -> Option<FeedStep> {
        let open = self.window.as_mut()?;
        if open.batches_left > 0 {
            return None;
        }
        let index = self.later.pop_front()?;
        open.batches_left += 1;
        let reading = open.reading.clone();
        self.may_be_large = true;
        Some(self.read_job(0, move |memory| reading.read_files(&[index], true, memory)))
    }

    fn read_job(
        &mut self,
        planned_bytes: u64,
        read: impl FnOnce(Vec<u8>) -> Result<ReadBatch> + Send + 'static,
    ) -> FeedStep {
        let batch = self.next_batch;
        self.next_batch += 1;
        self.bytes_in_flight += planned_bytes;
        let spare = self.spare.clone();
        self.jobs.start(Lane::Normal, move |_| {
            let memory = spare.lock().pop().unwrap_or_default();
            JobResult::Read {
                batch,
                planned_bytes,
                read: read(memory),
            }
        })
    }

    /// The job that lists the next window.
    fn list_job(&mut self, mut lister: Box<Lister>) -> FeedStep {
        let count = self.entries_per_window;
        self.jobs.start(Lane::Input, move |_| {
            let window = lister.next_window(count);
            JobResult::Listed { lister, window }
        })
    }

    /// The bytes read, or being read, that are in no segment yet.
    fn bytes_ahead(&self) -> u64 {
        self.bytes_in_flight + self.content.pending_bytes()
    }

    /// Whether every file of the window was taken.
    fn is_window_complete(&self) -> bool {
        self.large.is_empty()
            && self.later.is_empty()
            && self
                .window
                .as_ref()
                .is_some_and(|open| open.batches_left == 0 && open.next == open.order.len())
    }

    /// Adds the rest of the entries of the complete window.
    fn close_window(&mut self) {
        let Some(open) = self.window.take() else {
            return;
        };
        drop(open.reading);
        let (complete, problems) =
            (open.window).finish(&mut self.lost, self.earlier_bytes.is_some());
        self.report(problems);
        let content_bytes = self.content.length_bytes();
        self.schedule.end_run(content_bytes);
        self.runs
            .extend(self.list.add_rest(complete, content_bytes));
    }

    fn pack_job(&mut self) -> Option<FeedStep> {
        let pack = self.runs.pop_front()?;
        let packed = move |_: &PipelineContext| JobResult::Packed(pack.run());
        Some(self.jobs.start(Lane::Normal, packed))
    }
}

impl ContentFeed for DirectoryFeed {
    fn next(&mut self, room_bytes: u64, context: &PipelineContext) -> Result<FeedStep> {
        self.collect(context)?;
        // Packed before the content that follows is passed on, which their frames precede.
        if self.is_window_complete() {
            self.close_window();
        }
        if let Some(step) = self.pack_job() {
            return Ok(step);
        }
        if let Some(segment) = self.content.take_segment() {
            return Ok(FeedStep::Segment(segment));
        }
        if self.window.is_none() && !self.is_listed {
            let lister = self.lister.take();
            return Ok(lister.map_or(FeedStep::Wait, |lister| self.list_job(lister)));
        }
        // Counted after the results were taken: known content makes room.
        if self.bytes_ahead() < room_bytes
            && !self.may_be_large
            && let Some(step) = self.plan_batch()
        {
            return Ok(step);
        }
        if self.is_listed && !self.jobs.is_busy() {
            self.content.finish();
            return Ok(match self.content.take_segment() {
                Some(segment) => FeedStep::Segment(segment),
                None => FeedStep::Done,
            });
        }
        Ok(FeedStep::Wait)
    }

    // Directories are read only in their turn: their logs share memory.
    fn read_bytes(&self) -> u64 {
        self.bytes_in_flight
    }

    fn next_read_bytes_max(&self) -> u64 {
        BATCH_BYTES + WHOLE_BYTES_MAX
    }
}

const _: () = assert!(BATCH_BYTES >= SEGMENT_BYTES as u64);

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
