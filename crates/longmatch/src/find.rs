//! Step C: verifies and extends candidates. Segments are independent once the index holds all
//! earlier epochs.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crate::compare::{equal_backward, equal_forward};
use crate::continuation::{CONTINUATION_KEY_BYTES, Continuation, Continuations, Direction};
use crate::epoch::{Epoch, NO_CANDIDATE};
use crate::index::{FingerprintIndex, IndexWords};
use crate::params::{FINGERPRINT_BYTES, Rules};
use crate::resume::{RESUME_WINDOW_BYTES, is_part_worth, resume_gap};
use crate::scan::SegmentScan;
use crate::trail::Trail;

/// Read access to the store as it was when the epoch began.
///
/// It is a trait because the engine decides where the bytes are: in memory, in the input, or in
/// encoded blocks.
pub trait History: Sync {
    /// Returns a contiguous range of the store that contains `offset_in_store`; `None` if it is not
    /// available.
    fn chunk(&self, offset_in_store: u64) -> Option<HistoryChunk>;
}

/// A contiguous range of the store.
#[derive(Clone)]
pub struct HistoryChunk {
    /// The offset of its first byte in the store.
    pub offset_in_store: u64,
    /// Its bytes.
    pub bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

/// The source of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchSource {
    /// An offset in the store.
    Store(u64),
    /// An earlier position in the same epoch. The match may overlap its source.
    Epoch(u32),
    /// An offset in earlier content, which has the same bytes as several pieces of a [`Trail`].
    Content(u64),
}

impl MatchSource {
    fn after(self, length: u32) -> MatchSource {
        match self {
            MatchSource::Store(offset) => MatchSource::Store(offset + u64::from(length)),
            MatchSource::Epoch(at) => MatchSource::Epoch(at + length),
            MatchSource::Content(offset) => MatchSource::Content(offset + u64::from(length)),
        }
    }
}

/// A verified repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The position of the first byte in the epoch.
    pub start: u32,
    /// The length in bytes.
    pub length: u32,
    /// Where the same bytes are.
    pub source: MatchSource,
    /// Whether earlier content had the same bytes in the same context, as a separate extent (see
    /// [`Continuations`]). Then its length does not matter.
    pub is_continuation: bool,
}

/// How many anchors are looked up at once, while the index entries of the next batch are
/// prefetched, so that cache misses overlap.
const LOOKAHEAD: usize = 16;

/// Finds the repeats of segment number `segment` of the epoch, in the epoch and in the store above
/// `store_floor`. `candidates` is the segment's list from [`find_in_epoch`](crate::find_in_epoch).
/// The matches are in ascending order and overlap neither each other nor a run. `trail`: what the
/// segment probably repeats.
#[allow(clippy::too_many_arguments)]
pub fn match_segment<W: IndexWords>(
    epoch: &Epoch<'_>,
    segment: usize,
    candidates: &[u32],
    index: &FingerprintIndex<W>,
    continuations: &Continuations,
    history: &dyn History,
    store_floor: u64,
    trail: &Trail,
    rules: &Rules,
) -> Vec<Match> {
    let this = &epoch.segments()[segment];
    let mut matcher = SegmentMatcher {
        bytes: this.bytes,
        scan: this.scan,
        start: this.start,
        epoch: *epoch,
        history: HistoryCursor {
            history,
            floor: store_floor,
            chunk: None,
        },
        rules,
        continuations,
        trail,
        resumes_left: this.bytes.len() / rules.resume_spacing as usize,
        matches: Vec::new(),
    };
    let aligned = matcher.match_aligned();
    let mut anchors = AnchorLookups {
        scan: this.scan,
        candidates,
        index,
        looked_up: [None; LOOKAHEAD],
        window: 0..0,
        ahead: 1,
    };
    let mut anchor = 0;
    for (gap_start, gap_end) in matcher.gaps_beside(&aligned) {
        let mut covered_to = gap_start;
        while let Some(&position) = this.scan.positions.get(anchor)
            && (position as usize) < gap_end
        {
            if position as usize >= covered_to {
                let (in_store, in_epoch) = anchors.lookup(anchor);
                if let Some(end) =
                    matcher.try_anchor(position as usize, covered_to, gap_end, in_store, in_epoch)
                {
                    covered_to = matcher.continue_from(end, gap_end);
                }
            }
            anchor += 1;
        }
    }
    if !aligned.is_empty() {
        matcher.matches.extend(aligned);
        matcher.matches.sort_unstable_by_key(|found| found.start);
    }
    matcher.matches
}

struct AnchorLookups<'a, W> {
    scan: &'a SegmentScan,
    candidates: &'a [u32],
    index: &'a FingerprintIndex<W>,
    looked_up: [Option<u64>; LOOKAHEAD],
    window: std::ops::Range<usize>,
    ahead: usize,
}

