//! The description of an encoded block: the few bytes beside its payload that a decoder needs.

use crate::error::{Error, Result};
use crate::filter::chain::FilterChain;
use crate::filter::step::FilterStep;
use crate::id::CodecId;
use crate::params::{Params, wrong_length};
use crate::raw_length::check_raw_length;
use crate::registry;

/// Why a block was not encoded as planned. The numbers are stored in archives and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FallbackReason {
    /// A sample (and for slow codecs a quick full pass) was incompressible.
    Incompressible = 1,
    /// The output of the codec was not smaller than the block.
    NotSmaller = 2,
    /// The codec ran with settings that need less memory than the planned ones.
    SettingsReduced = 3,
    /// A lighter codec was used because the planned one needs more memory than the limit.
    MemoryLimit = 4,
    /// A lighter codec was used because the planned one failed.
    CodecFailed = 5,
    /// The filter of a plug-in failed, so there are no filters.
    FilterFailed = 6,
}

impl FallbackReason {
    /// All reasons, by rising number.
    pub const ALL: [Self; 6] = [
        Self::Incompressible,
        Self::NotSmaller,
        Self::SettingsReduced,
        Self::MemoryLimit,
        Self::CodecFailed,
        Self::FilterFailed,
    ];

    /// The stored number, 1 and above. In an archive, 0 means no fallback.
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

    /// A short text for listings.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Incompressible => "incompressible",
            Self::NotSmaller => "not smaller",
            Self::SettingsReduced => "settings reduced for memory",
            Self::MemoryLimit => "memory limit",
            Self::CodecFailed => "codec failed",
            Self::FilterFailed => "filter failed",
        }
    }
}

/// How one block was encoded: everything that `decode` needs beside the payload and the raw length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockDescription {
    /// The codec that wrote the payload.
    pub codec: CodecId,
    /// Filters, in the order in which the encoder applied them.
    pub filters: FilterChain,
    /// The codec's parameters.
    pub params: Params,
    /// Why the block was not encoded as planned; `None` if it was. Does not affect decoding.
    pub fallback: Option<FallbackReason>,
}

impl BlockDescription {
    /// A block that is stored without compression.
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
    /// Checks every field, in the order in which archives store them, against the codecs and
    /// filters of this build and against the stated raw length.
    ///
    /// # Errors
    /// `UnsupportedCodec`, `UnsupportedNamedCodec`, `UnsupportedFilter`, `RawLength`,
    /// `Description`, `Limit`. An unknown fallback number is not an error, since decoding does not
    /// depend on it: the result has none.
    pub fn check(&self, raw_length_bytes: u64) -> Result<BlockDescription> {
        check_raw_length(raw_length_bytes)?;
        let id = CodecId(self.codec);
        if id != CodecId::NAMED {
            registry::by_id(id)?;
        }
        let filters = self.check_filters()?;
        let codec = registry::for_block(id, self.params)?;
        let params = Params::new(self.params).ok_or_else(|| wrong_length(self.params.len()))?;
        codec.check_params(&params, raw_length_bytes)?;
        Ok(BlockDescription {
            codec: id,
            filters,
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
    fn fallback_numbers_do_not_change() {
        let numbers: Vec<u8> = FallbackReason::ALL.iter().map(|r| r.number()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert_eq!(FallbackReason::from_number(0), None);
        assert_eq!(FallbackReason::from_number(7), None);
    }

    #[test]
    fn checks_every_field() {
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
        let uuid: [u8; 17] = std::array::from_fn(|i| i as u8 * 15 + 1);
        let named = UntrustedBlockDescription {
            codec: 255,
            params: &uuid,
            ..unknown
        };
        let error = named.check(1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this build does not support the codec with UUID 01101f2e-3d4c-5b6a-7988-97a6b5c4d3e2"
        );
        let short = UntrustedBlockDescription {
            params: &uuid[..15],
            ..named
        };
        assert_eq!(short.check(1), Err(wrong_length(15)));
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
        // The filters are before the parameters.
        let both = UntrustedBlockDescription {
            params: &[1],
            ..foreign
        };
        assert_eq!(both.check(1), Err(Error::UnsupportedFilter(9)));
        let future = UntrustedBlockDescription {
            fallback: 200,
            ..plain()
        };
        assert_eq!(future.check(1).map(|d| d.fallback), Ok(None));
    }
}
