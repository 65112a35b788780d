//! The model of one block: it predicts the bits of a byte and updates its components with them.

use super::component::bit::{BitPosition, Contexts, Predictions};
use super::component::unit::{COMPONENTS_MAX, ModelUnit};
use super::header::Header;
use super::machine::{Machine, RunEnd};
use super::tables::Tables;
#[cfg(target_arch = "x86_64")]
use crate::cpu::Avx2;
use refrain_codec::Result;

pub(crate) trait BitCoder {
    /// Decodes or encodes the next bit. A one has `probability` / 65536.
    fn code(&mut self, probability: u32) -> Result<usize>;
}

/// The components of one block, and the program that computes their contexts.
pub(crate) struct Predictor {
    tables: Tables,
    units: Vec<ModelUnit>,
    predictions: Predictions,
    /// The index of the last component, whose prediction is used.
    last: u8,
    contexts: Contexts,
    count: usize,
    machine: Machine,
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
}

/// The number of instructions that HCOMP may execute per byte. Known programs need a few hundred.
const STEPS_PER_BYTE: u64 = 4096;

impl Predictor {
    pub(crate) fn new(header: &Header) -> Result<Predictor> {
        let tables = Tables::new();
        let (units, predictions) = ModelUnit::all(&header.components, &tables)?;
        let count = header.components.len().min(COMPONENTS_MAX);
        Ok(Predictor {
            tables,
            units,
            predictions,
            last: count.saturating_sub(1) as u8,
            contexts: [0; 256],
            count,
            machine: Machine::new(&header.program, header.hash_bits, header.memory_bits)?,
            #[cfg(target_arch = "x86_64")]
            avx2: Avx2::detect(),
        })
    }

    /// Decodes or encodes the next byte, whose bits `coder` provides.
    ///
    /// # Errors
    /// The errors of `coder`; `Damaged` if the program that computes contexts executes an invalid
    /// instruction or exceeds its limit.
    pub(crate) fn code_byte(&mut self, coder: &mut impl BitCoder) -> Result<u8> {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.run(|| self.code_whole_byte(coder));
        }
        self.code_whole_byte(coder)
    }

    #[inline(always)]
    fn code_whole_byte(&mut self, coder: &mut impl BitCoder) -> Result<u8> {
        let byte = self.code_bits(coder)?;
        self.end_byte(byte)?;
        Ok(byte)
    }

    #[inline(always)]
    fn code_bits(&mut self, coder: &mut impl BitCoder) -> Result<u8> {
        let mut partial = 1;
        for nibble_index in 0..2 {
            for unit in &mut self.units {
                unit.begin_nibble(&self.contexts, partial);
            }
            let mut position = BitPosition {
                partial,
                nibble: 1,
                first_nibble: if nibble_index == 0 { 0 } else { partial << 4 },
                shift: 7 - 4 * nibble_index,
            };
            for bit in 0..4 {
                // Prefetches both nibbles that may follow. Prefetching all four one bit earlier
                // takes 4 % more time.
                if nibble_index == 0 && bit == 3 {
                    self.prefetch(position.partial * 2);
                    self.prefetch(position.partial * 2 + 1);
                }
                let bit = coder.code(self.predict(position) * 2 + 1)?;
                // Compiled for each value of the bit: with a correctly predicted branch, updating
                // does not wait for the bit.
                if bit == 0 {
                    self.learn(position, 0);
                } else {
                    self.learn(position, 1);
                }
                position.partial = position.partial * 2 + bit as u32;
                position.nibble = position.nibble * 2 + bit;
                position.shift = position.shift.saturating_sub(1);
            }
            partial = position.partial;
        }
        Ok(partial as u8)
    }

    /// Returns the probability of a one, in units of 1/32768.
    #[inline(always)]
    fn predict(&mut self, position: BitPosition) -> u32 {
        for unit in &mut self.units {
            unit.predict(
                position,
                &self.contexts,
                &mut self.predictions,
                &self.tables,
            );
        }
        self.tables.squash(self.predictions[usize::from(self.last)]) as u32
    }

    #[inline(always)]
    fn learn(&mut self, position: BitPosition, bit: usize) {
        for unit in &mut self.units {
            unit.learn(position, bit, &self.predictions, &self.tables);
        }
    }

    #[inline(always)]
    fn prefetch(&self, partial: u32) {
        for unit in &self.units {
            unit.prefetch(&self.contexts, partial);
        }
    }

    fn end_byte(&mut self, byte: u8) -> Result<()> {
        for unit in &mut self.units {
            unit.end_byte(byte, &self.contexts);
        }
        self.compute_contexts(byte)?;
        self.prefetch(1);
        Ok(())
    }

    fn compute_contexts(&mut self, byte: u8) -> Result<()> {
        self.machine.allow_steps(STEPS_PER_BYTE);
        // The output of HCOMP is discarded.
        let mut discarded = Vec::new();
        let mut end = self.machine.start(u32::from(byte), &mut discarded, 1)?;
        while end == RunEnd::OutputFull {
            discarded.clear();
            end = self.machine.resume(&mut discarded, 1)?;
        }
        for (index, context) in self.contexts[..self.count].iter_mut().enumerate() {
            *context = self.machine.hash(index);
        }
        Ok(())
    }
}
