//! The filters of a block, in their order.

use std::fmt;

use super::step::FilterStep;
use crate::error::Result;
use crate::host::Host;

/// The maximum number of filters per block.
pub const MAX_FILTERS: usize = 2;

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

    /// Appends a filter. Returns `None` and changes nothing when the chain is full.
    pub fn push(&mut self, step: FilterStep) -> Option<()> {
        let slot = self.steps.iter_mut().find(|slot| slot.is_none())?;
        *slot = Some(step);
        Some(())
    }

    /// A chain of one filter.
    #[must_use]
    pub fn single(step: FilterStep) -> Self {
        let mut chain = Self::EMPTY;
        chain.steps[0] = Some(step);
        chain
    }

    /// The filters, in the encoder's order.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = FilterStep> + '_ {
        self.steps.iter().flatten().copied()
    }

    /// Whether the chain has no filter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps().next().is_none()
    }

    /// The number of filtered bytes after a prefix that are needed to restore the prefix.
    pub(crate) fn lookahead_bytes(&self) -> usize {
        let steps = self.steps().map(FilterStep::lookahead_bytes);
        steps.fold(0, usize::saturating_add)
    }

    /// Whether it has a filter of a plug-in, which may fail.
    pub(crate) fn has_plugin(&self) -> bool {
        self.steps().any(FilterStep::is_plugin)
    }

    /// The working memory in both directions, without the block.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.steps()
            .map(FilterStep::memory_bytes)
            .max()
            .unwrap_or(0)
    }

    /// Filters a block in place.
    ///
    /// # Errors
    /// As [`FilterStep::encode`].
    pub fn encode(&self, host: Host, bytes: &mut [u8]) -> Result<()> {
        self.steps().try_for_each(|step| step.encode(host, bytes))
    }

    /// Reverses `encode`. Given only a prefix of the filtered block, restores all but the last
    /// `lookahead_bytes` of it.
    ///
    /// # Errors
    /// As [`FilterStep::decode`].
    pub fn decode(&self, host: Host, bytes: &mut [u8]) -> Result<()> {
        let mut steps = self.steps().rev();
        steps.try_for_each(|step| step.decode(host, bytes))
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

    #[test]
    fn chain_holds_two() {
        let mut chain = FilterChain::single(FilterStep::X86);
        let delta = FilterStep::Delta { distance_bytes: 4 };
        assert_eq!(chain.push(delta), Some(()));
        assert_eq!(chain.push(delta), None);
        assert_eq!(chain.to_string(), "x86+delta4");
        assert_eq!(chain.lookahead_bytes(), 4);
    }
}
