//! The header of a block: memory sizes, the components of the model, the program HCOMP.

use super::error::damaged;
use refrain_codec::Result;

/// One component of the model. Inputs are the indices of earlier components, as the parser has
/// checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    Const {
        value: u8,
    },
    Cm {
        size_bits: u8,
        limit: u8,
    },
    Icm {
        size_bits: u8,
    },
    Match {
        size_bits: u8,
        buffer_bits: u8,
    },
    Avg {
        inputs: [u8; 2],
        weight: u8,
    },
    Mix2 {
        size_bits: u8,
        inputs: [u8; 2],
        rate: u8,
        mask: u8,
    },
    Mix {
        size_bits: u8,
        first: u8,
        count: u8,
        rate: u8,
        mask: u8,
    },
    Isse {
        size_bits: u8,
        input: u8,
    },
    Sse {
        size_bits: u8,
        input: u8,
        start: u8,
        limit: u8,
    },
}

/// log2 of the largest number of entries of a table. No known archive exceeds it, and sizes stay
/// far from overflow.
const SIZE_BITS_MAX: u8 = 32;

impl Component {
    /// Parses component number `index`. Returns it with its length in bytes, or `None` if `bytes`
    /// ends before it does.
    fn parse(bytes: &[u8], index: usize) -> Result<Option<(Component, usize)>> {
        let Some(&kind) = bytes.first() else {
            return Ok(None);
        };
        let length = match kind {
            1 | 3 => 2,
            2 | 4 | 8 => 3,
            5 => 4,
            6 | 7 => 6,
            9 => 5,
            _ => return Err(damaged("an unknown component")),
        };
        let Some(arguments) = bytes.get(1..length) else {
            return Ok(None);
        };
        let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
        let input = |position: usize| match argument(position) {
            input if usize::from(input) < index => Ok(input),
            _ => Err(damaged("a component takes input from a later one")),
        };
        let bits = |position: usize| match argument(position) {
            bits @ ..=SIZE_BITS_MAX => Ok(bits),
            _ => Err(damaged("a component of more than 2^32 entries")),
        };
        let component = match kind {
            1 => Component::Const { value: argument(0) },
            2 => Component::Cm {
                size_bits: bits(0)?,
                limit: argument(1),
            },
            3 => Component::Icm {
                size_bits: bits(0)?,
            },
            4 => Component::Match {
                size_bits: bits(0)?,
                buffer_bits: bits(1)?,
            },
            5 => Component::Avg {
                inputs: [input(0)?, input(1)?],
                weight: argument(2),
            },
            6 => Component::Mix2 {
                size_bits: bits(0)?,
                inputs: [input(1)?, input(2)?],
                rate: argument(3),
                mask: argument(4),
            },
            7 => {
                let (first, count) = (argument(1), argument(2));
                if count == 0 || usize::from(first) + usize::from(count) > index {
                    return Err(damaged("a mixer takes input from a later component"));
                }
                Component::Mix {
                    size_bits: bits(0)?,
                    first,
                    count,
                    rate: argument(3),
                    mask: argument(4),
                }
            }
            8 => Component::Isse {
                size_bits: bits(0)?,
                input: input(1)?,
            },
            _ => Component::Sse {
                size_bits: bits(0)?,
                input: input(1)?,
                start: argument(2),
                limit: argument(3),
            },
        };
        Ok(Some((component, length)))
    }

    fn memory_bytes(self) -> u64 {
        match self {
            Component::Const { .. } | Component::Avg { .. } => 0,
            Component::Cm { size_bits, .. } => 4 << size_bits,
            Component::Icm { size_bits } => (64 << size_bits) + 2048,
            Component::Match {
                size_bits,
                buffer_bits,
            } => (4 << size_bits) + (1 << buffer_bits) + 2048,
            Component::Mix2 { size_bits, .. } => 2 << size_bits,
            Component::Mix {
                size_bits, count, ..
            } => (4 * u64::from(count)) << size_bits,
            Component::Isse { size_bits, .. } => (64 << size_bits) + 2048,
            Component::Sse { size_bits, .. } => 128 << size_bits,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// log2 of the sizes of H and M of HCOMP, then of PCOMP.
    pub hash_bits: u8,
    pub memory_bits: u8,
    pub post_hash_bits: u8,
    pub post_memory_bits: u8,
    pub components: Vec<Component>,
    /// The program HCOMP.
    pub program: Vec<u8>,
}

const FIXED_BYTES: usize = 7;

impl Header {
    /// Parses a header at the beginning of `bytes`. Returns it with its length, or `None` if
    /// `bytes` ends before it does.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Header, usize)>> {
        let Some((fixed, rest)) = bytes.split_at_checked(FIXED_BYTES) else {
            return Ok(None);
        };
        if !matches!(fixed, [b'z', b'P', b'Q', 1 | 2, 1, _, _]) {
            return Err(damaged("not a ZPAQ block header"));
        }
        let length = usize::from(u16::from_le_bytes([fixed[5], fixed[6]]));
        let Some(header) = rest.get(..length) else {
            return Ok(None);
        };
        let truncated = || damaged("a block header without its end marker");
        let Some((
            &[
                hash_bits,
                memory_bits,
                post_hash_bits,
                post_memory_bits,
                count,
            ],
            mut rest,
        )) = header.split_first_chunk()
        else {
            return Err(truncated());
        };
        for bits in [hash_bits, memory_bits, post_hash_bits, post_memory_bits] {
            if bits > SIZE_BITS_MAX {
                return Err(damaged("a memory of more than 2^32 entries"));
            }
        }
        if fixed[3] == 1 && count == 0 {
            return Err(damaged("a block of level 1 without components"));
        }
        let mut components = Vec::with_capacity(usize::from(count));
        for index in 0..usize::from(count) {
            let (component, length) = Component::parse(rest, index)?.ok_or_else(truncated)?;
            components.push(component);
            rest = &rest[length..];
        }
        let [0, program @ .., 0] = rest else {
            return Err(truncated());
        };
        let header = Header {
            hash_bits,
            memory_bits,
            post_hash_bits,
            post_memory_bits,
            components,
            program: program.to_vec(),
        };
        Ok(Some((header, FIXED_BYTES + length)))
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let machine = |hash: u8, memory: u8| (4u64 << hash) + (1u64 << memory);
        let tables: u64 = self
            .components
            .iter()
            .map(|component| component.memory_bytes())
            .sum();
        // No overflow: 255 components of 2^32 entries of 1 KiB are less than 2^51 bytes.
        tables
            + machine(self.hash_bits, self.memory_bits)
            + machine(self.post_hash_bits, self.post_memory_bits)
            + (1 << 18)
    }
}
