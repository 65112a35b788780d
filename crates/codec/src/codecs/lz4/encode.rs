//! The LZ4 encoder, with two match finders: a single-probe hash table (level 1), and hash chains
//! with one byte of lazy evaluation (levels 2 to 9, 2^level candidates). Words are read in
//! little-endian order on every machine, so the bytes are the same everywhere.

use crate::host::Host;

/// The bytes between two check-ins, at 0.3 to 1 GB/s and at 10 to 100 MB/s.
const FAST_PIECE_BYTES: usize = 128 << 10;
const CHAINED_PIECE_BYTES: usize = 8 << 10;

const MIN_MATCH_BYTES: usize = 4;
/// End rules of the format: the last match starts at least this many bytes before the end,
const MATCH_START_MARGIN_BYTES: usize = 12;
/// and at least the last bytes are literals.
const LAST_LITERALS_BYTES: usize = 5;
/// The largest distance, limited by the two-byte offset.
const MAX_DISTANCE: usize = 65_535;

/// log2 of the entries of the fast table: 32 KiB, fits first-level caches.
const FAST_LOG: u32 = 13;
const HEAD_LOG: u32 = 15;
/// The entries of the chain: one per position of the window.
const CHAIN_ENTRIES: usize = 1 << 16;
const CHAIN_MASK: usize = CHAIN_ENTRIES - 1;
const _: () = assert!(CHAIN_ENTRIES > MAX_DISTANCE);
/// A match this long ends the search for a longer one.
const NICE_MATCH_BYTES: usize = 1 << 12;
/// The step grows by one for every 2^6 positions without a match.
const SKIP_LOG: u32 = 6;

/// The memory of level 1, bytes.
pub(super) const FAST_BYTES: u64 = 4 << FAST_LOG;
/// The memory of the other levels, bytes.
pub(super) const CHAINED_BYTES: u64 = (4 << HEAD_LOG) + 4 * CHAIN_ENTRIES as u64;

/// The tables retained between blocks: positions plus one (0 is empty).
#[derive(Default)]
pub(crate) struct Lz4State {
    fast: Vec<u32>,
    heads: Vec<u32>,
    chain: Vec<u32>,
}

/// The `length` bytes at `start` equal the bytes `distance` before.
#[derive(Clone, Copy)]
struct Match {
    start: usize,
    distance: usize,
    length: usize,
}

/// Appends `raw` as an LZ4 block, one probe per position.
pub(super) fn fast(host: Host, state: &mut Lz4State, raw: &[u8], out: &mut Vec<u8>) {
    let table = &mut state.fast;
    table.clear();
    table.resize(1 << FAST_LOG, 0);
    let mut anchor = 0;
    let mut position = 0;
    let mut checked_in = 0;
    while position + MATCH_START_MARGIN_BYTES <= raw.len() {
        if position - checked_in >= FAST_PIECE_BYTES {
            (host.check_in)();
            checked_in = position;
        }
        let slot = hash5(read8(raw, position), FAST_LOG);
        let candidate = table[slot] as usize;
        table[slot] = position as u32 + 1;
        match match_at(raw, anchor, position, candidate) {
            None => position += 1 + ((position - anchor) >> SKIP_LOG),
            Some(found) => {
                write_sequence(&raw[anchor..found.start], found, out);
                anchor = found.start + found.length;
                position = anchor;
                // Insert a position shortly before the end of the match, so that the next repeat is
                // found earlier.
                if position + MATCH_START_MARGIN_BYTES <= raw.len() {
                    let slot = hash5(read8(raw, position - 2), FAST_LOG);
                    table[slot] = position as u32 - 1;
                }
            }
        }
    }
    write_last_literals(&raw[anchor..], out);
}

/// Appends `raw` as an LZ4 block, with up to `attempts` candidates per position.
pub(super) fn chained(
    host: Host,
    state: &mut Lz4State,
    raw: &[u8],
    attempts: u32,
    out: &mut Vec<u8>,
) {
    let mut finder = ChainFinder::new(state, raw, attempts);
    let mut anchor = 0;
    let mut position = 0;
    let mut checked_in = 0;
    while position + MATCH_START_MARGIN_BYTES <= raw.len() {
        if position - checked_in >= CHAINED_PIECE_BYTES {
            (host.check_in)();
            checked_in = position;
        }
        let Some(mut found) = finder.longest(anchor, position) else {
            position += 1;
            continue;
        };
        // Lazy matching: a match that starts one byte later and is longer by two pays for the extra
        // literal.
        while found.start + 1 + MATCH_START_MARGIN_BYTES <= raw.len() {
            match finder.longest(anchor, found.start + 1) {
                Some(next) if next.length > found.length + 1 => found = next,
                _ => break,
            }
        }
        write_sequence(&raw[anchor..found.start], found, out);
        anchor = found.start + found.length;
        position = anchor;
    }
    write_last_literals(&raw[anchor..], out);
}

