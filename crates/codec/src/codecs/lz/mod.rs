//! Codec 9: matches and literals, coded with adaptive tables that decode quickly.
//! `docs/codec-lz.md` specifies everything that a decoder must know, and
//! `tools/reader/refrain_reader/lz.py` is a decoder written from it.
//!
//! The encoder parses (`parse`, with `finder`, which is `trees` or `rows`, `arrivals` and `prices`)
//! a segment at the prices of the present tables (`table`, `price`), writes it (`encode`) and
//! parses the next. Both directions share `symbols`, `model`, `table` and `rans`.

mod arrivals;
mod decode;
mod encode;
mod finder;
mod matches;
mod model;
mod parse;
mod price;
mod prices;
mod rans;
mod rows;
mod symbols;
mod table;
mod trees;

use decode::{Damage, Decoder};
use finder::Search;
use parse::Effort;
use symbols::Contexts;

use crate::codec::{
    Codec, CodecDescription, OnIncompressible, checked_level, clamped_level, reserve,
};
use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::params::Params;
use crate::raw_length::MAX_RAW_LENGTH_BYTES;
use crate::settings::Settings;
use crate::workspace::Workspace;

pub(crate) struct Lz;

impl CodecId {
    /// Matches and literals with adaptive tables.
    pub const LZ: Self = Self(9);
}

const fn effort(level: i32) -> Effort {
    let (ways, ways_to_new, search) = match level {
        ..=1 => (1, 1, Search::Rows),
        2 => (1, 1, Search::Trees { candidates: 16 }),
        3 => (2, 1, Search::Trees { candidates: 32 }),
        4 => (4, 3, Search::Trees { candidates: 64 }),
        _ => (8, 8, Search::Trees { candidates: 256 }),
    };
    Effort {
        ways,
        ways_to_new,
        search,
    }
}

/// What fits the block: positions matter where there are numbers of fixed size, which contain
/// zeros.
fn contexts(raw: &[u8]) -> Contexts {
    /// One zero in so many bytes.
    const ZEROS_SHARE: usize = 32;
    let zeros = raw.iter().filter(|&&byte| byte == 0).count();
    Contexts {
        previous_bits: 4,
        expected_bits: 8,
        position_bits: if zeros > raw.len() / ZEROS_SHARE { 2 } else { 0 },
    }
}

/// The contexts with the most tables that an encoder chooses.
const LARGEST_CONTEXTS: Contexts = Contexts {
    previous_bits: 4,
    expected_bits: 8,
    position_bits: 2,
};

impl Codec for Lz {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::LZ,
            name: "lz",
            summary: "nearly as dense as lzma, and decodes text about twice as fast",
            levels: 1..=5,
            default_level: 4,
        }
    }

    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params> {
        let effort = effort(checked_level(self, settings)?);
        let contexts = contexts(raw);
        reserve(CodecId::LZ, out, raw.len())?;
        // Output that is not smaller than the block is discarded: no need to complete it.
        encode::encode(workspace.host, raw, effort, contexts, raw.len(), out).ok_or_else(|| {
            out_of_memory(encode::memory_bytes(raw.len() as u64, effort, contexts))
        })?;
        Ok(to_params(contexts))
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let raw_length_bytes = out.len() as u64;
        self.decode_prefix(workspace, params, data, raw_length_bytes, out)
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let contexts = from_params(params)?;
        let raw_bytes =
            usize::try_from(raw_length_bytes).map_err(|_| out_of_memory(raw_length_bytes))?;
        Decoder::new(workspace.host, contexts)
            .decode(data, raw_bytes, out)
            .map_err(damaged)
    }

    fn decode_damaged(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) {
        if let Ok(contexts) = from_params(params) {
            let decoder = Decoder::new(workspace.host, contexts);
            let raw_bytes = out.len();
            // The bytes before the damage are written in order.
            let _ = decoder.lenient().decode(data, raw_bytes, out);
        }
    }

    fn check_params(&self, params: &Params, _raw_length_bytes: u64) -> Result<()> {
        from_params(params).map(|_| ())
    }

    fn encode_memory_bytes(&self, raw_length_bytes: u64, settings: &Settings) -> u64 {
        let effort = effort(clamped_level(self, settings));
        encode::memory_bytes(raw_length_bytes, effort, LARGEST_CONTEXTS)
    }

    fn decode_memory_bytes(&self, _raw_length_bytes: u64, params: &Params) -> u64 {
        let contexts = from_params(params).unwrap_or(LARGEST_CONTEXTS);
        model::memory_bytes(contexts) + Decoder::MEMORY_BYTES
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Confirm
    }
}

fn to_params(contexts: Contexts) -> Params {
    let Contexts {
        previous_bits,
        expected_bits,
        position_bits,
    } = contexts;
    // All are at most 8.
    Params::from_array([previous_bits, expected_bits, position_bits].map(|bits| bits as u8))
}

fn from_params(params: &Params) -> Result<Contexts> {
    let bits: [u8; 3] = params.to_array()?;
    let [previous_bits, expected_bits, position_bits] = bits.map(u32::from);
    let literal_bits = previous_bits.max(expected_bits);
    if literal_bits > Contexts::LITERAL_BITS_MAX || position_bits > Contexts::POSITION_BITS_MAX {
        return Err(Error::Description {
            field: "lz contexts",
            value: u64::from(u32::from_le_bytes([bits[0], bits[1], bits[2], 0])),
        });
    }
    Ok(Contexts {
        previous_bits,
        expected_bits,
        position_bits,
    })
}

fn out_of_memory(wanted_bytes: u64) -> Error {
    Error::OutOfMemory {
        codec: CodecId::LZ,
        wanted_bytes,
    }
}

fn damaged(damage: Damage) -> Error {
    Error::Damaged {
        codec: CodecId::LZ,
        cause: match damage {
            Damage::Truncated => "truncated",
            Damage::OutsideBlock => "a match or its literals outside the block",
            Damage::End => "the end of a chunk does not agree",
        },
    }
}

const _: () = assert!(MAX_RAW_LENGTH_BYTES <= 1 << 30);
