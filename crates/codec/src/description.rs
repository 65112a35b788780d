//! What came of a block: the few bytes beside its payload that a decoder needs.

use crate::error::{Error, Result};
use crate::filter::chain::FilterChain;
use crate::filter::step::FilterStep;
use crate::id::CodecId;
use crate::params::{Params, wrong_length};
use crate::raw_length::check_raw_length;
use crate::registry;

/// Why a block was not squeezed as planned. The numbers are stored in archives and never move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FallbackReason {
    /// A look at samples (and for slow codecs a quick full pass) found nothing to gain.
    Incompressible = 1,
    /// The codec ran and its output was not smaller.
    NotSmaller = 2,
    /// The codec ran with settings that need less memory than the planned ones.
    SettingsReduced = 3,
    /// A lighter codec took over, since the planned one needs more memory than the limit.
    MemoryLimit = 4,
    /// A lighter codec took over, since the planned one failed.
    CodecFailed = 5,
}

impl FallbackReason {
    /// All reasons, by rising number.
    pub const ALL: [Self; 5] = [
        Self::Incompressible,
        Self::NotSmaller,
        Self::SettingsReduced,
        Self::MemoryLimit,
        Self::CodecFailed,
    ];

    /// The stored number, 1 and above; 0 in an archive means no fallback.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The reason with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.number() == number)
    }

    /// A few words for listings.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Incompressible => "incompressible",
            Self::NotSmaller => "not smaller",
            Self::SettingsReduced => "settings reduced for memory",
            Self::MemoryLimit => "memory limit",
            Self::CodecFailed => "codec failed",
        }
    }
}

/// How one block was squeezed; all that `decode` needs beside the payload and the raw length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockDescription {
    /// The codec that wrote the payload.
    pub codec: CodecId,
    /// Filters, in the order in which the encoder applied them.
    pub filters: FilterChain,
    /// The codec's parameters.
    pub params: Params,
    /// Set when the block was not squeezed as planned. Decoding does not depend on it.
    pub fallback: Option<FallbackReason>,
}

impl BlockDescription {
    /// A block stored as it is.
    #[must_use]
    pub fn stored(fallback: Option<FallbackReason>) -> Self {
        Self {
            codec: CodecId::NONE,
            filters: FilterChain::EMPTY,
            params: Params::EMPTY,
            fallback,
        }
    }
}

/// A block description as read from an archive, not yet trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedBlockDescription<'a> {
    /// Codec number.
    pub codec: u16,
    /// Filter numbers with their parameter, in the encoder's order.
    pub filters: &'a [(u8, u8)],
    /// Codec parameters.
    pub params: &'a [u8],
    /// Fallback number, 0 for none.
    pub fallback: u8,
}

impl UntrustedBlockDescription<'_> {
    /// Checks every field against what this build knows and against the stated raw length.
    ///
    /// # Errors
    /// `UnsupportedCodec`, `UnsupportedFilter`, `RawLength`, `Description`. A fallback number from
    /// the future is no error (decoding does not depend on it): it is dropped.
    pub fn check(&self, raw_length_bytes: u64) -> Result<BlockDescription> {
        check_raw_length(raw_length_bytes)?;
        let id = CodecId(self.codec);
        let codec = registry::by_id(id)?;
        let params = Params::new(self.params).ok_or_else(|| wrong_length(self.params.len()))?;
        codec.check_params(&params, raw_length_bytes)?;
        Ok(BlockDescription {
            codec: id,
            filters: self.check_filters()?,
            params,
            fallback: FallbackReason::from_number(self.fallback),
        })
    }

    fn check_filters(&self) -> Result<FilterChain> {
        let mut chain = FilterChain::EMPTY;
        for &(id, param) in self.filters {
            let step = FilterStep::new(id, param)?;
            chain.push(step).ok_or(Error::Description {
                field: "number of filters",
                value: self.filters.len() as u64,
            })?;
        }
        Ok(chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw_length::MAX_RAW_LENGTH_BYTES;

    fn plain() -> UntrustedBlockDescription<'static> {
        UntrustedBlockDescription {
            codec: CodecId::ZSTD.0,
            filters: &[],
            params: &[],
            fallback: 0,
        }
    }

    #[test]
    fn fallback_numbers_are_fixed() {
        let numbers: Vec<u8> = FallbackReason::ALL.iter().map(|r| r.number()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(FallbackReason::from_number(0), None);
        assert_eq!(FallbackReason::from_number(6), None);
    }

    #[test]
    fn every_field_is_checked() {
        assert!(plain().check(1).is_ok());
        assert!(matches!(plain().check(0), Err(Error::RawLength { .. })));
        assert!(matches!(
            plain().check(MAX_RAW_LENGTH_BYTES + 1),
            Err(Error::RawLength { .. })
        ));
        let unknown = UntrustedBlockDescription {
            codec: 16,
            ..plain()
        };
        assert_eq!(unknown.check(1), Err(Error::UnsupportedCodec(CodecId(16))));
        for params in [&[1_u8][..], &[0; 17]] {
            let forged = UntrustedBlockDescription { params, ..plain() };
            assert!(matches!(forged.check(1), Err(Error::Description { .. })));
        }
        let three = UntrustedBlockDescription {
            filters: &[(3, 1), (3, 2), (3, 3)],
            ..plain()
        };
        assert!(matches!(three.check(1), Err(Error::Description { .. })));
        let foreign = UntrustedBlockDescription {
            filters: &[(9, 0)],
            ..plain()
        };
        assert_eq!(foreign.check(1), Err(Error::UnsupportedFilter(9)));
        let future = UntrustedBlockDescription {
            fallback: 200,
            ..plain()
        };
        assert_eq!(future.check(1).map(|d| d.fallback), Ok(None));
    }
}
