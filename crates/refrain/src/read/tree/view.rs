//! The tar view of a tree, produced in order by many threads.

use std::ops::Range;

use refrain_entries::tar::{TarView, ViewItem};
use refrain_protect::HASH_BYTES;
use refrain_storage::Sink;

use crate::damage::push_range;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, Watch};
use crate::read::content_limit::ContentMeter;
use crate::read::lost_entries::LostEntries;
use crate::read::store_reader::Depth;
use crate::read::tree::content::TreeContent;
use crate::read::tree::frame_entries::FrameEntries;
use crate::read::tree::parallel::{Work, run_in_order};
use crate::read::tree::read_hash::{ReadEntries, ReadHash};
use crate::read::tree::rebased::read_part;
use crate::read::tree::recovery::{Recovery, goes_on};
use crate::read::tree::view_frames::{malformed, view_of};

/// How much of the view one job produces: 1/64 of the memory within these limits, in bytes. Some
/// chunks for each thread are in memory.
const CHUNK_SHARE: u64 = 64;
const CHUNK_BYTES_MIN: u64 = 256 << 10;
const CHUNK_BYTES_MAX: u64 = 4 << 20;

/// A part of the view.
enum Part {
    Bytes(Vec<u8>),
    Content(Range<u64>),
    /// A range of the content that belongs to the rebased file at the other one.
    Rebased {
        range: Range<u64>,
        file: Range<u64>,
    },
    Zeros(u64),
}

impl Part {
    fn length_bytes(&self) -> u64 {
        match self {
            Part::Bytes(bytes) => bytes.len() as u64,
            Part::Content(range) | Part::Rebased { range, .. } => range.end - range.start,
            Part::Zeros(count) => *count,
        }
    }

    fn of_content(item: &ViewItem) -> Part {
        let range = item.content.clone();
        if !item.is_rebased {
            return Part::Content(range);
        }
        Part::Rebased {
            file: range.clone(),
            range,
        }
    }

    fn held_bytes(&self) -> u64 {
        match self {
            Part::Bytes(bytes) => bytes.len() as u64,
            Part::Content(_) | Part::Rebased { .. } | Part::Zeros(_) => 0,
        }
    }
}

/// Cuts a tree's view into chunks, entry by entry.
pub(crate) struct ViewPlanner<'a> {
    content: &'a dyn TreeContent,
    chunk_bytes: u64,
    view: TarView,
    next_frame: usize,
    /// The rest of the latest frame. Headers are made on demand: those of a whole frame may take
    /// several times its memory.
    entries: FrameEntries,
    /// How many of them are in `parts`.
    entries_done: usize,
    is_ended: bool,
    read_entries: ReadEntries,
    /// How to continue after damage; `None`: do not.
    recovery: Option<&'a Recovery<'a>>,
    lost: LostEntries,
    is_incomplete: bool,
    /// Parts of entries that are in no chunk yet.
    parts: std::collections::VecDeque<Part>,
    parts_bytes: u64,
}

impl<'a> ViewPlanner<'a> {
    /// `memory_bytes` is the reader's budget.
    pub(crate) fn new(content: &'a dyn TreeContent, memory_bytes: u64) -> ViewPlanner<'a> {
        let chunk_bytes = memory_bytes / CHUNK_SHARE;
        ViewPlanner {
            content,
            chunk_bytes: chunk_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX),
            view: view_of(content),
            next_frame: 0,
            entries: FrameEntries::default(),
            entries_done: 0,
            is_ended: false,
            read_entries: ReadEntries::new(),
            recovery: None,
            lost: LostEntries::default(),
            is_incomplete: false,
            parts: Default::default(),
            parts_bytes: 0,
        }
    }

    fn push(&mut self, item: ViewItem) {
        let content = Part::of_content(&item);
        let parts = [
            Part::Bytes(item.header),
            content,
            Part::Zeros(item.padding_bytes),
        ];
        for part in parts {
            let bytes = part.length_bytes();
            if bytes > 0 {
                self.parts_bytes += bytes;
                self.parts.push_back(part);
            }
        }
    }

    /// Adds the next entry, or reads more entries.
    fn advance(&mut self) -> Result<()> {
        if let Some(entry) = self.entries.get(self.entries_done) {
            let item = self.view.entry(entry).map_err(malformed)?;
            self.entries_done += 1;
            self.push(item);
            return Ok(());
        }
        if self.next_frame == self.content.entry_frames()? {
            self.is_ended = true;
            let end = self.view.end();
            self.push(end);
            return Ok(());
        }
        self.view.restart();
        match self.content.entries_of(self.next_frame) {
            Err(error) if goes_on(self.recovery, &error) => {
                self.is_incomplete = true;
                self.lost.count += self.content.stated_count(self.next_frame)?;
            }
            entries => {
                self.entries = entries?;
                self.entries_done = 0;
                self.read_entries.add(&self.entries);
            }
        }
        self.next_frame += 1;
        Ok(())
    }

