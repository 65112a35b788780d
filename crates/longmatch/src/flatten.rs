//! Step D, the serial pass: turns the matches and runs of an epoch into extents into the store.
//!
//! Here the store offset of every byte is known, so here it is decided which repeats become
//! extents: a repeat whose source is inside the codec's window (same block, near enough) must be
//! much longer than others.
#![forbid(unsafe_code)]

use std::ops::Range;

use crate::check_in::STEPS_PER_CHECK_IN;
use crate::epoch::Epoch;
use crate::extent::{Extent, Pattern};
use crate::find::{Match, MatchSource};
use crate::params::{RESUME_GAP_MAX, RESUME_MIN, Rules};

/// The shortest part of a fill that becomes a fill again when a match covers it.
const FILL_PART_MIN: u32 = 128;

/// The extents of an epoch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FlatEpoch {
    /// In the order of content; their lengths add up to the epoch's.
    pub extents: Vec<Extent>,
    /// The position of each extent in the epoch.
    pub starts: Vec<u32>,
    /// The store offset of each extent; unused for fills and known ranges.
    offsets: Vec<u64>,
    /// The fresh bytes as ranges of the epoch, in the order in which they are appended to the
    /// store.
    pub fresh: Vec<Range<u32>>,
    /// The number of fresh bytes.
    pub fresh_bytes: u64,
    /// How many of them are repeats that are left to the codec, because their source is inside its
    /// window.
    pub near_bytes: u64,
}

impl FlatEpoch {
    /// Creates an empty result with capacity for `count` matches and the fresh bytes between them,
    /// because growing would copy the lists repeatedly.
    fn for_matches(count: usize) -> FlatEpoch {
        let extents = count * 2 + 1;
        FlatEpoch {
            extents: Vec::with_capacity(extents),
            starts: Vec::with_capacity(extents),
            offsets: Vec::with_capacity(extents),
            ..FlatEpoch::default()
        }
    }

    /// Returns the store offset of extent `number`, which must be fresh or a copy.
    pub(crate) fn offset(&self, number: usize) -> u64 {
        self.offsets.get(number).copied().unwrap_or_default()
    }

    /// Calls `each(segment, anchor, offset_in_store)` for every anchor whose whole window of
    /// `window` bytes is fresh.
    pub(crate) fn fresh_anchors(
        &self,
        epoch: &Epoch<'_>,
        window: u32,
        mut each: impl FnMut(usize, usize, u64),
    ) {
        let mut extent = 0;
        for (number, segment) in epoch.segments().iter().enumerate() {
            let positions = &segment.scan.positions;
            let mut anchor = 0;
            while let Some(&start) = self.starts.get(extent)
                && start < segment.end()
            {
                if let Extent::Fresh { length } = self.extents[extent] {
                    // Positions in the segment that are fresh with their whole windows: from `low`
                    // to before `high`.
                    let low = start.saturating_sub(segment.start);
                    let high = (start + length as u32 + 1).saturating_sub(segment.start + window);
                    // A linear scan: fresh extents are many, and few anchors lie between them.
                    while positions
                        .get(anchor)
                        .is_some_and(|&position| position < low)
                    {
                        anchor += 1;
                    }
                    while let Some(&position) = positions.get(anchor)
                        && position < high
                    {
                        let inside = u64::from(segment.start + position - start);
                        each(number, anchor, self.offsets[extent] + inside);
                        anchor += 1;
                    }
                }
                if start + self.extents[extent].length() as u32 > segment.end() {
                    break;
                }
                extent += 1;
            }
        }
    }
}

/// Turns the matches of an epoch, one list per segment, into extents. `store_start` is the length
/// of the store before the epoch. `block_start` is where its last block begins; blocks of the
/// rules' size follow from there. Calls `check_in` about every 100 µs.
pub fn flatten(
    epoch: &Epoch<'_>,
    matches: &[Vec<Match>],
    store_start: u64,
    block_start: u64,
    rules: &Rules,
    check_in: fn(),
) -> FlatEpoch {
    debug_assert!(block_start <= store_start);
    let mut builder = FlatEpochBuilder {
        epoch,
        rules,
        flat: FlatEpoch::for_matches(matches.iter().map(Vec::len).sum()),
        block_start,
        store_end: store_start,
        at: 0,
    };
    for (number, repeat) in join(in_order(epoch, matches), epoch).enumerate() {
        if number.is_multiple_of(STEPS_PER_CHECK_IN) {
            check_in();
        }
        builder.fresh_until(repeat.start);
        match repeat.kind {
            RepeatKind::Run { period } => builder.fill(repeat.start, repeat.length, period),
            RepeatKind::Known { offset_in_content } => {
                builder.push_known(repeat.length, offset_in_content)
            }
            RepeatKind::Match(MatchSource::Store(offset)) => {
                builder.copy(repeat.length, offset, repeat.is_continuation)
            }
            RepeatKind::Match(MatchSource::Epoch(from)) => {
                builder.copy_of_epoch(repeat.length, from)
            }
            RepeatKind::Match(MatchSource::Content(offset)) => {
                builder.push_known(repeat.length, offset)
            }
        }
    }
    builder.fresh_until(epoch.length());
    builder.flat
}

