//! Removes long repeats before sorting: prediction from the last position with the same context
//! (LZP, Bloom 1996). Repeats would cost time in the sorter and the coder, and their nearly certain
//! bytes take more bits in the coder than one length here.
//!
//! A position is an *anchor* when the hash of the 32 bytes before it has four zero bits. Only at
//! anchors, the last position with an equal hash is looked up. When enough bytes are equal, an
//! escape byte and a length replace them. At anchors with such a position, an escape byte of the
//! text is followed by a zero. Both sides find the same positions, so positions are never written.

use crate::host::{Host, PIECE_BYTES};

/// Sixteen times fewer lookups than at every byte; a repeat is found 16 bytes later on average.
const ANCHOR_BITS: u32 = 4;
/// The shortest repeat that is removed. 64 MiB of source and 48 MiB of manuals: 9,192,813 and
/// 4,489,543 bytes; with 32: 1.1 % and 3.2 % more, 64: 0.2 % and 1.0 % more; 160: the same and 0.4
/// % less, but slower.
pub(super) const LENGTH_MIN_BYTES: usize = 96;
/// The bytes that a hash depends on: it shifts by one bit for each.
const CONTEXT_BYTES: usize = 32;
/// The table has one entry per this many bytes of the text (a power of two),
const BYTES_PER_ENTRY_LOG: u32 = 6;
/// within these limits.
const ENTRIES_LOG_MIN: u32 = 8;
const ENTRIES_LOG_MAX: u32 = 22;

/// A random number for each byte: SplitMix64 (Steele, Lea, Flood 2014).
static BYTE_HASHES: [u32; 256] = byte_hashes();

const fn byte_hashes() -> [u32; 256] {
    let mut hashes = [0; 256];
    let mut state = 0_u64;
    let mut index = 0;
    while index < 256 {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        hashes[index] = (z >> 32) as u32;
        index += 1;
    }
    hashes
}

/// The hash of the last `CONTEXT_BYTES` bytes ("gear": Xia et al. 2014).
#[derive(Clone, Copy)]
struct Hash(u32);

impl Hash {
    fn from_last(bytes: &[u8]) -> Self {
        let start = bytes.len().saturating_sub(CONTEXT_BYTES);
        let mut hash = Self(0);
        for &byte in &bytes[start..] {
            hash.push(byte);
        }
        hash
    }

    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.0 = (self.0 << 1).wrapping_add(BYTE_HASHES[usize::from(byte)]);
    }

    #[inline(always)]
    fn is_anchor(self) -> bool {
        self.0 >> (32 - ANCHOR_BITS) == 0
    }
}

#[derive(Default)]
pub(super) struct PositionTable {
    /// (hash, position); position 0 means none.
    entries: Vec<(u32, u32)>,
    shift: u32,
}

impl PositionTable {
    pub(super) fn memory_bytes(length_bytes: u64) -> u64 {
        8 << entries_log(length_bytes)
    }

    fn start(&mut self, length_bytes: usize) -> Option<()> {
        let log = entries_log(length_bytes as u64);
        self.entries.clear();
        self.entries.try_reserve_exact(1 << log).ok()?;
        self.entries.resize(1 << log, (0, 0));
        self.shift = 32 - log;
        Some(())
    }

    /// Returns the last position with this hash, if any, and replaces it by the current one.
    #[inline(always)]
    fn swap(&mut self, hash: Hash, position: usize) -> Option<usize> {
        let slot = (hash.0.wrapping_mul(0x9E37_79B1) >> self.shift) as usize;
        let entry = self.entries.get_mut(slot)?;
        let (found_hash, found) = std::mem::replace(entry, (hash.0, position as u32));
        (found > 0 && found_hash == hash.0).then_some(found as usize)
    }
}

fn entries_log(length_bytes: u64) -> u32 {
    let log = u64::BITS - length_bytes.leading_zeros();
    log.saturating_sub(BYTES_PER_ENTRY_LOG)
        .clamp(ENTRIES_LOG_MIN, ENTRIES_LOG_MAX)
}

/// The least frequent byte in `raw`, for escapes; the smallest one of several.
pub(super) fn rarest_byte(host: Host, raw: &[u8]) -> u8 {
    let mut counts = [0_u32; 256];
    for piece in raw.chunks(PIECE_BYTES) {
        for &byte in piece {
            counts[usize::from(byte)] += 1;
        }
        (host.check_in)();
    }
    let rarest = (0..=255_u8).min_by_key(|&byte| counts[usize::from(byte)]);
    rarest.unwrap_or(0)
}

/// Writes `raw` without its long repeats to `out`, whose former content is overwritten. Returns
/// false when the result would not be shorter than `limit_bytes`, or memory cannot be allocated;
/// the content of `out` is then undefined.
pub(super) fn remove(
    host: Host,
    table: &mut PositionTable,
    raw: &[u8],
    escape: u8,
    limit_bytes: usize,
    out: &mut Vec<u8>,
) -> bool {
    out.clear();
    // Capacity for the output of one more step, so that the vector never grows.
    let capacity = limit_bytes + 16;
    if table.start(raw.len()).is_none() || out.try_reserve_exact(capacity).is_err() {
        return false;
    }
    let mut position = raw.len().min(CONTEXT_BYTES);
    out.extend_from_slice(&raw[..position]);
    let mut hash = Hash::from_last(&raw[..position]);
    let mut copied = position;
    let mut piece_end = position;
    while position < raw.len() {
        if position >= piece_end {
            (host.check_in)();
            piece_end = raw.len().min(position + PIECE_BYTES);
        }
        position = next_anchor(&raw[..piece_end], position, &mut hash);
        if position >= piece_end {
            continue;
        }
        let Some(source) = table.swap(hash, position) else {
            hash.push(raw[position]);
            position += 1;
            continue;
        };
        if out.len() + (position - copied) >= limit_bytes {
            return false;
        }
        out.extend_from_slice(&raw[copied..position]);
        let length = common_length(raw, source, position);
        if length >= LENGTH_MIN_BYTES {
            out.push(escape);
            write_number(out, length - LENGTH_MIN_BYTES + 1);
            position += length;
            hash = Hash::from_last(&raw[..position]);
        } else {
            out.push(raw[position]);
            if raw[position] == escape {
                out.push(0);
            }
            hash.push(raw[position]);
            position += 1;
        }
        copied = position;
    }
    if out.len() + (raw.len() - copied) >= limit_bytes {
        return false;
    }
    out.extend_from_slice(&raw[copied..]);
    true
}