    /// The parts of the next chunk; empty at the end.
    fn next_chunk(&mut self) -> Result<Vec<Part>> {
        while !self.is_ended && self.parts_bytes < self.chunk_bytes {
            self.advance()?;
        }
        let (mut chunk, mut left) = (vec![], self.chunk_bytes);
        while left > 0
            && let Some(part) = self.parts.pop_front()
        {
            let (part, rest) = split(part, left);
            left -= part.length_bytes();
            self.parts_bytes -= part.length_bytes();
            chunk.push(part);
            if let Some(rest) = rest {
                self.parts.push_front(rest);
            }
        }
        Ok(chunk)
    }
}

/// Splits a part after `length_bytes`, if it is longer.
fn split(part: Part, length_bytes: u64) -> (Part, Option<Part>) {
    if part.length_bytes() <= length_bytes {
        return (part, None);
    }
    match part {
        Part::Bytes(mut bytes) => {
            let rest = bytes.split_off(length_bytes as usize);
            (Part::Bytes(bytes), Some(Part::Bytes(rest)))
        }
        Part::Content(range) => {
            let middle = range.start + length_bytes;
            let first = Part::Content(range.start..middle);
            (first, Some(Part::Content(middle..range.end)))
        }
        Part::Rebased { range, file } => {
            let middle = range.start + length_bytes;
            let part = |range| Part::Rebased {
                range,
                file: file.clone(),
            };
            (part(range.start..middle), Some(part(middle..range.end)))
        }
        Part::Zeros(count) => (
            Part::Zeros(length_bytes),
            Some(Part::Zeros(count - length_bytes)),
        ),
    }
}

struct Chunk {
    bytes: Vec<u8>,
    content: Vec<ChunkContent>,
    /// The missing ranges of the chunk, and why.
    missing: Vec<Range<u64>>,
    error: Option<Error>,
}

/// The content in a chunk.
struct ChunkContent {
    /// Its offset in the chunk.
    at: usize,
    /// Its range in the member.
    range: Range<u64>,
    /// The stored bytes, if the chunk has others.
    stored: Option<Vec<u8>>,
}

/// The bytes of a chunk.
fn produce(content: &dyn TreeContent, parts: Vec<Part>) -> Result<Chunk> {
    let length: u64 = parts.iter().map(Part::length_bytes).sum();
    let mut chunk = Chunk {
        bytes: vec![0; length as usize],
        content: Vec::new(),
        missing: Vec::new(),
        error: None,
    };
    let mut at = 0;
    for part in parts {
        let end = at + part.length_bytes() as usize;
        let target = (chunk.bytes.get_mut(at..end))
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a chunk is too short"))?;
        match part {
            Part::Bytes(header) => target.copy_from_slice(&header),
            Part::Content(range) => {
                match content.read(range.start, target, Depth::Whole) {
                    Err(error) if error.kind == ErrorKind::Damaged => {
                        for lost in content.read_remains(range.start, target)? {
                            let (from, to) = (lost.start - range.start, lost.end - range.start);
                            push_range(&mut chunk.missing, at as u64 + from..at as u64 + to);
                        }
                        chunk.error.get_or_insert(error);
                    }
                    read => read?,
                }
                chunk.content.push(ChunkContent {
                    at,
                    range,
                    stored: None,
                });
            }
            Part::Rebased { range, file } => {
                let part = read_part(content, &file, range.start, target)?;
                for lost in part.missing {
                    let (from, to) = (lost.start - range.start, lost.end - range.start);
                    push_range(&mut chunk.missing, at as u64 + from..at as u64 + to);
                }
                chunk.error = chunk.error.or(part.error);
                chunk.content.push(ChunkContent {
                    at,
                    range,
                    stored: Some(part.stored),
                });
            }
            Part::Zeros(_) => {}
        }
        at = end;
    }
    Ok(chunk)
}

/// Where a tree's view goes, and what it is compared with.
pub(crate) struct ViewOutput<'a> {
    pub sink: &'a mut dyn Sink,
    pub threads: usize,
    /// The length of the view.
    pub total_bytes: u64,
    pub memory_bytes: u64,
    /// The hash of the content, if it is to be compared.
    pub blake3: Option<&'a [u8; HASH_BYTES]>,
    /// Counts the bytes of the view.
    pub meter: &'a ContentMeter,
    /// How to continue after damage; `None`: stop there.
    pub recovery: Option<&'a Recovery<'a>>,
}

