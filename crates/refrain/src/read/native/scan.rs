//! Finds the intact frames of a file whose index or other parts are damaged.
//!
//! Frames are self-describing: a block states its range of the store, an epoch its range of the
//! content. An index is rebuilt from the remaining frames, with gaps where frames are missing.
//! Content in a gap cannot be read; all other content can. Concatenated archives are distinguished
//! by the id in each of their frames.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use refrain_format::{
    ARCHIVES_MAX, FRAME_HEADER_BYTES, FrameHeader, FrameKind, Limits, MAGIC, TAIL_BYTES, Tail,
    UntrustedFrameHeader, find_frame, whole,
};
use refrain_protect::envelope::RECORD_BYTES;
use refrain_storage::Source;

use crate::damage::DamagedPlace;
use crate::error::{Error, ErrorKind, Result};
use crate::read::native::found_frames::{FoundFrames, ScannedArchive};
use crate::read::native::lost_places::{Surroundings, lost_places};
use crate::store::appendix::{appendices_end, own_end};
use crate::store::frames::read_any_frame_at;
use crate::store::memory::zeroed;

/// The number of bytes searched at once.
const WINDOW_BYTES: usize = 1 << 20;

/// One of the archives found by a scan.
pub(crate) enum ScannedPart {
    Frames(Box<ScannedArchive>),
    /// The ordinary form of an archive that is a single, intact frame, and what is damaged around
    /// it.
    Whole(Vec<u8>, Vec<DamagedPlace>),
}

/// The result of a scan.
pub(crate) struct Scan {
    /// The archives, in file order.
    pub parts: Vec<ScannedPart>,
    /// The number of bytes outside the frames found.
    pub skipped_bytes: u64,
}

/// Searches the whole file for frames.
pub(crate) fn scan(intact: &dyn Source, limits: &Limits) -> Result<Scan> {
    let source: &dyn Source = &WithGaps(intact);
    let mut archives = FoundArchives::default();
    let mut window = vec![0; WINDOW_BYTES];
    let mut at = 0;
    while let Some(offset) = next_header(source, at, &mut window)? {
        at = match read_any_frame_at(intact, offset, limits) {
            Ok(frame) => {
                if let Some(found) = archives.with_id(frame.header.archive_id) {
                    found.add(&frame, limits);
                }
                offset + frame.header.frame_bytes()
            }
            Err(error) if error.kind == ErrorKind::Io => return Err(error),
            // The payload of this header is damaged: the next frame may start anywhere after it.
            Err(_) => {
                if let Some(header) = header_at(source, offset, limits)?
                    && let Some(found) = archives.with_id(header.archive_id)
                {
                    found.add_damaged(source, offset, &header, limits)?;
                }
                offset + 1
            }
        };
    }
    let file_bytes = source.size_bytes()?;
    let mut archives = without_embedded(archives.found);
    if archives.is_empty() {
        archives.extend(whole_without_header(source, file_bytes)?);
    }
    let ends: Vec<u64> = archives.iter().map(FoundFrames::end).collect();
    let mut scan = Scan {
        parts: Vec::with_capacity(archives.len()),
        skipped_bytes: 0,
    };
    let mut start = 0;
    let count = archives.len();
    let nexts: Vec<u64> = archives.iter().skip(1).map(FoundFrames::start).collect();
    for (number, mut found) in archives.into_iter().enumerate() {
        // The magic of the next archive does not belong to this one.
        let bound = match nexts.get(number) {
            Some(next) => next.saturating_sub(MAGIC.len() as u64),
            None => file_bytes,
        };
        found.set_given_back(start);
        scan.skipped_bytes += found.skipped_bytes(start..bound);
        let after = Surroundings {
            bytes: start..bound,
            is_last: number + 1 == count,
            begins_right: begins_right(source, start)?,
            tail: tail_at(source, ends.get(number).copied().unwrap_or(bound))?,
            has_tail_at_end: tail_at(source, bound.saturating_sub(TAIL_BYTES as u64))?.is_some(),
        };
        let whole = found.whole.take();
        start = bound;
        scan.parts.push(match whole {
            Some(archive) => ScannedPart::Whole(archive, lost_places(&found.seen, &after)),
            None => ScannedPart::Frames(Box::new(found.into_archive(&after))),
        });
    }
    Ok(scan)
}

