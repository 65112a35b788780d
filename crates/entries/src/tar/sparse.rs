//! Maps of sparse files, in the forms of GNU tar.
//!
//! Each form is a list of pairs `(offset, length)` of data in the file, which GNU tar closes with
//! the pair (file size, 0).

use std::ops::Range;

use crate::tar::pax::decimal;
use crate::tar::record::{RECORD_BYTES, Record, fill_octal, put_base_256, unsigned};

/// Where the map begins in the main header of the old form.
const OLD_MAP_AT: usize = 386;
/// The number of pairs in the main header of the old form.
const OLD_MAP_PAIRS: usize = 4;
/// The number of pairs in an extension record of the old form.
const EXTENSION_PAIRS: usize = 21;
/// Two fields of twelve octal digits.
const PAIR_BYTES: usize = 24;
/// The size of the file in the main header of the old form.
const OLD_REAL_SIZE: Range<usize> = 483..495;

/// A list of pairs as ranges of data: ascending, not empty, not adjacent. `None` if pairs overlap,
/// go backwards or exceed `size_bytes`.
pub(crate) fn data_ranges(
    pairs: impl IntoIterator<Item = (u64, u64)>,
    size_bytes: u64,
) -> Option<Vec<Range<u64>>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for (offset, length) in pairs {
        let end = offset.checked_add(length)?;
        let previous_end = ranges.last().map_or(0, |range| range.end);
        if offset < previous_end || end > size_bytes {
            return None;
        }
        match ranges.last_mut() {
            Some(last) if last.end == offset => last.end = end,
            _ if length > 0 => ranges.push(offset..end),
            _ => {}
        }
    }
    Some(ranges)
}

/// The pairs that GNU tar writes for these ranges.
pub(crate) fn pairs(ranges: &[Range<u64>], size_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let lengths = ranges.iter().map(|range| {
        let length = range.end.saturating_sub(range.start);
        (range.start, length)
    });
    lengths.chain(std::iter::once((size_bytes, 0)))
}

// ------------------------------------------------------------------------- the old form, type 'S'

pub(crate) fn old_size_bytes(record: &Record) -> Option<u64> {
    unsigned(record.get(OLD_REAL_SIZE)?)
}

pub(crate) fn is_extended(record: &Record) -> bool {
    record.get(OLD_MAP_AT + OLD_MAP_PAIRS * PAIR_BYTES) != Some(&0)
}

pub(crate) fn continues(extension: &[u8]) -> bool {
    extension.get(EXTENSION_PAIRS * PAIR_BYTES) != Some(&0)
}

/// The pairs in a main header of the old form and its extension records. `None` if a number is
/// malformed.
pub(crate) fn old_pairs(record: &Record, extensions: &[u8]) -> Option<Vec<(u64, u64)>> {
    let main = record.get(OLD_MAP_AT..OLD_MAP_AT + OLD_MAP_PAIRS * PAIR_BYTES)?;
    let mut pairs = Vec::new();
    let extensions = (extensions.chunks_exact(RECORD_BYTES))
        .filter_map(|extension| extension.get(..EXTENSION_PAIRS * PAIR_BYTES));
    for map in std::iter::once(main).chain(extensions) {
        for pair in map.chunks_exact(PAIR_BYTES) {
            let (offset, length) = pair.split_at(PAIR_BYTES / 2);
            // The list ends at the first unused pair.
            if pair.first() == Some(&0) || length.first() == Some(&0) {
                break;
            }
            pairs.push((unsigned(offset)?, unsigned(length)?));
        }
    }
    Some(pairs)
}