/// Writes the tar view of a tree to a sink, without publishing it. Returns whether all content was
/// compared with its hash, which is skipped if it takes too much memory. Everything before damage
/// is written. With a recovery that keeps broken files, missing content is replaced by zeros, and
/// lost entries are left out.
///
/// # Errors
/// `Damaged` and others for the frames that are read, errors of the sink, `Cancelled`.
pub(crate) fn write_view(
    content: &dyn TreeContent,
    output: ViewOutput<'_>,
    watch: &dyn Watch,
) -> Result<bool> {
    output.meter.check(output.total_bytes)?;
    let mut planner = ViewPlanner::new(content, output.memory_bytes);
    planner.recovery = output.recovery.filter(|recovery| recovery.keep_broken);
    planner.lost = content.lost_entries();
    planner.is_incomplete = !planner.lost.is_none();
    let mut hash = ReadHash::new(
        content.content_bytes(),
        output
            .blake3
            .filter(|_| !content.is_open() && content.has_all_content()),
        output.memory_bytes,
    );
    let mut written = 0;
    let mut missing = vec![];
    let ended = run_in_order(
        content,
        output.threads,
        watch,
        &mut || {
            let parts = planner.next_chunk()?;
            if parts.is_empty() {
                return Ok(None);
            }
            Ok(Some(Work {
                content: content_of(&parts),
                held_bytes: parts.iter().map(Part::held_bytes).sum(),
                run: Box::new(move || produce(content, parts)),
            }))
        },
        &mut |chunk: Chunk| {
            let mut bytes = &chunk.bytes[..];
            let first = chunk.missing.first().map(|first| first.start as usize);
            let is_kept = output.recovery.is_some_and(|recovery| recovery.keep_broken);
            if let Some(first) = first {
                hash.end();
                chunk.missing.iter().for_each(|lost| {
                    push_range(&mut missing, written + lost.start..written + lost.end);
                });
                if !is_kept {
                    bytes = &bytes[..first];
                }
            }
            for content in chunk.content {
                let end = content.at + (content.range.end - content.range.start) as usize;
                if let Some(shown) = bytes.get(content.at..end) {
                    hash.add(
                        content.range.start,
                        content.stored.as_deref().unwrap_or(shown),
                    );
                }
            }
            output.meter.add(bytes.len() as u64)?;
            output.sink.write_all(bytes)?;
            written += bytes.len() as u64;
            if let (false, Some(error)) = (is_kept, chunk.error) {
                return Err(error);
            }
            watch.progress(&Progress {
                content_bytes_done: written,
                content_bytes_total: Some(output.total_bytes),
                archive_bytes: 0,
            });
            Ok(())
        },
    );
    let is_incomplete = planner.is_incomplete;
    if let Some(recovery) = output.recovery
        && (is_incomplete || !missing.is_empty() || ended.is_err())
    {
        return broken(
            recovery,
            &planner,
            ended,
            (written, output.total_bytes),
            missing,
        );
    }
    ended?;
    if is_incomplete {
        return Err(Error::damaged("a part of the list of entries is missing"));
    }
    if written != output.total_bytes {
        return Err(Error::damaged(format!(
            "the tar stream has {written} bytes, the archive states {}",
            output.total_bytes
        )));
    }
    planner.read_entries.compare(content)?;
    hash.compare()
}

/// Records what is missing in a view, after `written` of `total` bytes.
fn broken(
    recovery: &Recovery<'_>,
    planner: &ViewPlanner<'_>,
    ended: Result<()>,
    (written, total): (u64, u64),
    missing: Vec<Range<u64>>,
) -> Result<bool> {
    match ended {
        Err(error) if error.kind != ErrorKind::Damaged => return Err(error),
        _ => {}
    }
    // If the end of the list is lost, the length of the stream is unknown.
    let end = if total > written && !planner.lost.may_be_more { total } else { u64::MAX };
    let unwritten = written..end;
    let missing = if recovery.keep_broken { missing } else { vec![unwritten] };
    recovery.lost_entries(LostEntries {
        may_be_more: planner.lost.may_be_more || planner.is_incomplete,
        ..planner.lost
    });
    if !missing.is_empty() {
        recovery.view(total, written, missing);
    }
    Ok(false)
}

/// The content range of a chunk's first part and the parts that continue it.
fn content_of(parts: &[Part]) -> Range<u64> {
    let mut whole: Option<Range<u64>> = None;
    for part in parts {
        if let Part::Content(range) | Part::Rebased { range, .. } = part {
            whole = match whole {
                None => Some(range.clone()),
                Some(found) if range.start == found.end => Some(found.start..range.end),
                found => found,
            };
        }
    }
    whole.unwrap_or(0..0)
}
