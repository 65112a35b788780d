//! Runs a block through the model, bit by bit, in either direction.

#[cfg(target_arch = "x86_64")]
use super::lanes::Avx2;
use super::lanes::{Lanes, Plain};
use super::model::Model;
use super::predictor::Predictor;
use super::table::TableMemory;
use crate::arithmetic::{BinaryCoder, Decoder, Encoder};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::id::CodecId;

/// The bytes between two check-ins, at 0.5 to 3 MB/s.
const PIECE_BYTES: usize = 256;

pub(crate) fn encode(
    host: Host,
    memory: &mut TableMemory,
    model: Model,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    with_predictor(host, memory, model, EncodeTask { host, raw, out })
}

/// Decodes `data` into `out`; returns the decoder at the position where it stopped.
pub(crate) fn decode<'d>(
    host: Host,
    memory: &mut TableMemory,
    model: Model,
    data: &'d [u8],
    out: &mut [u8],
) -> Result<Decoder<'d>> {
    with_predictor(host, memory, model, DecodeTask { host, data, out })?
}

pub(super) fn damaged(cause: &'static str) -> Error {
    Error::Damaged {
        codec: CodecId::CM,
        cause,
    }
}

trait ModelTask {
    type Output;

    fn run<L: Lanes, const C: usize, const I: usize, const S: usize, const M: usize>(
        self,
        predictor: Predictor<'_, L, C, I, S, M>,
    ) -> Self::Output;
}

/// Builds the model for this machine, and runs `task` with it.
fn with_predictor<J: ModelTask>(
    host: Host,
    memory: &mut TableMemory,
    model: Model,
    task: J,
) -> Result<J::Output> {
    #[cfg(target_arch = "x86_64")]
    if let Some(lanes) = Avx2::detect() {
        return with_lanes(lanes, host, memory, model, task);
    }
    with_lanes(Plain, host, memory, model, task)
}

fn with_lanes<L: Lanes, J: ModelTask>(
    lanes: L,
    host: Host,
    memory: &mut TableMemory,
    model: Model,
    task: J,
) -> Result<J::Output> {
    let table = memory.table(host, model.lines_log());
    let table = table.ok_or(Error::OutOfMemory {
        codec: CodecId::CM,
        wanted_bytes: model.memory_bytes(),
    })?;
    // The numbers of contexts, inputs, groups of weights, and match models, by level.
    Ok(match model.level {
        1 => lanes.compile_for(|| task.run(Predictor::<L, 8, 16, 2, 1>::new(lanes, table, model))),
        2 => lanes.compile_for(|| task.run(Predictor::<L, 11, 24, 3, 2>::new(lanes, table, model))),
        _ => lanes.compile_for(|| task.run(Predictor::<L, 16, 24, 3, 2>::new(lanes, table, model))),
    })
}

struct EncodeTask<'a> {
    host: Host,
    raw: &'a [u8],
    out: &'a mut Vec<u8>,
}

impl ModelTask for EncodeTask<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes, const C: usize, const I: usize, const S: usize, const M: usize>(
        self,
        mut predictor: Predictor<'_, L, C, I, S, M>,
    ) {
        let mut encoder = Encoder::new(self.out);
        for (index, &byte) in self.raw.iter().enumerate() {
            if index.is_multiple_of(PIECE_BYTES) {
                (self.host.check_in)();
            }
            if let Some(predicted) = predictor.predicted_byte() {
                if encoder.code(predicted == byte, predictor.predict_flag()) {
                    predictor.accept_byte(&self.raw[..=index]);
                    continue;
                }
                predictor.reject_byte(&self.raw[..index]);
            }
            let byte = u32::from(byte);
            for shift in (1..8).rev() {
                let bit = encoder.code(byte >> shift & 1 != 0, predictor.predict());
                predictor.update(u32::from(bit));
            }
            let bit = encoder.code(byte & 1 != 0, predictor.predict());
            predictor.update_byte(u32::from(bit), &self.raw[..=index]);
        }
        encoder.finish();
    }
}

struct DecodeTask<'a, 'd> {
    host: Host,
    data: &'d [u8],
    out: &'a mut [u8],
}

impl<'d> ModelTask for DecodeTask<'_, 'd> {
    type Output = Result<Decoder<'d>>;

    #[inline(always)]
    fn run<L: Lanes, const C: usize, const I: usize, const S: usize, const M: usize>(
        self,
        mut predictor: Predictor<'_, L, C, I, S, M>,
    ) -> Result<Decoder<'d>> {
        let mut decoder = Decoder::new(self.data);
        for index in 0..self.out.len() {
            if index.is_multiple_of(PIECE_BYTES) {
                (self.host.check_in)();
            }
            if decoder.is_overdrawn() {
                break;
            }
            if let Some(predicted) = predictor.predicted_byte() {
                if decoder.code(false, predictor.predict_flag()) {
                    self.out[index] = predicted;
                    predictor.accept_byte(&self.out[..=index]);
                    continue;
                }
                predictor.reject_byte(&self.out[..index]);
            }
            let mut byte = 0;
            for _ in 1..8 {
                let bit = u32::from(decoder.code(false, predictor.predict()));
                predictor.update(bit);
                byte = byte << 1 | bit;
            }
            let bit = u32::from(decoder.code(false, predictor.predict()));
            self.out[index] = (byte << 1 | bit) as u8;
            predictor.update_byte(bit, &self.out[..=index]);
        }
        if decoder.is_overdrawn() { Err(damaged("truncated")) } else { Ok(decoder) }
    }
}
