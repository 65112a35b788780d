//! The model of one block: what its components say of the bits of a byte, and the program that computes their contexts.

use super::component::bit::{At, Contexts, Predictions};
use super::component::unit::{COMPONENTS_MAX, Unit};
use super::header::Header;
use super::machine::{Machine, Run};
use super::tables::Tables;
#[cfg(target_arch = "x86_64")]
use crate::cpu::Avx2;
use refrain_codec::Result;

/// What decides bits, by a probability: decoder or encoder.
pub(crate) trait BitCoder {
    /// The next bit; `probability` of a one, of 65536.
    fn code(&mut self, probability: u32) -> Result<usize>;
}

/// The components of one block with their memories, and the program that computes their contexts.
pub(crate) struct Predictor {
    tables: Tables,
    units: Vec<Unit>,
    predictions: Predictions,
    /// The component that speaks for all.
    last: u8,
    contexts: Contexts,
    count: usize,
    machine: Machine,
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
}

/// Instructions that HCOMP may execute for each byte. Programs that exist need some hundred.
const STEPS_PER_BYTE: u64 = 4096;

impl Predictor {
    pub(crate) fn new(header: &Header) -> Result<Predictor> {
        let tables = Tables::new();
        let (units, predictions) = Unit::all(&header.components, &tables)?;
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

    /// The next byte, of which `coder` decides the bits.
    ///
    /// # Errors
    /// Those of `coder`; `Damaged` if the program that computes contexts does something invalid, or never ends.
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
        for half in 0..2 {
            for unit in &mut self.units {
                unit.begin_half(&self.contexts, partial);
            }
            let mut at = At {
                partial,
                in_half: 1,
                first_half: if half == 0 { 0 } else { partial << 4 },
                shift: 7 - 4 * half,
            };
            for bit in 0..4 {
                // Both half bytes that may follow. A bit earlier, all four: 4 % more time for twice the lines.
                if half == 0 && bit == 3 {
                    self.prefetch(at.partial * 2);
                    self.prefetch(at.partial * 2 + 1);
                }
                let bit = coder.code(self.predict(at) * 2 + 1)?;
                // Compiled twice: a jump that is guessed right does not wait for the bit.
                if bit == 0 {
                    self.learn(at, 0);
                } else {
                    self.learn(at, 1);
                }
                at.partial = at.partial * 2 + bit as u32;
                at.in_half = at.in_half * 2 + bit;
                at.shift = at.shift.saturating_sub(1);
            }
            partial = at.partial;
        }
        Ok(partial as u8)
    }

    /// The probability that the next bit is a one, of 32768.
    #[inline(always)]
    fn predict(&mut self, at: At) -> u32 {
        for unit in &mut self.units {
            unit.predict(at, &self.contexts, &mut self.predictions, &self.tables);
        }
        self.tables.squash(self.predictions[usize::from(self.last)]) as u32
    }

    #[inline(always)]
    fn learn(&mut self, at: At, bit: usize) {
        for unit in &mut self.units {
            unit.learn(at, bit, &self.predictions, &self.tables);
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
        self.machine.allow(STEPS_PER_BYTE);
        // What HCOMP puts out goes nowhere.
        let mut nowhere = Vec::new();
        let mut run = self.machine.start(u32::from(byte), &mut nowhere, 1)?;
        while run == Run::Full {
            nowhere.clear();
            run = self.machine.go_on(&mut nowhere, 1)?;
        }
        for (index, context) in self.contexts[..self.count].iter_mut().enumerate() {
            *context = self.machine.hash(index);
        }
        Ok(())
    }
}
