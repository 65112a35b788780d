//! What the symbols mean: classes of numbers, the fields of a command, and contexts.

/// The bytes of a block in a chunk, which is coded on its own, with the tables that the chunks
/// before it left.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// A number as the class that a symbol names, and plain bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Class {
    pub symbol: u8,
    /// The number of plain bits.
    pub bits: u32,
    pub plain: u32,
}

/// log2 of the number of classes for each power of two.
const MANTISSA_BITS: u32 = 2;
/// Numbers below this are classes of their own.
const OWN_CLASSES: u32 = 2 << MANTISSA_BITS;

/// Numbers of classes: literal runs and matches end in a chunk, distances are at most 2^30.
pub(super) const LENGTHS: usize = 80;
pub(super) const DISTANCES: usize = 116;

/// The class of a number.
#[inline(always)]
pub(super) const fn class(number: u32) -> Class {
    if number < OWN_CLASSES {
        return Class {
            symbol: number as u8,
            bits: 0,
            plain: 0,
        };
    }
    let bits = number.ilog2() - MANTISSA_BITS;
    Class {
        symbol: ((bits << MANTISSA_BITS) + (number >> bits)) as u8,
        bits,
        plain: number & ((1 << bits) - 1),
    }
}

/// The smallest number of a class, and the number of plain bits.
#[inline(always)]
pub(super) const fn class_start(symbol: u8) -> (u32, u32) {
    let symbol = symbol as u32;
    if symbol < OWN_CLASSES {
        return (symbol, 0);
    }
    let bits = (symbol >> MANTISSA_BITS) - 1;
    ((symbol - (bits << MANTISSA_BITS)) << bits, bits)
}

/// The lowest bits of a distance are a symbol if its class has at least this many plain bits.
pub(super) const LOW_BITS: u32 = 4;
pub(super) const LOWS: usize = 1 << LOW_BITS;

/// Recent distances that a command can name.
pub(super) const RECENT: usize = 3;
pub(super) const RECENT_AT_START: [u32; RECENT] = [1, 2, 3];
/// The kind of a match with a new distance. Smaller kinds are indices of recent distances.
pub(super) const NEW: usize = RECENT;
pub(super) const KINDS: usize = RECENT + 1;
/// The code of the length of a match that is followed by a number.
pub(super) const LENGTH_ESCAPE: u32 = 15;
/// The code of the length of a literal run that is followed by a number.
pub(super) const RUN_ESCAPE: u32 = 3;
pub(super) const RUN_CODES: usize = RUN_ESCAPE as usize + 1;
/// Commands with the same code for the run.
pub(super) const COMMANDS_OF_RUN: usize = KINDS * (LENGTH_ESCAPE as usize + 1);

/// The shortest match of a kind, in bytes.
#[inline(always)]
pub(super) const fn length_min(kind: usize) -> u32 {
    if kind == NEW { 2 } else { 1 }
}

/// The code of a length.
#[inline(always)]
pub(super) fn length_code(kind: usize, length: u32) -> u32 {
    (length - length_min(kind)).min(LENGTH_ESCAPE)
}

/// The symbol of a command.
#[inline(always)]
pub(super) const fn command(run_code: u32, kind: usize, length_code: u32) -> u8 {
    (run_code << 6 | (kind as u32) << 4 | length_code) as u8
}

/// The recent distances after a match.
#[inline(always)]
pub(super) fn recent_after(recent: [u32; RECENT], kind: usize, distance: u32) -> [u32; RECENT] {
    let [first, second, third] = recent;
    match kind {
        0 => recent,
        1 => [second, first, third],
        2 => [third, first, second],
        _ => [distance, first, second],
    }
}

/// Contexts of lengths: literal runs, then kinds of matches.
pub(super) const RUN_LENGTH_CONTEXT: usize = 0;
pub(super) const LENGTH_CONTEXTS: usize = 1 + KINDS;
pub(super) const DISTANCE_CONTEXTS: usize = 4;

#[inline(always)]
pub(super) fn length_context(kind: usize) -> usize {
    1 + kind
}

/// The context of the distance of a match with this length code.
#[inline(always)]
pub(super) fn distance_context(length_code: u32) -> usize {
    length_code.min(DISTANCE_CONTEXTS as u32 - 1) as usize
}

/// What the contexts of a block are, as its parameters state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Contexts {
    /// How many of the highest bits of the previous byte choose the table of a literal.
    pub previous_bits: u32,
    /// How many of the highest bits of the expected byte choose the table of the first literal
    /// after a match.
    pub expected_bits: u32,
    /// How many of the lowest bits of the position take part in the context of a command.
    pub position_bits: u32,
}

impl Contexts {
    pub(super) const LITERAL_BITS_MAX: u32 = 8;
    pub(super) const POSITION_BITS_MAX: u32 = 4;

    pub(super) fn literals(self) -> usize {
        (1 << self.previous_bits) + (1 << self.expected_bits)
    }

    pub(super) fn commands(self) -> usize {
        (KINDS * 3) << self.position_bits
    }

    #[inline(always)]
    pub(super) fn of_literal(self, previous: u8) -> usize {
        usize::from(previous) >> (Self::LITERAL_BITS_MAX - self.previous_bits)
    }

    /// The context of the first literal after a match.
    #[inline(always)]
    pub(super) fn of_first_literal(self, expected: u8) -> usize {
        (1 << self.previous_bits)
            + (usize::from(expected) >> (Self::LITERAL_BITS_MAX - self.expected_bits))
    }

    /// The context of a command at `position`, which follows a match.
    #[inline(always)]
    pub(super) fn of_command(self, kind: usize, length_code: u32, position: usize) -> usize {
        let size = usize::from(length_code >= 3) + usize::from(length_code >= 12);
        let mask = (1 << self.position_bits) - 1;
        (kind * 3 + size) << self.position_bits | position & mask
    }
}

/// The byte before `position`; 0 at the start.
#[inline(always)]
pub(super) fn previous_byte(raw: &[u8], position: usize) -> u8 {
    expected_byte(raw, position, 1)
}

/// The byte that continues a match of this distance at `position`; 0 before the start.
#[inline(always)]
pub(super) fn expected_byte(raw: &[u8], position: usize, distance: u32) -> u8 {
    let source = position.wrapping_sub(distance as usize);
    raw.get(source).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_ranges_in_order() {
        let mut number = 0;
        for symbol in 0..DISTANCES as u8 {
            let (start, bits) = class_start(symbol);
            assert_eq!(start, number);
            let last = start + ((1 << bits) - 1);
            for (number, plain) in [(start, 0), (last, last - start)] {
                assert_eq!(
                    class(number),
                    Class {
                        symbol,
                        bits,
                        plain
                    }
                );
            }
            number = last + 1;
        }
        assert_eq!(number, 1 << 30);
        assert_eq!(class_start(LENGTHS as u8), (1 << 21, 19));
    }
}