#[derive(Clone, Copy)]
struct Repeat {
    start: u32,
    length: u32,
    kind: RepeatKind,
    /// Whether it is a match that became an extent in earlier content too.
    is_continuation: bool,
}

#[derive(Clone, Copy)]
enum RepeatKind {
    Run { period: u8 },
    Known { offset_in_content: u64 },
    Match(MatchSource),
}

/// Iterates over the runs, known ranges and matches of all segments in the order of content.
fn in_order<'a>(
    epoch: &Epoch<'a>,
    matches: &'a [Vec<Match>],
) -> impl Iterator<Item = Repeat> + use<'a> {
    epoch
        .segments()
        .iter()
        .zip(matches)
        .flat_map(|(segment, matches)| {
            let mut known = segment.scan.known.iter().peekable();
            let mut runs = segment.scan.runs.iter().peekable();
            let mut matches = matches.iter().peekable();
            std::iter::from_fn(move || {
                let later_start = match (runs.peek(), matches.peek()) {
                    (Some(run), Some(found)) => (segment.start + run.start).min(found.start),
                    (Some(run), None) => segment.start + run.start,
                    (None, Some(found)) => found.start,
                    (None, None) => u32::MAX,
                };
                if let Some(range) =
                    known.next_if(|range| segment.start + range.start < later_start)
                {
                    return Some(Repeat {
                        start: segment.start + range.start,
                        length: range.length,
                        kind: RepeatKind::Known {
                            offset_in_content: range.offset_in_content,
                        },
                        is_continuation: false,
                    });
                }
                let run_first = match (runs.peek(), matches.peek()) {
                    (Some(run), Some(found)) => segment.start + run.start < found.start,
                    (run, _) => run.is_some(),
                };
                if run_first {
                    let run = runs.next()?;
                    let kind = RepeatKind::Run { period: run.period };
                    return Some(Repeat {
                        start: segment.start + run.start,
                        length: run.length,
                        kind,
                        is_continuation: false,
                    });
                }
                let found = matches.next()?;
                let kind = match found.source {
                    MatchSource::Content(offset_in_content) => {
                        RepeatKind::Known { offset_in_content }
                    }
                    source => RepeatKind::Match(source),
                };
                Some(Repeat {
                    start: found.start,
                    length: found.length,
                    kind,
                    is_continuation: found.is_continuation,
                })
            })
        })
}

/// Joins repeats that continue each other, mostly across segment borders.
fn join<'a>(
    mut repeats: impl Iterator<Item = Repeat> + 'a,
    epoch: &'a Epoch<'a>,
) -> impl Iterator<Item = Repeat> + 'a {
    let mut pending = repeats.next();
    std::iter::from_fn(move || {
        let mut current = pending.take()?;
        for next in repeats.by_ref() {
            if continues(&current, &next, epoch) {
                current.length += next.length;
                current.is_continuation |= next.is_continuation;
            } else {
                pending = Some(next);
                break;
            }
        }
        Some(current)
    })
}

fn continues(first: &Repeat, second: &Repeat, epoch: &Epoch<'_>) -> bool {
    if first.start + first.length != second.start {
        return false;
    }
    match (first.kind, second.kind) {
        (RepeatKind::Match(MatchSource::Store(a)), RepeatKind::Match(MatchSource::Store(b))) => {
            a + u64::from(first.length) == b
        }
        (RepeatKind::Match(MatchSource::Epoch(a)), RepeatKind::Match(MatchSource::Epoch(b))) => {
            a + first.length == b
        }
        (RepeatKind::Run { period: a }, RepeatKind::Run { period: b }) if a == b => {
            let period = u32::from(a);
            same_bytes(
                epoch,
                second.start - period,
                second.start,
                period.min(second.length),
            )
        }
        _ => false,
    }
}

fn same_bytes(epoch: &Epoch<'_>, a: u32, b: u32, length: u32) -> bool {
    (0..length).all(|i| {
        epoch
            .slices(a + i, a + i + 1)
            .eq(epoch.slices(b + i, b + i + 1))
    })
}

struct FlatEpochBuilder<'a> {
    epoch: &'a Epoch<'a>,
    rules: &'a Rules,
    flat: FlatEpoch,
    /// The start of the block that holds `store_end`, or of an earlier block.
    block_start: u64,
    store_end: u64,
    /// The number of content bytes covered so far.
    at: u32,
}

