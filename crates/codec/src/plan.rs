//! How a block shall be encoded.

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

/// What `encode_block` shall do with one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlan {
    /// The codec to use if it pays.
    pub codec: CodecId,
    /// Its tuning.
    pub settings: Settings,
    /// Another one for machine code: blocks for which a branch filter wins its trial.
    pub machine_code: Option<TunedCodec>,
    /// Look for filters (branches, delta) that help, by trial on a sample.
    pub filter_trial: bool,
    /// Working memory that the codec may take on top of the raw and compressed bytes.
    pub memory_limit_bytes: u64,
}

impl BlockPlan {
    /// A plan without filters and without a memory limit, as for small metadata.
    #[must_use]
    pub fn plain(codec: CodecId, level: i32) -> Self {
        Self {
            codec,
            settings: Settings::level(level),
            machine_code: None,
            filter_trial: false,
            memory_limit_bytes: u64::MAX,
        }
    }

    /// The codec for what is no machine code.
    pub(crate) fn planned(&self) -> TunedCodec {
        TunedCodec {
            codec: self.codec,
            settings: self.settings,
        }
    }
}
