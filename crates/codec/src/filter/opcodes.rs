//! What follows the opcodes of x86-64, after the opcode maps of Intel's and AMD's manuals.

/// What follows an opcode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    None,
    Byte,
    /// Two bytes.
    Word,
    /// Four bytes, or two after the prefix 66.
    Full,
    /// As `Full`, but eight bytes with REX.W.
    Wide,
    /// Eight bytes: an absolute address.
    Address,
    /// Four bytes that stay as they are: conditional jumps, whose targets are near.
    Near,
    /// Four bytes: a target relative to the next instruction.
    Target,
    /// As `Byte` if the register field is 0 or 1, else nothing.
    TestByte,
    /// As `Full` if the register field is 0 or 1, else nothing.
    TestFull,
}

/// The form of an instruction with an opcode.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub has_modrm: bool,
    pub operand: Operand,
    /// Compilers hardly emit it.
    pub is_unlikely: bool,
}

pub(super) const fn form(has_modrm: bool, operand: Operand) -> Form {
    Form {
        has_modrm,
        operand,
        is_unlikely: false,
    }
}

/// A byte that is not an instruction, or hardly one.
pub(super) const UNLIKELY: Form = Form {
    has_modrm: false,
    operand: Operand::None,
    is_unlikely: true,
};

/// An opcode without 0F before it.
pub(super) const fn one_byte_form(opcode: u8) -> Form {
    match opcode {
        // The prefixes, as opcodes: there were too many. The rest is invalid, privileged or
        // outdated.
        0x06
        | 0x07
        | 0x0E
        | 0x16
        | 0x17
        | 0x1E
        | 0x1F
        | 0x26
        | 0x27
        | 0x2E
        | 0x2F
        | 0x36
        | 0x37
        | 0x3E
        | 0x3F
        | 0x60
        | 0x61
        | 0x64..=0x67
        | 0x6C..=0x6F
        | 0x82
        | 0x9A..=0x9F
        | 0xC8
        | 0xCA
        | 0xCB
        | 0xCD..=0xCF
        | 0xD4..=0xD7
        | 0xE0..=0xE7
        | 0xEA
        | 0xEC..=0xF5
        | 0xF8..=0xFD => UNLIKELY,
        0x00..=0x3F => match opcode & 7 {
            0..=3 => form(true, Operand::None),
            4 => form(false, Operand::Byte),
            _ => form(false, Operand::Full),
        },
        0x69 | 0x81 | 0xC7 => form(true, Operand::Full),
        0x6B | 0x80 | 0x83 | 0xC0 | 0xC1 | 0xC6 => form(true, Operand::Byte),
        0x63 | 0x84..=0x8F | 0xD0..=0xD3 | 0xD8..=0xDF | 0xFE | 0xFF => form(true, Operand::None),
        0x68 | 0xA9 => form(false, Operand::Full),
        0x6A | 0x70..=0x7F | 0xA8 | 0xB0..=0xB7 | 0xEB => form(false, Operand::Byte),
        0xA0..=0xA3 => form(false, Operand::Address),
        0xB8..=0xBF => form(false, Operand::Wide),
        0xC2 => form(false, Operand::Word),
        0xE8 | 0xE9 => form(false, Operand::Target),
        0xF6 => form(true, Operand::TestByte),
        0xF7 => form(true, Operand::TestFull),
        _ => form(false, Operand::None),
    }
}

/// After 0F.
pub(super) const fn two_byte_form(opcode: u8) -> Form {
    match opcode {
        0x04..=0x0B | 0x0E | 0x30..=0x37 | 0x77 | 0xA0..=0xA2 | 0xA8..=0xAA | 0xC8..=0xCF => {
            form(false, Operand::None)
        }
        0x80..=0x8F => form(false, Operand::Near),
        0x0F | 0x70..=0x73 | 0xA4 | 0xAC | 0xBA | 0xC2 | 0xC4..=0xC6 => form(true, Operand::Byte),
        _ => form(true, Operand::None),
    }
}

/// The opcode of an encoding with VEX or EVEX, of a map with this number.
pub(super) fn vector_form(map: u8, opcode: u8) -> Form {
    match (map, opcode) {
        (1, 0x77) => form(false, Operand::None),
        (1, 0x70..=0x73 | 0xC2 | 0xC4..=0xC6) | (3, _) => form(true, Operand::Byte),
        _ => form(true, Operand::None),
    }
}
