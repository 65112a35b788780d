//! Finds and converts the machine code of a file.

use std::ops::Range;

use super::executable;
use crate::filter::Walk;

/// How much of a file [`Code::find`] looks at, bytes. It is not converted.
pub const HEADER_BYTES: usize = 4096;

/// Code is converted in pages, counted from the start of the file, each on its own, bytes. Smaller
/// pages make short reads cheaper; an instruction on a border is not converted.
pub const PAGE_BYTES: u64 = 32 << 10;

/// References at least as far are converted, bytes. From 64 KiB to 4 MiB, libraries become up to
/// 1.5 % larger, and series of builds 10 % smaller.
const FAR_BYTES: u32 = 2 << 20;

/// Code from here on is not converted, bytes: an offset with twice the far distance has 32 bits.
const CODE_END_MAX: u64 = 2 << 30;

const RANGES_MAX: usize = 64;

/// Where the machine code of a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Ascending, not adjacent, after the header.
    pub(super) ranges: Vec<Range<u64>>,
}

impl Code {
    /// The code of a file that begins with `header`, its first [`HEADER_BYTES`], if it is a program
    /// or library for x86-64 with code after them: ELF, PE or Mach-O.
    #[must_use]
    pub fn find(header: &[u8]) -> Option<Code> {
        let header = header.get(..HEADER_BYTES)?;
        let mut found = executable::code_ranges(header)?;
        for range in &mut found {
            range.start = range.start.max(HEADER_BYTES as u64);
            range.end = range.end.min(CODE_END_MAX);
        }
        found.retain(|range| !range.is_empty());
        found.sort_unstable_by_key(|range| range.start);
        let mut ranges: Vec<Range<u64>> = vec![];
        for range in found {
            match ranges.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => ranges.push(range),
            }
        }
        (1..=RANGES_MAX)
            .contains(&ranges.len())
            .then_some(Code { ranges })
    }

    /// Where the last code ends, an offset in the file.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.ranges.last().map_or(0, |last| last.end)
    }

    /// How much code there is, bytes.
    #[must_use]
    pub fn code_bytes(&self) -> u64 {
        self.ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }

    /// What must be known to restore `range` of a file: the range, or the pages around it where
    /// they have code.
    #[must_use]
    pub fn around(&self, range: Range<u64>) -> Range<u64> {
        let start = page_of(range.start);
        let end = page_of(range.end.saturating_sub(1)).end;
        let has_code = |page: &Range<u64>| self.parts_of(page).next().is_some();
        let end = if range.is_empty() || !has_code(&page_of(range.end - 1)) {
            range.end
        } else {
            end
        };
        let start = if has_code(&start) { start.start } else { range.start };
        start..end
    }

    /// Converts a part of a file at `offset_in_file`, which begins where a page does and ends where
    /// one or the file does, or has no code at that border.
    pub fn rebase(&self, offset_in_file: u64, bytes: &mut [u8]) {
        self.convert(offset_in_file, bytes, target_of, |_, _| ());
    }

    /// Reverses [`Code::rebase`].
    pub fn restore(&self, offset_in_file: u64, bytes: &mut [u8]) {
        self.convert(offset_in_file, bytes, operand_of, |_, _| ());
    }

    fn parts_of<'a>(&'a self, page: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let (start, end) = (page.start, page.end);
        let first = self.ranges.partition_point(|range| range.end <= start);
        (self.ranges[first..].iter())
            .take_while(move |range| range.start < end)
            .map(move |range| range.start.max(start)..range.end.min(end))
    }

    /// Calls `note` with the place in `bytes` of each far operand and that of the next instruction.
    pub(super) fn convert(
        &self,
        offset_in_file: u64,
        bytes: &mut [u8],
        change: impl Fn(u32, u32) -> u32,
        mut note: impl FnMut(usize, usize),
    ) {
        let end = offset_in_file + bytes.len() as u64;
        let mut at = offset_in_file;
        while at < end {
            let page = page_of(at);
            for part in self.parts_of(&(at..page.end.min(end))) {
                let start = (part.start - offset_in_file) as usize;
                let part_bytes = (part.end - part.start) as usize;
                convert_part(
                    part.start as u32,
                    &mut bytes[start..start + part_bytes],
                    &change,
                    |at, next| note(start + at, start + next),
                );
            }
            at = page.end;
        }
    }
}

