//! Codecs 7 and 10: block sorting with two ways to code the transform. The README beside this file
//! describes the models and their sources; `docs/codec-bwt.md` and `docs/codec-bwt2.md` specify
//! everything that a decoder must know, and `bwt.py` and `bwt2.py` of `tools/reader/refrain_reader`
//! are decoders written from them.
//!
//! Encoding calls `repeats::remove`, `transform::forward` and the coding; decoding calls the
//! coding, `inverse` and `repeats::restore`.
//!
//! The payload is the rows at which the chains of the text start (`transform::Row`, four bytes
//! each, little-endian, their number follows from the reduced length), then the coded transform.

mod block;
mod coding;
mod counter;
mod filled;
mod forward_ranks;
mod header;
mod histogram;
mod history;
mod inverse;
mod logistic;
mod mix;
mod nibble;
mod packed;
mod predictor;
mod ranked_runs;
mod ranked_stream;
mod rans;
mod recency;
mod repeats;
mod runs;
mod stream;
mod transform;
mod tree;

use std::marker::PhantomData;

use block::BlockState;
use coding::{Coding, MixedRuns, RankedRuns};
use header::Header;

use crate::codec::{Codec, CodecDescription, OnIncompressible, checked_level};
use crate::error::Result;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// Block sorting, with a way to code the transform.
pub(crate) struct BlockSorting<C>(PhantomData<fn() -> C>);

/// Codec 7.
pub(crate) const BWT: BlockSorting<MixedRuns> = BlockSorting(PhantomData);
/// Codec 10.
pub(crate) const BWT2: BlockSorting<RankedRuns> = BlockSorting(PhantomData);

impl<C: Coding> Codec for BlockSorting<C> {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: C::ID,
            name: C::NAME,
            summary: C::SUMMARY,
            levels: 1..=1,
            default_level: 1,
        }
    }

    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params> {
        checked_level(self, settings)?;
        let host = workspace.host;
        let state = workspace.large_state::<BlockState<C>>(C::ID);
        state.encode(host, raw, out)
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        self.decode_prefix(workspace, params, data, out.len() as u64, out)
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let host = workspace.host;
        let state = workspace.large_state::<BlockState<C>>(C::ID);
        state.decode_prefix(host, params, data, raw_length_bytes, out)
    }

    fn check_params(&self, params: &Params, raw_length_bytes: u64) -> Result<()> {
        Header::from_params(params, raw_length_bytes).map(|_| ())
    }

    fn encode_memory_bytes(&self, raw_length_bytes: u64, _settings: &Settings) -> u64 {
        block::encode_memory_bytes::<C>(raw_length_bytes)
    }

    fn decode_memory_bytes(&self, raw_length_bytes: u64, params: &Params) -> u64 {
        block::decode_memory_bytes::<C>(raw_length_bytes, params)
    }

    fn is_slow_to_decode(&self) -> bool {
        true
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Confirm
    }
}

#[cfg(test)]
mod tests;
