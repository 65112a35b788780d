//! One filter with its parameter, and the table of filters.

use std::fmt;
use std::ops::RangeInclusive;

use super::{arm64, delta, plugin, transpose, x86, x86_64, xor};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::id::PLUGIN_FILTERS;

/// The numbers of filters in archives. 0 means no filter, 1 to 6 are assigned below, those of
/// `FilterStep::PLUGINS` belong to plug-ins, the rest is unassigned.
const X86: u8 = 1;
const ARM64: u8 = 2;
const DELTA: u8 = 3;
const X86_64: u8 = 4;
const TRANSPOSE: u8 = 5;
const XOR: u8 = 6;

const RECORD_BYTES: RangeInclusive<u8> = transpose::MIN_RECORD_BYTES..=transpose::MAX_RECORD_BYTES;

/// One filter with its parameter, valid by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FilterStep {
    /// 32-bit x86 and x86-64 call and jump targets (E8, E9). Number 1, parameter 0.
    X86,
    /// ARM64 BL and ADRP targets. Number 2; parameter: position of the first instruction, 0..=3.
    Arm64 {
        /// Offset of the first whole instruction word in the block, bytes.
        phase_bytes: u8,
    },
    /// Differences of bytes at a distance. Number 3; parameter: the distance, 1..=16.
    Delta {
        /// Distance of the bytes that are subtracted.
        distance_bytes: u8,
    },
    /// x86-64 call and jump targets and addresses relative to RIP, by instructions. Number 4,
    /// parameter 0.
    X86_64,
    /// Bytes with the same place in their record together. Number 5; parameter: the size of a
    /// record, 2..=32.
    Transpose {
        /// Size of a record.
        record_bytes: u8,
    },
    /// XOR with the byte at a distance. Number 6; parameter: the distance, 1..=255.
    Xor {
        /// Distance of the bytes that are combined.
        distance_bytes: u8,
    },
    /// A filter of a plug-in.
    Plugin {
        /// Its number, one of `PLUGINS`.
        id: u8,
        /// Its parameter.
        param: u8,
    },
}

impl FilterStep {
    /// The first and the last number of filters of plug-ins, whose names an archive records.
    pub const PLUGINS: RangeInclusive<u8> = PLUGIN_FILTERS;

    /// Returns the filter with a stored number and parameter.
    ///
    /// # Errors
    /// `UnsupportedFilter`, `Description`.
    pub fn new(id: u8, param: u8) -> Result<Self> {
        let step = match id {
            X86 if param == 0 => Self::X86,
            ARM64 if param < arm64::WORD_BYTES as u8 => Self::Arm64 { phase_bytes: param },
            DELTA if (1..=delta::MAX_DISTANCE_BYTES).contains(&param) => Self::Delta {
                distance_bytes: param,
            },
            X86_64 if param == 0 => Self::X86_64,
            TRANSPOSE if RECORD_BYTES.contains(&param) => Self::Transpose {
                record_bytes: param,
            },
            XOR if param > 0 => Self::Xor {
                distance_bytes: param,
            },
            X86 | ARM64 | DELTA | X86_64 | TRANSPOSE | XOR => return Err(wrong_parameter(param)),
            _ if plugin::by_id(id)?.describe().parameters.contains(&param) => {
                Self::Plugin { id, param }
            }
            _ => return Err(wrong_parameter(param)),
        };
        Ok(step)
    }

    /// Whether the filter is for the branches of machine code.
    #[must_use]
    pub fn is_for_branches(self) -> bool {
        matches!(self, Self::X86 | Self::Arm64 { .. } | Self::X86_64)
    }

    /// Whether the filter is a plug-in's.
    pub(crate) fn is_plugin(self) -> bool {
        matches!(self, Self::Plugin { .. })
    }

