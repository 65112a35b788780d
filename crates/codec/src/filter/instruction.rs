//! The lengths of x86-64 instructions and the place of their operand that counts from the next
//! instruction. `docs/filter-x86-64.md` has the same as tables. Instructions that compilers do not
//! emit are taken as one byte or a little more: what matters is that encoder and decoder agree.

use super::opcodes::{Form, Operand, UNLIKELY, form, one_byte_form, two_byte_form, vector_form};

/// The longest instruction, in bytes.
pub(super) const LENGTH_BYTES_MAX: usize = 15;
/// The size of an operand that counts from the next instruction, in bytes.
pub(super) const RELATIVE_BYTES: usize = 4;
/// More prefixes than this are not looked for, so that all fields are within the longest
/// instruction.
const PREFIXES_MAX: usize = 7;

/// The outline of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    /// 1 to `LENGTH_BYTES_MAX`.
    pub length_bytes: usize,
    /// The offset of the 32-bit operand that counts from the next instruction: the target of a call
    /// or jump, or the displacement of an address relative to RIP.
    pub relative_at: Option<usize>,
    /// Compilers hardly emit it: it shows that these bytes are not code.
    pub is_unlikely: bool,
}

static ONE_BYTE: [Form; 256] = {
    let mut forms = [UNLIKELY; 256];
    let mut opcode = 0;
    while opcode < forms.len() {
        forms[opcode] = one_byte_form(opcode as u8);
        opcode += 1;
    }
    forms
};

static TWO_BYTE: [Form; 256] = {
    let mut forms = [UNLIKELY; 256];
    let mut opcode = 0;
    while opcode < forms.len() {
        forms[opcode] = two_byte_form(opcode as u8);
        opcode += 1;
    }
    forms
};

/// The opcode's form and the position after the opcode, which begins at `at`, after prefixes.
#[inline]
fn opcode(bytes: &[u8; LENGTH_BYTES_MAX], at: usize) -> (Form, usize) {
    match bytes[at] {
        0x0F => match bytes[at + 1] {
            0x38 => (form(true, Operand::None), at + 3),
            0x3A => (form(true, Operand::Byte), at + 3),
            second => (TWO_BYTE[usize::from(second)], at + 2),
        },
        0xC5 => (vector_form(1, bytes[at + 2]), at + 3),
        0xC4 => (vector_form(bytes[at + 1] & 0x1F, bytes[at + 3]), at + 4),
        // The other maps of EVEX are for numbers of 16 bits; text has the letter b.
        0x62 if bytes[at + 1] & 0x0C != 0 => (UNLIKELY, at + 1),
        0x62 => (vector_form(bytes[at + 1] & 3, bytes[at + 4]), at + 5),
        first => (ONE_BYTE[usize::from(first)], at + 1),
    }
}

/// In a quick form, the bytes of the operand.
const OPERAND: u8 = 7;
/// There is a ModRM byte.
const HAS_MODRM: u8 = 8;
/// The operand is a target.
const IS_TARGET: u8 = 0x10;
/// `any_instruction` knows more.
const IS_SLOW: u8 = 0x80;

/// The form of an opcode without prefixes but REX, in a byte.
const fn quick_form(form: Form) -> u8 {
    let operand = match form.operand {
        Operand::None => 0,
        Operand::Byte => 1,
        Operand::Word => 2,
        Operand::Full | Operand::Near => 4,
        Operand::Target => 4 | IS_TARGET,
        Operand::Wide | Operand::Address | Operand::TestByte | Operand::TestFull => IS_SLOW,
    };
    let modrm = if form.has_modrm { HAS_MODRM } else { 0 };
    let unlikely = if form.is_unlikely { IS_SLOW } else { 0 };
    operand | modrm | unlikely
}

static QUICK_ONE_BYTE: [u8; 256] = {
    let mut forms = [IS_SLOW; 256];
    let mut opcode = 0;
    while opcode < forms.len() {
        if !matches!(opcode, 0x0F | 0x62 | 0xC4 | 0xC5) {
            forms[opcode] = quick_form(one_byte_form(opcode as u8));
        }
        opcode += 1;
    }
    forms
};

static QUICK_TWO_BYTE: [u8; 256] = {
    let mut forms = [IS_SLOW; 256];
    let mut opcode = 0;
    while opcode < forms.len() {
        if !matches!(opcode, 0x38 | 0x3A) {
            forms[opcode] = quick_form(two_byte_form(opcode as u8));
        }
        opcode += 1;
    }
    forms
};

/// In a quick ModRM, its bytes with those of index and displacement.
const ADDRESS: u8 = 7;
/// The displacement counts from the next instruction.
const IS_RELATIVE: u8 = 8;
/// A displacement follows the index byte if its base is 5.
const IS_BASE_LATER: u8 = 0x10;

