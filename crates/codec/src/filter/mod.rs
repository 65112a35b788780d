//! Reversible byte transforms in front of a codec. Every filter keeps the length, works in place,
//! and is streaming-safe from the block's start: the first n raw bytes follow from the first
//! n + `lookahead_bytes` filtered bytes.

mod arm64;
mod delta;
mod x86;

use std::fmt;

use crate::error::{Error, Result};

/// Most filters per block.
pub const MAX_FILTERS: usize = 2;

/// Filter numbers, as archives store them. 0 is no filter; 1..=3 are below, the rest is unassigned.
const X86: u8 = 1;
const ARM64: u8 = 2;
const DELTA: u8 = 3;

pub use arm64::decode_at as arm64_decode_at;

/// True for the instructions that the ARM64 filter converts.
pub(crate) fn is_arm64_branch(instruction: u32) -> bool {
    arm64::is_bl(instruction) || arm64::is_adrp(instruction)
}

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
}

impl FilterStep {
    /// A step from its stored number and parameter.
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
            X86 | ARM64 | DELTA => {
                return Err(Error::Description {
                    field: "filter parameter",
                    value: u64::from(param),
                });
            }
            _ => return Err(Error::UnsupportedFilter(id)),
        };
        Ok(step)
    }

    /// Whether it is for the branches of machine code.
    #[must_use]
    pub fn is_for_branches(self) -> bool {
        matches!(self, Self::X86 | Self::Arm64 { .. })
    }

    /// The stored number.
    #[must_use]
    pub fn id(self) -> u8 {
        match self {
            Self::X86 => X86,
            Self::Arm64 { .. } => ARM64,
            Self::Delta { .. } => DELTA,
        }
    }

    /// The stored parameter.
    #[must_use]
    pub fn param(self) -> u8 {
        match self {
            Self::X86 => 0,
            Self::Arm64 { phase_bytes } => phase_bytes,
            Self::Delta { distance_bytes } => distance_bytes,
        }
    }

    /// Filtered bytes beyond a prefix that are needed to restore the prefix.
    pub(crate) fn lookahead_bytes(self) -> usize {
        match self {
            Self::X86 => x86::INSTRUCTION_BYTES - 1,
            Self::Arm64 { .. } => arm64::WORD_BYTES - 1,
            Self::Delta { .. } => 0,
        }
    }

    /// Filters a block in place.
    pub fn encode(self, bytes: &mut [u8]) {
        match self {
            Self::X86 => x86::encode(bytes),
            Self::Arm64 { phase_bytes } => arm64::encode(bytes, usize::from(phase_bytes)),
            Self::Delta { distance_bytes } => delta::encode(bytes, usize::from(distance_bytes)),
        }
    }

    /// Undoes `encode`. Given only a prefix of the filtered block, restores all but the last
    /// `lookahead_bytes` of it.
    pub fn decode(self, bytes: &mut [u8]) {
        match self {
            Self::X86 => x86::decode(bytes),
            Self::Arm64 { phase_bytes } => arm64::decode(bytes, usize::from(phase_bytes)),
            Self::Delta { distance_bytes } => delta::decode(bytes, usize::from(distance_bytes)),
        }
    }
}

impl fmt::Display for FilterStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X86 => f.write_str("x86"),
            Self::Arm64 { .. } => f.write_str("arm64"),
            Self::Delta { distance_bytes } => write!(f, "delta{distance_bytes}"),
        }
    }
}

/// Up to `MAX_FILTERS` filters, in the order in which the encoder applies them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FilterChain {
    steps: [Option<FilterStep>; MAX_FILTERS],
}

impl FilterChain {
    /// No filter.
    pub const EMPTY: Self = Self {
        steps: [None; MAX_FILTERS],
    };

    /// Adds a filter behind the others; `None` (and no change) when the chain is full.
    pub fn push(&mut self, step: FilterStep) -> Option<()> {
        let slot = self.steps.iter_mut().find(|slot| slot.is_none())?;
        *slot = Some(step);
        Some(())
    }

    /// A chain of one filter.
    #[must_use]
    pub fn of(step: FilterStep) -> Self {
        let mut chain = Self::EMPTY;
        chain.steps[0] = Some(step);
        chain
    }

    /// The filters, in the encoder's order.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = FilterStep> + '_ {
        self.steps.iter().flatten().copied()
    }

    /// True when there is no filter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps().next().is_none()
    }

    /// Filtered bytes beyond a prefix that are needed to restore the prefix.
    pub(crate) fn lookahead_bytes(&self) -> usize {
        self.steps().map(FilterStep::lookahead_bytes).sum()
    }

    /// Filters a block in place.
    pub fn encode(&self, bytes: &mut [u8]) {
        for step in self.steps() {
            step.encode(bytes);
        }
    }

    /// Undoes `encode`; with a prefix, restores all but the last `lookahead_bytes` of it.
    pub fn decode(&self, bytes: &mut [u8]) {
        for step in self.steps().rev() {
            step.decode(bytes);
        }
    }
}

impl fmt::Display for FilterChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps().enumerate() {
            let separator = if index == 0 { "" } else { "+" };
            write!(f, "{separator}{step}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_fixed_and_checked() {
        for (id, param, text) in [(1, 0, "x86"), (2, 3, "arm64"), (3, 16, "delta16")] {
            let step = FilterStep::new(id, param).unwrap();
            assert_eq!((step.id(), step.param()), (id, param));
            assert_eq!(step.to_string(), text);
        }
        for (id, param) in [(1, 1), (2, 4), (3, 0), (3, 17)] {
            assert!(matches!(
                FilterStep::new(id, param),
                Err(Error::Description { .. })
            ));
        }
        assert_eq!(FilterStep::new(0, 0), Err(Error::UnsupportedFilter(0)));
        assert_eq!(FilterStep::new(4, 0), Err(Error::UnsupportedFilter(4)));
    }

    #[test]
    fn chain_holds_two() {
        let mut chain = FilterChain::of(FilterStep::X86);
        let delta = FilterStep::Delta { distance_bytes: 4 };
        assert_eq!(chain.push(delta), Some(()));
        assert_eq!(chain.push(delta), None);
        assert_eq!(chain.to_string(), "x86+delta4");
        assert_eq!(chain.lookahead_bytes(), 4);
    }

    proptest! {
        #[test]
        fn chains_are_reversible(bytes in crate::property::instruction_soup(), ids in crate::property::filter_ids()) {
            crate::property::filters_are_reversible(&bytes, &ids);
        }
    }
}
