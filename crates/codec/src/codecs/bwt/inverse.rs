//! The inverse Burrows–Wheeler transform, many chains at once: one byte per step for up to 2^24
//! bytes (`packed.rs`), two for more.
//!
//! Row `r` of the sorted matrix leads to the row of the suffix that is one byte shorter. Following
//! these links gives the text, with one cache miss per byte. Storing the successor of the successor
//! halves the misses: the two bytes of a step follow from the row alone, since rows are sorted by
//! them. Following many chains alternately lets the misses overlap. (libsais uses both ideas, too.)
//!
//! Everything here is safe code: links are built by counting, so they stay inside the matrix for
//! any bytes and any chain starts. A forged block decodes to wrong bytes, in the same time.

use std::ops::Range;

use super::histogram::histogram;
use super::packed;
use super::transform::{CHAINS_MAX, ChainRow, sampling_bytes};
use crate::host::Host;

/// The chains followed alternately: all chains of a block. With 16 at a time, each of which
/// searched for its bytes before it loaded its link, a block of kernel source took 1.6 times as
/// long.
const LANES: usize = CHAINS_MAX;
/// Log2 of the entries of the index into a pair directory.
const DIRECTORY_LOG: u32 = 16;
const PAIRS: usize = 1 << 16;
/// The links made between two check-ins, at 5 to 20 ns each,
const PIECE_LINKS: usize = 1 << 14;
/// and the pairs of each chain that are followed, at 5 to 10 ns for each chain.
const PIECE_PAIRS: usize = 1 << 9;

pub(super) struct Inverse {
    /// The maximum length of a text whose links are packed.
    packed_bytes_max: usize,
    /// For each row, the row of the suffix that is two bytes shorter; or packed.
    links: Vec<ChainRow>,
    directory: PairDirectory,
    /// The number of rows of each pair, then the next row of each pair.
    pair_rows: Vec<ChainRow>,
}

impl Default for Inverse {
    fn default() -> Self {
        Self {
            packed_bytes_max: packed::LENGTH_BYTES_MAX,
            links: Vec::new(),
            directory: PairDirectory::default(),
            pair_rows: Vec::new(),
        }
    }
}

impl Inverse {
    pub(super) const fn memory_bytes(length_bytes: u64) -> u64 {
        // Links; pair rows; first rows, bytes and index of the directory.
        4 * (length_bytes + 1) + (4 + 4 + 2) * (PAIRS as u64 + 2) + (2 << DIRECTORY_LOG) + 64
    }

    /// Computes the links for `transform` (1 to 2^30 bytes). `primary`, 1 to its length, is the row
    /// of the text. Returns `None` when memory cannot be allocated.
    pub(super) fn prepare(
        &mut self,
        host: Host,
        transform: &[u8],
        primary: ChainRow,
    ) -> Option<()> {
        let rows = transform.len() + 1;
        let additional = rows.saturating_sub(self.links.len());
        self.links.try_reserve_exact(additional).ok()?;
        host.resize(&mut self.links, rows);
        if transform.len() <= self.packed_bytes_max {
            packed::link(host, transform, primary, &mut self.links);
            return Some(());
        }
        let matrix = Matrix {
            host,
            transform,
            primary: primary as usize,
        };
        let first_rows = matrix.first_rows();
        self.pair_rows.clear();
        self.pair_rows.resize(PAIRS, 0);
        matrix.count_pairs(&first_rows, &mut self.pair_rows);
        self.directory
            .build(matrix.last_byte(), rows, &mut self.pair_rows);
        // The suffixes of no byte and of one byte. Valid blocks do not follow these links.
        self.links[0] = 0;
        self.links[first_rows[usize::from(matrix.last_byte())] as usize] = 0;
        matrix.link(first_rows, &mut self.pair_rows, &mut self.links);
        Some(())
    }

    /// Writes the first `text.len()` bytes of the text of a transform of `length_bytes`, for which
    /// `prepare` was called. `starts` are the rows of its chains, 1 to `length_bytes`.
    pub(super) fn follow(
        &self,
        host: Host,
        starts: &[ChainRow],
        length_bytes: usize,
        text: &mut [u8],
    ) {
        if length_bytes <= self.packed_bytes_max {
            return packed::follow(host, &self.links, starts, length_bytes, text);
        }
        let chunks = text.chunks_mut(sampling_bytes(length_bytes));
        let mut chains: Vec<_> = chunks
            .zip(starts)
            .map(|(text, &row)| Chain { row, text })
            .collect();
        for group in chains.chunks_mut(LANES) {
            self.follow_group(host, group);
        }
    }

    /// Follows chains alternately. None is longer than the one before it: the last one ends first,
    /// and the others continue.
    fn follow_group(&self, host: Host, group: &mut [Chain<'_>]) {
        let mut done = 0;
        for active in (1..=group.len()).rev() {
            let pairs = group[active - 1].text.len() / 2;
            while done < pairs {
                let end = pairs.min(done + PIECE_PAIRS);
                self.follow_alternately(&mut group[..active], done..end);
                (host.check_in)();
                done = end;
            }
            let last = &mut group[active - 1];
            if let Some(byte) = last.text.get_mut(2 * pairs) {
                *byte = self.directory.bytes_of(last.row)[0];
            }
        }
    }

    /// Writes some pairs of each chain's text. All links of a step are loaded before any bytes are
    /// searched: a mispredicted search must not delay the load of the next link.
    fn follow_alternately(&self, chains: &mut [Chain<'_>], pairs: Range<usize>) {
        let (mut rows, mut next_rows) = ([0; LANES], [0; LANES]);
        for (row, chain) in rows.iter_mut().zip(&*chains) {
            *row = chain.row;
        }
        for pair in pairs {
            let next_rows = &mut next_rows[..chains.len()];
            for (next_row, &row) in next_rows.iter_mut().zip(&rows) {
                *next_row = self.links[row as usize];
            }
            for ((chain, row), &next_row) in chains.iter_mut().zip(&mut rows).zip(&*next_rows) {
                let bytes = self.directory.bytes_of(*row);
                chain.text[2 * pair..2 * pair + 2].copy_from_slice(&bytes);
                *row = next_row;
            }
        }
        for (row, chain) in rows.iter().zip(chains) {
            chain.row = *row;
        }
    }
}

/// A part of the text and the row of the rest of it.
struct Chain<'a> {
    row: ChainRow,
    text: &'a mut [u8],
}

/// The sorted matrix: row 0 is the empty suffix, row `primary` the whole text, which has no byte
/// before it and therefore none in the transform.
struct Matrix<'a> {
    host: Host,
    transform: &'a [u8],
    primary: usize,
}