/// Writes the map into a main header of the old form and returns its extension records.
pub(crate) fn put_old_map(record: &mut Record, ranges: &[Range<u64>], size_bytes: u64) -> Vec<u8> {
    let mut pairs = pairs(ranges, size_bytes);
    let map_bytes = OLD_MAP_PAIRS * PAIR_BYTES;
    if let Some(map) = record.get_mut(OLD_MAP_AT..OLD_MAP_AT + map_bytes) {
        put_pairs(map, &mut pairs);
    }
    if let Some(field) = record.get_mut(OLD_REAL_SIZE) {
        put_map_number(field, size_bytes);
    }
    let mut extensions = Vec::new();
    let mut pairs = pairs.peekable();
    if let Some(flag) = record.get_mut(OLD_MAP_AT + map_bytes) {
        *flag = u8::from(pairs.peek().is_some());
    }
    while pairs.peek().is_some() {
        let mut extension = [0; RECORD_BYTES];
        let (map, rest) = extension.split_at_mut(EXTENSION_PAIRS * PAIR_BYTES);
        put_pairs(map, &mut pairs);
        if let Some(flag) = rest.first_mut() {
            *flag = u8::from(pairs.peek().is_some());
        }
        extensions.extend_from_slice(&extension);
    }
    extensions
}

/// Writes a number as GNU tar does: octal with a NUL at its end, larger ones in base 256.
fn put_map_number(field: &mut [u8], value: u64) {
    let Some((end, digits)) = field.split_last_mut() else {
        return;
    };
    *end = 0;
    if !fill_octal(digits, b'0', value) {
        put_base_256(field, i128::from(value));
    }
}

/// Fills a map with as many pairs as fit, and zeros.
fn put_pairs(map: &mut [u8], pairs: &mut impl Iterator<Item = (u64, u64)>) {
    map.fill(0);
    for slot in map.chunks_exact_mut(PAIR_BYTES) {
        let Some((offset, length)) = pairs.next() else {
            return;
        };
        let (offset_field, length_field) = slot.split_at_mut(PAIR_BYTES / 2);
        for (field, value) in [(offset_field, offset), (length_field, length)] {
            put_map_number(field, value);
        }
    }
}

// ------------------------------------------------------------------------------------- GNU pax 1.0

/// The map block of pax form 1.0: decimal numbers, one per line, then zeros up to a whole record.
pub(crate) fn map_block(ranges: &[Range<u64>], size_bytes: u64) -> Vec<u8> {
    let count = pairs(ranges, size_bytes).count();
    let mut block = format!("{count}\n").into_bytes();
    for (offset, length) in pairs(ranges, size_bytes) {
        block.extend_from_slice(format!("{offset}\n{length}\n").as_bytes());
    }
    block.resize(block.len().next_multiple_of(RECORD_BYTES), 0);
    block
}

pub(crate) fn map_block_bytes(ranges: &[Range<u64>], size_bytes: u64) -> u64 {
    let line_bytes = |number: u64| number.checked_ilog10().map_or(2, |log| u64::from(log) + 2);
    let mut count = 0;
    let mut bytes = 0_u64;
    for (offset, length) in pairs(ranges, size_bytes) {
        count += 1;
        bytes += line_bytes(offset) + line_bytes(length);
    }
    (bytes + line_bytes(count)).next_multiple_of(RECORD_BYTES as u64)
}

/// What the data of a sparse file in pax form 1.0 begins with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MapBlock {
    /// The map is longer than the bytes.
    Cut,
    /// The map is malformed or too long.
    Malformed,
    Map {
        pairs: Vec<(u64, u64)>,
        /// The length of the block, a multiple of a record.
        block_bytes: usize,
    },
}

pub(crate) fn parse_map_block(bytes: &[u8], limit_bytes: usize) -> MapBlock {
    let mut numbers = Numbers { bytes, at: 0 };
    let Some(count) = numbers.next() else {
        return numbers.failure(limit_bytes);
    };
    let mut pairs = Vec::new();
    for _ in 0..count {
        let (Some(offset), Some(length)) = (numbers.next(), numbers.next()) else {
            return numbers.failure(limit_bytes);
        };
        pairs.push((offset, length));
    }
    let block_bytes = numbers.at.next_multiple_of(RECORD_BYTES);
    if block_bytes > limit_bytes {
        return MapBlock::Malformed;
    }
    if bytes.len() < block_bytes {
        MapBlock::Cut
    } else {
        MapBlock::Map { pairs, block_bytes }
    }
}

