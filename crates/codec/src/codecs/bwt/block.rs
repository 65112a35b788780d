//! A block of either codec: repeats, transform and coded transform.

use super::coding::Coding;
use super::header::Header;
use super::inverse::Inverse;
use super::repeats::{self, PositionTable};
use super::stream::StreamError;
use super::transform::{self, ChainRow};
use crate::codec::reserve;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::params::Params;

/// Repeats are removed only if that saves 1/32 of a block: restoring them takes time at each read.
const REPEATS_SAVING_LOG: u32 = 5;
const ROW_BYTES: usize = size_of::<ChainRow>();

/// What a workspace retains.
pub(super) struct BlockState<C> {
    /// The text without its repeats, or its transform: each replaces the other.
    text: Vec<u8>,
    suffixes: Vec<i32>,
    starts: Vec<ChainRow>,
    positions: PositionTable,
    inverse: Inverse,
    coding: Option<C>,
}

impl<C> Default for BlockState<C> {
    fn default() -> Self {
        Self {
            text: Vec::new(),
            suffixes: Vec::new(),
            starts: Vec::new(),
            positions: PositionTable::default(),
            inverse: Inverse::default(),
            coding: None,
        }
    }
}

pub(super) fn encode_memory_bytes<C: Coding>(raw_length_bytes: u64) -> u64 {
    let suffixes = 4 * raw_length_bytes + transform::scratch_bytes(raw_length_bytes);
    let text = raw_length_bytes + 64;
    suffixes + text + PositionTable::memory_bytes(raw_length_bytes) + coding_bytes::<C>()
}

pub(super) fn decode_memory_bytes<C: Coding>(raw_length_bytes: u64, params: &Params) -> u64 {
    let reduced = Header::from_params(params, raw_length_bytes)
        .map_or(raw_length_bytes, |header| u64::from(header.reduced_bytes));
    let positions = if reduced < raw_length_bytes {
        PositionTable::memory_bytes(raw_length_bytes)
    } else {
        0
    };
    reduced + Inverse::memory_bytes(reduced) + positions + coding_bytes::<C>()
}

fn coding<C: Coding>(cached: &mut Option<C>) -> Result<&mut C> {
    if cached.is_none() {
        *cached = C::new();
    }
    cached
        .as_mut()
        .ok_or_else(|| out_of_memory::<C>(coding_bytes::<C>()))
}

fn coding_bytes<C: Coding>() -> u64 {
    C::MEMORY_BYTES as u64 + (64 << 10)
}

impl<C: Coding> BlockState<C> {
    pub(super) fn encode(&mut self, host: Host, raw: &[u8], out: &mut Vec<u8>) -> Result<Params> {
        let header = self.remove_repeats(host, raw)?;
        transform::forward(host, &mut self.text, &mut self.suffixes, &mut self.starts)
            .ok_or_else(|| out_of_memory::<C>(4 * raw.len() as u64))?;
        // Output that is not smaller than the block is discarded: no need to complete it.
        let limit = out.len() + raw.len();
        let starts_bytes = self.starts.len() * ROW_BYTES;
        reserve(C::ID, out, raw.len() + starts_bytes + C::OVERRUN_BYTES)?;
        for start in &self.starts {
            out.extend_from_slice(&start.to_le_bytes());
        }
        let coding = coding(&mut self.coding)?;
        // `encode_block` detects from the length that the codec did not make the block smaller.
        coding
            .encode(host, &self.text, &mut self.suffixes, out, limit)
            .ok_or_else(|| out_of_memory::<C>(coding_bytes::<C>()))?;
        Ok(header.to_params())
    }

    /// Sets `text` to `raw`, without its repeats if that pays.
    pub(super) fn remove_repeats(&mut self, host: Host, raw: &[u8]) -> Result<Header> {
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
        reserve(C::ID, &mut self.text, raw.len())?;
        host.append(&mut self.text, raw);
        Ok(Header::new(0, raw.len()))
    }

    /// Decodes the first `out.len()` of `raw_length_bytes` bytes.
    pub(super) fn decode_prefix(
        &mut self,
        host: Host,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let state = self;
        let raw_length_bytes =
            usize::try_from(raw_length_bytes).map_err(|_| out_of_memory::<C>(raw_length_bytes))?;
        let header = Header::from_params(params, raw_length_bytes as u64)?;
        let reduced = header.reduced_bytes as usize;
        let data = read_starts::<C>(data, reduced, &mut state.starts)?;
        let text = &mut state.text;
        if reduced > text.capacity() {
            text.clear();
        }
        reserve(C::ID, text, reduced.saturating_sub(text.len()))?;
        host.resize(text, reduced);
        coding(&mut state.coding)?
            .decode(host, data, text)
            .map_err(|error| stream_error::<C>(&error, raw_length_bytes))?;
        let inverse = &mut state.inverse;
        inverse
            .prepare(host, text, state.starts[0])
            .ok_or_else(|| out_of_memory::<C>(Inverse::memory_bytes(reduced as u64)))?;
        if reduced == raw_length_bytes {
            inverse.follow(host, &state.starts, reduced, out);
            return Ok(());
        }
        let prefix = out.len() < raw_length_bytes;
        // The length that a prefix usually needs; escaped bytes may require more.
        let mut needed =
            if prefix { (out.len() + out.len() / 16 + 64).min(reduced) } else { reduced };
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
                    return Err(out_of_memory::<C>(PositionTable::memory_bytes(
                        raw_length_bytes as u64,
                    )));
                }
                Err(_) => return Err(damaged::<C>("repeats do not fit in the block")),
                Ok(()) => return Ok(()),
            }
        }
    }
}

/// Reads the chain starts at the front of `data` and returns the rest.
fn read_starts<'a, C: Coding>(
    data: &'a [u8],
    reduced: usize,
    starts: &mut Vec<ChainRow>,
) -> Result<&'a [u8]> {
    let (rows, rest) = data
        .split_at_checked(transform::chain_count(reduced) * ROW_BYTES)
        .ok_or(damaged::<C>("too short for its rows"))?;
    let (rows, _) = rows.as_chunks::<ROW_BYTES>();
    starts.clear();
    starts.extend(rows.iter().map(|&row| ChainRow::from_le_bytes(row)));
    if starts
        .iter()
        .all(|&row| (1..=reduced).contains(&(row as usize)))
    {
        Ok(rest)
    } else {
        Err(damaged::<C>("row outside the block"))
    }
}

fn stream_error<C: Coding>(error: &StreamError, raw_length_bytes: usize) -> Error {
    match error {
        StreamError::Truncated => damaged::<C>("truncated"),
        StreamError::TooLong => damaged::<C>("bytes after the end"),
        StreamError::SymbolTwice => damaged::<C>("symbol twice in the alphabet"),
        StreamError::WrongState => damaged::<C>("wrong state at the end of a segment"),
        StreamError::RunTooLong => Error::Length {
            codec: C::ID,
            expected_bytes: raw_length_bytes as u64,
            found_bytes: raw_length_bytes as u64 + 1,
        },
    }
}

fn out_of_memory<C: Coding>(wanted_bytes: u64) -> Error {
    Error::OutOfMemory {
        codec: C::ID,
        wanted_bytes,
    }
}

pub(super) fn damaged<C: Coding>(cause: &'static str) -> Error {
    Error::Damaged {
        codec: C::ID,
        cause,
    }
}
