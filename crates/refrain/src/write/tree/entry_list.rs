//! A tree's list of entries during writing: packed run by run, so that memory holds only the packed
//! form, and written along with the content.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use refrain_codec::{BlockPlan, CodecId, Workspace, encode_block};
use refrain_entries::tar::TarView;
use refrain_entries::{EntryKind, ascend, compare_paths};
use refrain_format::{
    EntriesHasher, EntriesHeader, Entry, FrameKind, IndexSlice, entry_batches, frame_with_parity,
    pack_entries,
};
use refrain_pool::Lock;
use refrain_protect::DigestHasher;

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{file_paths, files};
use crate::store::coding::coding;
use crate::store::workspaces::new_workspace;
use crate::write::tree::order::{EntriesFrame, PackedFrame, RunSlice, slices};
use crate::write::tree::window::{CompleteWindow, Pick, PickedEntries};

/// The zstd level of entries. Compared with level 9 it takes a tenth off the entries of many
/// versions of a tree, at 0.2 µs for each; decoding is as fast.
const ENTRIES_LEVEL: i32 = 15;

/// Entries packed together, and written with the content up to `content_end`.
struct EntryRun {
    content_end: u64,
    /// `None` while a job packs them.
    frames: Option<Vec<EntriesFrame>>,
}

/// The packed entries of a member.
#[derive(Default)]
struct PackedList {
    /// The runs not taken yet, in order.
    runs: VecDeque<EntryRun>,
    runs_taken: u64,
    /// What slices need to know about each frame of the taken runs.
    taken: Vec<Vec<PackedFrame>>,
    /// The order of a tree's entries by path.
    order: Vec<RunSlice>,
    entry_count: u64,
    /// Those of them that hide a path of the tree's layers.
    removed_count: u64,
    /// Entries of layers, which are not in the list.
    layer_count: u64,
    file_count: u64,
    /// Files that were not read, because they are as in an earlier generation.
    unchanged_count: u64,
    view_bytes: u64,
    is_unsorted: bool,
    hasher: EntriesHasher,
    kind: Option<StreamKind>,
    digests: Vec<DigestHasher>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// A tar stream.
    Tar,
    /// Anything else: it has no entries.
    Other,
}

/// Whose headers the member's tar view has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewKind {
    /// Canonical headers: a directory.
    Canonical,
    /// The headers of the tar stream that was taken apart.
    Recorded,
}

impl ViewKind {
    fn tar_view(self) -> TarView {
        match self {
            ViewKind::Canonical => TarView::canonical(),
            ViewKind::Recorded => TarView::recorded(),
        }
    }
}

/// Collects the entries of a member.
pub(crate) struct EntryList {
    member_id: u64,
    /// The number of the member in its run.
    member_number: usize,
    view: ViewKind,
    entry_count: u64,
    next_run: u32,
    last_path: Vec<u8>,
    /// The last path of a tree's complete windows, in path order.
    last_in_order: Vec<u8>,
    packed: SharedEntries,
    names_files: bool,
}

/// The packed entries, shared with the writer of the member's end.
#[derive(Clone, Default)]
pub(crate) struct SharedEntries(Arc<Lock<PackedList>>);

pub(crate) struct CompleteList {
    pub frames: Vec<EntriesFrame>,
    pub entry_count: u64,
    /// The number of all entries of a layered tree.
    pub tree_entry_count: u64,
    /// The number of entries other than directories.
    pub file_count: u64,
    /// The number of files that were not read, because they are as in an earlier generation.
    pub unchanged_count: u64,
    /// The path order of a tree whose frames are in another order.
    pub slices: Vec<IndexSlice>,
    /// Whether all paths ascend, frame by frame.
    pub is_sorted: bool,
    /// The hash of all entries.
    pub entries_hash: [u8; 32],
    /// The length of the member as a tar stream.
    pub view_bytes: u64,
    /// Digests of the stream, if it was read as one.
    pub digests: Vec<DigestHasher>,
}

