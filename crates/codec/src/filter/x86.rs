//! Branch filter for x86 and x86-64, as widely published (CAB's E8 translation, the branch
//! converters of 7z and xz): the relative target after E8 (call) or E9 (jmp) becomes absolute, so
//! that calls of the same function are equal. Positions count from the start of the block.
//!
//! A target is plausible if its top byte is 00 or FF. Targets are stored modulo 2^25, so that the
//! top byte is 00 or FF again and the decoder decides the same without further state. xz has such
//! state, to convert calls that overlap a false match and fewer false matches. Here the operand of
//! every match is skipped, as in CAB, and the trial on a sample decides.

use crate::host::{Host, PIECE_BYTES};

/// The opcode and a 32-bit operand.
pub(super) const INSTRUCTION_BYTES: usize = 5;
const TARGET_MODULUS: u32 = 1 << 25;

/// Converts relative to absolute targets.
pub(super) fn encode(host: Host, bytes: &mut [u8]) {
    convert(host, bytes, u32::wrapping_add);
}

/// Converts absolute to relative targets.
pub(super) fn decode(host: Host, bytes: &mut [u8]) {
    convert(host, bytes, u32::wrapping_sub);
}

#[inline]
fn convert(host: Host, bytes: &mut [u8], combine: impl Fn(u32, u32) -> u32) {
    let mut position = 0;
    while position < bytes.len() {
        let end = bytes.len().min(position + PIECE_BYTES);
        position = convert_piece(bytes, position, end, &combine);
        (host.check_in)();
    }
}

/// Converts the instructions that begin at `position` or later, and before `end`. Returns the
/// position after them.
#[inline]
fn convert_piece(
    bytes: &mut [u8],
    mut position: usize,
    end: usize,
    combine: impl Fn(u32, u32) -> u32,
) -> usize {
    while let Some(ahead) = bytes.get(position..end).and_then(next_opcode) {
        position += ahead;
        let Some(instruction) = bytes[position..].first_chunk_mut::<INSTRUCTION_BYTES>() else {
            return bytes.len();
        };
        let [_, a, b, c, top] = *instruction;
        if top != 0x00 && top != 0xFF {
            // Skip the operand as well: a conversion that overlaps it could change the byte that
            // this decision depends on, and the decoder would decide differently.
            position += INSTRUCTION_BYTES;
            continue;
        }
        // Targets are relative to the next instruction; positions wrap with the modulus.
        let next = (position + INSTRUCTION_BYTES) as u32;
        let target = combine(u32::from_le_bytes([a, b, c, top]), next);
        let [a, b, c, top] = sign_extend(target).to_le_bytes();
        *instruction = [instruction[0], a, b, c, top];
        position += INSTRUCTION_BYTES;
    }
    position.max(end)
}

#[inline]
fn sign_extend(target: u32) -> u32 {
    let low = target & (TARGET_MODULUS - 1);
    match low & (TARGET_MODULUS >> 1) {
        0 => low,
        _ => low | !(TARGET_MODULUS - 1),
    }
}

#[inline]
fn next_opcode(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| byte & 0xFE == 0xE8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_one_function_become_equal() {
        let mut code = Vec::new();
        let target = 0x1234_i32;
        for _ in 0..4 {
            code.extend_from_slice(&[0x90, 0x90, 0xE8]);
            let relative = target - (code.len() as i32 + 4);
            code.extend_from_slice(&relative.to_le_bytes());
        }
        let raw = code.clone();
        encode(Host::default(), &mut code);
        for call in code.chunks(7) {
            assert_eq!(call, [0x90, 0x90, 0xE8, 0x34, 0x12, 0, 0]);
        }
        decode(Host::default(), &mut code);
        assert_eq!(code, raw);
    }

    #[test]
    fn implausible_targets_and_the_end_are_unchanged() {
        let mut bytes = [0xE8, 1, 2, 3, 4, 0xE9, 5, 0, 0];
        let raw = bytes;
        encode(Host::default(), &mut bytes);
        assert_eq!(bytes, raw);
    }

    #[test]
    fn overlapping_hits_survive() {
        // The inner E8 would convert and with it change the outer one's top byte, 0x7F.
        let mut bytes = [
            0xE8, 0xE8, 0x10, 0x20, 0x7F, 0x00, 0xE8, 1, 2, 0, 0, 9, 9, 9,
        ];
        let raw = bytes;
        encode(Host::default(), &mut bytes);
        assert_ne!(bytes, raw);
        decode(Host::default(), &mut bytes);
        assert_eq!(bytes, raw);
    }

    #[test]
    fn any_25_bit_target_survives() {
        for relative in [0_u32, 1, 0x00FF_FFFF, 0xFF00_0000, 0xFFFF_FFFF] {
            let mut bytes = vec![0; 300];
            bytes.push(0xE9);
            bytes.extend_from_slice(&relative.to_le_bytes());
            let raw = bytes.clone();
            encode(Host::default(), &mut bytes);
            assert_ne!(bytes, raw);
            decode(Host::default(), &mut bytes);
            assert_eq!(bytes, raw);
        }
    }
}