fn page_of(offset: u64) -> Range<u64> {
    let start = offset - offset % PAGE_BYTES;
    start..start.saturating_add(PAGE_BYTES)
}

/// Converts one page's part of a range of code, at `offset_in_file`.
fn convert_part(
    offset_in_file: u32,
    bytes: &mut [u8],
    change: impl Fn(u32, u32) -> u32,
    mut note: impl FnMut(usize, usize),
) {
    let mut walk = Walk::default();
    while let Some(step) = walk.step(bytes) {
        if let Some(at) = step.relative_at
            && !step.is_doubted
            && let Some(operand) = bytes.get_mut(at..)
            && let Some(operand) = operand.first_chunk_mut()
        {
            let before = u32::from_le_bytes(*operand);
            if !is_near(before) {
                note(at, walk.position());
                let next = offset_in_file + walk.position() as u32;
                *operand = change(before, next).to_le_bytes();
            }
        }
    }
}

/// Whether a number with a sign is near to zero.
fn is_near(number: u32) -> bool {
    number.wrapping_add(FAR_BYTES) < 2 * FAR_BYTES
}

/// The base of addresses: with it, no address after the header is near to zero.
fn base(next: u32) -> u32 {
    next.wrapping_add(2 * FAR_BYTES)
}

/// The stored form of an operand: itself if near; else its target. Targets near to zero, which code
/// does not have, take the places of the near targets, which nothing else has.
pub(super) fn target_of(operand: u32, next: u32) -> u32 {
    if is_near(operand) {
        return operand;
    }
    let target = operand.wrapping_add(base(next));
    if is_near(target) { target.wrapping_add(base(next)) } else { target }
}

/// Reverses [`target_of`].
fn operand_of(stored: u32, next: u32) -> u32 {
    if is_near(stored) {
        return stored;
    }
    let operand = stored.wrapping_sub(base(next));
    if is_near(operand) { operand.wrapping_sub(base(next)) } else { operand }
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "lists of one range are meant"
)]
mod tests {
    use super::*;
    use crate::test_data;

    /// The first 4096 bytes of an ELF file for x86-64 whose code is in these ranges.
    fn program_header(code: &[Range<u64>]) -> Vec<u8> {
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(4096, 0);
        header[0x12..0x14].copy_from_slice(&62_u16.to_le_bytes());
        header[0x20..0x28].copy_from_slice(&0x40_u64.to_le_bytes());
        header[0x36..0x38].copy_from_slice(&56_u16.to_le_bytes());
        header[0x38..0x3A].copy_from_slice(&(code.len() as u16).to_le_bytes());
        for (segment, range) in header[0x40..].chunks_exact_mut(56).zip(code) {
            segment[..8].copy_from_slice(&[1, 0, 0, 0, 5, 0, 0, 0]);
            segment[8..16].copy_from_slice(&range.start.to_le_bytes());
            segment[32..40].copy_from_slice(&(range.end - range.start).to_le_bytes());
        }
        header
    }

    /// A program of `length_bytes` whose code is in `ranges`.
    fn program(length_bytes: usize, ranges: &[Range<u64>]) -> Vec<u8> {
        let mut file = test_data::x86_64_code(length_bytes, 5);
        file[..HEADER_BYTES].copy_from_slice(&program_header(ranges));
        file
    }