impl SharedEntries {
    /// What the stream turned out to be; `None` for a directory, or if unknown.
    pub(crate) fn stream_kind(&self) -> Option<StreamKind> {
        self.0.lock().kind
    }

    /// The tree has so many more entries in its layers, which take so much of its tar view.
    pub(crate) fn add_layers(&self, entry_count: u64, view_bytes: u64) {
        let mut packed = self.0.lock();
        packed.layer_count += entry_count;
        packed.view_bytes = packed.view_bytes.saturating_add(view_bytes);
    }

    /// So many more files were not read.
    pub(crate) fn add_unchanged(&self, file_count: u64) {
        self.0.lock().unchanged_count += file_count;
    }

    /// Whether all runs with content before `content_end` are packed. They are added before later
    /// content is passed on.
    pub(crate) fn is_packed_up_to(&self, content_end: u64) -> bool {
        let list = self.0.lock();
        let mut runs = list.runs.iter();
        runs.all(|run| run.frames.is_some() || run.content_end >= content_end)
    }

    /// Takes the next frames, those with content before `content_end`, which are packed.
    pub(crate) fn take_up_to(&self, content_end: u64) -> Vec<EntriesFrame> {
        self.0.lock().take_up_to(content_end)
    }

    /// Takes the rest of the list. All runs must be packed.
    pub(crate) fn take(&self) -> CompleteList {
        let mut list = std::mem::take(&mut *self.0.lock());
        let frames = list.take_up_to(u64::MAX);
        CompleteList {
            slices: if list.is_unsorted { slices(&list.order, &list.taken) } else { Vec::new() },
            frames,
            entry_count: list.entry_count,
            tree_entry_count: list.layer_count + list.entry_count - list.removed_count,
            file_count: list.file_count,
            unchanged_count: list.unchanged_count,
            is_sorted: list.entry_count > 0 && !list.is_unsorted,
            entries_hash: list.hasher.value(),
            view_bytes: list.view_bytes,
            digests: list.digests,
        }
    }
}

impl PackedList {
    fn take_up_to(&mut self, content_end: u64) -> Vec<EntriesFrame> {
        let is_due = |run: &mut EntryRun| run.frames.is_some() && run.content_end < content_end;
        let mut frames = vec![];
        while let Some(run) = self.runs.pop_front_if(is_due) {
            self.runs_taken += 1;
            let run = run.frames.unwrap_or_default();
            self.taken.push(run.iter().map(PackedFrame::pack).collect());
            frames.extend(run);
        }
        frames
    }

    /// The place of a run not taken yet.
    fn run(&mut self, number: u64) -> Option<&mut EntryRun> {
        let at = number.checked_sub(self.runs_taken)?;
        self.runs.get_mut(usize::try_from(at).ok()?)
    }
}

impl EntryList {
    pub(crate) fn new(member_id: u64, view: ViewKind, names_files: bool) -> EntryList {
        let packed = SharedEntries::default();
        packed.0.lock().view_bytes = view.tar_view().end().view_bytes();
        EntryList {
            member_id,
            member_number: member_id as usize,
            view,
            entry_count: 0,
            next_run: 0,
            last_path: Vec::new(),
            last_in_order: Vec::new(),
            packed,
            names_files,
        }
    }

    /// Of the member with this number in its run, where it is not the id.
    pub(crate) fn numbered(self, member_number: usize) -> EntryList {
        EntryList {
            member_number,
            ..self
        }
    }

    /// The number of the member in its run.
    pub(crate) fn member_number(&self) -> usize {
        self.member_number
    }

    pub(crate) fn shared(&self) -> SharedEntries {
        self.packed.clone()
    }

    /// Records what the stream is.
    pub(crate) fn set_kind(&self, kind: StreamKind) {
        self.packed.0.lock().kind = Some(kind);
    }

    pub(crate) fn set_digests(&self, digests: Vec<DigestHasher>) {
        self.packed.0.lock().digests = digests;
    }

