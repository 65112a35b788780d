//! Finds Recovery frames in damaged files, by scanning.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::limits::Limits;
use refrain_format::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, RecoveryPart, RecoveryPlace, RecoverySet,
    UntrustedFrameHeader, find_frame,
};
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::progress::{Watch, is_cancelled};
use crate::store::ending::RECOVERY_PAYLOAD_BYTES_MAX;

/// What a scan reads at a time.
const WINDOW_BYTES: usize = 4 << 20;

/// More frames than any set has are forged.
const FRAMES_MAX: usize = 5 << 20;

/// The sets of all generations, and of archives inside: they take some 40 MB.
const SETS_MAX: usize = 1 << 18;

/// A set of which some frame is in an input.
#[derive(Debug, Default, Clone)]
pub(crate) struct SetRanges {
    /// For each input, the bytes from the first frame of the set in it to the end of the last.
    ranges: Vec<Option<Range<u64>>>,
    /// How many pieces of the table there are, or more if several inputs have the same.
    pieces: usize,
}

impl SetRanges {
    pub(crate) fn in_input(&self, input: usize) -> Option<Range<u64>> {
        self.ranges.get(input)?.clone()
    }

    fn note(&mut self, input: usize, part: RecoveryPart, frame: Range<u64>) {
        if self.ranges.len() <= input {
            self.ranges.resize(input + 1, None);
        }
        let first = self.ranges[input].as_ref().map(|range| range.start);
        self.ranges[input] = Some(first.unwrap_or(frame.start)..frame.end);
        self.pieces += usize::from(part == RecoveryPart::Digests);
    }
}

/// All sets of which some frame is in an input.
#[derive(Debug, Default)]
pub(crate) struct FoundSets {
    sets: HashMap<RecoverySet, SetRanges>,
    inputs: usize,
}

