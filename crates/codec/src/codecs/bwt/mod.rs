//! Codec 7: block sorting with a mixing model. The README beside this file describes the model and
//! its sources; `docs/codec-bwt.md` specifies everything that a decoder must know, and
//! `tools/reader/refrain_reader/bwt.py` is a decoder written from it.
//!
//! Encoding calls `repeats::remove`, `transform::forward` and `stream::encode`; decoding calls
//! `stream::decode`, `inverse` and `repeats::restore`.
//!
//! The payload is the rows at which the chains of the text start (`transform::Row`, four bytes
//! each, little-endian, their number follows from the reduced length), then the coded runs.
//! Parameters: the escape byte of `repeats`, and the reduced length (four bytes, little-endian),
//! which is the raw length when no repeats were removed.

mod counter;
mod history;
mod inverse;
mod logistic;
mod mix;
mod predictor;
mod recency;
mod repeats;
mod runs;
mod stream;
mod transform;
mod tree;

use inverse::Inverse;
use repeats::PositionTable;
use runs::RunModel;
use transform::ChainRow;

use crate::codec::{Codec, CodecDescription, OnIncompressible, checked_level, reserve};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::id::CodecId;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// Repeats are removed only if that saves 1/32 of a block: restoring them takes time at each read.
const REPEATS_SAVING_LOG: u32 = 5;
const ROW_BYTES: usize = size_of::<ChainRow>();

pub(crate) struct Bwt;

impl CodecId {
    /// Block sorting with a mixing model.
    pub const BWT: Self = Self(7);
}

#[derive(Default)]
pub(crate) struct BwtState {
    /// The text without its repeats, or its transform: each replaces the other.
    text: Vec<u8>,
    suffixes: Vec<i32>,
    starts: Vec<ChainRow>,
    positions: PositionTable,
    inverse: Inverse,
    model: Option<RunModel>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header {
    escape: u8,
    /// The length of the text without its repeats, 1 to the raw length.
    reduced_bytes: u32,
}

impl Codec for Bwt {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::BWT,
            name: "bwt",
            summary: "block sorting with a mixing model: dense and quick on text and source code",
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
        let state = workspace.large_state::<BwtState>(CodecId::BWT);
        let header = state.remove_repeats(host, raw)?;
        transform::forward(
            host,
            &mut state.text,
            &mut state.suffixes,
            &mut state.starts,
        )
        .ok_or_else(|| out_of_memory(4 * raw.len() as u64))?;
        // Output that is not smaller than the block is discarded: no need to complete it.
        let limit = out.len() + raw.len();
        let starts_bytes = state.starts.len() * ROW_BYTES;
        reserve(
            CodecId::BWT,
            out,
            raw.len() + starts_bytes + stream::OVERRUN_BYTES,
        )?;
        for start in &state.starts {
            out.extend_from_slice(&start.to_le_bytes());
        }
        // `encode_block` detects from the length that the codec did not make the block smaller.
        let model = model(&mut state.model)?;
        let _ = stream::encode(host, model, &state.text, out, limit);
        Ok(header.to_params())
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let raw_length_bytes = out.len();
        decode_prefix_of(
            workspace.host,
            workspace.large_state::<BwtState>(CodecId::BWT),
            params,
            data,
            raw_length_bytes,
            out,
        )
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let raw_length_bytes =
            usize::try_from(raw_length_bytes).map_err(|_| out_of_memory(raw_length_bytes))?;
        decode_prefix_of(
            workspace.host,
            workspace.large_state::<BwtState>(CodecId::BWT),
            params,
            data,
            raw_length_bytes,
            out,
        )
    }

    fn check_params(&self, params: &Params, raw_length_bytes: u64) -> Result<()> {
        Header::from_params(params, raw_length_bytes).map(|_| ())
    }

    fn encode_memory_bytes(&self, raw_length_bytes: u64, _settings: &Settings) -> u64 {
        let suffixes = 4 * raw_length_bytes + transform::scratch_bytes(raw_length_bytes);
        let text = raw_length_bytes + 64;
        suffixes + text + PositionTable::memory_bytes(raw_length_bytes) + model_memory_bytes()
    }

    fn decode_memory_bytes(&self, raw_length_bytes: u64, params: &Params) -> u64 {
        let reduced = Header::from_params(params, raw_length_bytes)
            .map_or(raw_length_bytes, |header| u64::from(header.reduced_bytes));
        let positions = if reduced < raw_length_bytes {
            PositionTable::memory_bytes(raw_length_bytes)
        } else {
            0
        };
        reduced + Inverse::memory_bytes(reduced) + positions + model_memory_bytes()
    }

    fn is_slow_to_decode(&self) -> bool {
        true
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Confirm
    }
}

fn model(cached: &mut Option<RunModel>) -> Result<&mut RunModel> {
    if cached.is_none() {
        *cached = RunModel::new();
    }
    cached
        .as_mut()
        .ok_or_else(|| out_of_memory(model_memory_bytes()))
}

fn model_memory_bytes() -> u64 {
    RunModel::MEMORY_BYTES as u64 + (64 << 10)
}