    /// Adds the next entries of a stream, with content before `content_end`. Returns the job that
    /// packs them.
    pub(crate) fn add(&mut self, entries: Vec<Entry>, content_end: u64) -> PackJob {
        let named = entries.iter().filter(|entry| entry.kind != EntryKind::Raw);
        let paths = named.map(|entry| &entry.path[..]).collect::<Vec<_>>();
        let is_sorted = ascend(paths.iter().copied());
        self.note_order(paths.first().copied(), paths.last().copied(), is_sorted);
        self.packed.0.lock().hasher.update(&entries);
        self.job(RunEntries::All(entries), content_end)
    }

    pub(crate) fn next_run(&self) -> u32 {
        self.next_run
    }

    /// Adds some entries of a tree's window, in path order, before the others are complete.
    pub(crate) fn add_picked(&mut self, picked: PickedEntries, content_end: u64) -> PackJob {
        let path = |pick: Option<&Pick>| {
            let entry = pick.and_then(|pick| picked.listed.get(pick.index as usize));
            entry.map(|entry| &entry.path[..])
        };
        self.note_order(path(picked.picks.first()), path(picked.picks.last()), true);
        self.job(RunEntries::Picked(picked), content_end)
    }

    /// Adds the entries of a tree's window that are in no run yet, and records the order of all.
    pub(crate) fn add_rest(&mut self, window: CompleteWindow, content_end: u64) -> Option<PackJob> {
        let CompleteWindow { entries, runs } = window;
        let run = self.next_run;
        let run_of = |entry: usize| runs.get(entry).copied().flatten().unwrap_or(run);
        let mut packed = self.packed.0.lock();
        packed.hasher.update(&entries);
        let (mut next, mut at) = (BTreeMap::<u32, u64>::new(), 0);
        while at < entries.len() {
            let count = (at..entries.len()).take_while(|&entry| run_of(entry) == run_of(at));
            let count = count.count();
            let first_entry = next.entry(run_of(at)).or_default();
            packed.order.push(RunSlice {
                run: run_of(at),
                first_entry: *first_entry,
                entry_count: count as u64,
                separator: IndexSlice::separator_of(&self.last_in_order, &entries[at].path),
            });
            *first_entry += count as u64;
            at += count;
            (self.last_in_order).clone_from(&entries[at - 1].path);
        }
        drop(packed);
        let rest: Vec<_> = if !runs.iter().any(Option::is_some) {
            entries
        } else {
            let mut runs = runs.into_iter();
            let is_rest = |_: &Entry| runs.next().flatten().is_none();
            let mut entries = entries;
            entries.retain(is_rest);
            entries
        };
        let (first, last) = (rest.first()?, rest.last()?);
        self.note_order(Some(&first.path), Some(&last.path), true);
        Some(self.job(RunEntries::All(rest), content_end))
    }

    fn job(&mut self, entries: RunEntries, content_end: u64) -> PackJob {
        let count = entries.len() as u64;
        let mut packed = self.packed.0.lock();
        packed.entry_count += count;
        packed.runs.push_back(EntryRun {
            content_end,
            frames: None,
        });
        drop(packed);
        let job = PackJob {
            member_id: self.member_id,
            view: self.view,
            first_entry: self.entry_count,
            run: u64::from(self.next_run),
            packed: self.packed.clone(),
            entries,
            names_files: self.names_files,
        };
        self.entry_count += count;
        self.next_run += 1;
        job
    }

    /// Compares the paths of a run with those of the runs before.
    fn note_order(&mut self, first: Option<&[u8]>, last: Option<&[u8]>, is_sorted: bool) {
        let Some(first) = first else {
            return;
        };
        let follows = self.last_path.is_empty() || compare_paths(&self.last_path, first).is_lt();
        self.last_path.clear();
        self.last_path.extend_from_slice(last.unwrap_or(first));
        if !follows || !is_sorted {
            self.packed.0.lock().is_unsorted = true;
        }
    }
}