impl FoundSets {
    /// Scans all inputs.
    ///
    /// # Errors
    /// `Io`, `Cancelled`; `Limit` for more sets than any file has.
    pub(crate) fn find(inputs: &[Arc<dyn Source>], watch: &dyn Watch) -> Result<FoundSets> {
        let mut found = FoundSets {
            sets: HashMap::new(),
            inputs: inputs.len(),
        };
        for (input, source) in inputs.iter().enumerate() {
            scan(&**source, 0..u64::MAX, watch, &mut |set, place, offset| {
                let end = offset + set.frame_bytes(place.part);
                let ranges = found.sets.entry(set).or_default();
                ranges.note(input, place.part, offset..end);
                if found.sets.len() > SETS_MAX {
                    let text = "there is recovery data of more files than this version tells apart";
                    return Err(Error::limit(text));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// Leaves out a set that is of no use.
    pub(crate) fn remove(&mut self, set: &RecoverySet) {
        self.sets.remove(set);
    }

    /// Takes out the sets of which too little is left for their tables, unless that is all.
    pub(crate) fn take_hopeless(&mut self) -> Vec<RecoverySet> {
        let is_hopeless =
            |set: &RecoverySet, found: &SetRanges| found.pieces < set.parameters.table_pieces();
        let hopeless = self
            .sets
            .iter()
            .filter(|(set, found)| is_hopeless(set, found));
        let hopeless: Vec<_> = hopeless.map(|(set, _)| *set).collect();
        if hopeless.len() < self.sets.len() {
            self.sets.retain(|set, found| !is_hopeless(set, found));
        }
        hopeless
    }

    /// Leaves out the sets of other archives. Returns whether that leaves some, but not all.
    pub(crate) fn keep_only(&mut self, archive_id: u32) -> bool {
        let before = self.sets.len();
        self.sets.retain(|set, _| set.archive_id == archive_id);
        !self.sets.is_empty() && self.sets.len() < before
    }

    /// The sets of the file, in file order: the outermost of the first input that has any, as an
    /// archive inside may have recovery data of its own, which ends earlier; and those of the same
    /// archive before the bytes that it protects.
    pub(crate) fn chain(&self) -> Vec<(RecoverySet, SetRanges)> {
        let last = (0..self.inputs).find_map(|input| {
            let sets = self.sets.iter();
            let sets = sets.filter_map(|(set, found)| Some((set, found.in_input(input)?.end)));
            sets.max_by_key(|(set, last)| (set.protected().end, *last, set.set_id))
        });
        let Some((last, _)) = last else {
            return Vec::new();
        };
        let sets = self.sets.keys();
        let mut earlier: Vec<_> = sets
            .filter(|set| set.archive_id == last.archive_id && !set.is_apart)
            .collect();
        earlier.sort_unstable_by_key(|set| (set.appendix_end(), set.set_id));
        let mut chain = vec![*last];
        let mut start = last.protected().start;
        for set in earlier.into_iter().rev() {
            if set.appendix_end() <= start {
                chain.push(*set);
                start = set.protected().start;
            }
        }
        let with_ranges = |set| (set, self.sets.get(&set).cloned().unwrap_or_default());
        chain.into_iter().rev().map(with_ranges).collect()
    }
}

/// The frames of a set, wherever they were found.
#[derive(Debug, Default)]
pub(crate) struct FoundSet {
    frames: Vec<FoundFrame>,
}

/// An intact frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundFrame {
    pub place: RecoveryPlace,
    pub input: u8,
    pub offset: u64,
}

impl FoundSet {
    /// Scans the inputs for the frames of a set.
    ///
    /// # Errors
    /// `Io`, `Cancelled`; `Limit` for more frames than any set has.
    pub(crate) fn find(
        wanted: &RecoverySet,
        ranges: &SetRanges,
        inputs: &[Arc<dyn Source>],
        watch: &dyn Watch,
    ) -> Result<FoundSet> {
        let mut frames = Vec::new();
        for (input, source) in (0_u8..).zip(inputs) {
            let Some(range) = ranges.in_input(usize::from(input)) else {
                continue;
            };
            scan(&**source, range, watch, &mut |set, place, offset| {
                if set == *wanted {
                    frames.push(FoundFrame {
                        place,
                        input,
                        offset,
                    });
                }
                if frames.len() > FRAMES_MAX {
                    return Err(Error::limit(
                        "there are more recovery frames than any file has",
                    ));
                }
                Ok(())
            })?;
        }
        Ok(FoundSet { frames })
    }

    pub(crate) fn frames(&self) -> &[FoundFrame] {
        &self.frames
    }
}

/// Whether frames of an archive begin behind an offset, and not only recovery data.
///
/// # Errors
/// `Io`, `Cancelled`.
pub(crate) fn holds_frames(source: &dyn Source, from: u64, watch: &dyn Watch) -> Result<bool> {
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = from;
    loop {
        if is_cancelled(watch) {
            return Err(Error::cancelled());
        }
        let count = source.read_at(offset, &mut window)?;
        let mut at = 0;
        while let Some(found) = find_frame(&window[..count], at) {
            let header = UntrustedFrameHeader::parse(&window[found..count])?;
            let header = header.check(&Limits::default(), None);
            if !header.is_ok_and(|header| header.kind == FrameKind::Recovery) {
                return Ok(true);
            }
            at = found + 1;
        }
        if count < WINDOW_BYTES {
            return Ok(false);
        }
        offset += (count + 1 - FRAME_HEADER_BYTES) as u64;
    }
}

type EachFrame<'f> = dyn FnMut(RecoverySet, RecoveryPlace, u64) -> Result<()> + 'f;

/// Calls `each` for every intact Recovery frame that begins in a range of a source.
fn scan(
    source: &dyn Source,
    range: Range<u64>,
    watch: &dyn Watch,
    each: &mut EachFrame<'_>,
) -> Result<()> {
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = range.start;
    loop {
        if is_cancelled(watch) {
            return Err(Error::cancelled());
        }
        let count = source.read_at(offset, &mut window)?;
        let bytes = &window[..count];
        let mut at = 0;
        // What begins before the end of the window is looked at again, from its first byte.
        let mut next = (count + 1).saturating_sub(FRAME_HEADER_BYTES);
        while let Some(found) = find_frame(bytes, at) {
            match frame_at(source, offset, bytes, found)? {
                Frame::Recovery(set, place, frame_bytes) => {
                    if offset + found as u64 >= range.end {
                        return Ok(());
                    }
                    each(set, place, offset + found as u64)?;
                    at = found + frame_bytes;
                    next = next.max(at);
                }
                Frame::CutByWindow => {
                    next = found;
                    break;
                }
                Frame::None => at = found + 1,
            }
        }
        offset += next as u64;
        if count < WINDOW_BYTES || offset >= range.end {
            return Ok(());
        }
    }
}

enum Frame {
    /// An intact one of this size.
    Recovery(RecoverySet, RecoveryPlace, usize),
    /// It continues behind the window, which does not begin with it.
    CutByWindow,
    None,
}

/// The frame whose intact header is at `at` in a window.
fn frame_at(source: &dyn Source, offset: u64, window: &[u8], at: usize) -> Result<Frame> {
    let rest = &window[at..];
    let header = UntrustedFrameHeader::parse(rest)?.check(&Limits::default(), None);
    let Some(header) = header.ok().filter(is_recovery) else {
        return Ok(Frame::None);
    };
    let payload_bytes = header.payload_bytes as usize;
    let frame_bytes = FRAME_HEADER_BYTES + payload_bytes;
    if let Some(payload) = rest.get(FRAME_HEADER_BYTES..frame_bytes) {
        return Ok(parsed(&header, payload));
    }
    if window.len() < WINDOW_BYTES {
        return Ok(Frame::None);
    }
    if at > 0 && frame_bytes <= window.len() {
        return Ok(Frame::CutByWindow);
    }
    let mut payload = vec![0; payload_bytes];
    let start = offset + (at + FRAME_HEADER_BYTES) as u64;
    let count = source.read_at(start, &mut payload)?;
    Ok(parsed(&header, &payload[..count]))
}

fn is_recovery(header: &FrameHeader) -> bool {
    header.kind == FrameKind::Recovery && header.payload_bytes <= RECOVERY_PAYLOAD_BYTES_MAX
}

fn parsed(header: &FrameHeader, payload: &[u8]) -> Frame {
    let is_intact = header.check_payload(payload).is_ok();
    let parsed = is_intact.then(|| RecoverySet::parse(header, payload).ok());
    match parsed.flatten() {
        Some((set, place, _)) => Frame::Recovery(set, place, FRAME_HEADER_BYTES + payload.len()),
        None => Frame::None,
    }
}

/// The data of a frame that was found.
///
/// # Errors
/// `Io`; `Damaged` if it is no longer there.
pub(crate) fn frame_data(
    source: &dyn Source,
    set: &RecoverySet,
    frame: &FoundFrame,
) -> Result<Vec<u8>> {
    let data_bytes = set.data_bytes(frame.place.part);
    let head_bytes = set.frame_bytes(frame.place.part) - data_bytes as u64;
    let mut data = vec![0; data_bytes];
    let count = source.read_at(frame.offset + head_bytes, &mut data)?;
    if count < data_bytes {
        return Err(Error::damaged("recovery data became shorter"));
    }
    Ok(data)
}