static QUICK_MODRM: [u8; 256] = {
    let mut quick = [0; 256];
    let mut modrm = 0;
    while modrm < quick.len() {
        let index = if modrm & 7 == 4 { 2 } else { 1 };
        quick[modrm] = match (modrm >> 6, modrm & 7) {
            (0, 5) => 5 | IS_RELATIVE,
            (0, 4) => 2 | IS_BASE_LATER,
            (0 | 3, _) => 1,
            (1, _) => index + 1,
            _ => index + 4,
        };
        modrm += 1;
    }
    quick
};

/// The outline of the instruction at the start of `bytes`. Its answer does not depend on the
/// operand at `relative_at`.
///
/// Without branches that depend on the form, and with two or four walks at once, it takes twice the
/// time: the predictions pay.
#[inline]
pub(super) fn instruction(bytes: &[u8; LENGTH_BYTES_MAX]) -> Instruction {
    let rex = usize::from(bytes[0] & 0xF0 == 0x40);
    let (form, at) = match bytes[rex] {
        0x0F => (QUICK_TWO_BYTE[usize::from(bytes[rex + 1])], rex + 2),
        opcode => (QUICK_ONE_BYTE[usize::from(opcode)], rex + 1),
    };
    if form & IS_SLOW != 0 {
        return any_instruction(bytes);
    }
    let has_modrm = form & HAS_MODRM != 0;
    let modrm = if has_modrm { QUICK_MODRM[usize::from(bytes[at])] } else { 0 };
    let is_base_here = modrm & IS_BASE_LATER != 0 && bytes[at + 1] & 7 == 5;
    let address_bytes = usize::from(modrm & ADDRESS) + 4 * usize::from(is_base_here);
    let relative_at = match (form & IS_TARGET, modrm & IS_RELATIVE) {
        (0, 0) => None,
        (0, _) => Some(at + 1),
        _ => Some(at),
    };
    Instruction {
        length_bytes: at + address_bytes + usize::from(form & OPERAND),
        relative_at,
        is_unlikely: false,
    }
}

