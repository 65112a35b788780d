//! The serial pass: matches and runs of an epoch become extents into the store.
//!
//! Here the exact place of every byte in the store is known, so here is decided what is worth an extent: a repeat
//! that the codec sees itself (same block, inside its window) must be much longer than one it cannot see.
#![forbid(unsafe_code)]

use std::ops::Range;

use crate::epoch::Epoch;
use crate::extent::{Extent, Pattern};
use crate::find::{Match, MatchSource};
use crate::params::{RESUME_GAP_MAX, RESUME_MIN, Rules};

/// Shortest piece of a fill that is repeated as a fill when a match covers it.
const FILL_PIECE_MIN: u32 = 128;

/// What an epoch is made of.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FlatEpoch {
    /// In order; their lengths add up to the epoch's.
    pub extents: Vec<Extent>,
    /// Where each extent starts in the epoch.
    pub starts: Vec<u32>,
    /// Where each extent's bytes are in the store; unused for fills.
    offsets: Vec<u64>,
    /// The fresh bytes, to be appended to the store in this order, as ranges of the epoch.
    pub fresh: Vec<Range<u32>>,
    /// How many fresh bytes there are.
    pub fresh_bytes: u64,
    /// How many of them are repeats that are left to the codec, for it sees their source itself.
    pub near_bytes: u64,
}

impl FlatEpoch {
    /// Nothing yet, with room for so many matches and what is fresh between them: growing would copy what is there again and again.
    fn for_matches(count: usize) -> FlatEpoch {
        let extents = count * 2 + 1;
        FlatEpoch {
            extents: Vec::with_capacity(extents),
            starts: Vec::with_capacity(extents),
            offsets: Vec::with_capacity(extents),
            ..FlatEpoch::default()
        }
    }

    /// Calls `each(segment, anchor, offset_in_store)` for every anchor whose whole window of `window` bytes is fresh.
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
                    // Positions in the segment that are fresh with their windows: from `low` to before `high`.
                    let low = start.saturating_sub(segment.start);
                    let high = (start + length as u32 + 1).saturating_sub(segment.start + window);
                    // One by one: fresh extents are many, and few anchors lie between them.
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

/// Turns the matches of an epoch, one list per segment, into extents. `store_start` is the length of the store
/// before the epoch; `block_start` is where its last block begins, from which on blocks of the rules' size follow.
pub fn flatten(
    epoch: &Epoch<'_>,
    matches: &[Vec<Match>],
    store_start: u64,
    block_start: u64,
    rules: &Rules,
) -> FlatEpoch {
    debug_assert!(block_start <= store_start);
    let mut builder = Builder {
        epoch,
        rules,
        flat: FlatEpoch::for_matches(matches.iter().map(Vec::len).sum()),
        block_start,
        store_end: store_start,
        at: 0,
    };
    for item in join(in_order(epoch, matches), epoch) {
        builder.fresh_until(item.start);
        match item.kind {
            Kind::Run { period } => builder.fill(item.start, item.length, period),
            Kind::Match(MatchSource::Store(offset)) => builder.copy(item.length, offset),
            Kind::Match(MatchSource::Epoch(from)) => builder.copy_of_epoch(item.length, from),
        }
    }
    builder.fresh_until(epoch.length());
    builder.flat
}

#[derive(Clone, Copy)]
struct Item {
    start: u32,
    length: u32,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Run { period: u8 },
    Match(MatchSource),
}

/// Runs and matches of all segments in the order of content.
fn in_order<'a>(
    epoch: &Epoch<'a>,
    matches: &'a [Vec<Match>],
) -> impl Iterator<Item = Item> + use<'a> {
    epoch
        .segments()
        .iter()
        .zip(matches)
        .flat_map(|(segment, matches)| {
            let mut runs = segment.scan.runs.iter().peekable();
            let mut matches = matches.iter().peekable();
            std::iter::from_fn(move || {
                let run_first = match (runs.peek(), matches.peek()) {
                    (Some(run), Some(found)) => segment.start + run.start < found.start,
                    (run, _) => run.is_some(),
                };
                if run_first {
                    let run = runs.next()?;
                    let kind = Kind::Run { period: run.period };
                    return Some(Item {
                        start: segment.start + run.start,
                        length: run.length,
                        kind,
                    });
                }
                let found = matches.next()?;
                Some(Item {
                    start: found.start,
                    length: found.length,
                    kind: Kind::Match(found.source),
                })
            })
        })
}

