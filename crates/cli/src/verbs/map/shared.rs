//! What two archives share, by the hashes of pieces of their stores.
//!
//! The store of an archive has each passage once. It is cut into pieces where a rolling hash of the
//! latest bytes says so, so that the same passage is cut the same way everywhere, except for its
//! first and last piece. Equal pieces have equal hashes. Passages shorter than a few pieces are not
//! seen, nor are runs, which are not in the store.

use std::ops::Range;

use refrain::{Archive, DigestAlgorithm, DigestHasher, Error, ErrorKind};

use super::curve::Curve;
use super::survey::{COLUMNS, for_each_column};
use crate::session::Session;

const PIECE_BYTES_MIN: u64 = 4 << 10;
/// The maximum: pieces are in memory, and the longest have eight times the mean length.
const PIECE_BYTES_MAX: u64 = 1 << 20;
/// The memory of a piece, in bytes.
const MARK_BYTES: u64 = size_of::<Mark>() as u64;
/// How much of a store is read at once.
const READ_BYTES: usize = 4 << 20;

/// A piece: a part of its hash, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    hash: u128,
    length: u32,
}

/// What two archives have in common.
#[derive(Debug)]
pub struct Shared {
    /// The mean length of pieces.
    pub piece_bytes: u64,
    pub first: Side,
    pub second: Side,
}

/// One of two archives.
#[derive(Debug, Default)]
pub struct Side {
    pub store_bytes: u64,
    /// Bytes of the store that the other archive also has.
    pub shared_bytes: u64,
    /// What these take in the archive.
    pub stored_bytes: u64,
    /// Shared bytes by column of the store.
    pub columns: Vec<u64>,
}

/// Compares two archives. `costs` tell what their stores take, `sizes` are the lengths of the
/// stores.
///
/// # Errors
/// From reading; `Cancelled`.
pub fn compare(
    archives: [&Archive; 2],
    costs: [&Curve; 2],
    sizes: [u64; 2],
    memory_bytes: u64,
    session: &Session,
) -> refrain::Result<Shared> {
    let piece_bytes = piece_bytes(sizes[0].max(sizes[1]), memory_bytes);
    let mut marks = [vec![], vec![]];
    for (archive, marks) in archives.into_iter().zip(&mut marks) {
        for_each_piece(archive, piece_bytes, session, |_, mark| {
            if marks.len() as u64 >= marks_max(memory_bytes) {
                return Err(too_many(memory_bytes));
            }
            marks.push(mark);
            Ok(())
        })?;
        marks.sort_unstable();
        marks.dedup();
    }
    let [of_first, of_second] = marks;
    let mut sides = vec![];
    for (number, known) in [(0, &of_second), (1, &of_first)] {
        let (costs, store_bytes) = (costs[number], sizes[number]);
        let mut side = Side {
            store_bytes,
            columns: vec![0; COLUMNS],
            ..Side::default()
        };
        for_each_piece(archives[number], piece_bytes, session, |offset, mark| {
            if known.binary_search(&mark).is_ok() {
                let length = u64::from(mark.length);
                side.shared_bytes += length;
                side.stored_bytes += costs.between(offset, offset + length);
                for_each_column(store_bytes, offset..offset + length, |column, bytes| {
                    side.columns[column] += bytes;
                });
            }
            Ok(())
        })?;
        sides.push(side);
    }
    let (second, first) = (sides.pop(), sides.pop());
    Ok(Shared {
        piece_bytes,
        first: first.unwrap_or_default(),
        second: second.unwrap_or_default(),
    })
}

/// The mean length of pieces with which the marks of both stores fit.
fn piece_bytes(store_bytes: u64, memory_bytes: u64) -> u64 {
    let least = store_bytes / marks_max(memory_bytes).max(1);
    let bounded = least.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
    bounded.next_power_of_two()
}

/// The maximum number of marks of one store. A growing list takes three times its length for a
/// moment.
fn marks_max(memory_bytes: u64) -> u64 {
    memory_bytes / 4 / MARK_BYTES / 4
}

fn too_many(memory_bytes: u64) -> Error {
    let most = marks_max(memory_bytes);
    let text = format!("the store has more than {most} pieces: raise the memory limit");
    Error::new(ErrorKind::Limit, text)
}

