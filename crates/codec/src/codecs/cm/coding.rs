//! Runs a segment of a block through a model, bit by bit, in either direction.

#[cfg(target_arch = "x86_64")]
use super::lanes::Avx2;
use super::lanes::{Lanes, Plain};
use super::model::Model;
use super::predictor::{BitModel, Predictor};
use super::table::TableMemory;
use crate::arithmetic::{BinaryCoder, Decoder, Encoder};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::id::CodecId;

/// The bytes between two check-ins, at 0.5 to 3 MB/s.
const PIECE_BYTES: usize = 256;

/// A segment that is encoded or decoded.
pub(super) trait Segment: Send {
    /// The bytes of the segment that are wanted, at most all of it.
    fn wanted_bytes(&self) -> usize;

    /// Codes a decision, as `BinaryCoder::code` does.
    fn code(&mut self, bit: bool, probability: u32) -> bool;

    /// The byte at `index` when it is known in advance, else any.
    fn byte(&self, index: usize) -> u8;

    /// Stores the byte at `index`.
    fn put(&mut self, index: usize, byte: u8);

    /// The first `length` bytes.
    fn history(&self, length: usize) -> &[u8];

    /// Whether no more can be coded.
    fn is_over(&self) -> bool;
}

/// A segment that is encoded.
pub(super) struct Encoding<'a> {
    raw: &'a [u8],
    encoder: Encoder<'a>,
}

impl<'a> Encoding<'a> {
    pub(super) fn new(raw: &'a [u8], out: &'a mut Vec<u8>) -> Self {
        let encoder = Encoder::new(out);
        Self { raw, encoder }
    }

    pub(super) fn finish(self) {
        self.encoder.finish();
    }
}

impl Segment for Encoding<'_> {
    fn wanted_bytes(&self) -> usize {
        self.raw.len()
    }

    #[inline(always)]
    fn code(&mut self, bit: bool, probability: u32) -> bool {
        self.encoder.code(bit, probability)
    }

    #[inline(always)]
    fn byte(&self, index: usize) -> u8 {
        self.raw[index]
    }

    #[inline(always)]
    fn put(&mut self, _index: usize, _byte: u8) {}

    #[inline(always)]
    fn history(&self, length: usize) -> &[u8] {
        &self.raw[..length]
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        false
    }
}

/// A segment that is decoded.
pub(super) struct Decoding<'a, 'd> {
    out: &'a mut [u8],
    decoder: Decoder<'d>,
}

impl<'a, 'd> Decoding<'a, 'd> {
    pub(super) fn new(data: &'d [u8], out: &'a mut [u8]) -> Self {
        let decoder = Decoder::new(data);
        Self { out, decoder }
    }

    /// Whether the data ended too early, or has bytes after its end.
    pub(super) fn check(&self, is_whole: bool) -> Result<()> {
        if self.decoder.is_overdrawn() {
            return Err(damaged("truncated"));
        }
        if is_whole && !self.decoder.is_exhausted() {
            return Err(damaged("bytes after the end"));
        }
        Ok(())
    }
}

impl Segment for Decoding<'_, '_> {
    fn wanted_bytes(&self) -> usize {
        self.out.len()
    }

    #[inline(always)]
    fn code(&mut self, bit: bool, probability: u32) -> bool {
        self.decoder.code(bit, probability)
    }

    #[inline(always)]
    fn byte(&self, _index: usize) -> u8 {
        0
    }

    #[inline(always)]
    fn put(&mut self, index: usize, byte: u8) {
        self.out[index] = byte;
    }

    #[inline(always)]
    fn history(&self, length: usize) -> &[u8] {
        &self.out[..length]
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.decoder.is_overdrawn()
    }
}

pub(super) fn damaged(cause: &'static str) -> Error {
    Error::Damaged {
        codec: CodecId::CM,
        cause,
    }
}

/// Codes a segment with a new model.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn run<S: Segment>(
    host: Host,
    memory: &mut TableMemory,
    model: Model,
    segment: &mut S,
) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if let Some(lanes) = Avx2::detect() {
        return with_lanes(lanes, host, memory, model, segment);
    }
    with_lanes(Plain, host, memory, model, segment)
}

fn with_lanes<L: Lanes, S: Segment>(
    lanes: L,
    host: Host,
    memory: &mut TableMemory,
    model: Model,
    segment: &mut S,
) -> Result<()> {
    let table = memory.table(host, model.lines_log());
    let table = table.ok_or(Error::OutOfMemory {
        codec: CodecId::CM,
        wanted_bytes: model.memory_bytes(),
    })?;
    // The numbers of contexts, inputs, groups of weights, and match models, by level and segments.
    // Half a block has fewer repeats: a second match model and a third group make 24 releases of
    // typescript 5 percent smaller in two segments; they take a fifth more time.
    lanes.compile_for(|| match (model.level, model.segments()) {
        (1, 1) => code_all(
            host,
            Predictor::<L, 8, 16, 2, 1>::new(lanes, table, model),
            segment,
        ),
        (1, _) => code_all(
            host,
            Predictor::<L, 8, 16, 3, 2>::new(lanes, table, model),
            segment,
        ),
        (2, _) => code_all(
            host,
            Predictor::<L, 11, 24, 3, 2>::new(lanes, table, model),
            segment,
        ),
        _ => code_all(
            host,
            Predictor::<L, 16, 24, 3, 2>::new(lanes, table, model),
            segment,
        ),
    });
    Ok(())
}

#[inline(always)]
fn code_all<M: BitModel, S: Segment>(host: Host, mut model: M, segment: &mut S) {
    for index in 0..segment.wanted_bytes() {
        if index.is_multiple_of(PIECE_BYTES) {
            (host.check_in)();
        }
        if segment.is_over() {
            return;
        }
        if !code_flag(&mut model, segment, index) {
            code_byte(&mut model, segment, index);
        }
    }
}

/// Codes a byte by its flag; whether that was possible.
#[inline(always)]
fn code_flag<M: BitModel, S: Segment>(model: &mut M, segment: &mut S, index: usize) -> bool {
    let Some(predicted) = model.predicted_byte() else {
        return false;
    };
    let is_predicted = segment.byte(index) == predicted;
    if segment.code(is_predicted, model.predict_flag()) {
        segment.put(index, predicted);
        model.accept_byte(segment.history(index + 1));
        return true;
    }
    model.reject_byte(segment.history(index));
    false
}

/// Codes a byte, bit by bit.
#[inline(always)]
fn code_byte<M: BitModel, S: Segment>(model: &mut M, segment: &mut S, index: usize) {
    let wanted = u32::from(segment.byte(index));
    let mut byte = 0;
    for shift in (1..8).rev() {
        let bit = u32::from(segment.code(wanted >> shift & 1 != 0, model.predict()));
        model.update(bit);
        byte = byte << 1 | bit;
    }
    let bit = u32::from(segment.code(wanted & 1 != 0, model.predict()));
    segment.put(index, (byte << 1 | bit) as u8);
    model.update_byte(bit, segment.history(index + 1));
}