impl BwtState {
    /// Sets `text` to `raw`, without its repeats if that pays.
    fn remove_repeats(&mut self, host: Host, raw: &[u8]) -> Result<Header> {
        let escape = repeats::rarest_byte(host, raw);
        let limit_bytes = raw.len() - (raw.len() >> REPEATS_SAVING_LOG);
        if repeats::remove(
            host,
            &mut self.positions,
            raw,
            escape,
            limit_bytes,
            &mut self.text,
        ) {
            return Ok(Header::new(escape, self.text.len()));
        }
        self.text.clear();
        reserve(CodecId::BWT, &mut self.text, raw.len())?;
        host.append(&mut self.text, raw);
        Ok(Header::new(0, raw.len()))
    }
}

/// Decodes the first `out.len()` of `raw_length_bytes` bytes.
fn decode_prefix_of(
    host: Host,
    state: &mut BwtState,
    params: &Params,
    data: &[u8],
    raw_length_bytes: usize,
    out: &mut [u8],
) -> Result<()> {
    let header = Header::from_params(params, raw_length_bytes as u64)?;
    let reduced = header.reduced_bytes as usize;
    let data = read_starts(data, reduced, &mut state.starts)?;
    let text = &mut state.text;
    if reduced > text.capacity() {
        text.clear();
    }
    reserve(CodecId::BWT, text, reduced.saturating_sub(text.len()))?;
    host.resize(text, reduced);
    stream::decode(host, model(&mut state.model)?, data, text)
        .map_err(|error| stream_error(&error, raw_length_bytes))?;
    let inverse = &mut state.inverse;
    inverse
        .prepare(host, text, state.starts[0])
        .ok_or_else(|| out_of_memory(Inverse::memory_bytes(reduced as u64)))?;
    if reduced == raw_length_bytes {
        inverse.follow(host, &state.starts, reduced, out);
        return Ok(());
    }
    let prefix = out.len() < raw_length_bytes;
    // The length that a prefix usually needs; escaped bytes may require more.
    let mut needed = if prefix { (out.len() + out.len() / 16 + 64).min(reduced) } else { reduced };
    loop {
        inverse.follow(host, &state.starts, reduced, &mut text[..needed]);
        let result = repeats::restore(
            host,
            &mut state.positions,
            &text[..needed],
            header.escape,
            raw_length_bytes,
            out,
        );
        match result {
            Err(repeats::RepeatError::Truncated) if needed < reduced => needed = reduced,
            Err(repeats::RepeatError::OutOfMemory) => {
                return Err(out_of_memory(PositionTable::memory_bytes(
                    raw_length_bytes as u64,
                )));
            }
            Err(_) => return Err(damaged("repeats do not fit in the block")),
            Ok(()) => return Ok(()),
        }
    }
}

/// Reads the chain starts at the front of `data` and returns the rest.
fn read_starts<'a>(data: &'a [u8], reduced: usize, starts: &mut Vec<ChainRow>) -> Result<&'a [u8]> {
    let (rows, rest) = data
        .split_at_checked(transform::chain_count(reduced) * ROW_BYTES)
        .ok_or(damaged("too short for its rows"))?;
    let (rows, _) = rows.as_chunks::<ROW_BYTES>();
    starts.clear();
    starts.extend(rows.iter().map(|&row| ChainRow::from_le_bytes(row)));
    if starts
        .iter()
        .all(|&row| (1..=reduced).contains(&(row as usize)))
    {
        Ok(rest)
    } else {
        Err(damaged("row outside the block"))
    }
}

impl Header {
    fn new(escape: u8, reduced_bytes: usize) -> Self {
        Self {
            escape,
            // Blocks are at most 2^30 bytes.
            reduced_bytes: reduced_bytes as u32,
        }
    }

    fn to_params(self) -> Params {
        let [a, b, c, d] = self.reduced_bytes.to_le_bytes();
        Params::from_array([self.escape, a, b, c, d])
    }

    fn from_params(params: &Params, raw_length_bytes: u64) -> Result<Self> {
        let [escape, a, b, c, d] = params.to_array()?;
        let reduced_bytes = u32::from_le_bytes([a, b, c, d]);
        if !(1..=raw_length_bytes).contains(&u64::from(reduced_bytes)) {
            return Err(Error::Description {
                field: "bwt reduced length",
                value: u64::from(reduced_bytes),
            });
        }
        if u64::from(reduced_bytes) == raw_length_bytes && escape != 0 {
            return Err(Error::Description {
                field: "bwt escape byte of a block without repeats",
                value: u64::from(escape),
            });
        }
        Ok(Self {
            escape,
            reduced_bytes,
        })
    }
}

fn stream_error(error: &stream::StreamError, raw_length_bytes: usize) -> Error {
    match error {
        stream::StreamError::Truncated => damaged("truncated"),
        stream::StreamError::TooLong => damaged("bytes after the end"),
        stream::StreamError::RunTooLong => Error::Length {
            codec: CodecId::BWT,
            expected_bytes: raw_length_bytes as u64,
            found_bytes: raw_length_bytes as u64 + 1,
        },
    }
}

fn out_of_memory(wanted_bytes: u64) -> Error {
    Error::OutOfMemory {
        codec: CodecId::BWT,
        wanted_bytes,
    }
}

fn damaged(cause: &'static str) -> Error {
    Error::Damaged {
        codec: CodecId::BWT,
        cause,
    }
}

#[cfg(test)]
mod tests;