impl<W: IndexWords> AnchorLookups<'_, W> {
    /// Returns the candidates of one anchor: an offset in the store, and a position in the epoch.
    fn lookup(&mut self, anchor: usize) -> (Option<u64>, Option<u32>) {
        if !self.window.contains(&anchor) {
            self.look_up_from(anchor);
        }
        let in_epoch = self.candidates[anchor];
        (
            self.looked_up[anchor - self.window.start],
            (in_epoch != NO_CANDIDATE).then_some(in_epoch),
        )
    }

    fn look_up_from(&mut self, anchor: usize) {
        let fingerprints = &self.scan.fingerprints;
        let is_next = anchor == self.window.end && anchor != 0;
        if is_next {
            self.ahead = (self.ahead * 2).min(LOOKAHEAD);
        } else {
            // After a repeat the next anchor often begins another one, which covers the anchors
            // after it. So batches begin small.
            self.ahead = 1;
            self.index.prefetch(fingerprints[anchor]);
        }
        let end = fingerprints.len().min(anchor + self.ahead);
        let later = end..fingerprints
            .len()
            .min(end + (self.ahead * 2).min(LOOKAHEAD));
        self.window = anchor..end;
        // The next batch is prefetched before this one is accessed, so the loads have the time of
        // the whole batch.
        for &fingerprint in &fingerprints[later] {
            self.index.prefetch(fingerprint);
        }
        for (found, &fingerprint) in self.looked_up.iter_mut().zip(&fingerprints[anchor..end]) {
            *found = self.index.get(fingerprint);
        }
    }
}

pub(crate) struct SegmentMatcher<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) scan: &'a SegmentScan,
    pub(crate) start: u32,
    epoch: Epoch<'a>,
    history: HistoryCursor<'a>,
    rules: &'a Rules,
    continuations: &'a Continuations,
    pub(crate) trail: &'a Trail,
    resumes_left: usize,
    matches: Vec<Match>,
}

/// The numbers of bytes that agree before and after an anchor.
#[derive(Clone, Copy)]
struct Agreement {
    before: usize,
    after: usize,
    source: MatchSource,
}

impl Agreement {
    fn length(&self) -> usize {
        self.before + self.after
    }
}