    /// The working memory in both directions, without the block.
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        match self {
            Self::Plugin { id, .. } => plugin::by_id(id).map_or(0, |filter| filter.memory_bytes()),
            _ => 0,
        }
    }

    /// The stored number.
    #[must_use]
    pub fn id(self) -> u8 {
        match self {
            Self::X86 => X86,
            Self::Arm64 { .. } => ARM64,
            Self::Delta { .. } => DELTA,
            Self::X86_64 => X86_64,
            Self::Transpose { .. } => TRANSPOSE,
            Self::Xor { .. } => XOR,
            Self::Plugin { id, .. } => id,
        }
    }

    /// The stored parameter.
    #[must_use]
    pub fn param(self) -> u8 {
        match self {
            Self::X86 | Self::X86_64 => 0,
            Self::Arm64 { phase_bytes } => phase_bytes,
            Self::Delta { distance_bytes } | Self::Xor { distance_bytes } => distance_bytes,
            Self::Transpose { record_bytes } => record_bytes,
            Self::Plugin { param, .. } => param,
        }
    }

    /// The number of filtered bytes after a prefix that are needed to restore the prefix.
    pub(crate) fn lookahead_bytes(self) -> usize {
        match self {
            Self::X86 => x86::INSTRUCTION_BYTES - 1,
            Self::Arm64 { .. } => arm64::WORD_BYTES - 1,
            Self::Delta { .. } | Self::Xor { .. } => 0,
            Self::Transpose { record_bytes } => {
                transpose::lookahead_bytes(usize::from(record_bytes))
            }
            Self::X86_64 => x86_64::LOOKAHEAD_BYTES,
            Self::Plugin { .. } => usize::MAX,
        }
    }

    /// Filters a block in place.
    ///
    /// # Errors
    /// Of plug-ins: `UnsupportedFilter`, `FilterFailed`. The bytes are then undefined.
    pub fn encode(self, host: Host, bytes: &mut [u8]) -> Result<()> {
        match self {
            Self::X86 => x86::encode(host, bytes),
            Self::Arm64 { phase_bytes } => arm64::encode(host, bytes, usize::from(phase_bytes)),
            Self::Delta { distance_bytes } => {
                delta::encode(host, bytes, usize::from(distance_bytes));
            }
            Self::X86_64 => x86_64::encode(host, bytes),
            Self::Transpose { record_bytes } => {
                transpose::encode(host, bytes, usize::from(record_bytes));
            }
            Self::Xor { distance_bytes } => xor::encode(host, bytes, usize::from(distance_bytes)),
            Self::Plugin { id, param } => plugin::by_id(id)?.encode(host, param, bytes)?,
        }
        Ok(())
    }

    /// Reverses `encode`. Given only a prefix of the filtered block, restores all but the last
    /// `lookahead_bytes` of it.
    ///
    /// # Errors
    /// As [`FilterStep::encode`].
    pub fn decode(self, host: Host, bytes: &mut [u8]) -> Result<()> {
        match self {
            Self::X86 => x86::decode(host, bytes),
            Self::Arm64 { phase_bytes } => arm64::decode(host, bytes, usize::from(phase_bytes)),
            Self::Delta { distance_bytes } => {
                delta::decode(host, bytes, usize::from(distance_bytes));
            }
            Self::X86_64 => x86_64::decode(host, bytes),
            Self::Transpose { record_bytes } => {
                transpose::decode(host, bytes, usize::from(record_bytes));
            }
            Self::Xor { distance_bytes } => xor::decode(host, bytes, usize::from(distance_bytes)),
            Self::Plugin { id, param } => plugin::by_id(id)?.decode(host, param, bytes)?,
        }
        Ok(())
    }
}

fn wrong_parameter(param: u8) -> Error {
    Error::Description {
        field: "filter parameter",
        value: u64::from(param),
    }
}

impl fmt::Display for FilterStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X86 => f.write_str("x86"),
            Self::Arm64 { .. } => f.write_str("arm64"),
            Self::Delta { distance_bytes } => write!(f, "delta{distance_bytes}"),
            Self::X86_64 => f.write_str("x86-64"),
            Self::Transpose { record_bytes } => write!(f, "transpose{record_bytes}"),
            Self::Xor { distance_bytes } => write!(f, "xor{distance_bytes}"),
            Self::Plugin { id, param } => match plugin::by_id(*id).map(|found| found.describe()) {
                Ok(found) if found.has_parameter() => write!(f, "{}:{param}", found.name),
                Ok(found) => f.write_str(found.name),
                Err(_) => write!(f, "#{id}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_change_and_are_checked() {
        for (id, param, text) in [
            (1, 0, "x86"),
            (2, 3, "arm64"),
            (3, 16, "delta16"),
            (4, 0, "x86-64"),
            (5, 8, "transpose8"),
            (6, 255, "xor255"),
        ] {
            let step = FilterStep::new(id, param).unwrap();
            assert_eq!((step.id(), step.param()), (id, param));
            assert_eq!(step.to_string(), text);
        }
        for (id, param) in [
            (1, 1),
            (2, 4),
            (3, 0),
            (3, 17),
            (4, 1),
            (5, 1),
            (5, 33),
            (6, 0),
        ] {
            assert!(matches!(
                FilterStep::new(id, param),
                Err(Error::Description { .. })
            ));
        }
        assert_eq!(FilterStep::new(0, 0), Err(Error::UnsupportedFilter(0)));
        assert_eq!(FilterStep::new(7, 0), Err(Error::UnsupportedFilter(7)));
    }
}
