//! The two ways to code a transform.

use super::ranked_runs::RankedModel;
use super::ranked_stream;
use super::rans::Encoder;
use super::runs::RunModel;
use super::stream::{self, StreamError};
use crate::host::Host;
use crate::id::CodecId;

impl CodecId {
    /// Block sorting with a mixing model.
    pub const BWT: Self = Self(7);
    /// Block sorting with forward ranks.
    pub const BWT2: Self = Self(10);
}

/// A way to code a transform.
pub(crate) trait Coding: Sized + Send + 'static {
    const ID: CodecId;
    const NAME: &'static str;
    const SUMMARY: &'static str;
    /// The memory of one, bytes.
    const MEMORY_BYTES: usize;
    /// The capacity that `encode` needs in `out` after its limit, so that it never has to grow it.
    const OVERRUN_BYTES: usize;

    /// `None` when memory cannot be allocated.
    fn new() -> Option<Self>;

    /// Appends the coded form of `transformed` to `out`. Stops early when `out` would not stay
    /// shorter than `limit_bytes`; it is then as long as that. `scratch` has space for a number per
    /// byte. Returns `None` when memory cannot be allocated.
    fn encode(
        &mut self,
        host: Host,
        transformed: &[u8],
        scratch: &mut [i32],
        out: &mut Vec<u8>,
        limit_bytes: usize,
    ) -> Option<()>;

    /// Decodes `data` into `transformed`, which must end together.
    ///
    /// # Errors
    /// `StreamError`; the content of `transformed` is then undefined.
    fn decode(
        &mut self,
        host: Host,
        data: &[u8],
        transformed: &mut [u8],
    ) -> Result<(), StreamError>;
}

/// Runs whose symbols and lengths are coded by mixed binary decisions.
pub(crate) struct MixedRuns(RunModel);

impl Coding for MixedRuns {
    const ID: CodecId = CodecId::BWT;
    const NAME: &'static str = "bwt";
    const SUMMARY: &'static str =
        "block sorting with a mixing model: dense on text and source code";
    const MEMORY_BYTES: usize = RunModel::MEMORY_BYTES;
    const OVERRUN_BYTES: usize = stream::OVERRUN_BYTES;

    fn new() -> Option<Self> {
        RunModel::new().map(Self)
    }

    fn encode(
        &mut self,
        host: Host,
        transformed: &[u8],
        _: &mut [i32],
        out: &mut Vec<u8>,
        limit_bytes: usize,
    ) -> Option<()> {
        let _ = stream::encode(host, &mut self.0, transformed, out, limit_bytes);
        Some(())
    }

    fn decode(
        &mut self,
        host: Host,
        data: &[u8],
        transformed: &mut [u8],
    ) -> Result<(), StreamError> {
        stream::decode(host, &mut self.0, data, transformed)
    }
}

/// Runs whose forward ranks and lengths are coded by adaptive distributions.
pub(crate) struct RankedRuns {
    model: RankedModel,
    /// Only in an encoder.
    encoder: Option<Encoder>,
}

impl Coding for RankedRuns {
    const ID: CodecId = CodecId::BWT2;
    const NAME: &'static str = "bwt2";
    const SUMMARY: &'static str =
        "block sorting with forward ranks: nearly as dense as bwt, and opens twice as fast";
    const MEMORY_BYTES: usize = RankedModel::MEMORY_BYTES + ranked_stream::encoder_memory_bytes();
    const OVERRUN_BYTES: usize = ranked_stream::OVERRUN_BYTES;

    fn new() -> Option<Self> {
        Some(Self {
            model: RankedModel::new()?,
            encoder: None,
        })
    }

    fn encode(
        &mut self,
        host: Host,
        transformed: &[u8],
        scratch: &mut [i32],
        out: &mut Vec<u8>,
        limit_bytes: usize,
    ) -> Option<()> {
        if self.encoder.is_none() {
            self.encoder = ranked_stream::new_encoder();
        }
        let encoder = self.encoder.as_mut()?;
        let model = &mut self.model;
        let _ = ranked_stream::encode(host, model, encoder, scratch, transformed, out, limit_bytes);
        Some(())
    }

    fn decode(
        &mut self,
        host: Host,
        data: &[u8],
        transformed: &mut [u8],
    ) -> Result<(), StreamError> {
        ranked_stream::decode(host, &mut self.model, data, transformed)
    }
}
