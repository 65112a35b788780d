//! Reads a long range of content in pieces on many threads, and delivers it in order.
//!
//! Whoever reads a piece also hashes it: a single thread that hashes all output is slower than the
//! threads that decode it.

use std::collections::BTreeMap;
use std::ops::Range;

use refrain_entries::Entry;
use refrain_pool::pool::checkpoint;
use refrain_pool::stages::stage;
use refrain_pool::{Lane, crew};
use refrain_protect::{HashKind, MemberSegment, SEGMENT_BYTES};

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, Watch, is_cancelled, next_event};
use crate::read::content_check::ContentCheck;

/// The size of a piece: several blocks of the fast levels.
const PIECE_BYTES: u64 = 4 << 20;
const _: () = assert!(PIECE_BYTES.is_multiple_of(SEGMENT_BYTES as u64));

/// The size of a piece if one is read at a time: the reader may decode its blocks in parallel.
const SINGLE_PIECE_BYTES: u64 = 8 << 20;

/// Pieces read ahead may take 1/16 of the memory budget.
const MEMORY_SHARE: u64 = 16;

/// A range of an entry, or of content, of this length; an end of `u64::MAX` is the end.
///
/// # Errors
/// `Usage` if the content ends before the range starts or ends.
pub(crate) fn within(
    range: Range<u64>,
    length_bytes: u64,
    entry: Option<&Entry>,
) -> Result<Range<u64>> {
    let (end, end_text) = match range.end {
        u64::MAX => (length_bytes, String::new()),
        end => (end, end.to_string()),
    };
    let start = range.start;
    if start <= end && end <= length_bytes {
        return Ok(start..end);
    }
    let name = entry.map_or("the content".to_owned(), |entry| {
        format!("{:?}", String::from_utf8_lossy(&entry.path))
    });
    let plural = if length_bytes == 1 { "" } else { "s" };
    let message = format!(
        "the range {start}..{end_text} ends past the end: {name} has {length_bytes} byte{plural}"
    );
    Err(Error::new(ErrorKind::Usage, message))
}

/// Fills a buffer with content at an offset, or with as much as is available.
pub(crate) type ReadContent<'a> = &'a (dyn Fn(u64, &mut [u8]) -> Result<usize> + Sync);

pub(crate) struct RangeRead<'a> {
    pub read: ReadContent<'a>,
    pub range: Range<u64>,
    /// The threads that read pieces; 0: they are read one after the other.
    pub threads: usize,
    pub memory_bytes: u64,
    /// The check of the range, if it is all content.
    pub check: Option<ContentCheck>,
}

/// A piece of the range, as far as it could be read.
struct Piece {
    number: u64,
    bytes: Vec<u8>,
    segments: Vec<MemberSegment>,
    error: Option<Error>,
}

impl RangeRead<'_> {
    /// Passes the range to `deliver`, piece by piece: everything before damage.
    ///
    /// # Errors
    /// From reading, the check and `deliver`; `Cancelled`.
    pub(crate) fn run(
        mut self,
        watch: &dyn Watch,
        deliver: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let piece_bytes = self.piece_bytes();
        let pieces = (self.range.end - self.range.start).div_ceil(piece_bytes);
        let in_memory = (self.memory_bytes / MEMORY_SHARE / PIECE_BYTES).max(1);
        let ahead = pieces.min(self.threads as u64 + 1).min(in_memory);
        let hash = self.check.as_ref().and_then(ContentCheck::segment_kind);
        let (read, range) = (self.read, self.range.clone());
        // A single piece is read on this thread.
        let threads = if ahead > 1 { self.threads } else { 0 };
        crew(threads, |crew| {
            let mut next = 0;
            let mut submit = |buffer: Vec<u8>| {
                if next < pieces {
                    let number = next;
                    let start = range.start + number * piece_bytes;
                    let part = start..range.end.min(start + piece_bytes);
                    next += 1;
                    let job = move || read_piece(read, part, number, hash, buffer);
                    crew.submit(Lane::Normal, job);
                }
            };
            for _ in 0..ahead {
                submit(Vec::new());
            }
            let mut done = BTreeMap::new();
            let mut delivered = 0;
            while let Some(event) = next_event(crew, watch)? {
                let piece = event?;
                done.insert(piece.number, piece);
                while let Some(piece) = done.remove(&delivered) {
                    delivered += 1;
                    submit(self.piece(piece, watch, deliver)?);
                }
            }
            self.check.take().map_or(Ok(()), ContentCheck::finish)
        })
    }

    fn piece_bytes(&self) -> u64 {
        match self.threads {
            0 => SINGLE_PIECE_BYTES,
            _ => PIECE_BYTES,
        }
    }

    /// Delivers a piece. Returns its buffer.
    fn piece(
        &mut self,
        piece: Piece,
        watch: &dyn Watch,
        deliver: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Vec<u8>> {
        deliver(&piece.bytes)?;
        if let Some(error) = piece.error {
            return Err(error);
        }
        match &mut self.check {
            Some(check) if check.segment_kind().is_some() => check.push(&piece.segments)?,
            Some(check) => check.update(&piece.bytes)?,
            None => {}
        }
        watch.progress(&Progress {
            content_bytes_done: piece.number * self.piece_bytes() + piece.bytes.len() as u64,
            content_bytes_total: Some(self.range.end - self.range.start),
            archive_bytes: 0,
        });
        if is_cancelled(watch) { Err(Error::cancelled()) } else { Ok(piece.bytes) }
    }
}