/// As `instruction`, for all of them: the obvious form.
fn any_instruction(bytes: &[u8; LENGTH_BYTES_MAX]) -> Instruction {
    let mut at = 0;
    let mut has_short_operand = false;
    while at < PREFIXES_MAX && is_prefix(bytes[at]) {
        has_short_operand |= bytes[at] == 0x66;
        at += 1;
    }
    let mut is_wide = false;
    if bytes[at] & 0xF0 == 0x40 {
        is_wide = bytes[at] & 8 != 0;
        at += 1;
    }
    let (form, mut at) = opcode(bytes, at);
    let mut relative_at = None;
    let mut register = 0;
    let mut displacement_bytes = 0;
    if form.has_modrm {
        let modrm = bytes[at];
        at += 1;
        register = modrm >> 3 & 7;
        let mode = modrm >> 6;
        let mut base = modrm & 7;
        let has_index = mode != 3 && base == 4;
        if has_index {
            base = bytes[at] & 7;
            at += 1;
        }
        displacement_bytes = match mode {
            0 if base == 5 => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        if mode == 0 && base == 5 && !has_index {
            relative_at = Some(at);
        }
    }
    let full_bytes = if has_short_operand { 2 } else { 4 };
    let operand_bytes = match form.operand {
        Operand::Byte => 1,
        Operand::TestByte if register < 2 => 1,
        Operand::Word => 2,
        Operand::Wide if is_wide => 8,
        Operand::TestFull if register < 2 => full_bytes,
        Operand::Full | Operand::Wide => full_bytes,
        Operand::Address => 8,
        Operand::Near => RELATIVE_BYTES,
        Operand::Target => {
            relative_at = Some(at);
            RELATIVE_BYTES
        }
        Operand::None | Operand::TestByte | Operand::TestFull => 0,
    };
    let length_bytes = at + displacement_bytes + operand_bytes;
    if length_bytes > LENGTH_BYTES_MAX {
        return Instruction {
            length_bytes: 1,
            relative_at: None,
            is_unlikely: true,
        };
    }
    Instruction {
        length_bytes,
        relative_at,
        is_unlikely: form.is_unlikely,
    }
}

#[inline]
fn is_prefix(byte: u8) -> bool {
    matches!(
        byte,
        0x66 | 0x67 | 0x26 | 0x2E | 0x36 | 0x3E | 0x64 | 0x65 | 0xF0 | 0xF2 | 0xF3
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions as an assembler prints them: bytes, and where the relative operand is.
    const KNOWN: &[(&[u8], Option<usize>)] = &[
        (&[0x55], None),
        (&[0x48, 0x89, 0xE5], None),
        (&[0xE8, 1, 2, 3, 4], Some(1)),
        (&[0xE9, 1, 2, 3, 4], Some(1)),
        (&[0xF2, 0xE9, 1, 2, 3, 4], Some(2)),
        (&[0x0F, 0x84, 1, 2, 3, 4], None),
        (&[0x74, 9], None),
        (&[0x48, 0x8D, 0x3D, 1, 2, 3, 4], Some(3)),
        (&[0x48, 0x8B, 0x45, 0xF8], None),
        (&[0x48, 0x8B, 0x84, 0x24, 1, 2, 3, 4], None),
        (&[0x8B, 0x04, 0x25, 1, 2, 3, 4], None),
        (&[0xC7, 0x05, 1, 2, 3, 4, 5, 6, 7, 8], Some(2)),
        (&[0x66, 0xC7, 0x05, 1, 2, 3, 4, 5, 6], Some(3)),
        (&[0x48, 0xB8, 1, 2, 3, 4, 5, 6, 7, 8], None),
        (&[0xB8, 1, 2, 3, 4], None),
        (&[0xF6, 0x05, 1, 2, 3, 4, 9], Some(2)),
        (&[0xF7, 0xD8], None),
        (&[0xF7, 0xC0, 1, 2, 3, 4], None),
        (&[0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0], None),
        (&[0x66, 0x66, 0x2E, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0], None),
        (&[0xF3, 0x0F, 0x1E, 0xFA], None),
        (&[0x66, 0x0F, 0x3A, 0x0F, 0x05, 1, 2, 3, 4, 8], Some(5)),
        (&[0xC5, 0xF8, 0x77], None),
        (&[0xC5, 0xFB, 0x10, 0x05, 1, 2, 3, 4], Some(4)),
        (&[0xC4, 0xE2, 0x7D, 0x18, 0x05, 1, 2, 3, 4], Some(5)),
        (&[0xC4, 0xE3, 0x7D, 0x18, 0xC1, 1], None),
        (&[0x62, 0xF1, 0x7C, 0x48, 0x28, 0x05, 1, 2, 3, 4], Some(6)),
        (&[0xC2, 8, 0], None),
        (&[0x64, 0x48, 0x8B, 0x04, 0x25, 0x28, 0, 0, 0], None),
    ];

    #[test]
    fn knows_lengths_and_relative_operands() {
        for (bytes, relative_at) in KNOWN {
            let mut padded = [0xCC; LENGTH_BYTES_MAX];
            padded[..bytes.len()].copy_from_slice(bytes);
            let found = instruction(&padded);
            assert_eq!(found.length_bytes, bytes.len(), "{bytes:02x?}");
            assert_eq!(found.relative_at, *relative_at, "{bytes:02x?}");
            assert!(!found.is_unlikely, "{bytes:02x?}");
        }
    }

    #[test]
    fn the_quick_way_agrees() {
        for seed in 0..8 {
            let random = crate::test_data::random_bytes(1 << 16, seed);
            for window in random.windows(LENGTH_BYTES_MAX) {
                let mut bytes: [u8; LENGTH_BYTES_MAX] = window.try_into().unwrap();
                match seed % 4 {
                    1 => bytes[0] = 0x40 | bytes[0] & 15,
                    2 => bytes[0] = [0x66, 0xF2, 0xF3, 0x0F][usize::from(bytes[0] & 3)],
                    _ => (),
                }
                assert_eq!(instruction(&bytes), any_instruction(&bytes), "{bytes:02x?}");
            }
        }
    }

    #[test]
    fn every_opcode_has_fields_within_the_longest_instruction() {
        for prefix in [0x66, 0x2E, 0x41, 0x48, 0x0F, 0xC4, 0xC5, 0x62, 0x90] {
            for prefixes in 0..=LENGTH_BYTES_MAX {
                for opcode in 0..=0xFF {
                    for modrm in [0x00, 0x05, 0x44, 0x84, 0xC0] {
                        let mut bytes = [modrm; LENGTH_BYTES_MAX];
                        bytes[..prefixes].fill(prefix);
                        bytes[prefixes.min(LENGTH_BYTES_MAX - 1)] = opcode;
                        let found = instruction(&bytes);
                        assert_eq!(found, any_instruction(&bytes), "{bytes:02x?}");
                        assert!((1..=LENGTH_BYTES_MAX).contains(&found.length_bytes));
                        let end = found.relative_at.unwrap_or(0) + RELATIVE_BYTES;
                        assert!(found.relative_at.is_none() || end <= found.length_bytes);
                    }
                }
            }
        }
    }
}
