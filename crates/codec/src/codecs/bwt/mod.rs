//! Block sorting. Long repeats are taken out (`repeats`), the rest is sorted by context
//! (`transform`: Burrows and Wheeler 1994), and the runs of what comes of that are coded with a mixing
//! model (`runs`). Denser than dictionary coders on text and source code at a fraction of their time;
//! opening takes about as long as squeezing.
//!
//! Flow of a block: `repeats::take_out` → `transform::forward` → `stream::encode`, and back by
//! `stream::decode` → `inverse` → `repeats::put_back`.
//!
//! Payload: the rows where the text's chains start (`transform::Row`, four bytes each, little-endian,
//! as many as the kept length says), then the coded runs. Parameters: the escape byte of `repeats`, and the
//! kept length (four bytes, little-endian), which is the raw length when no repeats were taken out.
//!
//! `docs/codec-bwt.md` says all that a decoder must know, and `tests/reference/bwt.rs` is one written from it.

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
use repeats::Places;
use runs::RunModel;
use transform::Row;

use crate::codec::{Codec, CodecDescription, OnIncompressible, checked_level, reserve};
use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// Repeats must save 1/32 of a block: putting them back costs time at each reading.
const REPEATS_SAVING_LOG: u32 = 5;
/// Size of a row in the payload.
const ROW_BYTES: usize = size_of::<Row>();

/// Block sorting.
pub(crate) struct Bwt;

impl CodecId {
    /// Block sorting with a mixing model.
    pub const BWT: Self = Self(7);
}

/// Memory that is reused from block to block.
#[derive(Default)]
pub(crate) struct BwtState {
    /// The text without its repeats, and its transform: each replaces the other.
    text: Vec<u8>,
    suffixes: Vec<i32>,
    starts: Vec<Row>,
    places: Places,
    inverse: Inverse,
    model: Option<RunModel>,
}

/// What a decoder must know before it can begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header {
    escape: u8,
    /// Length of the text without its repeats, 1 to the raw length.
    kept_bytes: u32,
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
        let state = workspace.large_state::<BwtState>(CodecId::BWT);
        let header = state.take_out_repeats(raw)?;
        transform::forward(&mut state.text, &mut state.suffixes, &mut state.starts)
            .ok_or_else(|| out_of_memory(4 * raw.len() as u64))?;
        // What is not smaller than raw is thrown away: no need to finish it.
        let limit = out.len() + raw.len();
        let starts_bytes = state.starts.len() * ROW_BYTES;
        reserve(
            CodecId::BWT,
            out,
            raw.len() + starts_bytes + stream::ROOM_BYTES,
        )?;
        for start in &state.starts {
            out.extend_from_slice(&start.to_le_bytes());
        }
        // `encode_block` sees by the length that this did not pay.
        let model = model(&mut state.model)?;
        let _ = stream::encode(model, &state.text, out, limit);
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
        open(
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
        open(
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
        suffixes + text + Places::memory_bytes(raw_length_bytes) + model_memory_bytes()
    }

    fn decode_memory_bytes(&self, raw_length_bytes: u64, params: &Params) -> u64 {
        let kept = Header::from_params(params, raw_length_bytes)
            .map_or(raw_length_bytes, |header| u64::from(header.kept_bytes));
        let places = match kept < raw_length_bytes {
            true => Places::memory_bytes(raw_length_bytes),
            false => 0,
        };
        kept + Inverse::memory_bytes(kept) + places + model_memory_bytes()
    }

    fn is_slow_to_decode(&self) -> bool {
        true
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Confirm
    }
}

/// The model, made when it is first needed.
fn model(cached: &mut Option<RunModel>) -> Result<&mut RunModel> {
    if cached.is_none() {
        *cached = RunModel::new();
    }
    cached
        .as_mut()
        .ok_or_else(|| out_of_memory(model_memory_bytes()))
}

/// Predictors, trees, chains.
fn model_memory_bytes() -> u64 {
    RunModel::MEMORY_BYTES as u64 + (64 << 10)
}

