//! Codec 1: LZ4 block format (lz4_Block_format.md of the LZ4 project), without a frame.
//!
//! The encoder is our own: the available crates hash native words, so their output differs between
//! 32 and 64 bits and between byte orders. `lz4_flex` decodes whole blocks. Our own decoder decodes
//! prefixes, since `lz4_flex` cannot stop within a block.

mod encode;
mod prefix;

use crate::codec::{
    Codec, CodecDescription, OnIncompressible, checked_level, clamped_level, reserve,
};
use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

pub(crate) use encode::Lz4State;

pub(crate) struct Lz4;

impl CodecId {
    /// LZ4 block format.
    pub const LZ4: Self = Self(1);
}

/// The speed of `lz4_flex`.
const DECODER_MB_PER_S: usize = 1500;

const FIRST_CHAIN_LEVEL: i32 = 2;

impl Codec for Lz4 {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::LZ4,
            name: "lz4",
            summary: "LZ4: fastest to decode",
            levels: 1..=9,
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
        let level = checked_level(self, settings)?;
        reserve(CodecId::LZ4, out, bound_bytes(raw.len()))?;
        let host = workspace.host;
        if level < FIRST_CHAIN_LEVEL {
            encode::fast(host, workspace.state::<Lz4State>(), raw, out)
        } else {
            encode::chained(host, workspace.state::<Lz4State>(), raw, 1 << level, out)
        }
        Ok(Params::EMPTY)
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let length_bytes = out.len();
        let decompress = || lz4_flex::block::decompress_into(data, out);
        let found = workspace
            .host
            .call(length_bytes, DECODER_MB_PER_S, decompress);
        let found = found.map_err(|error| damaged(&error))?;
        if found != out.len() {
            return Err(Error::Length {
                codec: CodecId::LZ4,
                expected_bytes: out.len() as u64,
                found_bytes: found as u64,
            });
        }
        Ok(())
    }

    fn decode_prefix(
        &self,
        _workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        prefix::decode(data, raw_length_bytes, out)
    }

    fn encode_memory_bytes(&self, _raw_length_bytes: u64, settings: &Settings) -> u64 {
        if clamped_level(self, settings) < FIRST_CHAIN_LEVEL {
            encode::FAST_BYTES
        } else {
            encode::CHAINED_BYTES
        }
    }

    fn decode_memory_bytes(&self, _raw_length_bytes: u64, _params: &Params) -> u64 {
        0
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Store
    }
}

/// The maximum compressed size of `raw_length_bytes`: one literal run with its length bytes.
fn bound_bytes(raw_length_bytes: usize) -> usize {
    raw_length_bytes + raw_length_bytes / 255 + 16
}

fn damaged(error: &lz4_flex::block::DecompressError) -> Error {
    use lz4_flex::block::DecompressError;
    Error::Damaged {
        codec: CodecId::LZ4,
        cause: match error {
            DecompressError::OutputTooSmall { .. } => "more bytes than stated",
            DecompressError::LiteralOutOfBounds => "literals beyond the end",
            DecompressError::ExpectedAnotherByte => "cut short",
            DecompressError::OffsetOutOfBounds => "match before the start",
            _ => "not an LZ4 block",
        },
    }
}
