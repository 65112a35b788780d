//! How to encode a block.

use crate::filter::chain::FilterChain;
use crate::id::CodecId;
use crate::settings::Settings;

/// A codec with its tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunedCodec {
    /// The codec.
    pub codec: CodecId,
    /// Its tuning.
    pub settings: Settings,
}

/// Which filters a block gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterPlan {
    /// None.
    None,
    /// One that wins a trial: on a sample by a quick codec (branches, delta), or on a part of the
    /// block by the codecs that the plan compares (transposition of tables).
    Trial,
    /// These, if the block is not stored.
    Fixed(FilterChain),
}

/// Codecs that compete with the planned one.
pub type Rivals = [Option<TunedCodec>; 2];

/// What `encode_block` does with one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlan {
    /// The codec to use if it makes the block smaller.
    pub codec: CodecId,
    /// Its tuning.
    pub settings: Settings,
    /// Other codecs, which are compared on a part of each block with the planned codec and the
    /// lighter one to which blocks fall back. The one that makes the part smallest encodes the
    /// block.
    pub rivals: Rivals,
    /// The filters.
    pub filters: FilterPlan,
    /// The working memory that the codec may use in addition to the raw and compressed bytes.
    pub memory_limit_bytes: u64,
}

impl BlockPlan {
    /// A plan without filters and without a memory limit, for example for small metadata.
    #[must_use]
    pub fn plain(codec: CodecId, level: i32) -> Self {
        Self {
            codec,
            settings: Settings::level(level),
            rivals: [None; 2],
            filters: FilterPlan::None,
            memory_limit_bytes: u64::MAX,
        }
    }

    /// Whether codecs are compared on each block.
    #[must_use]
    pub fn has_rivals(&self) -> bool {
        self.rivals.iter().any(Option::is_some)
    }

    /// The planned codec and its rivals.
    pub(crate) fn compared(&self) -> impl Iterator<Item = TunedCodec> + use<> {
        std::iter::once(self.planned()).chain(self.rivals.into_iter().flatten())
    }

    /// The codec for blocks that are not machine code.
    pub(crate) fn planned(&self) -> TunedCodec {
        TunedCodec {
            codec: self.codec,
            settings: self.settings,
        }
    }
}