impl FlatEpochBuilder<'_> {
    fn push(&mut self, extent: Extent, offset: u64) {
        self.flat.starts.push(self.at);
        self.flat.offsets.push(offset);
        self.at += extent.length() as u32;
        self.flat.extents.push(extent);
    }

    fn push_fill(&mut self, length: u32, pattern: Pattern) {
        let length = u64::from(length);
        let pattern = Box::new(pattern);
        self.push(Extent::Fill { length, pattern }, 0);
    }

    fn push_known(&mut self, length: u32, offset_in_content: u64) {
        let length = u64::from(length);
        let known = Extent::Known {
            length,
            offset_in_content,
        };
        self.push(known, 0);
    }

    /// Covers the gap up to `end` with fresh extents.
    fn fresh_until(&mut self, end: u32) {
        if end <= self.at {
            return;
        }
        let added = u64::from(end - self.at);
        self.flat.fresh_bytes += added;
        match (self.flat.extents.last_mut(), self.flat.fresh.last_mut()) {
            (Some(Extent::Fresh { length }), Some(range)) => {
                *length += added;
                range.end = end;
                self.at = end;
            }
            _ => {
                self.flat.fresh.push(self.at..end);
                self.push(Extent::Fresh { length: added }, self.store_end);
            }
        }
        self.store_end += added;
    }

    /// Returns whether the byte at `offset` is inside the codec's window from here: in the same
    /// block, and near enough.
    fn is_near(&self, offset: u64) -> bool {
        let block_start =
            self.store_end - (self.store_end - self.block_start) % self.rules.block_bytes;
        offset >= block_start && self.store_end - offset <= self.rules.near_window
    }

    /// Returns whether a copy of `length` bytes from `offset` becomes an extent.
    fn is_worth(&self, length: u32, offset: u64) -> bool {
        length
            >= if self.is_near(offset) {
                self.rules.near_min
            } else if self.resumes(offset) {
                RESUME_MIN as u32
            } else {
                self.rules.far_min
            }
    }

    /// Returns whether a copy from `offset` resumes the last copy after a short gap of equal length
    /// in content and source.
    fn resumes(&self, offset: u64) -> bool {
        let [.., before, gap] = &self.flat.extents[..] else {
            return false;
        };
        match (before, gap) {
            (
                Extent::Copy {
                    length,
                    offset_in_store,
                },
                Extent::Fresh { length: gap },
            ) => *gap <= RESUME_GAP_MAX as u64 && offset_in_store + length + gap == offset,
            _ => false,
        }
    }

    /// Adds the next `length` bytes as a copy of the store bytes at `offset`. A continuation
    /// becomes an extent whatever its length: it continues extents that are already in the archive.
    fn copy(&mut self, length: u32, offset: u64, is_continuation: bool) {
        if let Some(Extent::Copy {
            length: before,
            offset_in_store,
        }) = self.flat.extents.last_mut()
            && *offset_in_store + *before == offset
        {
            *before += u64::from(length);
            self.at += length;
        } else if is_continuation || self.is_worth(length, offset) {
            self.push(
                Extent::Copy {
                    length: u64::from(length),
                    offset_in_store: offset,
                },
                offset,
            );
        } else {
            if self.is_near(offset) {
                self.flat.near_bytes += u64::from(length);
            }
            self.fresh_until(self.at + length);
        }
    }

    fn fill(&mut self, start: u32, length: u32, period: u8) {
        let mut bytes = Vec::with_capacity(usize::from(period));
        self.epoch
            .slices(start, start + u32::from(period))
            .for_each(|slice| bytes.extend_from_slice(slice));
        match Pattern::new(&bytes) {
            Some(pattern) => self.push_fill(length, pattern),
            None => self.fresh_until(start + length),
        }
    }

    /// Adds the next `length` bytes as a copy of the epoch's bytes at `from`, whose extents are
    /// known up to here. A match that overlaps its source is split into steps: the bytes that one
    /// step covers are the source of the next.
    fn copy_of_epoch(&mut self, length: u32, from: u32) {
        let end = self.at + length;
        let mut from = from;
        while self.at < end {
            let step = (end - self.at).min(self.at - from);
            self.copy_of_extents(from, step);
            from += step;
        }
    }

    /// As [`FlatEpochBuilder::copy_of_epoch`], for a source whose extents are all known.
    fn copy_of_extents(&mut self, from: u32, length: u32) {
        let mut extent = self.flat.starts.partition_point(|&start| start <= from) - 1;
        let (mut from, mut left) = (from, length);
        while left > 0 {
            let is_inner = left < length;
            let inside = from - self.flat.starts[extent];
            let whole = &self.flat.extents[extent];
            let part = left.min(whole.length() as u32 - inside);
            match whole {
                Extent::Fill { pattern, .. } if part >= FILL_PART_MIN => {
                    let pattern = pattern.rotated(u64::from(inside));
                    self.push_fill(part, pattern);
                }
                Extent::Fill { .. } => self.fresh_until(self.at + part),
                Extent::Known {
                    offset_in_content, ..
                } => self.push_known(part, offset_in_content + u64::from(inside)),
                Extent::Fresh { .. } | Extent::Copy { .. } => {
                    let offset = self.flat.offsets[extent] + u64::from(inside);
                    self.copy(part, offset, is_inner && part < left);
                }
            }
            from += part;
            left -= part;
            extent += 1;
        }
    }
}
