//! Long repeats, taken out before sorting: prediction by the last place with the same context (LZP,
//! Bloom 1996). They would cost the sorter and the coder time, and near-certain bytes cost more bits
//! in the coder than one length here.
//!
//! A place is an *anchor* when the hash of the 32 bytes before it has four zero bits. There, and only
//! there, the last place with an equal hash is looked up. When enough bytes agree, an escape byte and a
//! length stand for them. At anchors with such a place, an escape byte of the text is followed by
//! zero. Both sides find the same places, so positions are never written.

/// Sixteen times fewer look-ups than at every byte; a repeat is found 16 bytes later on average.
const ANCHOR_BITS: u32 = 4;
/// Shortest repeat taken out. 64 MiB of source and 48 MiB of manuals: 9,192,813 and 4,489,543 bytes; with
/// 32: 1.1 % and 3.2 % more, 64: 0.2 % and 1.0 % more; 160: the same and 0.4 % less, but slower.
pub(super) const LENGTH_MIN_BYTES: usize = 96;
/// Bytes that a hash depends on: it shifts by one bit for each.
const CONTEXT_BYTES: usize = 32;
/// The table has one entry per this many bytes of the text (a power of two) ...
const BYTES_PER_ENTRY_LOG: u32 = 6;
/// ... within these bounds.
const ENTRIES_LOG_MIN: u32 = 8;
const ENTRIES_LOG_MAX: u32 = 22;

/// A random word for each byte: SplitMix64 (Steele, Lea, Flood 2014).
static WORDS: [u32; 256] = words();

const fn words() -> [u32; 256] {
    let mut words = [0; 256];
    let mut state = 0_u64;
    let mut index = 0;
    while index < 256 {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        words[index] = (z >> 32) as u32;
        index += 1;
    }
    words
}

/// Hash of the last `CONTEXT_BYTES` bytes ("gear": Xia et al. 2014).
#[derive(Clone, Copy)]
struct Hash(u32);

impl Hash {
    fn of(bytes: &[u8]) -> Self {
        let start = bytes.len().saturating_sub(CONTEXT_BYTES);
        let mut hash = Self(0);
        for &byte in &bytes[start..] {
            hash.push(byte);
        }
        hash
    }

    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.0 = (self.0 << 1).wrapping_add(WORDS[usize::from(byte)]);
    }

    #[inline(always)]
    fn is_anchor(self) -> bool {
        self.0 >> (32 - ANCHOR_BITS) == 0
    }
}

/// The last place of each hash.
#[derive(Default)]
pub(super) struct Places {
    /// (hash, position); position 0 is no place.
    entries: Vec<(u32, u32)>,
    shift: u32,
}

impl Places {
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

