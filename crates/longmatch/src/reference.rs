//! The reference implementation: the same rules written as plainly as possible. It defines the
//! correct result.
//!
//! It holds everything in memory and works serially: a map from every fingerprint to its first
//! store offset, the whole store, the whole epoch, and the origin of every content byte. It has no
//! tasks per segment, no buckets and no vector instructions.

#![allow(clippy::expect_used)] // A test oracle: a broken invariant must stop the test.

use std::collections::HashMap;

use crate::continuation::{CONTINUATION_KEY_BYTES, Continuation, Continuations, Direction};
use crate::extent::{Extent, Pattern};
use crate::fingerprint::fingerprint;
use crate::params::{
    FINGERPRINT_BYTES, RESUME_GAP_IN_TEXT_MAX, RESUME_GAP_MAX, RESUME_MIN, RESUME_MIN_IN_TEXT,
    Rules,
};
use crate::resume::{RESUME_WINDOW_BYTES, is_text};
use crate::scan::{SegmentScan, scan_segment};

/// The memory of the table of continuations.
pub const CONTINUATIONS_BYTES: usize = 1 << 20;

/// The matcher, with its state between epochs.
pub struct ReferenceMatcher {
    /// The unique bytes so far.
    pub store: Vec<u8>,
    first_occurrence: HashMap<u64, usize>,
    /// The matcher's own table: what a full bucket loses is part of the result.
    continuations: Continuations,
}