impl BwtState {
    /// Puts `raw` into `text`, without its repeats if that pays.
    fn take_out_repeats(&mut self, raw: &[u8]) -> Result<Header> {
        let escape = repeats::rarest_byte(raw);
        let limit_bytes = raw.len() - (raw.len() >> REPEATS_SAVING_LOG);
        if repeats::take_out(&mut self.places, raw, escape, limit_bytes, &mut self.text) {
            return Ok(Header::new(escape, self.text.len()));
        }
        self.text.clear();
        reserve(CodecId::BWT, &mut self.text, raw.len())?;
        self.text.extend_from_slice(raw);
        Ok(Header::new(0, raw.len()))
    }
}

/// Opens the first `out.len()` of `raw_length_bytes` bytes.
fn open(
    state: &mut BwtState,
    params: &Params,
    data: &[u8],
    raw_length_bytes: usize,
    out: &mut [u8],
) -> Result<()> {
    let header = Header::from_params(params, raw_length_bytes as u64)?;
    let kept = header.kept_bytes as usize;
    let data = read_starts(data, kept, &mut state.starts)?;
    let text = &mut state.text;
    if kept > text.capacity() {
        text.clear();
    }
    reserve(CodecId::BWT, text, kept.saturating_sub(text.len()))?;
    text.resize(kept, 0);
    stream::decode(model(&mut state.model)?, data, text)
        .map_err(|damage| stream_error(&damage, raw_length_bytes))?;
    let inverse = &mut state.inverse;
    inverse
        .prepare(text, state.starts[0])
        .ok_or_else(|| out_of_memory(Inverse::memory_bytes(kept as u64)))?;
    if kept == raw_length_bytes {
        inverse.walk(&state.starts, kept, out);
        return Ok(());
    }
    let prefix = out.len() < raw_length_bytes;
    // What a prefix usually needs; escaped bytes may make it more.
    let mut needed = match prefix {
        true => (out.len() + out.len() / 16 + 64).min(kept),
        false => kept,
    };
    loop {
        inverse.walk(&state.starts, kept, &mut text[..needed]);
        let result = repeats::put_back(
            &mut state.places,
            &text[..needed],
            header.escape,
            raw_length_bytes,
            out,
        );
        match result {
            Err(repeats::Damage::Truncated) if needed < kept => needed = kept,
            Err(repeats::Damage::OutOfMemory) => {
                return Err(out_of_memory(Places::memory_bytes(raw_length_bytes as u64)));
            }
            Err(_) => return Err(damaged("repeats do not fit the block")),
            Ok(()) => return Ok(()),
        }
    }
}

/// Takes the chain starts from the front of `data` and returns the rest.
fn read_starts<'a>(data: &'a [u8], kept: usize, starts: &mut Vec<Row>) -> Result<&'a [u8]> {
    let (rows, rest) = data
        .split_at_checked(transform::chain_count(kept) * ROW_BYTES)
        .ok_or(damaged("no room for its rows"))?;
    let (rows, _) = rows.as_chunks::<ROW_BYTES>();
    starts.clear();
    starts.extend(rows.iter().map(|&row| Row::from_le_bytes(row)));
    match starts
        .iter()
        .all(|&row| (1..=kept).contains(&(row as usize)))
    {
        true => Ok(rest),
        false => Err(damaged("a row outside of the block")),
    }
}

impl Header {
    fn new(escape: u8, kept_bytes: usize) -> Self {
        Self {
            escape,
            // Blocks are at most 2^30 bytes.
            kept_bytes: kept_bytes as u32,
        }
    }

    fn to_params(self) -> Params {
        let [a, b, c, d] = self.kept_bytes.to_le_bytes();
        Params::from_array([self.escape, a, b, c, d])
    }

    fn from_params(params: &Params, raw_length_bytes: u64) -> Result<Self> {
        let [escape, a, b, c, d] = params.to_array()?;
        let kept_bytes = u32::from_le_bytes([a, b, c, d]);
        if !(1..=raw_length_bytes).contains(&u64::from(kept_bytes)) {
            return Err(Error::Description {
                field: "bwt kept length",
                value: u64::from(kept_bytes),
            });
        }
        Ok(Self { escape, kept_bytes })
    }
}

fn stream_error(damage: &stream::Damage, raw_length_bytes: usize) -> Error {
    match damage {
        stream::Damage::Truncated => damaged("ends too early"),
        stream::Damage::TooLong => damaged("bytes after the end"),
        stream::Damage::RunTooLong => Error::Length {
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