struct ChainFinder<'a> {
    raw: &'a [u8],
    heads: &'a mut [u32],
    chain: &'a mut [u32],
    attempts: u32,
    /// The first position that is not in the chains yet.
    next: usize,
}

impl<'a> ChainFinder<'a> {
    fn new(state: &'a mut Lz4State, raw: &'a [u8], attempts: u32) -> Self {
        state.heads.clear();
        state.heads.resize(1 << HEAD_LOG, 0);
        // Old links are harmless: an entry is read only after its position was inserted.
        state.chain.resize(CHAIN_ENTRIES, 0);
        Self {
            raw,
            heads: &mut state.heads,
            chain: &mut state.chain,
            attempts,
            next: 0,
        }
    }

    fn insert_until(&mut self, end: usize) {
        while self.next < end {
            let slot = hash4(read4(self.raw, self.next), HEAD_LOG);
            self.chain[self.next & CHAIN_MASK] = self.heads[slot];
            self.heads[slot] = self.next as u32 + 1;
            self.next += 1;
        }
    }

    /// The longest match at `position`; the nearest one of several.
    fn longest(&mut self, anchor: usize, position: usize) -> Option<Match> {
        self.insert_until(position);
        let mut candidate = self.heads[hash4(read4(self.raw, position), HEAD_LOG)] as usize;
        let mut best: Option<Match> = None;
        for _ in 0..self.attempts {
            if candidate == 0 || position - (candidate - 1) > MAX_DISTANCE {
                break;
            }
            let earlier = candidate - 1;
            if may_be_longer(self.raw, earlier, position, best) {
                let found = match_at(self.raw, anchor.max(position), position, candidate);
                if found.map_or(0, |m| m.length) > best.map_or(0, |m| m.length) {
                    best = found;
                }
            }
            if best.is_some_and(|m| m.length >= NICE_MATCH_BYTES) {
                break; // Keeps periodic data linear.
            }
            let link = self.chain[earlier & CHAIN_MASK] as usize;
            if link >= candidate {
                break; // The entry was overwritten by a later position of the ring.
            }
            candidate = link;
        }
        best
    }
}

/// Whether the match at `candidate` could be longer than `best`: false if the byte that would make
/// it longer differs.
#[inline]
fn may_be_longer(raw: &[u8], candidate: usize, position: usize, best: Option<Match>) -> bool {
    let length = best.map_or(0, |m| m.length);
    raw[candidate + length] == raw[position + length]
}

/// The match between `position` and `entry` of the table (a position plus one, 0 is none), extended
/// in both directions, backwards not beyond `anchor`.
#[inline]
fn match_at(raw: &[u8], anchor: usize, position: usize, entry: usize) -> Option<Match> {
    let candidate = entry.checked_sub(1)?;
    if candidate >= position || position - candidate > MAX_DISTANCE {
        return None;
    }
    if read4(raw, candidate) != read4(raw, position) {
        return None;
    }
    let distance = position - candidate;
    let limit = raw.len() - LAST_LITERALS_BYTES;
    let mut length = MIN_MATCH_BYTES;
    length += common_length(&raw[candidate + length..], &raw[position + length..limit]);
    let mut start = position;
    while start > anchor && start > distance && raw[start - 1] == raw[start - 1 - distance] {
        start -= 1;
        length += 1;
    }
    Some(Match {
        start,
        distance,
        length,
    })
}

/// The length of the common prefix of `a` and `b`; `a` is the longer one.
#[inline]
fn common_length(a: &[u8], b: &[u8]) -> usize {
    let mut length = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let difference = read8(x, 0) ^ read8(y, 0);
        if difference != 0 {
            return length + difference.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = a[length..].iter().zip(&b[length..]);
    length + rest.take_while(|(x, y)| x == y).count()
}

fn write_sequence(literals: &[u8], found: Match, out: &mut Vec<u8>) {
    let match_code = found.length - MIN_MATCH_BYTES;
    let token = (literals.len().min(15) << 4) | match_code.min(15);
    out.push(token as u8);
    write_length(literals.len(), out);
    out.extend_from_slice(literals);
    out.extend_from_slice(&(found.distance as u16).to_le_bytes());
    write_length(match_code, out);
}

fn write_last_literals(literals: &[u8], out: &mut Vec<u8>) {
    out.push((literals.len().min(15) << 4) as u8);
    write_length(literals.len(), out);
    out.extend_from_slice(literals);
}

/// The bytes after the token's nibble, for lengths of 15 and more.
fn write_length(length: usize, out: &mut Vec<u8>) {
    let Some(mut rest) = length.checked_sub(15) else {
        return;
    };
    while rest >= 255 {
        out.push(255);
        rest -= 255;
    }
    out.push(rest as u8);
}

#[inline]
fn read4(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[inline]
fn read8(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Fibonacci hashing of the low five bytes.
#[inline]
fn hash5(word: u64, log: u32) -> usize {
    ((word << 24).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - log)) as usize
}

#[inline]
fn hash4(word: u32, log: u32) -> usize {
    (word.wrapping_mul(0x9E37_79B1) >> (32 - log)) as usize
}
