//! The way back from the Burrows–Wheeler transform, two bytes a step and many chains at once.
//!
//! Row `r` of the sorted matrix is followed by the row of the suffix that is one byte shorter; walking
//! that gives the text, one miss of the cache a byte. Storing the successor's successor halves the
//! misses: the two bytes of a step are found from the row alone, since rows are sorted by them. And
//! walking many chains in turn lets the misses overlap (both ideas are also those of libsais).
//!
//! Everything here is safe code: links are built by counting, so they stay inside the matrix for any
//! bytes and any chain starts; a forged block opens to wrong bytes, in the same time.

use std::ops::Range;

use super::transform::{CHAINS_MAX, Row, sampling_bytes};

/// Chains that are walked in turn: all of a block. With 16 of them at a time, each searching for its bytes
/// before it asked for its link, a block of kernel source took 1.6 times as long.
const LANES: usize = CHAINS_MAX;
/// Log2 of the places of a pair directory.
const DIRECTORY_LOG: u32 = 16;
/// Pairs of bytes.
const PAIRS: usize = 1 << 16;

/// Memory of the way back, reused from block to block.
#[derive(Default)]
pub(super) struct Inverse {
    /// For each row, the row of the suffix that is two bytes shorter.
    links: Vec<Row>,
    directory: PairDirectory,
    /// Rows per pair, then the next row of each pair.
    pair_rows: Vec<Row>,
}

impl Inverse {
    /// Memory for a transform of `length_bytes`, bytes.
    pub(super) const fn memory_bytes(length_bytes: u64) -> u64 {
        // Links; pair rows; first rows, bytes and places of the directory.
        4 * (length_bytes + 1) + (4 + 4 + 2) * (PAIRS as u64 + 2) + (2 << DIRECTORY_LOG) + 64
    }

    /// Makes the links for `transform` (1 to 2^30 bytes), whose text's row is `primary`, 1 to its
    /// length. `None` when there is no memory.
    pub(super) fn prepare(&mut self, transform: &[u8], primary: Row) -> Option<()> {
        let rows = transform.len() + 1;
        let additional = rows.saturating_sub(self.links.len());
        self.links.try_reserve_exact(additional).ok()?;
        self.links.resize(rows, 0);
        let matrix = Matrix {
            transform,
            primary: primary as usize,
        };
        let first_rows = matrix.first_rows();
        self.pair_rows.clear();
        self.pair_rows.resize(PAIRS, 0);
        matrix.count_pairs(&first_rows, &mut self.pair_rows);
        self.directory
            .build(matrix.last_byte(), rows, &mut self.pair_rows);
        // Of the suffixes of no and of one byte. Nothing walks on from there in a block of ours.
        self.links[0] = 0;
        self.links[first_rows[usize::from(matrix.last_byte())] as usize] = 0;
        matrix.link(first_rows, &mut self.pair_rows, &mut self.links);
        Some(())
    }

    /// Writes the first `text.len()` bytes of the text of a transform of `length_bytes`, for which
    /// `prepare` was called. `starts` are the rows of its chains, 1 to `length_bytes`.
    pub(super) fn walk(&self, starts: &[Row], length_bytes: usize, text: &mut [u8]) {
        let chunks = text.chunks_mut(sampling_bytes(length_bytes));
        let mut chains: Vec<_> = chunks
            .zip(starts)
            .map(|(text, &row)| Chain { row, text })
            .collect();
        for group in chains.chunks_mut(LANES) {
            self.walk_group(group);
        }
    }

