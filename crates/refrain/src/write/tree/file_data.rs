//! Reads the data of one open file: what was read counts, not the stated size.
//!
//! A file is opened once. What its descriptor yields is stored, and the same descriptor is asked at
//! the end whether the file changed. So a file that is replaced or deleted while it is read is
//! stored as it was, and one that is changed in place is reported.

use std::io;
use std::ops::Range;

use refrain_entries::Entry;
use refrain_protect::SEGMENT_BYTES;
use refrain_storage::read_full;

use refrain_filesystem::{OpenedFile, Problem, ProblemKind};

use crate::write::tree::batch_bytes::BatchBytes;

/// Files with more data than this are read in pieces, in bytes. The match stage finds equal ones.
pub(crate) const WHOLE_BYTES_MAX: u64 = 8 << 20;

/// How much is requested at once past the stated end of a file.
const STEP_BYTES: usize = 64 << 10;

/// The result of reading a file at once.
pub(crate) enum Read {
    /// All of its data. The entry describes what was read.
    Whole {
        entry: Entry,
        problem: Option<Problem>,
    },
    /// There is more than [`WHOLE_BYTES_MAX`]. The entry describes what was opened.
    TooLarge {
        entry: Entry,
        problem: Option<Problem>,
    },
}

/// Appends the data of a file, without its holes, to `bytes`.
pub(crate) fn read_whole(
    file: &OpenedFile,
    listed: &Entry,
    bytes: &mut BatchBytes,
) -> io::Result<Read> {
    let mut entry = listed.clone();
    // A file with unreadable attributes is stored without them.
    let attributes = file.refresh(&mut entry).err();
    let problem = attributes.map(|error| Problem::from_error(&listed.path, &error));
    entry.data_ranges = file.data_ranges()?;
    if entry.stored_bytes() > WHOLE_BYTES_MAX {
        return Ok(Read::TooLarge { entry, problem });
    }
    let start = bytes.len();
    let is_all = match entry.data_ranges.take() {
        Some(ranges) => {
            read_ranges(file, ranges, &mut entry, bytes)?;
            true
        }
        None => read_dense(file, entry.size_bytes, bytes)?,
    };
    if !is_all {
        bytes.truncate(start);
        return Ok(Read::TooLarge { entry, problem });
    }
    let read_bytes = (bytes.len() - start) as u64;
    let stated_bytes = entry.stored_bytes();
    let changed = match file.changed_to()? {
        None => None,
        Some(now_bytes) if stated_bytes < read_bytes && entry.size_bytes < now_bytes => {
            bytes.truncate(start + stated_bytes as usize);
            Some("grew while it was read")
        }
        Some(_) if stated_bytes > read_bytes => Some("shrank while it was read"),
        Some(_) => Some(CHANGED),
    };
    if entry.data_ranges.is_none() {
        entry.size_bytes = (bytes.len() - start) as u64;
    }
    Ok(Read::Whole {
        problem: changed
            .map(|text| changed_problem(&entry, text))
            .or(problem),
        entry,
    })
}

const CHANGED: &str = "changed while it was read";

pub(crate) fn changed_problem(entry: &Entry, text: &str) -> Problem {
    Problem {
        path: entry.path.clone(),
        kind: ProblemKind::Changed,
        text: text.into(),
    }
}

/// Reads all of a file that states `size_bytes`. Returns whether that is no more than
/// [`WHOLE_BYTES_MAX`].
///
/// Files of `/proc` state 0, files of `/sys` 4096, and a file system that computes contents may
/// state anything. One byte more than stated is requested: a file that yields exactly the stated
/// number has ended there, and any other is read until nothing comes.
fn read_dense(file: &OpenedFile, size_bytes: u64, bytes: &mut BatchBytes) -> io::Result<bool> {
    let start = bytes.len();
    if size_bytes > 0 {
        let room = bytes.extend(size_bytes as usize + 1);
        let count = file.read_at(0, room)?;
        bytes.truncate(start + count);
        if count as u64 == size_bytes {
            return Ok(true);
        }
    }
    loop {
        let at = bytes.len();
        let read_bytes = (at - start) as u64;
        if read_bytes > WHOLE_BYTES_MAX {
            return Ok(false);
        }
        // A growing file need not be followed.
        let is_beyond = size_bytes > 0 && read_bytes > size_bytes;
        if is_beyond && file.changed_to()?.is_some_and(|now| now > size_bytes) {
            return Ok(true);
        }
        let left = (size_bytes + 1).saturating_sub(read_bytes) as usize;
        let count = file.read_at(read_bytes, bytes.extend(left.max(STEP_BYTES)))?;
        bytes.truncate(at + count);
        if count == 0 {
            return Ok(true);
        }
    }
}