impl SegmentMatcher<'_> {
    /// What followed the bytes of the store that end at `offset_in_store`, or came before those
    /// that begin there, in earlier content of this run or on the trail.
    fn neighbour(
        &self,
        direction: Direction,
        offset_in_store: u64,
        key: &[u8; CONTINUATION_KEY_BYTES],
    ) -> Option<Continuation> {
        let known = self.continuations.get(direction, offset_in_store, *key);
        known.or_else(|| self.trail.neighbour(direction, offset_in_store))
    }

    /// Tries the candidates of the anchor at `position` between `floor` and `limit` (all relative
    /// to the segment). If the longer match is long enough, records it and returns its end.
    fn try_anchor(
        &mut self,
        position: usize,
        floor: usize,
        limit: usize,
        in_store: Option<u64>,
        in_epoch: Option<u32>,
    ) -> Option<usize> {
        let mut best = in_store.map(|offset| self.agree_with_store(position, floor, limit, offset));
        // A match in the store that is long, or continues, needs no comparison; otherwise a match
        // in this epoch may be longer.
        if best.is_none_or(|found| {
            found.length() < self.rules.near_min as usize
                && !self.has_continuation(position, limit, found)
        }) && let Some(other) =
            in_epoch.map(|from| self.agree_with_epoch(position, floor, limit, from))
            && best.is_none_or(|found| found.length() < other.length())
        {
            best = Some(other);
        }
        let found = best.filter(|found| self.is_long_enough(position, found))?;
        let source = match found.source {
            MatchSource::Epoch(from) => MatchSource::Epoch(from - found.before as u32),
            MatchSource::Store(offset) | MatchSource::Content(offset) => {
                MatchSource::Store(offset - found.before as u64)
            }
        };
        if let MatchSource::Store(offset) = source {
            self.follow_backward(position - found.before, floor, offset);
        }
        self.matches.push(Match {
            start: self.start + (position - found.before) as u32,
            length: found.length() as u32,
            source,
            is_continuation: false,
        });
        Some(position + found.after)
    }

    /// Returns whether something followed the end of a match in earlier content that seems to
    /// follow here too.
    fn has_continuation(&self, position: usize, limit: usize, found: Agreement) -> bool {
        let MatchSource::Store(end) = found.source.after(found.after as u32) else {
            return false;
        };
        let key = self.bytes[position + found.after..limit].first_chunk();
        key.is_some_and(|key| {
            self.continuations
                .get(Direction::Forward, end, *key)
                .is_some()
        })
    }

    /// A repeat that touches the segment's edge may continue in the next segment:
    /// [`flatten`](crate::flatten) joins the two and judges the whole.
    fn is_long_enough(&self, position: usize, found: &Agreement) -> bool {
        let touches_edge = position == found.before || position + found.after == self.bytes.len();
        let needed = if touches_edge { FINGERPRINT_BYTES } else { self.rules.far_min as usize };
        found.length() >= needed
    }

    /// Continues the last match, which ends at `end`: with what followed in earlier content, else
    /// after short gaps. Returns the end of the last part.
    fn continue_from(&mut self, mut end: usize, limit: usize) -> usize {
        loop {
            let followed = self.follow_forward(end, limit);
            let resumed = self.resume(followed, limit);
            if resumed == followed {
                return resumed;
            }
            end = resumed;
        }
    }

    /// Continues the last match, which ends at `end`, with what followed its source in earlier
    /// content. Returns the end of the last part.
    fn follow_forward(&mut self, mut end: usize, limit: usize) -> usize {
        let first_part = self.matches.len();
        while self.resumes_left > 0
            && let Some(last) = self.matches.last()
            && let MatchSource::Store(source_end) = last.source.after(last.length)
            && let Some(key) = self.bytes[end..limit].first_chunk()
            && let Some(continuation) = self.neighbour(Direction::Forward, source_end, key)
        {
            let source = MatchSource::Store(continuation.offset_in_store);
            let stop = limit.min(end + continuation.length as usize);
            let length = self.agree_forward(end, stop, source);
            if length < CONTINUATION_KEY_BYTES.min(stop - end) {
                break;
            }
            self.matches.push(Match {
                start: self.start + end as u32,
                length: length as u32,
                source,
                is_continuation: true,
            });
            self.resumes_left -= 1;
            end += length;
            if length < continuation.length as usize {
                break;
            }
        }
        if self.matches.len() > first_part
            && let Some(last) = self.matches.last().copied()
        {
            // The earlier content may have left its source here where this one does not.
            let more = self.agree_forward(end, limit, last.source.after(last.length));
            if let Some(last) = self.matches.last_mut() {
                last.length += more as u32;
            }
            end += more;
        }
        end
    }

    /// Prepends what came before `source_start` in earlier content to a match that begins at
    /// `start`, while it is the same, at most back to `floor`.
    fn follow_backward(&mut self, mut start: usize, floor: usize, mut source_start: u64) {
        let first_part = self.matches.len();
        while self.resumes_left > 0
            && start > floor
            && let Some(key) = self.bytes[..start].last_chunk()
            && let Some(continuation) = self.neighbour(Direction::Backward, source_start, key)
        {
            let stop = floor.max(start.saturating_sub(continuation.length as usize));
            let length = self.agree_backward(start, stop, continuation.offset_in_store);
            if length < CONTINUATION_KEY_BYTES.min(start - stop) {
                break;
            }
            start -= length;
            source_start = continuation.offset_in_store - length as u64;
            self.matches.push(Match {
                start: self.start + start as u32,
                length: length as u32,
                source: MatchSource::Store(source_start),
                is_continuation: true,
            });
            self.resumes_left -= 1;
            if length < continuation.length as usize {
                break;
            }
        }
        self.matches[first_part..].reverse();
    }

    /// Resumes the last match, which ends at `end`, after short gaps (see
    /// [`resume`](crate::resume)). Returns the end of the last part.
    fn resume(&mut self, mut end: usize, limit: usize) -> usize {
        while self.resumes_left > 0
            && let Some(last) = self.matches.last()
            && let Some(here) = self.bytes[end..limit].first_chunk::<RESUME_WINDOW_BYTES>()
        {
            let source_end = last.source.after(last.length);
            let mut there = [0; RESUME_WINDOW_BYTES];
            if !self.read(source_end, &mut there) {
                break;
            }
            let Some(gap) = resume_gap(here, &there) else {
                break;
            };
            let source = source_end.after(gap as u32);
            let length = self.agree_forward(end + gap, limit, source);
            if !is_part_worth(length, here) {
                break;
            }
            let start = self.start + (end + gap) as u32;
            self.matches.push(Match {
                start,
                length: length as u32,
                source,
                is_continuation: false,
            });
            end += gap + length;
            self.resumes_left -= 1;
        }
        end
    }

    fn bytes_from(&mut self, source: MatchSource) -> Option<&[u8]> {
        match source {
            MatchSource::Store(offset) => self.history.from(offset),
            MatchSource::Epoch(at) => Some(self.epoch.from(at)),
            MatchSource::Content(_) => None,
        }
    }

    /// Fills `out` from `source`. Returns false if not all bytes are available.
    fn read(&mut self, source: MatchSource, out: &mut [u8]) -> bool {
        let mut done = 0;
        while done < out.len() {
            let Some(bytes) = self.bytes_from(source.after(done as u32)) else {
                return false;
            };
            let count = bytes.len().min(out.len() - done);
            out[done..done + count].copy_from_slice(&bytes[..count]);
            done += count;
        }
        true
    }

    /// Returns the number of bytes of the segment from `position`, before `limit`, that equal the
    /// bytes at `source`.
    pub(crate) fn agree_forward(
        &mut self,
        position: usize,
        limit: usize,
        source: MatchSource,
    ) -> usize {
        let segment = self.bytes;
        let mut agreed = 0;
        while position + agreed < limit
            && let Some(bytes) = self.bytes_from(source.after(agreed as u32))
        {
            let equal = equal_forward(&segment[position + agreed..limit], bytes);
            agreed += equal;
            if equal < bytes.len() {
                break;
            }
        }
        agreed
    }

    fn agree_with_store(
        &mut self,
        position: usize,
        floor: usize,
        limit: usize,
        offset: u64,
    ) -> Agreement {
        let after = self.agree_forward(position, limit, MatchSource::Store(offset));
        // A false candidate differs at once; only true ones are worth comparing backwards.
        let before = if after >= BACKWARD_MIN {
            self.agree_backward(position, floor, offset)
        } else {
            0
        };
        Agreement {
            before,
            after,
            source: MatchSource::Store(offset),
        }
    }

    /// Returns the number of bytes of the segment before `position`, at most back to `floor`, that
    /// equal the bytes before `offset` in the store.
    pub(crate) fn agree_backward(&mut self, position: usize, floor: usize, offset: u64) -> usize {
        let mut before = 0;
        while position - before > floor
            && let Some(source) = self.history.up_to(offset - before as u64)
        {
            let equal = equal_backward(&self.bytes[floor..position - before], source);
            before += equal;
            if equal < source.len() {
                break;
            }
        }
        before
    }

    fn agree_with_epoch(
        &mut self,
        position: usize,
        floor: usize,
        limit: usize,
        from: u32,
    ) -> Agreement {
        let after = self.agree_forward(position, limit, MatchSource::Epoch(from));
        let mut before = 0;
        while after >= BACKWARD_MIN && position - before > floor && from > before as u32 {
            let end = from - before as u32;
            let segment = self.epoch.segment_at(end - 1);
            let source = &segment.bytes[..(end - segment.start) as usize];
            let equal = equal_backward(&self.bytes[floor..position - before], source);
            before += equal;
            if equal < source.len() {
                break;
            }
        }
        Agreement {
            before,
            after,
            source: MatchSource::Epoch(from),
        }
    }
}