    /// Walks chains in turn, none longer than the one before it: the last one ends first, and the others
    /// go on.
    fn walk_group(&self, group: &mut [Chain<'_>]) {
        let mut done = 0;
        for walking in (1..=group.len()).rev() {
            let pairs = group[walking - 1].text.len() / 2;
            self.walk_together(&mut group[..walking], done..pairs);
            done = pairs;
            let last = &mut group[walking - 1];
            if let Some(byte) = last.text.get_mut(2 * pairs) {
                *byte = self.directory.bytes_of(last.row)[0];
            }
        }
    }

    /// Writes some pairs of each chain's text. First all links of a step are read, then all bytes are
    /// found: a search that the processor guessed wrong must not keep the next link from being asked for.
    fn walk_together(&self, chains: &mut [Chain<'_>], pairs: Range<usize>) {
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

/// A part of the text and the row of its rest.
struct Chain<'a> {
    row: Row,
    text: &'a mut [u8],
}

/// The sorted matrix: row 0 is the empty suffix, row `primary` the whole text, which has no byte before
/// it and so none in the transform.
struct Matrix<'a> {
    transform: &'a [u8],
    primary: usize,
}

impl Matrix<'_> {
    /// The byte before the empty suffix.
    fn last_byte(&self) -> u8 {
        self.transform.first().copied().unwrap_or(0)
    }

    /// The first row that begins with each byte.
    fn first_rows(&self) -> [Row; 256] {
        let mut next = 1;
        histogram(self.transform).map(|count| {
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
    fn count_pairs(&self, first_rows: &[Row; 256], counts: &mut [Row]) {
        let rows = self.transform.len() + 1;
        for second in 0..256 {
            let start = first_rows[second] as usize;
            let end = first_rows.get(second + 1).map_or(rows, |&row| row as usize);
            // Rows of the matrix, without `primary`, as places of the transform.
            let [start, end] = [start, end].map(|row| row - usize::from(row > self.primary));
            for (first, count) in histogram(&self.transform[start..end])
                .into_iter()
                .enumerate()
            {
                counts[first << 8 | second] = count;
            }
        }
    }

    /// Goes through all suffixes in order: two bytes before each begins the next row of that pair.
    fn link(&self, mut next_rows: [Row; 256], next_pair_rows: &mut [Row], links: &mut [Row]) {
        let (below, above) = self.transform.split_at(self.primary);
        let below = below.iter().zip(0..);
        let above = above.iter().zip(self.primary as Row + 1..);
        for (&second, row) in below.chain(above) {
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
    }
}

/// How often each byte stands in `bytes`.
fn histogram(bytes: &[u8]) -> [u32; 256] {
    // Equal bytes one after the other would wait for each other's store.
    let mut counts = [[0_u32; 4]; 256];
    let (fours, rest) = bytes.as_chunks::<4>();
    for four in fours {
        for (lane, &byte) in four.iter().enumerate() {
            counts[usize::from(byte)][lane] += 1;
        }
    }
    for &byte in rest {
        counts[usize::from(byte)][0] += 1;
    }
    counts.map(|lanes| lanes.iter().sum())
}

/// Tells which two bytes a row begins with.
#[derive(Default)]
struct PairDirectory {
    /// The first row of each pair that occurs, and of the suffix of one byte, rising; then the number
    /// of rows.
    first_rows: Vec<Row>,
    /// The bytes of each pair, as they stand in the text.
    bytes: Vec<[u8; 2]>,
    /// For each `1 << shift` rows, the index of the first one's pair, or a smaller index.
    places: Vec<u16>,
    shift: u32,
}

impl PairDirectory {
    /// Turns `pair_rows` from the numbers of rows into the first rows of each pair.
    fn build(&mut self, last_byte: u8, rows: usize, pair_rows: &mut [Row]) {
        self.first_rows.clear();
        self.bytes.clear();
        let mut row: Row = 1;
        for (pair, pair_row) in pair_rows.iter_mut().enumerate() {
            let bytes = [(pair >> 8) as u8, pair as u8];
            if bytes == [last_byte, 0] {
                // The suffix of one byte stands before the longer ones.
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
        self.first_rows.push(rows as Row);
        self.place(rows);
    }

    fn push(&mut self, first_row: Row, bytes: [u8; 2]) {
        self.first_rows.push(first_row);
        self.bytes.push(bytes);
    }

    fn place(&mut self, rows: usize) {
        self.shift = (usize::BITS - rows.leading_zeros()).saturating_sub(DIRECTORY_LOG);
        self.places.clear();
        let mut index = 0;
        for place in 0..=(rows >> self.shift) {
            let row = (place << self.shift) as Row;
            while self
                .first_rows
                .get(index + 1)
                .is_some_and(|&first| first <= row)
            {
                index += 1;
            }
            self.places.push(index.min(usize::from(u16::MAX)) as u16);
        }
    }

    /// The bytes of a row; anything for row 0.
    #[inline(always)]
    fn bytes_of(&self, row: Row) -> [u8; 2] {
        let mut index = usize::from(self.places[(row >> self.shift) as usize]);
        while self.first_rows[index + 1] <= row {
            index += 1;
        }
        self.bytes[index]
    }
}

#[cfg(test)]
mod tests {
    use super::super::transform::{chain_count, forward};
    use super::*;
    use crate::test_data::{random_bytes, text};
    use proptest::prelude::*;

    /// The textbook's transform: sorts all suffixes, the empty one first.
    fn naive_transform(text: &[u8]) -> (Vec<u8>, Vec<Row>) {
        let mut suffixes: Vec<usize> = (0..=text.len()).collect();
        suffixes.sort_by_key(|&start| &text[start..]);
        let before = suffixes.iter().filter(|&&start| start > 0);
        let transform = before.map(|&start| text[start - 1]).collect();
        let row_of = |start| suffixes.iter().position(|&s| s == start).unwrap() as Row;
        let starts =
            (0..chain_count(text.len())).map(|chain| row_of(chain * sampling_bytes(text.len())));
        (transform, starts.collect())
    }

    fn check(raw: &[u8], naive: bool) {
        let (mut transform, mut starts) = (raw.to_vec(), Vec::new());
        forward(&mut transform, &mut Vec::new(), &mut starts).unwrap();
        if naive {
            assert_eq!((transform.clone(), starts.clone()), naive_transform(raw));
        }
        let mut inverse = Inverse::default();
        for length in [raw.len(), raw.len() / 2, raw.len() - 1, 1] {
            inverse.prepare(&transform, starts[0]).unwrap();
            let mut opened = vec![0xAA; length];
            inverse.walk(&starts, raw.len(), &mut opened);
            assert!(opened == raw[..length], "{length} of {}", raw.len());
        }
    }

    #[test]
    fn texts_come_back() {
        for length in [1, 2, 3, 4, 5, 100, 1001] {
            check(&text(length, 1), true);
            check(&random_bytes(length, 1), true);
            check(&vec![0; length], true);
            check(&vec![255; length], true);
        }
        let all_pairs: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_be_bytes).collect();
        check(&all_pairs, false);
        for length in [65_535, 65_536, 65_537, 200_001, 1_500_000] {
            check(&text(length, 2), false);
            check(&random_bytes(length, 2), false);
            check(&b"ab".repeat(length)[..length], false);
        }
    }

    #[test]
    fn forged_transforms_open_to_something() {
        for length in [1, 2, 3, 1000, 150_001] {
            let transform = random_bytes(length, 5);
            let starts: Vec<Row> = (0..chain_count(length))
                .map(|n| 1 + (n * 7919 % length) as Row)
                .collect();
            for primary in [1, length as Row, length as Row / 2 + 1] {
                let mut inverse = Inverse::default();
                inverse.prepare(&transform, primary).unwrap();
                inverse.walk(&starts, length, &mut vec![0; length]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back(raw in proptest::collection::vec(0_u8..4, 1..200)) {
            check(&raw, true);
        }

        #[test]
        fn any_transform_opens(
            transform in proptest::collection::vec(any::<u8>(), 1..200),
            primary in any::<Row>(),
            start in any::<Row>(),
        ) {
            let length = transform.len();
            let within = |row: Row| 1 + row % length as Row;
            let mut inverse = Inverse::default();
            inverse.prepare(&transform, within(primary)).unwrap();
            inverse.walk(&[within(start)], length, &mut vec![0; length]);
        }
    }
}