fn read_piece(
    read: ReadContent<'_>,
    range: Range<u64>,
    number: u64,
    hash: Option<HashKind>,
    mut bytes: Vec<u8>,
) -> Piece {
    bytes.resize((range.end - range.start) as usize, 0);
    let read = fill(read, range.start, &mut bytes).map_err(|(filled, error)| {
        bytes.truncate(filled);
        error
    });
    let hashed = read.and_then(|()| match hash {
        Some(kind) => segment_hashes(kind, range.start, &bytes),
        None => Ok(Vec::new()),
    });
    let (segments, error) = match hashed {
        Ok(segments) => (segments, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    Piece {
        number,
        bytes,
        segments,
        error,
    }
}

/// The hashes of the segments of content starting at `start`, where a segment starts.
fn segment_hashes(kind: HashKind, start: u64, bytes: &[u8]) -> Result<Vec<MemberSegment>> {
    let _stage = stage("hash", bytes.len() as u64);
    let offsets = (start..).step_by(SEGMENT_BYTES);
    let segments = offsets.zip(bytes.chunks(SEGMENT_BYTES));
    let hashes = segments.map(|(offset, segment)| {
        checkpoint();
        kind.segment(offset, segment)
    });
    (hashes.collect::<std::result::Result<_, _>>())
        .map_err(|error| Error::new(ErrorKind::Internal, error))
}

/// Fills a buffer with content starting at `start`, up to damage. An error comes with the number of
/// bytes before it.
fn fill(
    read: ReadContent<'_>,
    start: u64,
    buffer: &mut [u8],
) -> std::result::Result<(), (usize, Error)> {
    let mut filled = 0;
    let mut wanted = buffer.len();
    while filled < buffer.len() {
        let end = buffer.len().min(filled + wanted);
        match read(start + filled as u64, &mut buffer[filled..end]) {
            Ok(0) => {
                let text = "the content ends before the length that the archive states";
                return Err((filled, Error::damaged(text)));
            }
            Ok(count) => filled += count,
            Err(error) if error.kind == ErrorKind::Damaged && wanted > 1 => wanted /= 2,
            Err(error) => return Err((filled, error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use refrain_protect::content_hash;

    use super::*;
    use crate::progress::Unwatched;
    use crate::read::content_check::HashCheck;

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at / 3 + at / 1000) as u8).collect()
    }

    /// Reads `range` of `bytes`, which are damaged starting at `damage`.
    fn read(
        bytes: &[u8],
        range: Range<u64>,
        damage: usize,
        stated: Option<[u8; 32]>,
        threads: usize,
    ) -> (Vec<u8>, Result<()>) {
        let mut delivered = Vec::new();
        let source = |offset: u64, buffer: &mut [u8]| {
            let start = offset as usize;
            if start + buffer.len() > damage {
                return Err(Error::damaged("here"));
            } else {
                buffer.copy_from_slice(&bytes[start..start + buffer.len()])
            }
            Ok(buffer.len())
        };
        let plan = RangeRead {
            read: &source,
            range,
            threads,
            memory_bytes: 1 << 30,
            check: stated.map(|hash| {
                ContentCheck(Box::new(HashCheck::new(HashKind::Plain, hash, "x".into())))
            }),
        };
        let result = plan.run(&Unwatched, &mut |bytes| {
            delivered.extend_from_slice(bytes);
            Ok(())
        });
        (delivered, result)
    }

    #[test]
    fn ranges_are_delivered_in_order_and_all_content_is_compared_with_its_hash() {
        let piece = PIECE_BYTES as usize;
        for length in [0, 1, piece - 1, piece, 3 * piece + 5] {
            let bytes = content(length);
            for threads in [0, 1, 3] {
                let all = 0..length as u64;
                let right = Some(content_hash(&bytes));
                let (delivered, result) = read(&bytes, all.clone(), usize::MAX, right, threads);
                assert!(result.is_ok() && delivered == bytes, "{length} bytes");
                let (delivered, result) = read(&bytes, all, usize::MAX, Some([1; 32]), threads);
                assert_eq!(result.unwrap_err().kind, ErrorKind::Damaged);
                assert!(delivered == bytes);
            }
        }
        let bytes = content(3 * piece);
        let (delivered, result) = read(&bytes, 7..2 * piece as u64 + 9, usize::MAX, None, 2);
        assert!(result.is_ok() && delivered == bytes[7..2 * piece + 9]);
    }

    #[test]
    fn everything_before_damage_is_delivered() {
        let piece = PIECE_BYTES as usize;
        let bytes = content(3 * piece);
        for damage in [0, 1, piece, piece + 12_345, 3 * piece - 1] {
            for threads in [0, 1, 4] {
                let all = 0..bytes.len() as u64;
                let stated = Some(content_hash(&bytes));
                let (delivered, result) = read(&bytes, all, damage, stated, threads);
                assert_eq!(result.unwrap_err().kind, ErrorKind::Damaged);
                assert!(delivered == bytes[..damage], "{damage}");
            }
        }
    }
}