/// Decimal numbers, one per line.
struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Numbers<'_> {
    const DIGITS_MAX: usize = 20;

    fn next(&mut self) -> Option<u64> {
        let rest = self.bytes.get(self.at..)?;
        let head = rest.get(..rest.len().min(Self::DIGITS_MAX + 1))?;
        let length = head.iter().position(|byte| *byte == b'\n')?;
        let number = decimal(rest.get(..length)?)?;
        self.at += length + 1;
        Some(number)
    }

    fn failure(&self, limit_bytes: usize) -> MapBlock {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_cut = rest.len() <= Self::DIGITS_MAX && rest.iter().all(u8::is_ascii_digit);
        if is_cut && self.bytes.len() < limit_bytes {
            MapBlock::Cut
        } else {
            MapBlock::Malformed
        }
    }
}

/// Parses the list of pax form 0.1: `offset,length,offset,length`.
pub(crate) fn parse_comma_list(value: &[u8]) -> Option<Vec<(u64, u64)>> {
    if value.is_empty() {
        return Some(Vec::new());
    }
    let mut numbers = value.split(|byte| *byte == b',').map(decimal);
    let mut pairs = Vec::new();
    while let Some(offset) = numbers.next() {
        pairs.push((offset?, numbers.next()??));
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many_ranges(count: u64) -> Vec<Range<u64>> {
        (0..count)
            .map(|at| at * 1000 + 10..at * 1000 + 20)
            .collect()
    }

    #[test]
    fn maps_of_any_length_round_trip_in_both_forms() {
        for count in [0, 1, 3, 4, 5, 24, 25, 26, 46, 47, 200] {
            let ranges = many_ranges(count);
            for size_bytes in [count * 1000, (count * 1000).saturating_sub(980)] {
                let mut record = [0; RECORD_BYTES];
                let extensions = put_old_map(&mut record, &ranges, size_bytes);
                assert_eq!(old_size_bytes(&record), Some(size_bytes));
                assert_eq!(is_extended(&record), !extensions.is_empty());
                let read = old_pairs(&record, &extensions).unwrap();
                assert_eq!(data_ranges(read, size_bytes).as_ref(), Some(&ranges));

                let block = map_block(&ranges, size_bytes);
                let MapBlock::Map { pairs, block_bytes } = parse_map_block(&block, 1 << 20) else {
                    panic!("not a map block");
                };
                assert_eq!(block_bytes, block.len());
                assert_eq!(map_block_bytes(&ranges, size_bytes), block.len() as u64);
                assert_eq!(data_ranges(pairs, size_bytes), Some(ranges.clone()));
                for cut in 0..block.len() {
                    let part = &block[..cut];
                    assert_eq!(parse_map_block(part, 1 << 20), MapBlock::Cut, "{cut}");
                }
            }
        }
    }

    #[test]
    fn ranges_that_are_no_map_are_refused() {
        assert_eq!(data_ranges([(10, 5), (12, 1)], 100), None);
        assert_eq!(data_ranges([(10, 5), (0, 1)], 100), None);
        assert_eq!(data_ranges([(10, 91)], 100), None);
        assert_eq!(data_ranges([(u64::MAX, 2)], u64::MAX), None);
        let joined = [(0, 5), (5, 5), (12, 1), (20, 0)];
        assert_eq!(data_ranges(joined, 20), Some(vec![0..10, 12..13]));
        assert_eq!(parse_map_block(b"1\n5\nx\n", 512), MapBlock::Malformed);
        assert_eq!(parse_map_block(&[b'1'; 600], 512), MapBlock::Malformed);
        assert_eq!(parse_comma_list(b"1,2,3"), None);
        assert_eq!(parse_comma_list(b"1,2,3,4"), Some(vec![(1, 2), (3, 4)]));
    }
}