/// Joins items that continue each other, above all across the segments' borders.
fn join<'a>(
    mut items: impl Iterator<Item = Item> + 'a,
    epoch: &'a Epoch<'a>,
) -> impl Iterator<Item = Item> + 'a {
    let mut pending = items.next();
    std::iter::from_fn(move || {
        let mut current = pending.take()?;
        for next in items.by_ref() {
            if continues(&current, &next, epoch) {
                current.length += next.length;
            } else {
                pending = Some(next);
                break;
            }
        }
        Some(current)
    })
}

fn continues(first: &Item, second: &Item, epoch: &Epoch<'_>) -> bool {
    if first.start + first.length != second.start {
        return false;
    }
    match (first.kind, second.kind) {
        (Kind::Match(MatchSource::Store(a)), Kind::Match(MatchSource::Store(b))) => {
            a + u64::from(first.length) == b
        }
        (Kind::Match(MatchSource::Epoch(a)), Kind::Match(MatchSource::Epoch(b))) => {
            a + first.length == b
        }
        (Kind::Run { period: a }, Kind::Run { period: b }) if a == b => {
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
            .pieces(a + i, a + i + 1)
            .eq(epoch.pieces(b + i, b + i + 1))
    })
}

struct Builder<'a> {
    epoch: &'a Epoch<'a>,
    rules: &'a Rules,
    flat: FlatEpoch,
    /// Where the block that `store_end` lies in, or some block before it, begins.
    block_start: u64,
    store_end: u64,
    /// Content covered so far.
    at: u32,
}

impl Builder<'_> {
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

    /// Everything up to `end` that is not covered yet is fresh.
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

    /// Whether the codec sees the byte at `offset` from here: same block, and within its window.
    fn is_near(&self, offset: u64) -> bool {
        let block_start =
            self.store_end - (self.store_end - self.block_start) % self.rules.block_bytes;
        offset >= block_start && self.store_end - offset <= self.rules.near_window
    }

    /// Whether a copy of `length` bytes from `offset` is worth an extent here.
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

    /// Whether a copy from `offset` goes on with the one before, behind a short gap of as many other bytes.
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

    /// The next `length` bytes are those at `offset` in the store.
    fn copy(&mut self, length: u32, offset: u64) {
        if let Some(Extent::Copy {
            length: before,
            offset_in_store,
        }) = self.flat.extents.last_mut()
            && *offset_in_store + *before == offset
        {
            *before += u64::from(length);
            self.at += length;
        } else if self.is_worth(length, offset) {
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
            .pieces(start, start + u32::from(period))
            .for_each(|piece| bytes.extend_from_slice(piece));
        match Pattern::new(&bytes) {
            Some(pattern) => self.push_fill(length, pattern),
            None => self.fresh_until(start + length),
        }
    }

    /// The next `length` bytes are those at `from` in this epoch, whose extents are known up to here. A match
    /// that overlaps its source is taken in steps: what one step covers is source for the next.
    fn copy_of_epoch(&mut self, length: u32, from: u32) {
        let end = self.at + length;
        let mut from = from;
        while self.at < end {
            let step = (end - self.at).min(self.at - from);
            self.copy_of_extents(from, step);
            from += step;
        }
    }

    /// As [`Builder::copy_of_epoch`] where the source is known as a whole.
    fn copy_of_extents(&mut self, from: u32, length: u32) {
        let mut extent = self.flat.starts.partition_point(|&start| start <= from) - 1;
        let (mut from, mut left) = (from, length);
        while left > 0 {
            let inside = from - self.flat.starts[extent];
            let whole = &self.flat.extents[extent];
            let piece = left.min(whole.length() as u32 - inside);
            match whole {
                Extent::Fill { pattern, .. } if piece >= FILL_PIECE_MIN => {
                    let pattern = pattern.rotated(u64::from(inside));
                    self.push_fill(piece, pattern);
                }
                Extent::Fill { .. } => self.fresh_until(self.at + piece),
                Extent::Fresh { .. } | Extent::Copy { .. } => {
                    let offset = self.flat.offsets[extent] + u64::from(inside);
                    self.copy(piece, offset);
                }
            }
            from += piece;
            left -= piece;
            extent += 1;
        }
    }
}