enum RunEntries {
    All(Vec<Entry>),
    Picked(PickedEntries),
}

impl Default for RunEntries {
    fn default() -> RunEntries {
        RunEntries::All(Vec::new())
    }
}

impl RunEntries {
    fn len(&self) -> usize {
        match self {
            RunEntries::All(entries) => entries.len(),
            RunEntries::Picked(picked) => picked.picks.len(),
        }
    }

    fn into_entries(self) -> Vec<Entry> {
        match self {
            RunEntries::All(entries) => entries,
            RunEntries::Picked(picked) => picked.into_entries(),
        }
    }
}

/// Packs the entries of a run.
pub(crate) struct PackJob {
    member_id: u64,
    view: ViewKind,
    first_entry: u64,
    run: u64,
    packed: SharedEntries,
    entries: RunEntries,
    names_files: bool,
}

impl PackJob {
    pub(crate) fn run(mut self) -> Result<()> {
        let entries = std::mem::take(&mut self.entries).into_entries();
        let mut frames = encode_entries(self.member_id, self.first_entry, &entries)?;
        if let Some(last) = frames.last_mut().filter(|_| self.names_files) {
            last.named = file_paths(&entries);
        }
        if self.view == ViewKind::Recorded && frames.len() > 1 {
            // The view restarts where the splitter did: at the start of the window.
            let message = "the entries of a tar stream do not fit one frame";
            return Err(Error::new(ErrorKind::Internal, message));
        }
        let view_bytes = self.view_bytes(&entries)?;
        let mut packed = self.packed.0.lock();
        packed.view_bytes += view_bytes;
        packed.file_count += files(&entries).count() as u64;
        packed.removed_count += entries.iter().filter(|entry| is_removed(entry)).count() as u64;
        if let Some(run) = packed.run(self.run) {
            run.frames = Some(frames);
        }
        Ok(())
    }

    fn view_bytes(&self, entries: &[Entry]) -> Result<u64> {
        let mut view = self.view.tar_view();
        let mut bytes = 0_u64;
        for entry in entries.iter().filter(|entry| !is_removed(entry)) {
            let item = view
                .entry(entry)
                .map_err(|error| Error::new(ErrorKind::Internal, error))?;
            bytes = bytes.saturating_add(item.view_bytes());
        }
        Ok(bytes)
    }
}

fn is_removed(entry: &Entry) -> bool {
    entry.kind == EntryKind::Removed
}

/// The frames of consecutive entries.
pub(crate) fn encode_entries(
    member_id: u64,
    mut first_entry: u64,
    entries: &[Entry],
) -> Result<Vec<EntriesFrame>> {
    let mut workspace = new_workspace();
    let frames = entry_batches(entries).map(|batch| {
        let frame = encode_batch(&mut workspace, member_id, first_entry, batch)?;
        first_entry += frame.header.entry_count;
        Ok(frame)
    });
    frames.collect()
}

/// The codec of entries, whose blocks are small.
pub(crate) const ENTRIES_CODEC: CodecId = CodecId::ZSTD;

fn encode_batch(
    workspace: &mut Workspace,
    member_id: u64,
    first_entry: u64,
    batch: &[Entry],
) -> Result<EntriesFrame> {
    let packed = pack_entries(batch)?;
    let mut builder = EntriesHeader::builder(&packed, Vec::new());
    let plan = BlockPlan::plain(ENTRIES_CODEC, ENTRIES_LEVEL);
    let description = encode_block(workspace, &packed.raw, &plan, builder.payload())?;
    let header = EntriesHeader::new(member_id, first_entry, &packed, coding(&description)?);
    Ok(EntriesFrame {
        bytes: frame_with_parity(FrameKind::Entries, &header.finish(builder)?)?,
        header,
        last_path: batch.last().map_or(Vec::new(), |entry| entry.path.clone()),
        named: Vec::new(),
    })
}