/// A source with zeros for what it says is damaged: records of an encrypted archive. Only places
/// of frames are found in it; frames are read without it.
struct WithGaps<'a>(&'a dyn Source);

impl Source for WithGaps<'_> {
    fn size_bytes(&self) -> io::Result<u64> {
        self.0.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let error = match self.0.read_at(offset, buffer) {
            Ok(count) => return Ok(count),
            Err(error) => Error::from(error),
        };
        let in_record = (RECORD_BYTES as u64 - offset % RECORD_BYTES as u64) as usize;
        match error.kind {
            ErrorKind::Damaged if buffer.len() <= in_record => {
                buffer.fill(0);
                Ok(buffer.len())
            }
            ErrorKind::Damaged => {
                let (first, rest) = buffer.split_at_mut(in_record);
                let count = self.read_at(offset, first)?;
                if count < first.len() {
                    return Ok(count);
                }
                Ok(count + self.read_at(offset + count as u64, rest)?)
            }
            _ => Err(io::Error::other(error)),
        }
    }
}

/// The archive in the file, if it is a single frame with a damaged header.
fn whole_without_header(source: &dyn Source, file_bytes: u64) -> Result<Option<FoundFrames>> {
    if file_bytes > whole::WHOLE_ARCHIVE_BYTES_MAX as u64 {
        return Ok(None);
    }
    let mut archive = zeroed(file_bytes as usize)?;
    let count = source.read_at(0, &mut archive)?;
    let expanded = whole::expand_by_parity(&archive[..count]);
    Ok(expanded.map(|whole| FoundFrames::from_whole(0..file_bytes, whole)))
}

/// What of the archives of a file is damaged or missing.
pub(crate) fn lost_places_of(source: &dyn Source, limits: &Limits) -> Result<Vec<DamagedPlace>> {
    let mut places = vec![];
    for part in scan(source, limits)?.parts {
        match part {
            ScannedPart::Frames(archive) => places.extend(archive.lost),
            ScannedPart::Whole(_, lost) => places.extend(lost),
        }
    }
    Ok(places)
}

/// The archives by the ids of their frames.
#[derive(Default)]
struct FoundArchives {
    found: Vec<FoundFrames>,
    numbers: HashMap<u32, usize>,
}

impl FoundArchives {
    /// `None` if there are too many archives.
    fn with_id(&mut self, id: u32) -> Option<&mut FoundFrames> {
        let number = match self.numbers.get(&id) {
            Some(number) => *number,
            None if self.found.len() >= ARCHIVES_MAX => return None,
            None => {
                self.found.push(FoundFrames::new(id));
                self.numbers.insert(id, self.found.len() - 1);
                self.found.len() - 1
            }
        };
        self.found.get_mut(number)
    }
}

/// Removes archives embedded in another one's content, whose frames are exposed by a frame that is
/// damaged or has lost its header.
fn without_embedded(mut archives: Vec<FoundFrames>) -> Vec<FoundFrames> {
    archives.retain(|found| found.seen.iter().any(|seen| !seen.is_damaged));
    archives.sort_by_key(FoundFrames::start);
    let spans: Vec<Range<u64>> = archives.iter().map(FoundFrames::span).collect();
    let starts_late: Vec<bool> = archives.iter().map(|found| found.starts_late()).collect();
    let damaged: Vec<(u32, Range<u64>)> = (archives.iter())
        .flat_map(|found| {
            found
                .damaged_ranges()
                .map(|range| (found.archive_id, range))
        })
        .collect();
    let mut kept: Vec<FoundFrames> = vec![];
    for (number, found) in archives.into_iter().enumerate() {
        let own = found.start()..found.end();
        let is_inside = |range: &Range<u64>| range.start < own.start && own.end <= range.end;
        let is_embedded = spans
            .iter()
            .enumerate()
            .any(|(other, span)| other != number && is_inside(span))
            || damaged
                .iter()
                .any(|(id, range)| *id != found.archive_id && is_inside(range));
        // An archive with a lost beginning started before the first frame found.
        let may_be_embedded = starts_late.iter().skip(number + 1).any(|&late| late);
        let follows = match kept.last() {
            None => own.start == MAGIC.len() as u64,
            Some(before) => {
                let around = (TAIL_BYTES + MAGIC.len()) as u64;
                before.has_end && own.start == before.end() + around
            }
        };
        if !is_embedded && (follows || !may_be_embedded) {
            kept.push(found);
        }
    }
    kept
}