impl Default for ReferenceMatcher {
    fn default() -> Self {
        ReferenceMatcher {
            store: vec![],
            first_occurrence: HashMap::new(),
            continuations: Continuations::new(CONTINUATIONS_BYTES),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum ByteOrigin {
    Store(usize),
    Fill(Pattern),
}

struct Repeat {
    start: usize,
    end: usize,
    source: RepeatSource,
    is_continuation: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum RepeatSource {
    Store(usize),
    Epoch(usize),
    Run(usize),
}

impl ReferenceMatcher {
    /// Matches one epoch, given as the contents of its segments.
    pub fn epoch(&mut self, segments: &[Vec<u8>], rules: &Rules) -> Vec<Extent> {
        let content: Vec<u8> = segments.concat();
        let scans: Vec<SegmentScan> = segments
            .iter()
            .map(|bytes| {
                let mut scan = SegmentScan::default();
                scan_segment(bytes, rules, &mut scan);
                scan
            })
            .collect();
        let repeats = self.repeats(&content, segments, &scans, rules);
        let extents = self.flatten(&content, join(repeats, &content), rules);
        self.insert(&content, segments, &scans, &extents.1);
        self.insert_continuations(segments, &extents.0, &extents.1);
        extents.0
    }

    fn repeats(
        &self,
        content: &[u8],
        segments: &[Vec<u8>],
        scans: &[SegmentScan],
        rules: &Rules,
    ) -> Vec<Repeat> {
        let mut first_in_epoch = HashMap::new();
        let mut repeats = vec![];
        let mut segment_start = 0;
        for (bytes, scan) in segments.iter().zip(scans) {
            let segment_end = segment_start + bytes.len();
            let runs: Vec<_> = scan
                .runs
                .iter()
                .map(|run| Repeat {
                    start: segment_start + run.start as usize,
                    end: segment_start + run.end() as usize,
                    source: RepeatSource::Run(usize::from(run.period)),
                    is_continuation: false,
                })
                .collect();
            let mut covered = segment_start;
            let mut resumes_left = bytes.len() / rules.resume_spacing as usize;
            for &position in &scan.positions {
                let at = segment_start + position as usize;
                let window = content[at..]
                    .first_chunk::<FINGERPRINT_BYTES>()
                    .expect("anchors have whole windows");
                let print = fingerprint(window);
                let in_epoch = first_in_epoch.get(&print).copied();
                first_in_epoch.entry(print).or_insert(at);
                if at < covered {
                    continue;
                }
                let floor = runs
                    .iter()
                    .map(|run| run.end)
                    .filter(|&end| end <= at)
                    .max()
                    .unwrap_or(0);
                let floor = floor.max(covered);
                let limit = runs
                    .iter()
                    .map(|run| run.start)
                    .filter(|&start| start > at)
                    .min();
                let limit = limit.unwrap_or(segment_end);
                let in_store = self.first_occurrence.get(&print).copied();
                let best = self.best(content, at, floor, limit, in_store, in_epoch, rules);
                let Some((before, after, source)) = best else {
                    continue;
                };
                let edge = at - before == segment_start || at + after == segment_end;
                if before + after >= if edge { FINGERPRINT_BYTES } else { rules.far_min as usize } {
                    let found = Repeat {
                        start: at - before,
                        end: at + after,
                        source,
                        is_continuation: false,
                    };
                    let earlier =
                        self.followed_back(content, &found, segment_start, floor, resumes_left);
                    resumes_left -= earlier.len();
                    repeats.extend(earlier.into_iter().rev());
                    repeats.push(found);
                    covered = self.continued(content, &mut repeats, limit, &mut resumes_left);
                }
            }
            repeats.extend(runs);
            segment_start = segment_end;
        }
        repeats.sort_by_key(|repeat| repeat.start);
        repeats
    }

    /// Continues the last repeat: with continuations, else after short gaps, until there is
    /// neither. Returns the end of the last part.
    fn continued(
        &self,
        content: &[u8],
        repeats: &mut Vec<Repeat>,
        limit: usize,
        resumes_left: &mut usize,
    ) -> usize {
        loop {
            let before = repeats.len();
            let mut is_open = true;
            while let Some((part, is_whole)) = repeats
                .last()
                .filter(|_| is_open && *resumes_left > 0)
                .and_then(|last| self.followed(content, last, limit))
            {
                *resumes_left -= 1;
                is_open = is_whole;
                repeats.push(part);
            }
            if repeats.len() > before
                && let Some(last) = repeats.last_mut()
                && let RepeatSource::Store(from) = last.source
            {
                let from = from + (last.end - last.start);
                last.end += agree(content, last.end, last.end, limit, &self.store, from).1;
            }
            let mut has_resumed = false;
            while let Some(repeat) = repeats
                .last()
                .filter(|_| *resumes_left > 0)
                .and_then(|last| self.resumed(content, last, limit))
            {
                *resumes_left -= 1;
                has_resumed = true;
                repeats.push(repeat);
            }
            let end = repeats.last().map_or(0, |last| last.end);
            if !has_resumed {
                return end;
            }
        }
    }

    /// Returns what followed the repeat's source in earlier content, if it follows here too, and
    /// whether all of it does.
    fn followed(&self, content: &[u8], last: &Repeat, limit: usize) -> Option<(Repeat, bool)> {
        let RepeatSource::Store(from) = last.source else {
            return None;
        };
        let source_end = (from + last.end - last.start) as u64;
        let key = content[last.end..limit].first_chunk()?;
        let continuation = self
            .continuations
            .get(Direction::Forward, source_end, *key)?;
        let stop = limit.min(last.end + continuation.length as usize);
        let from = continuation.offset_in_store as usize;
        let (_, length) = agree(content, last.end, last.end, stop, &self.store, from);
        let part = Repeat {
            start: last.end,
            end: last.end + length,
            source: RepeatSource::Store(from),
            is_continuation: true,
        };
        let is_enough = length >= CONTINUATION_KEY_BYTES.min(stop - last.end);
        is_enough.then_some((part, length == continuation.length as usize))
    }

    /// Returns what came before the repeat's source in earlier content, if it does here too,
    /// nearest first.
    fn followed_back(
        &self,
        content: &[u8],
        found: &Repeat,
        segment_start: usize,
        floor: usize,
        parts_max: usize,
    ) -> Vec<Repeat> {
        let mut parts: Vec<Repeat> = vec![];
        let floor = floor.max(segment_start);
        let RepeatSource::Store(mut from) = found.source else {
            return parts;
        };
        let mut start = found.start;
        while parts.len() < parts_max
            && start > floor
            && let Some(key) = content[segment_start..start].last_chunk()
            && let Some(continuation) =
                self.continuations
                    .get(Direction::Backward, from as u64, *key)
        {
            let stop = floor.max(start.saturating_sub(continuation.length as usize));
            let end_of_source = continuation.offset_in_store as usize;
            let length = (1..=(start - stop).min(end_of_source))
                .take_while(|&i| self.store[end_of_source - i] == content[start - i])
                .count();
            if length < CONTINUATION_KEY_BYTES.min(start - stop) {
                break;
            }
            parts.push(Repeat {
                start: start - length,
                end: start,
                source: RepeatSource::Store(end_of_source - length),
                is_continuation: true,
            });
            start -= length;
            from = end_of_source - length;
            if length < continuation.length as usize {
                break;
            }
        }
        parts
    }

    /// Returns where the repeat resumes after a few differing bytes.
    fn resumed(&self, content: &[u8], last: &Repeat, limit: usize) -> Option<Repeat> {
        let (source, from) = match last.source {
            RepeatSource::Store(from) => (&self.store[..], from),
            RepeatSource::Epoch(from) => (content, from),
            RepeatSource::Run(_) => return None,
        };
        let from = from + (last.end - last.start);
        let here = content[last.end..limit].first_chunk()?;
        let there: &[u8; RESUME_WINDOW_BYTES] = source.get(from..)?.first_chunk()?;
        let gap_max = if is_text(here) { RESUME_GAP_IN_TEXT_MAX } else { RESUME_GAP_MAX };
        let agrees = |gap: &usize| here[*gap..gap + RESUME_MIN] == there[*gap..gap + RESUME_MIN];
        let gap = (0..=gap_max).find(agrees)?;
        let start = last.end + gap;
        let (_, length) = agree(content, start, start, limit, source, from + gap);
        if length < RESUME_MIN_IN_TEXT && is_text(here) {
            return None;
        }
        Some(Repeat {
            start,
            end: start + length,
            source: match last.source {
                RepeatSource::Store(_) => RepeatSource::Store(from + gap),
                _ => RepeatSource::Epoch(from + gap),
            },
            is_continuation: false,
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn best(
        &self,
        content: &[u8],
        at: usize,
        floor: usize,
        limit: usize,
        in_store: Option<usize>,
        in_epoch: Option<usize>,
        rules: &Rules,
    ) -> Option<(usize, usize, RepeatSource)> {
        let store = in_store.map(|from| {
            let (before, after) = agree(content, at, floor, limit, &self.store, from);
            (before, after, RepeatSource::Store(from - before))
        });
        let has_continuation = |after: usize, from: usize| {
            let key = content[at + after..limit].first_chunk();
            key.is_some_and(|key| {
                let end = (from + after) as u64;
                self.continuations
                    .get(Direction::Forward, end, *key)
                    .is_some()
            })
        };
        if store.is_some_and(|(before, after, _)| {
            before + after >= rules.near_min as usize
                || in_store.is_some_and(|from| has_continuation(after, from))
        }) {
            return store;
        }
        let epoch = in_epoch.map(|from| {
            let (before, after) = agree(content, at, floor, limit, content, from);
            (before, after, RepeatSource::Epoch(from - before))
        });
        match (store, epoch) {
            (Some(store), Some(epoch)) if epoch.0 + epoch.1 > store.0 + store.1 => Some(epoch),
            (Some(store), _) => Some(store),
            (None, epoch) => epoch,
        }
    }

    /// Returns the extents, and for every content byte its origin and whether it is fresh.
    fn flatten(
        &mut self,
        content: &[u8],
        repeats: Vec<Repeat>,
        rules: &Rules,
    ) -> (Vec<Extent>, Vec<(ByteOrigin, bool)>) {
        let mut out = FlatExtents {
            extents: vec![],
            origins: vec![],
        };
        for repeat in repeats {
            self.fresh(&mut out, content, repeat.start);
            match repeat.source {
                RepeatSource::Run(period) => {
                    let pattern =
                        Pattern::new(&content[repeat.start..repeat.start + period]).expect("short");
                    out.fill(repeat.end - repeat.start, pattern);
                }
                RepeatSource::Store(from) => {
                    let length = repeat.end - repeat.start;
                    self.copy(
                        &mut out,
                        content,
                        length,
                        from,
                        repeat.is_continuation,
                        rules,
                    )
                }
                RepeatSource::Epoch(from) => {
                    let mut from = from;
                    while out.origins.len() < repeat.end {
                        let step = (repeat.end - out.origins.len()).min(out.origins.len() - from);
                        self.copy_of_epoch(&mut out, content, from, step, rules);
                        from += step;
                    }
                }
            }
        }
        self.fresh(&mut out, content, content.len());
        (out.extents, out.origins)
    }

    fn fresh(&mut self, out: &mut FlatExtents, content: &[u8], end: usize) {
        let start = out.origins.len();
        if end <= start {
            return;
        }
        let length = (end - start) as u64;
        match out.extents.last_mut() {
            Some(Extent::Fresh { length: before }) => *before += length,
            _ => out.extents.push(Extent::Fresh { length }),
        }
        for &byte in &content[start..end] {
            out.origins
                .push((ByteOrigin::Store(self.store.len()), true));
            self.store.push(byte);
        }
    }

    fn copy(
        &mut self,
        out: &mut FlatExtents,
        content: &[u8],
        length: usize,
        from: usize,
        is_wanted: bool,
        rules: &Rules,
    ) {
        let block_start = self.store.len() as u64 / rules.block_bytes * rules.block_bytes;
        let is_near =
            from as u64 >= block_start && (self.store.len() - from) as u64 <= rules.near_window;
        let resumes = match &out.extents[..] {
            [
                ..,
                Extent::Copy {
                    length,
                    offset_in_store,
                },
                Extent::Fresh { length: gap },
            ] => *gap <= RESUME_GAP_MAX as u64 && offset_in_store + length + gap == from as u64,
            _ => false,
        };
        let min = match (is_near, resumes) {
            (true, _) => rules.near_min as usize,
            (false, true) => RESUME_MIN,
            (false, false) => rules.far_min as usize,
        };
        match out.extents.last_mut() {
            Some(Extent::Copy {
                length: before,
                offset_in_store,
            }) if *offset_in_store + *before == from as u64 => {
                *before += length as u64;
            }
            _ if is_wanted || length >= min => {
                out.extents.push(Extent::Copy {
                    length: length as u64,
                    offset_in_store: from as u64,
                });
            }
            _ => return self.fresh(out, content, out.origins.len() + length),
        }
        out.origins
            .extend((from..from + length).map(|at| (ByteOrigin::Store(at), false)));
    }

    /// Copies content `from..from + length`, whose extents are all known, extent by extent.
    fn copy_of_epoch(
        &mut self,
        out: &mut FlatExtents,
        content: &[u8],
        from: usize,
        length: usize,
        rules: &Rules,
    ) {
        let mut starts = vec![];
        let mut at = 0;
        for extent in &out.extents {
            starts.push(at);
            at += extent.length() as usize;
        }
        let (mut from, end) = (from, from + length);
        let first = from;
        let bounds: Vec<_> = starts.iter().copied().chain([at]).collect();
        while from < end {
            let extent = bounds.partition_point(|&start| start <= from) - 1;
            let stop = end.min(bounds[extent + 1]);
            match out.origins[from].0 {
                ByteOrigin::Store(offset) => {
                    let is_inner = from > first && stop < end;
                    self.copy(out, content, stop - from, offset, is_inner, rules)
                }
                ByteOrigin::Fill(pattern) if stop - from >= 128 => out.fill(stop - from, pattern),
                ByteOrigin::Fill(_) => self.fresh(out, content, out.origins.len() + stop - from),
            }
            from = stop;
        }
    }

    /// Records which extents follow each other, where the segment has enough bytes on both sides.
    fn insert_continuations(
        &mut self,
        segments: &[Vec<u8>],
        extents: &[Extent],
        origins: &[(ByteOrigin, bool)],
    ) {
        let mut at = 0;
        for pair in extents.windows(2) {
            let (from, lengths) = (at, [pair[0].length(), pair[1].length()]);
            at += lengths[0] as usize;
            let (ByteOrigin::Store(from), ByteOrigin::Store(to)) = (origins[from].0, origins[at].0)
            else {
                continue;
            };
            let mut inside = at;
            let segment = segments.iter().find(|bytes| {
                let is_here = inside < bytes.len();
                inside -= if is_here { 0 } else { bytes.len() };
                is_here
            });
            let (before, after) = segment.expect("inside a segment").split_at(inside);
            let (Some(before), Some(after)) = (before.last_chunk(), after.first_chunk()) else {
                continue;
            };
            let end = from as u64 + lengths[0];
            let continuation = |offset_in_store, length| Continuation {
                offset_in_store,
                length: length as u32,
            };
            let forward = continuation(to as u64, lengths[1]);
            self.continuations
                .insert(Direction::Forward, end, *after, forward);
            let backward = continuation(end, lengths[0]);
            let start = to as u64;
            self.continuations
                .insert(Direction::Backward, start, *before, backward);
        }
    }

    fn insert(
        &mut self,
        content: &[u8],
        segments: &[Vec<u8>],
        scans: &[SegmentScan],
        origins: &[(ByteOrigin, bool)],
    ) {
        let mut segment_start = 0;
        for (bytes, scan) in segments.iter().zip(scans) {
            for &position in &scan.positions {
                let at = segment_start + position as usize;
                let whole = (at..at + FINGERPRINT_BYTES).all(|i| origins[i].1);
                if let (ByteOrigin::Store(offset), true) = (origins[at].0, whole) {
                    let window = content[at..]
                        .first_chunk::<FINGERPRINT_BYTES>()
                        .expect("whole window");
                    self.first_occurrence
                        .entry(fingerprint(window))
                        .or_insert(offset);
                }
            }
            segment_start += bytes.len();
        }
    }
}

struct FlatExtents {
    extents: Vec<Extent>,
    /// For every content byte so far: its origin, and whether it is fresh.
    origins: Vec<(ByteOrigin, bool)>,
}

impl FlatExtents {
    fn fill(&mut self, length: usize, pattern: Pattern) {
        self.extents.push(Extent::Fill {
            length: length as u64,
            pattern: Box::new(pattern),
        });
        self.origins
            .extend((0..length as u64).map(|i| (ByteOrigin::Fill(pattern.rotated(i)), false)));
    }
}

/// Returns the numbers of equal bytes before and after: `content` around `at`, `source` around
/// `from`.
fn agree(
    content: &[u8],
    at: usize,
    floor: usize,
    limit: usize,
    source: &[u8],
    from: usize,
) -> (usize, usize) {
    let after = (0..limit - at)
        .take_while(|&i| source.get(from + i) == Some(&content[at + i]))
        .count();
    if after < 8 {
        return (0, after);
    }
    let before = (1..=(at - floor).min(from))
        .take_while(|&i| source[from - i] == content[at - i])
        .count();
    (before, after)
}

fn join(repeats: Vec<Repeat>, content: &[u8]) -> Vec<Repeat> {
    let mut joined: Vec<Repeat> = vec![];
    for repeat in repeats {
        if let Some(last) = joined.last_mut()
            && last.end == repeat.start
            && continues(last, &repeat, content)
        {
            last.end = repeat.end;
            last.is_continuation |= repeat.is_continuation;
        } else {
            joined.push(repeat);
        }
    }
    joined
}

fn continues(first: &Repeat, second: &Repeat, content: &[u8]) -> bool {
    let length = first.end - first.start;
    match (first.source, second.source) {
        (RepeatSource::Store(a), RepeatSource::Store(b))
        | (RepeatSource::Epoch(a), RepeatSource::Epoch(b)) => a + length == b,
        (RepeatSource::Run(a), RepeatSource::Run(b)) if a == b => {
            let checked = a.min(second.end - second.start);
            content[second.start - a..second.start - a + checked]
                == content[second.start..second.start + checked]
        }
        _ => false,
    }
}