    /// The last place with this hash, if any; the current one takes its place.
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

/// The byte that stands least often in `raw`, for escapes; the smallest such one.
pub(super) fn rarest_byte(raw: &[u8]) -> u8 {
    let mut counts = [0_u32; 256];
    for &byte in raw {
        counts[usize::from(byte)] += 1;
    }
    let rarest = (0..=255_u8).min_by_key(|&byte| counts[usize::from(byte)]);
    rarest.unwrap_or(0)
}

/// Writes `raw` without its long repeats into `out`, whose former content is overwritten. False when
/// it would not become shorter than `limit_bytes`, or there is no memory; `out` then holds anything.
pub(super) fn take_out(
    places: &mut Places,
    raw: &[u8],
    escape: u8,
    limit_bytes: usize,
    out: &mut Vec<u8>,
) -> bool {
    out.clear();
    // Room for one look's output more, so that nothing grows.
    let room = limit_bytes + 16;
    if places.start(raw.len()).is_none() || out.try_reserve_exact(room).is_err() {
        return false;
    }
    let mut position = raw.len().min(CONTEXT_BYTES);
    out.extend_from_slice(&raw[..position]);
    let mut hash = Hash::of(&raw[..position]);
    let mut copied = position;
    while position < raw.len() {
        let next = next_anchor(raw, position, &mut hash);
        position = next;
        if position >= raw.len() {
            break;
        }
        let Some(place) = places.swap(hash, position) else {
            hash.push(raw[position]);
            position += 1;
            continue;
        };
        if out.len() + (position - copied) >= limit_bytes {
            return false;
        }
        out.extend_from_slice(&raw[copied..position]);
        let length = common_length(raw, place, position);
        if length >= LENGTH_MIN_BYTES {
            out.push(escape);
            push_number(out, length - LENGTH_MIN_BYTES + 1);
            position += length;
            hash = Hash::of(&raw[..position]);
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

/// The first anchor at `position` or later, or the end; `hash` goes with it.
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

fn common_length(raw: &[u8], place: usize, position: usize) -> usize {
    let (before, here) = (&raw[place..], &raw[position..]);
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

/// Seven bits a byte, the lowest first; the high bit says that more follow.
fn push_number(out: &mut Vec<u8>, mut number: usize) {
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Five bytes hold any length of a block.
const NUMBER_BYTES_MAX: usize = 5;

fn take_number(data: &mut &[u8]) -> Result<usize, Damage> {
    let mut number = 0_u64;
    for index in 0..NUMBER_BYTES_MAX {
        let (&byte, rest) = data.split_first().ok_or(Damage::Truncated)?;
        *data = rest;
        number |= u64::from(byte & 127) << (7 * index);
        if byte < 128 {
            return usize::try_from(number).map_err(|_| Damage::Number);
        }
    }
    Err(Damage::Number)
}

/// Why repeats cannot be put back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// The data ends before `raw` is full.
    Truncated,
    /// Data is left over when `raw` is full.
    TooLong,
    /// A length that reaches behind the end of `raw`, or a number that is none.
    Number,
    /// No memory for the table.
    OutOfMemory,
}

/// Undoes `take_out` into `raw`. `total_bytes` is the length of what went in; when `raw` is shorter, it
/// gets the first bytes, and data may be left over.
///
/// # Errors
/// `Damage`; `raw` then holds anything.
pub(super) fn put_back(
    places: &mut Places,
    mut data: &[u8],
    escape: u8,
    total_bytes: usize,
    raw: &mut [u8],
) -> Result<(), Damage> {
    places.start(total_bytes).ok_or(Damage::OutOfMemory)?;
    let prefix = raw.len() < total_bytes;
    let mut position = raw.len().min(CONTEXT_BYTES).min(total_bytes);
    let (first, rest) = data.split_at_checked(position).ok_or(Damage::Truncated)?;
    raw[..position].copy_from_slice(first);
    data = rest;
    let mut hash = Hash::of(first);
    while position < raw.len() {
        let copied = copy_to_anchor(data, &mut raw[position..], &mut hash);
        data = &data[copied..];
        position += copied;
        if position >= raw.len() {
            break;
        }
        let (&byte, rest) = data.split_first().ok_or(Damage::Truncated)?;
        data = rest;
        let mut repeat = 0;
        if let (Some(place), true) = (places.swap(hash, position), byte == escape) {
            repeat = take_number(&mut data)?;
            if repeat > 0 {
                let length = repeat
                    .checked_add(LENGTH_MIN_BYTES - 1)
                    .ok_or(Damage::Number)?;
                let length = match length <= raw.len() - position {
                    true => length,
                    false if prefix => raw.len() - position,
                    false => return Err(Damage::Number),
                };
                copy_within(raw, place, position, length);
                position += length;
                hash = Hash::of(&raw[..position]);
            }
        }
        if repeat == 0 {
            raw[position] = byte;
            hash.push(byte);
            position += 1;
        }
    }
    match data.is_empty() || prefix {
        true => Ok(()),
        false => Err(Damage::TooLong),
    }
}

/// Copies bytes until the hash says that the next one stands at an anchor; returns how many.
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

/// As if byte by byte: what is copied may reach into itself.
fn copy_within(raw: &mut [u8], place: usize, position: usize, length: usize) {
    let distance = position - place;
    let mut done = 0;
    while done < length {
        // What is there already repeats with the distance, so the copy may double.
        let part = (distance + done).min(length - done);
        raw.copy_within(place..place + part, position + done);
        done += part;
    }
}

#[cfg(test)]
#[path = "repeats_tests.rs"]
mod tests;