fn header_at(source: &dyn Source, offset: u64, limits: &Limits) -> Result<Option<FrameHeader>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let count = source.read_at(offset, &mut header)?;
    let header = UntrustedFrameHeader::parse(&header[..count]);
    Ok(header.and_then(|header| header.check(limits, None)).ok())
}

/// Whether the magic is at this offset.
fn begins_right(source: &dyn Source, offset: u64) -> Result<bool> {
    let mut magic = [0; MAGIC.len()];
    let count = source.read_at(offset, &mut magic)?;
    Ok(magic[..count] == MAGIC)
}

/// What the tail at this offset says, if there is one.
fn tail_at(source: &dyn Source, offset: u64) -> Result<Option<u64>> {
    let mut tail = [0; TAIL_BYTES];
    let count = source.read_at(offset, &mut tail)?;
    Ok(Tail::parse(&tail[..count]).ok().map(|tail| tail.back_bytes))
}

/// Where an archive is truncated whose frames, starting with the first, continue up to the end of
/// the file: the length of the file. Reads only headers.
pub(crate) fn cut_off_at(source: &dyn Source, limits: &Limits) -> Result<Option<u64>> {
    let file_bytes = source.size_bytes()?;
    if !begins_right(source, 0)? {
        // Not even the magic is complete.
        let mut start = vec![0; MAGIC.len()];
        let count = source.read_at(0, &mut start)?;
        let is_cut = (1..MAGIC.len()).contains(&count) && MAGIC.starts_with(&start[..count]);
        return Ok(is_cut.then_some(file_bytes));
    }
    let mut at = MAGIC.len() as u64;
    loop {
        if file_bytes.saturating_sub(at) < FRAME_HEADER_BYTES as u64 {
            return Ok(Some(file_bytes));
        }
        let Some(header) = header_at(source, at, limits)? else {
            return Ok(None);
        };
        let end = at + header.frame_bytes();
        if end > file_bytes {
            return Ok(Some(file_bytes));
        }
        let is_last = matches!(header.kind, FrameKind::End | FrameKind::Whole);
        at = match is_last {
            false => end,
            true if end + (TAIL_BYTES as u64) > file_bytes => return Ok(Some(file_bytes)),
            true => {
                let next = end + TAIL_BYTES as u64;
                let own = own_end(source, next)?;
                let appended = own.map(|own| appendices_end(source, &own)).transpose()?;
                let behind = appended.unwrap_or(next);
                let follows = header_at(source, behind, limits)?;
                match begins_right(source, next)? {
                    _ if follows.is_some_and(|next| next.kind == FrameKind::Generation) => behind,
                    true => next + MAGIC.len() as u64,
                    false if next + (MAGIC.len() as u64) > file_bytes && next < file_bytes => {
                        return Ok(Some(file_bytes));
                    }
                    false => return Ok(None),
                }
            }
        };
    }
}

/// The offset of the next intact frame header at or after `at`.
fn next_header(source: &dyn Source, mut at: u64, window: &mut [u8]) -> Result<Option<u64>> {
    loop {
        let count = source.read_at(at, window)?;
        if let Some(position) = find_frame(&window[..count], 0) {
            return Ok(Some(at + position as u64));
        }
        if count < window.len() {
            return Ok(None);
        }
        // A header may start in this window and end in the next.
        at += (count - (FRAME_HEADER_BYTES - 1)) as u64;
    }
}