    #[test]
    fn every_operand_has_one_stored_form() {
        let edges = [0, FAR_BYTES, 2 * FAR_BYTES, 1 << 31, u32::MAX];
        let noise = test_data::random_bytes(4000, 1);
        let noise = noise
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| u32::from_le_bytes(*bytes));
        let numbers: Vec<u32> = edges
            .iter()
            .flat_map(|edge| (0..5).map(|step| edge.wrapping_add(step).wrapping_sub(2)))
            .chain(noise)
            .collect();
        for next in [0, 1, FAR_BYTES, 5 * FAR_BYTES, CODE_END_MAX as u32] {
            for &number in &numbers {
                for about in [0, base(next), base(next).wrapping_neg()] {
                    let operand = number.wrapping_add(about);
                    assert_eq!(operand_of(target_of(operand, next), next), operand);
                    assert_eq!(target_of(operand_of(operand, next), next), operand);
                }
            }
        }
    }

    #[test]
    fn calls_of_one_place_become_equal() {
        let target = 50_000_000_u32;
        let place = |next: u32| target_of(target.wrapping_sub(next), next);
        assert_eq!(place(10_000), place(90_000_000));
        assert_ne!(place(10_000), place(target - 100), "near ones stay");
    }

    #[test]
    fn files_are_restored_whole_and_in_ranges() {
        let ranges = [4096..100_000, 150_000..150_010, 200_000..1_000_000];
        let file = program(300_007, &ranges);
        let code = Code::find(&file).unwrap();
        assert_eq!(code.end(), 1_000_000);
        let mut stored = file.clone();
        code.rebase(0, &mut stored);
        let changed = file.iter().zip(&stored).filter(|(a, b)| a != b).count();
        assert!(changed > 10_000, "{changed}");
        assert_eq!(stored[100_000..200_000], file[100_000..200_000]);
        let page = PAGE_BYTES as usize;
        let mut in_parts = file.clone();
        for (number, part) in in_parts.chunks_mut(page * 2).enumerate() {
            code.rebase((number * page * 2) as u64, part);
        }
        assert!(in_parts == stored, "parts of whole pages");
        for seed in 0..200_u64 {
            let noise = test_data::random_bytes(16, seed);
            let number = |at: usize| u32::from_le_bytes(*noise[at..].first_chunk().unwrap());
            let start = u64::from(number(0)) % file.len() as u64;
            let end = (start + u64::from(number(4)) % 70_000).min(file.len() as u64);
            let around = code.around(start..end);
            let within = around.start as usize..(around.end as usize).min(file.len());
            let mut bytes = stored[within.clone()].to_vec();
            code.restore(around.start, &mut bytes);
            let from = start as usize - within.start;
            assert!(
                bytes[from..from + (end - start) as usize] == file[start as usize..end as usize]
            );
        }
    }

    #[test]
    fn only_pages_with_code_are_widened() {
        let code = Code::find(&program(8192, &[4096..5000])).unwrap();
        assert_eq!(code.around(10..20), 0..PAGE_BYTES);
        assert_eq!(
            code.around(PAGE_BYTES..PAGE_BYTES + 7),
            PAGE_BYTES..PAGE_BYTES + 7
        );
        assert_eq!(
            code.around(PAGE_BYTES - 1..PAGE_BYTES + 7),
            0..PAGE_BYTES + 7
        );
        assert_eq!(code.around(5..5), 0..5);
    }

    #[test]
    fn what_is_no_program_has_no_code() {
        assert_eq!(Code::find(&test_data::text(HEADER_BYTES, 1)), None);
        assert_eq!(Code::find(&program(8192, &[4096..5000])[..4000]), None);
        let header = program_header(&[0..4096, 3 << 30..4 << 30]);
        assert_eq!(Code::find(&header), None, "in the header, or far behind");
        let many: Vec<_> = (0..65)
            .map(|number| 5000 + number * 20..5010 + number * 20)
            .collect();
        assert_eq!(Code::find(&program_header(&many)), None);
        assert!(Code::find(&program_header(&many[1..])).is_some());
    }
}