impl Matrix<'_> {
    /// The byte before the empty suffix, which is the last one.
    fn last_byte(&self) -> u8 {
        self.transform.first().copied().unwrap_or(0)
    }

    fn first_rows(&self) -> [ChainRow; 256] {
        let mut next = 1;
        histogram(self.host, self.transform).map(|count| {
            let first = next;
            next += count;
            first
        })
    }

    /// The byte before the suffix of `row`, which is not `primary`.
    #[inline(always)]
    fn byte_before(&self, row: usize) -> u8 {
        self.transform[row - usize::from(row > self.primary)]
    }

    /// Counts for each pair (first byte in the high part) the rows that begin with it.
    fn count_pairs(&self, first_rows: &[ChainRow; 256], counts: &mut [ChainRow]) {
        let rows = self.transform.len() + 1;
        for second in 0..256 {
            let start = first_rows[second] as usize;
            let end = first_rows.get(second + 1).map_or(rows, |&row| row as usize);
            // Rows of the matrix, without `primary`, as positions in the transform.
            let [start, end] = [start, end].map(|row| row - usize::from(row > self.primary));
            for (first, count) in histogram(self.host, &self.transform[start..end])
                .into_iter()
                .enumerate()
            {
                counts[first << 8 | second] = count;
            }
        }
    }

    /// Visits all suffixes in order: the suffix that is two bytes longer is the next row of that
    /// pair.
    fn link(
        &self,
        mut next_rows: [ChainRow; 256],
        next_pair_rows: &mut [ChainRow],
        links: &mut [ChainRow],
    ) {
        let (below, above) = self.transform.split_at(self.primary);
        let below = below.chunks(PIECE_LINKS).zip((0..).step_by(PIECE_LINKS));
        let above = above
            .chunks(PIECE_LINKS)
            .zip((self.primary + 1..).step_by(PIECE_LINKS));
        for (piece, first_row) in below.chain(above) {
            for (&second, row) in piece.iter().zip(first_row as ChainRow..) {
                let next = &mut next_rows[usize::from(second)];
                let longer = *next as usize;
                *next += 1;
                if longer != self.primary {
                    let first = usize::from(self.byte_before(longer));
                    let next = &mut next_pair_rows[first << 8 | usize::from(second)];
                    links[*next as usize] = row;
                    *next += 1;
                }
            }
            (self.host.check_in)();
        }
    }
}

#[derive(Default)]
struct PairDirectory {
    /// The first row of each pair that occurs, and of the suffix of one byte, rising; then the
    /// number of rows.
    first_rows: Vec<ChainRow>,
    /// The bytes of each pair, in the order of the text.
    bytes: Vec<[u8; 2]>,
    /// For each `1 << shift` rows, the index of the pair of the first one, or a smaller index.
    index: Vec<u16>,
    shift: u32,
}

impl PairDirectory {
    /// Converts `pair_rows` from the numbers of rows to the first rows of each pair.
    fn build(&mut self, last_byte: u8, rows: usize, pair_rows: &mut [ChainRow]) {
        self.first_rows.clear();
        self.bytes.clear();
        let mut row: ChainRow = 1;
        for (pair, pair_row) in pair_rows.iter_mut().enumerate() {
            let bytes = [(pair >> 8) as u8, pair as u8];
            if bytes == [last_byte, 0] {
                // The suffix of one byte precedes the longer ones.
                self.push(row, bytes);
                row += 1;
            }
            let count = *pair_row;
            *pair_row = row;
            if count > 0 {
                self.push(row, bytes);
                row += count;
            }
        }
        self.first_rows.push(rows as ChainRow);
        self.build_index(rows);
    }

    fn push(&mut self, first_row: ChainRow, bytes: [u8; 2]) {
        self.first_rows.push(first_row);
        self.bytes.push(bytes);
    }

    fn build_index(&mut self, rows: usize) {
        self.shift = (usize::BITS - rows.leading_zeros()).saturating_sub(DIRECTORY_LOG);
        self.index.clear();
        let mut index = 0;
        for entry in 0..=(rows >> self.shift) {
            let row = (entry << self.shift) as ChainRow;
            while self
                .first_rows
                .get(index + 1)
                .is_some_and(|&first| first <= row)
            {
                index += 1;
            }
            self.index.push(index.min(usize::from(u16::MAX)) as u16);
        }
    }

    #[inline(always)]
    fn bytes_of(&self, row: ChainRow) -> [u8; 2] {
        let mut index = usize::from(self.index[(row >> self.shift) as usize]);
        while self.first_rows[index + 1] <= row {
            index += 1;
        }
        self.bytes[index]
    }
}

#[cfg(test)]
#[path = "inverse_tests.rs"]
mod tests;