/// The first anchor at `position` or later, or the end; `hash` is updated to it.
#[inline(always)]
fn next_anchor(raw: &[u8], position: usize, hash: &mut Hash) -> usize {
    for (index, &byte) in raw[position..].iter().enumerate() {
        if hash.is_anchor() {
            return position + index;
        }
        hash.push(byte);
    }
    raw.len()
}

fn common_length(raw: &[u8], source: usize, position: usize) -> usize {
    let (before, here) = (&raw[source..], &raw[position..]);
    let mut length = 0;
    for (a, b) in before.chunks_exact(8).zip(here.chunks_exact(8)) {
        if a != b {
            break;
        }
        length += 8;
    }
    let rest = before[length..].iter().zip(&here[length..]);
    length + rest.take_while(|(a, b)| a == b).count()
}

/// Writes seven bits per byte, the lowest first; the high bit means that more follow.
fn write_number(out: &mut Vec<u8>, mut number: usize) {
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Five bytes are sufficient for any length in a block.
const NUMBER_BYTES_MAX: usize = 5;

fn read_number(data: &mut &[u8]) -> Result<usize, RepeatError> {
    let mut number = 0_u64;
    for index in 0..NUMBER_BYTES_MAX {
        let (&byte, rest) = data.split_first().ok_or(RepeatError::Truncated)?;
        *data = rest;
        number |= u64::from(byte & 127) << (7 * index);
        if byte < 128 {
            return usize::try_from(number).map_err(|_| RepeatError::Number);
        }
    }
    Err(RepeatError::Number)
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RepeatError {
    /// The data ends before `raw` is full.
    Truncated,
    /// Data is left over when `raw` is full.
    TooLong,
    /// A length exceeds the end of `raw`, or a number is invalid.
    Number,
    /// The table cannot be allocated.
    OutOfMemory,
}

/// Reverses `remove` into `raw`. `total_bytes` is the length of the original; when `raw` is
/// shorter, it receives the first bytes, and data may be left over.
///
/// # Errors
/// `RepeatError`; the content of `raw` is then undefined.
pub(super) fn restore(
    host: Host,
    table: &mut PositionTable,
    mut data: &[u8],
    escape: u8,
    total_bytes: usize,
    raw: &mut [u8],
) -> Result<(), RepeatError> {
    table.start(total_bytes).ok_or(RepeatError::OutOfMemory)?;
    let prefix = raw.len() < total_bytes;
    let mut position = raw.len().min(CONTEXT_BYTES).min(total_bytes);
    let (first, rest) = data
        .split_at_checked(position)
        .ok_or(RepeatError::Truncated)?;
    raw[..position].copy_from_slice(first);
    data = rest;
    let mut hash = Hash::from_last(first);
    let mut piece_end = position;
    while position < raw.len() {
        if position >= piece_end {
            (host.check_in)();
            piece_end = raw.len().min(position + PIECE_BYTES);
        }
        let copied = copy_to_anchor(data, &mut raw[position..piece_end], &mut hash);
        data = &data[copied..];
        position += copied;
        if position >= piece_end {
            continue;
        }
        let (&byte, rest) = data.split_first().ok_or(RepeatError::Truncated)?;
        data = rest;
        let mut repeat = 0;
        if let (Some(source), true) = (table.swap(hash, position), byte == escape) {
            repeat = read_number(&mut data)?;
            if repeat > 0 {
                let length = repeat
                    .checked_add(LENGTH_MIN_BYTES - 1)
                    .ok_or(RepeatError::Number)?;
                let length = match length <= raw.len() - position {
                    true => length,
                    false if prefix => raw.len() - position,
                    false => return Err(RepeatError::Number),
                };
                copy_within(raw, source, position, length);
                position += length;
                hash = Hash::from_last(&raw[..position]);
            }
        }
        if repeat == 0 {
            raw[position] = byte;
            hash.push(byte);
            position += 1;
        }
    }
    if data.is_empty() || prefix { Ok(()) } else { Err(RepeatError::TooLong) }
}

/// Copies bytes until the next anchor; returns the number of bytes.
#[inline(always)]
fn copy_to_anchor(data: &[u8], raw: &mut [u8], hash: &mut Hash) -> usize {
    let length = data.len().min(raw.len());
    for (index, (to, &from)) in raw.iter_mut().zip(data).enumerate() {
        if hash.is_anchor() {
            return index;
        }
        *to = from;
        hash.push(from);
    }
    length
}

/// Copies as if byte by byte: source and destination may overlap.
fn copy_within(raw: &mut [u8], source: usize, position: usize, length: usize) {
    let distance = position - source;
    let mut done = 0;
    while done < length {
        // The bytes so far repeat at this distance, so the copied part may double.
        let part = (distance + done).min(length - done);
        raw.copy_within(source..source + part, position + done);
        done += part;
    }
}

#[cfg(test)]
#[path = "repeats_tests.rs"]
mod tests;