/// Calls `each` for every piece of a store and its start.
fn for_each_piece(
    archive: &Archive,
    piece_bytes: u64,
    session: &Session,
    mut each: impl FnMut(u64, Mark) -> refrain::Result<()>,
) -> refrain::Result<()> {
    let mut cutter = Cutter::new(piece_bytes);
    let mut buffer = vec![0; READ_BYTES];
    let (mut offset, mut piece) = (0, vec![]);
    let mut piece_start = 0;
    let mut given_back = given_back(archive)?.into_iter().peekable();
    loop {
        if session.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "interrupted"));
        }
        if let Some(gone) = given_back.next_if(|gone| gone.start <= offset) {
            if !piece.is_empty() {
                each(piece_start, mark_of(&piece))?;
                piece.clear();
            }
            (offset, piece_start) = (gone.end, gone.end);
            continue;
        }
        let left = given_back
            .peek()
            .map_or(u64::MAX, |gone| gone.start - offset);
        let wanted = left.min(READ_BYTES as u64) as usize;
        let count = archive.layout().read_store(offset, &mut buffer[..wanted])?;
        let mut rest = &buffer[..count];
        while let Some(length) = cutter.cut(rest) {
            piece.extend_from_slice(&rest[..length]);
            each(piece_start, mark_of(&piece))?;
            piece_start += piece.len() as u64;
            piece.clear();
            rest = &rest[length..];
        }
        piece.extend_from_slice(rest);
        offset += count as u64;
        if count == 0 {
            if !piece.is_empty() {
                each(piece_start, mark_of(&piece))?;
            }
            return Ok(());
        }
    }
}

/// The ranges of a store that were given back to the file system, ascending.
fn given_back(archive: &Archive) -> refrain::Result<Vec<Range<u64>>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    archive.layout().for_each_block(&mut |block| {
        let start = block.offset_in_store;
        let end = start.saturating_add(block.raw_bytes);
        match ranges.last_mut() {
            _ if !block.is_given_back => {}
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
        Ok(())
    })?;
    Ok(ranges)
}

fn mark_of(piece: &[u8]) -> Mark {
    let mut hasher = DigestHasher::new(DigestAlgorithm::Blake3);
    hasher.update(piece);
    let digest = hasher.finish();
    let bytes = digest.as_bytes().iter().take(16);
    Mark {
        hash: bytes.fold(0, |hash, &byte| hash << 8 | u128::from(byte)),
        // At most eight times the mean length, which is bounded.
        length: piece.len() as u32,
    }
}

/// Finds where pieces end: where certain bits of a hash of the latest bytes are zero.
struct Cutter {
    /// A number for each byte value.
    table: [u64; 256],
    hash: u64,
    length: u64,
    piece_bytes: u64,
}

impl Cutter {
    /// For pieces of about this length, a power of two.
    fn new(piece_bytes: u64) -> Cutter {
        // SplitMix64 (Steele, Lea and Flood 2014).
        let mut state = 0_u64;
        let table = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        });
        Cutter {
            table,
            hash: 0,
            length: 0,
            piece_bytes,
        }
    }

    /// The number of bytes up to the end of the present piece; `None` if it continues after them.
    fn cut(&mut self, bytes: &[u8]) -> Option<usize> {
        // One place in this many, but not in the first quarter.
        let is_end = u64::MAX >> (64 - self.piece_bytes.ilog2());
        let (least, most) = (self.piece_bytes / 4, self.piece_bytes * 8);
        for (number, byte) in bytes.iter().enumerate() {
            self.hash = (self.hash << 1).wrapping_add(self.table[usize::from(*byte)]);
            self.length += 1;
            let is_cut = (self.hash >> 13) & is_end == 0 && self.length >= least;
            if is_cut || self.length >= most {
                self.length = 0;
                return Some(number + 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use refrain_testkit::data::random;

    use super::*;

    fn pieces(bytes: &[u8], step: usize) -> Vec<Vec<u8>> {
        let mut cutter = Cutter::new(1 << 12);
        let (mut pieces, mut piece) = (vec![], vec![]);
        for part in bytes.chunks(step) {
            let mut rest = part;
            while let Some(length) = cutter.cut(rest) {
                piece.extend_from_slice(&rest[..length]);
                pieces.push(std::mem::take(&mut piece));
                rest = &rest[length..];
            }
            piece.extend_from_slice(rest);
        }
        pieces.push(piece);
        pieces
    }

    #[test]
    fn pieces_are_the_same_wherever_a_passage_is_and_however_it_is_read() {
        let passage = random(1 << 20, 1);
        let alone = pieces(&passage, 1 << 20);
        assert_eq!(alone.concat(), passage);
        assert_eq!(alone, pieces(&passage, 777));
        let mean = passage.len() / alone.len();
        assert!((3000..7000).contains(&mean), "{mean}");
        assert!(alone.iter().all(|piece| piece.len() <= 8 << 12));
        let inside = pieces(
            &[&random(12_345, 2)[..], &passage, &random(5000, 3)].concat(),
            9999,
        );
        let found = alone.iter().filter(|piece| inside.contains(piece)).count();
        assert!(found + 4 >= alone.len(), "{found} of {}", alone.len());
    }

    #[test]
    fn marks_of_both_stores_fit_into_a_quarter_of_the_memory() {
        for (store_bytes, memory_bytes) in
            [(1 << 20, 1 << 30), (1 << 38, 1 << 28), (1 << 40, 1 << 30)]
        {
            let bytes = piece_bytes(store_bytes, memory_bytes);
            assert!(bytes.is_power_of_two() && bytes >= PIECE_BYTES_MIN);
            assert!(store_bytes / bytes <= marks_max(memory_bytes), "{bytes}");
            assert!(marks_max(memory_bytes) * 4 * MARK_BYTES <= memory_bytes / 4);
        }
    }
}