/// Reads the data `ranges` of a sparse file. If it ends early, the entry's ranges and size become
/// those of what was read.
fn read_ranges(
    file: &OpenedFile,
    mut ranges: Vec<Range<u64>>,
    entry: &mut Entry,
    bytes: &mut BatchBytes,
) -> io::Result<()> {
    for number in 0..ranges.len() {
        let (start, at) = (ranges[number].start, bytes.len());
        let part = bytes.extend((ranges[number].end - start) as usize);
        let count = read_full_at(file, start, part)?;
        if count < part.len() {
            bytes.truncate(at + count);
            cut(entry, &mut ranges, start + count as u64);
            break;
        }
    }
    entry.data_ranges = Some(ranges);
    Ok(())
}

/// Shortens the entry of a file that ended at `end_bytes`, and its data ranges.
fn cut(entry: &mut Entry, ranges: &mut Vec<Range<u64>>, end_bytes: u64) {
    entry.size_bytes = end_bytes;
    ranges.retain(|range| range.start < end_bytes);
    if let Some(last) = ranges.last_mut() {
        last.end = last.end.min(end_bytes);
    }
}

/// Adjusts the entry of a file that ended at `end_bytes`.
pub(crate) fn end_at(entry: &mut Entry, end_bytes: u64) {
    match entry.data_ranges.take() {
        None => entry.size_bytes = end_bytes,
        Some(mut ranges) => {
            cut(entry, &mut ranges, end_bytes);
            entry.data_ranges = Some(ranges);
        }
    }
}

/// A range of a large file, read by one job.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub range: Range<u64>,
    pub is_first: bool,
    /// Whether nothing is known to follow it.
    pub is_last: bool,
}

/// What follows a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    /// The next piece.
    Next,
    /// More than the file's stated size.
    More,
    /// Nothing: the file is complete, or ended before its stated size.
    End,
}

/// Appends a piece of a large file to `bytes`. Returns what follows it, and the file's problem if
/// known here.
pub(crate) fn read_piece(
    file: &OpenedFile,
    piece: &Piece,
    entry: &Entry,
    bytes: &mut BatchBytes,
) -> io::Result<(Follows, Option<Problem>)> {
    let at = bytes.len();
    let planned = (piece.range.end - piece.range.start) as usize;
    let part = bytes.extend(planned);
    let count = read_full_at(file, piece.range.start, part)?;
    bytes.truncate(at + count);
    if count == planned && !piece.is_last {
        return Ok((Follows::Next, None));
    }
    let is_short = count < planned;
    let changed = file.has_changed()?;
    let has_more = || -> io::Result<bool> {
        let is_dense = entry.data_ranges.is_none();
        Ok(is_dense && !is_short && file.read_at(piece.range.end, &mut [0])? > 0)
    };
    let text = match changed {
        false if has_more()? => return Ok((Follows::More, None)),
        false => None,
        true if is_short => Some("shrank while it was read"),
        true => Some(CHANGED),
    };
    Ok((Follows::End, text.map(|text| changed_problem(entry, text))))
}

/// Reads until `buffer` is full or the file ends. Returns the number of bytes.
pub(crate) fn read_full_at(file: &OpenedFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    read_full(offset, buffer, |at, part| file.read_at(at, part))
}

/// The pieces of a large file.
pub(crate) fn pieces(entry: &Entry) -> Vec<Piece> {
    let all = 0..entry.size_bytes;
    let ranges = match &entry.data_ranges {
        Some(ranges) => &ranges[..],
        None => std::slice::from_ref(&all),
    };
    let step = SEGMENT_BYTES as u64;
    let cut = ranges.iter().flat_map(move |range| {
        let count = (range.end - range.start).div_ceil(step);
        (0..count).map(move |number| {
            let start = range.start + number * step;
            start..(start + step).min(range.end)
        })
    });
    let mut pieces: Vec<Piece> = cut
        .map(|range| Piece {
            range,
            is_first: false,
            is_last: false,
        })
        .collect();
    if pieces.is_empty() {
        // It stated no size.
        pieces.push(piece_behind(0));
    }
    if let Some(first) = pieces.first_mut() {
        first.is_first = true;
    }
    if let Some(last) = pieces.last_mut() {
        last.is_last = true;
    }
    pieces
}

/// The piece after the stated end of a file.
pub(crate) fn piece_behind(end_bytes: u64) -> Piece {
    Piece {
        range: end_bytes..end_bytes + SEGMENT_BYTES as u64,
        is_first: false,
        is_last: true,
    }
}