/// The number of bytes after an anchor that must agree before the bytes before it are compared.
const BACKWARD_MIN: usize = 8;

/// Reads the history and caches the last chunk, because the next access is mostly close to it.
struct HistoryCursor<'a> {
    history: &'a dyn History,
    /// Offsets below this must not be referred to.
    floor: u64,
    chunk: Option<HistoryChunk>,
}

impl HistoryCursor<'_> {
    fn seek(&mut self, offset: u64) -> Option<(&[u8], usize)> {
        let holds = |chunk: &HistoryChunk| {
            let length = (*chunk.bytes).as_ref().len() as u64;
            offset
                .checked_sub(chunk.offset_in_store)
                .is_some_and(|inside| inside < length)
        };
        if !self.chunk.as_ref().is_some_and(holds) {
            self.chunk = self.history.chunk(offset).filter(holds);
        }
        let chunk = self.chunk.as_ref()?;
        Some((
            (*chunk.bytes).as_ref(),
            (offset - chunk.offset_in_store) as usize,
        ))
    }

    /// Returns the bytes of the store from `offset` to the end of their chunk; never empty.
    fn from(&mut self, offset: u64) -> Option<&[u8]> {
        if offset < self.floor {
            return None;
        }
        self.seek(offset).map(|(bytes, at)| &bytes[at..])
    }

    /// Returns the bytes of the store from the start of their chunk to `offset`; never empty.
    fn up_to(&mut self, offset: u64) -> Option<&[u8]> {
        let last = offset.checked_sub(1).filter(|&last| last >= self.floor)?;
        let floor = self.floor;
        self.seek(last).map(|(bytes, at)| {
            let below_floor = floor.saturating_sub(last - at as u64) as usize;
            &bytes[below_floor..=at]
        })
    }
}
