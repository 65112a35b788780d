//! Branch filter for x86-64 that knows the lengths of instructions: targets of calls and jumps, and
//! addresses relative to RIP, become absolute, so that all that use one function, constant or
//! variable are equal. `docs/filter-x86-64.md` specifies it.
//!
//! Since it converts operands where instructions have them, and not wherever a byte looks like an
//! opcode, it need not look at the targets: the filter x86 only converts those within 16 MiB, and
//! the code of large libraries calls farther. Bytes that are not code show it by opcodes that
//! compilers do not emit; for some instructions after one nothing is converted.

use super::instruction::{LENGTH_BYTES_MAX, RELATIVE_BYTES, instruction};
use crate::host::{Host, PIECE_BYTES};

/// Nothing is converted in this many instructions from an unlikely one on, which included. Fewer or
/// more (8, 32) make libraries and programs up to 1 % larger or smaller, without a pattern.
const DOUBTED_INSTRUCTIONS: u32 = 17;

type Operand = [u8; RELATIVE_BYTES];

/// Instructions that begin in the last bytes are not examined, so that none is cut off.
pub(super) const LOOKAHEAD_BYTES: usize = LENGTH_BYTES_MAX - 1;

/// Converts relative to absolute targets, most significant byte first: what is common to many comes
/// right after the opcode.
pub(super) fn encode(host: Host, bytes: &mut [u8]) {
    convert(host, bytes, |operand, next| {
        u32::from_le_bytes(operand).wrapping_add(next).to_be_bytes()
    });
}

/// Converts absolute to relative targets.
pub(super) fn decode(host: Host, bytes: &mut [u8]) {
    convert(host, bytes, |operand, next| {
        u32::from_be_bytes(operand).wrapping_sub(next).to_le_bytes()
    });
}

/// How much of the code of a sample the filter would convert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Census {
    /// Operands that the filter converts.
    pub converted: usize,
    /// Operands that it would convert, were it not for unlikely instructions before.
    pub doubted: usize,
}

/// Counts the operands in a sample.
pub(super) fn census(bytes: &[u8]) -> Census {
    let mut census = Census::default();
    let mut walk = Walk::default();
    while let Some(step) = walk.step(bytes) {
        match step.relative_at {
            Some(_) if step.is_doubted => census.doubted += 1,
            Some(_) => census.converted += 1,
            None => (),
        }
    }
    census
}

#[inline]
fn convert(host: Host, bytes: &mut [u8], combine: impl Fn(Operand, u32) -> Operand) {
    let mut walk = Walk::default();
    let mut checked = 0;
    while let Some(step) = walk.step(bytes) {
        if let Some(at) = step.relative_at
            && !step.is_doubted
            && let Some(operand) = bytes.get_mut(at..)
            && let Some(operand) = operand.first_chunk_mut()
        {
            *operand = combine(*operand, walk.position as u32);
        }
        if walk.position - checked >= PIECE_BYTES {
            checked = walk.position;
            (host.check_in)();
        }
    }
}

/// Goes through bytes by instructions.
#[derive(Default)]
pub(crate) struct Walk {
    /// The position of the next instruction.
    position: usize,
    /// The number of next instructions in which nothing is converted.
    doubted: u32,
}

/// What was found at one instruction.
pub(crate) struct Step {
    /// The position of the operand that counts from the next instruction.
    pub relative_at: Option<usize>,
    /// Whether it may be no code.
    pub is_doubted: bool,
}

impl Walk {
    /// The position of the next instruction.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Goes over one instruction; none begins in the last `LOOKAHEAD_BYTES`.
    #[inline]
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Option<Step> {
        let start = self.position;
        let found = instruction(bytes.get(start..)?.first_chunk()?);
        self.position += found.length_bytes;
        if found.is_unlikely {
            self.doubted = DOUBTED_INSTRUCTIONS;
        }
        let is_doubted = self.doubted > 0;
        self.doubted = self.doubted.saturating_sub(1);
        Some(Step {
            relative_at: found.relative_at.map(|at| start + at),
            is_doubted,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data;

    fn round_trip(raw: &[u8]) -> Vec<u8> {
        let mut filtered = raw.to_vec();
        encode(Host::default(), &mut filtered);
        let mut decoded = filtered.clone();
        decode(Host::default(), &mut decoded);
        assert!(decoded == raw);
        filtered
    }

    #[test]
    fn references_to_one_place_become_equal() {
        let mut code = vec![0x90; 3];
        let target = 0x7654_3210_u32;
        for opcode in [
            &[0xE8][..],
            &[0xE9],
            &[0x48, 0x8D, 0x3D],
            &[0x48, 0x8B, 0x05],
        ] {
            code.extend_from_slice(opcode);
            let relative = target.wrapping_sub(code.len() as u32 + 4);
            code.extend_from_slice(&relative.to_le_bytes());
        }
        code.extend_from_slice(&[0xC3; LENGTH_BYTES_MAX]);
        let filtered = round_trip(&code);
        let wanted = [0x76, 0x54, 0x32, 0x10];
        let found = filtered.windows(4).filter(|window| *window == wanted);
        assert_eq!(found.count(), 4);
    }

    #[test]
    fn the_last_bytes_and_what_follows_unlikely_bytes_are_unchanged() {
        let mut code = vec![0x06];
        code.extend_from_slice(&[0x90; 15]);
        code.extend_from_slice(&[0xE8, 1, 2, 3, 4]);
        let tail = [0x90; LOOKAHEAD_BYTES];
        assert_eq!(round_trip(&[&code[..], &tail].concat())[..21], code);
        code.insert(1, 0x90);
        assert_ne!(round_trip(&[&code[..], &tail].concat())[..22], code);
        assert_eq!(round_trip(&code), code, "too near to the end");
    }

    #[test]
    fn a_census_tells_code_from_text() {
        let code = census(&test_data::x86_64_code(1 << 16, 1));
        assert!(code.converted > 1000 && code.doubted == 0, "{code:?}");
        let text = census(&test_data::text(1 << 16, 1));
        assert!(text.converted * 1000 < 1 << 16, "{text:?}");
    }
}
