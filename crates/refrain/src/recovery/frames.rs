//! Finds Recovery frames in damaged files, by scanning.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_format::limits::Limits;
use refrain_format::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, RecoveryPlace, RecoverySet, UntrustedFrameHeader,
    find_frame,
};
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::progress::{Watch, is_cancelled};

/// What a scan reads at a time.
const WINDOW_BYTES: usize = 4 << 20;

/// The head of a frame and the largest slice.
const PAYLOAD_BYTES_MAX: u64 = (1 << 26) + 1024;

/// More frames than any set has are forged.
const FRAMES_MAX: usize = 5 << 20;

/// The frames of a set, wherever they were found.
#[derive(Debug, Default)]
pub(crate) struct FoundSet {
    frames: Vec<FoundFrame>,
    /// For each input the offsets of the first and of the last frame in it.
    ranges: Vec<Option<(u64, u64)>>,
}

/// An intact frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundFrame {
    pub place: RecoveryPlace,
    pub input: u8,
    pub offset: u64,
}

impl FoundSet {
    pub(crate) fn frames(&self) -> &[FoundFrame] {
        &self.frames
    }

    /// Where the frames of the set begin in an input.
    pub(crate) fn start_in(&self, input: usize) -> Option<u64> {
        Some((*self.ranges.get(input)?)?.0)
    }

    fn last_in(&self, input: usize) -> Option<u64> {
        Some((*self.ranges.get(input)?)?.1)
    }

    fn note(&mut self, frame: FoundFrame) {
        let input = usize::from(frame.input);
        if self.ranges.len() <= input {
            self.ranges.resize(input + 1, None);
        }
        let range = &mut self.ranges[input];
        let first = range.map_or(frame.offset, |(first, _)| first);
        *range = Some((first, frame.offset));
        self.frames.push(frame);
    }
}

/// Scans all inputs. Returns the set that is the outermost in the first input that has any: an
/// archive inside may have recovery data of its own, which protects less.
///
/// # Errors
/// `Io`, `Cancelled`; `Limit` for more frames than any set has.
pub(crate) fn find_set(
    inputs: &[Arc<dyn Source>],
    watch: &dyn Watch,
) -> Result<Option<(RecoverySet, FoundSet)>> {
    let mut found: HashMap<RecoverySet, FoundSet> = HashMap::new();
    let mut count = 0;
    for (input, source) in (0_u8..).zip(inputs) {
        scan(&**source, watch, &mut |set, place, offset| {
            count += 1;
            if count > FRAMES_MAX {
                return Err(Error::limit(
                    "there are more recovery frames than any file has",
                ));
            }
            let frame = FoundFrame {
                place,
                input,
                offset,
            };
            found.entry(set).or_default().note(frame);
            Ok(())
        })?;
    }
    let best = (0..inputs.len()).find_map(|input| {
        let sets = found.iter();
        let sets = sets.filter_map(|(set, found)| Some((*set, found.last_in(input)?)));
        sets.max_by_key(|(set, last)| (set.parameters.protected_bytes, *last))
    });
    Ok(best.and_then(|(set, _)| Some((set, found.remove(&set)?))))
}

type EachFrame<'f> = dyn FnMut(RecoverySet, RecoveryPlace, u64) -> Result<()> + 'f;

/// Calls `each` for every intact Recovery frame.
fn scan(source: &dyn Source, watch: &dyn Watch, each: &mut EachFrame<'_>) -> Result<()> {
    let mut window = vec![0; WINDOW_BYTES];
    let mut offset = 0;
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
        if count < WINDOW_BYTES {
            return Ok(());
        }
        offset += next as u64;
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
    header.kind == FrameKind::Recovery && header.payload_bytes <= PAYLOAD_BYTES_MAX
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
