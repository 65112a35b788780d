//! Branch filter for ARM64, after the description of the ARM64 filter in xz 5.4. BL's offset
//! becomes an absolute word target, ADRP's an absolute page if the page is within 512 MiB.
//! Positions count from the first instruction of the block, at offset `phase`: blocks start at any
//! byte.

use crate::host::{Host, PIECE_BYTES};

pub(super) const WORD_BYTES: usize = 4;
const PIECE_WORDS: usize = PIECE_BYTES / WORD_BYTES;
/// log2 of the page size that ADRP counts in.
const PAGE_LOG: u32 = 12;

/// Converts relative to absolute targets.
pub(super) fn encode(host: Host, bytes: &mut [u8], phase: usize) {
    convert(host, bytes, phase, u32::wrapping_add);
}

/// Converts absolute to relative targets.
pub(super) fn decode(host: Host, bytes: &mut [u8], phase: usize) {
    convert(host, bytes, phase, u32::wrapping_sub);
}

/// Converts absolute to relative targets of the whole instructions in `bytes`, the first of which
/// is at `position`, in bytes, a multiple of their size. Returns the number of bytes of these
/// instructions.
pub fn decode_at(bytes: &mut [u8], position: u32) -> usize {
    convert_from(bytes, position / WORD_BYTES as u32, u32::wrapping_sub);
    bytes.len() / WORD_BYTES * WORD_BYTES
}

#[inline]
fn convert(host: Host, bytes: &mut [u8], phase: usize, combine: impl Fn(u32, u32) -> u32 + Copy) {
    let code = bytes.get_mut(phase..).unwrap_or_default();
    for (index, piece) in code.chunks_mut(PIECE_BYTES).enumerate() {
        convert_from(piece, (index * PIECE_WORDS) as u32, combine);
        (host.check_in)();
    }
}

#[inline]
fn convert_from(code: &mut [u8], first_index: u32, combine: impl Fn(u32, u32) -> u32 + Copy) {
    for (index, word) in code.as_chunks_mut::<WORD_BYTES>().0.iter_mut().enumerate() {
        let instruction = u32::from_le_bytes(*word);
        let index = first_index.wrapping_add(index as u32);
        let converted = match instruction {
            bl if is_bl(bl) => Some(convert_bl(bl, index, combine)),
            adrp if is_adrp(adrp) => convert_adrp(adrp, index, combine),
            _ => None,
        };
        if let Some(converted) = converted {
            *word = converted.to_le_bytes();
        }
    }
}

pub(super) fn is_converted(instruction: u32) -> bool {
    is_bl(instruction) || is_adrp(instruction)
}

/// BL has six opcode bits and 26 bits of word offset.
fn is_bl(instruction: u32) -> bool {
    instruction >> 26 == 0b10_0101
}

/// ADRP has the opcode bits 31 and 28..24; the page offset is in bits 30..29 (low) and 23..5
/// (high).
fn is_adrp(instruction: u32) -> bool {
    instruction & 0x9F00_0000 == 0x9000_0000
}

fn convert_bl(instruction: u32, index: u32, combine: impl Fn(u32, u32) -> u32) -> u32 {
    const MASK: u32 = (1 << 26) - 1;
    (instruction & !MASK) | (combine(instruction, index) & MASK)
}

/// Converts page offsets of -2^17 to 2^17 - 1 (512 MiB) modulo 2^18, so that the decoder finds them
/// in the same range. Others, mostly random matches in data, are not converted.
fn convert_adrp(instruction: u32, index: u32, combine: impl Fn(u32, u32) -> u32) -> Option<u32> {
    const MODULUS: u32 = 1 << 18;
    const MASK: u32 = (1 << 21) - 1;
    let pages = (instruction >> 29 & 3) | (instruction >> 3 & (MASK & !3));
    let near = pages.wrapping_add(MODULUS / 2) & MASK < MODULUS;
    if !near {
        return None;
    }
    let target = combine(pages, index >> (PAGE_LOG - 2)) & (MODULUS - 1);
    let extended = match target & (MODULUS / 2) {
        0 => target,
        _ => target | (MASK & !(MODULUS - 1)),
    };
    Some((instruction & 0x9F00_001F) | (extended & 3) << 29 | (extended & !3) << 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bl(words: i32) -> u32 {
        0x9400_0000 | (words as u32 & 0x03FF_FFFF)
    }

    fn adrp(pages: i32) -> u32 {
        let pages = pages as u32 & 0x001F_FFFF;
        0x9000_0007 | (pages & 3) << 29 | (pages >> 2) << 5
    }

    fn bytes_of(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn calls_of_one_function_become_equal() {
        let words: Vec<u32> = (0..8).map(|index| bl(100 - index)).collect();
        for phase in 0..4 {
            let mut bytes = vec![0; phase];
            bytes.extend_from_slice(&bytes_of(&words));
            let raw = bytes.clone();
            encode(Host::default(), &mut bytes, phase);
            assert_eq!(bytes[phase..], bytes_of(&[bl(100); 8]));
            decode(Host::default(), &mut bytes, phase);
            assert_eq!(bytes, raw);
        }
    }

    #[test]
    fn pages_of_one_table_become_equal() {
        let mut words = vec![0xD503_201F; 3 << 10]; // nop
        for page in 0..3 {
            words[page << 10] = adrp(500 - page as i32);
        }
        let mut bytes = bytes_of(&words);
        let raw = bytes.clone();
        encode(Host::default(), &mut bytes, 0);
        for page in 0..3 {
            assert_eq!(bytes[page << 12..][..4], adrp(500).to_le_bytes());
        }
        decode(Host::default(), &mut bytes, 0);
        assert_eq!(bytes, raw);
    }

    #[test]
    fn converted_pages_stay_in_range() {
        for pages in [-(1 << 17), -1, 0, (1 << 17) - 1] {
            let near = convert_adrp(adrp(pages), 5 << 10, u32::wrapping_add).unwrap();
            assert!(is_adrp(near) && near & 31 == 7);
            let back = convert_adrp(near, 5 << 10, u32::wrapping_sub);
            assert_eq!(back, Some(adrp(pages)));
        }
        for pages in [-(1 << 17) - 1, 1 << 17, (1 << 20) - 1, -(1 << 20)] {
            assert_eq!(convert_adrp(adrp(pages), 5, u32::wrapping_add), None);
        }
    }
}
