//! The model: what the components say of the next bit, and what they learn from it.

use super::component::Memory;
use super::header::{Component, Header};
use super::machine::{Machine, Run};
use super::tables::{Tables, clamp_stretched, clamp_weight};
use super::{table, wrong};
use crate::error::Result;

/// The components of one block with their memories, and the program that computes their contexts.
pub(super) struct Predictor {
    tables: Tables,
    components: Vec<Component>,
    memories: Vec<Memory>,
    /// What each component predicts, in the logistic domain.
    predictions: Vec<i32>,
    /// The context of each component.
    contexts: Vec<u32>,
    machine: Machine,
    /// The bits of this byte behind a leading one.
    partial: u32,
    /// The same, in the form that picks histories in a row: the second half byte knows the first.
    partial_in_row: u32,
}

/// Instructions that HCOMP may execute for each byte. Programs that exist need some hundred.
const STEPS_PER_BYTE: u64 = 4096;

impl Predictor {
    pub(super) fn new(header: &Header) -> Result<Predictor> {
        let tables = Tables::new();
        let memories = header
            .components
            .iter()
            .map(|&component| Memory::new(component, &tables));
        let memories: Result<Vec<Memory>> = memories.collect();
        let count = header.components.len();
        let constant = |component: &Component| match *component {
            Component::Const { value } => (i32::from(value) - 128) * 4,
            _ => 0,
        };
        Ok(Predictor {
            memories: memories?,
            predictions: header.components.iter().map(constant).collect(),
            contexts: table(count, 0)?,
            components: header.components.clone(),
            machine: Machine::new(header.program.clone(), header.hash_bits, header.memory_bits)?,
            tables,
            partial: 1,
            partial_in_row: 1,
        })
    }

    /// The probability that the next bit is a one, of 32768.
    pub(super) fn predict(&mut self) -> u32 {
        for index in 0..self.components.len() {
            if let Some(prediction) = self.predict_one(index) {
                self.predictions[index] = prediction;
            }
        }
        let last = self.predictions.last().copied().unwrap_or(0);
        self.tables.squash(clamp_stretched(last)) as u32
    }

    fn predict_one(&mut self, index: usize) -> Option<i32> {
        let (tables, predictions) = (&self.tables, &self.predictions);
        let (context, partial) = (self.contexts[index], self.partial);
        let memory = &mut self.memories[index];
        let at_half_byte = partial == 1 || partial & 0xF0 == 16;
        let in_row = self.partial_in_row as usize & 15;
        Some(match self.components[index] {
            Component::Const { .. } => return None,
            Component::Cm { .. } => {
                memory.context = (context ^ self.partial_in_row) as usize;
                tables.stretch(*memory.counter(memory.context) >> 17)
            }
            Component::Icm { size_bits } => {
                if at_half_byte {
                    let of_half = context.wrapping_add(16 * partial);
                    memory.row = memory.find_row(u32::from(size_bits) + 2, of_half);
                }
                memory.context = usize::from(memory.bytes[memory.row + in_row]);
                tables.stretch(memory.counters[memory.context] >> 8)
            }
            Component::Match { .. } => {
                if memory.length == 0 {
                    return Some(0);
                }
                let byte = memory.byte(memory.place.wrapping_sub(memory.distance));
                memory.predicted = u32::from(byte >> (7 - memory.bits) & 1);
                let confidence = 2048 / memory.length;
                match memory.predicted {
                    0 => tables.stretch(confidence),
                    _ => tables.stretch(32768 - confidence),
                }
            }
            Component::Avg {
                inputs: [a, b],
                weight,
            } => {
                let weight = i32::from(weight);
                (predictions[a] * weight + predictions[b] * (256 - weight)) >> 8
            }
            Component::Mix2 {
                inputs: [a, b],
                mask,
                ..
            } => {
                let row = context.wrapping_add(partial & u32::from(mask));
                memory.context = row as usize & (memory.weights.len() - 1);
                let weight = i32::from(memory.weights[memory.context]);
                (weight * predictions[a] + (65536 - weight) * predictions[b]) >> 16
            }
            Component::Mix {
                size_bits,
                first,
                count,
                mask,
                ..
            } => {
                let row = context.wrapping_add(partial & u32::from(mask)) as usize;
                memory.context = (row & ((1 << size_bits) - 1)) * count;
                let weights = &memory.counters[memory.context..memory.context + count];
                let pairs = weights.iter().zip(&predictions[first..first + count]);
                let sum = pairs.fold(0i32, |sum, (&weight, &input)| {
                    sum.wrapping_add((weight as i32 >> 8).wrapping_mul(input))
                });
                clamp_stretched(sum >> 8)
            }
            Component::Isse { size_bits, input } => {
                if at_half_byte {
                    let of_half = context.wrapping_add(16 * partial);
                    memory.row = memory.find_row(u32::from(size_bits) + 2, of_half);
                }
                memory.context = usize::from(memory.bytes[memory.row + in_row]);
                let [weight, bias] = pair(&memory.counters, memory.context);
                let sum = weight
                    .wrapping_mul(predictions[input])
                    .wrapping_add(bias.wrapping_mul(64));
                clamp_stretched(sum >> 16)
            }
            Component::Sse { input, .. } => {
                let row = context.wrapping_add(partial).wrapping_mul(32) as usize;
                let position = (predictions[input] + 992).clamp(0, 1983) as usize;
                let (step, weight) = (position >> 6, (position & 63) as u32);
                let low = *memory.counter(row + step) >> 10;
                let high = *memory.counter(row + step + 1) >> 10;
                // The nearer one learns.
                memory.context = row + step + (weight >> 5) as usize;
                tables.stretch((low * (64 - weight) + high * weight) >> 13)
            }
        })
    }

    /// Learns the bit that came.
    ///
    /// # Errors
    /// `Damaged` if the program that computes contexts does something invalid, or never ends.
    pub(super) fn update(&mut self, bit: usize) -> Result<()> {
        for index in 0..self.components.len() {
            self.update_one(index, bit);
        }
        self.partial = self.partial * 2 + bit as u32;
        let low = self.partial_in_row * 2 + bit as u32;
        match self.partial {
            256.. => {
                let byte = self.partial - 256;
                (self.partial, self.partial_in_row) = (1, 1);
                self.compute_contexts(byte)?;
            }
            16..32 => {
                self.partial_in_row = (self.partial_in_row & 15) << 5 | (bit as u32) << 4 | 1;
            }
            _ => self.partial_in_row = self.partial_in_row & 0x1F0 | low & 15,
        }
        Ok(())
    }

    fn compute_contexts(&mut self, byte: u32) -> Result<()> {
        self.machine.allow(STEPS_PER_BYTE);
        // What HCOMP puts out goes nowhere.
        let mut nowhere = Vec::new();
        let mut run = self.machine.start(byte, &mut nowhere, 1)?;
        while run == Run::Full {
            nowhere.clear();
            run = self.machine.go_on(&mut nowhere, 1)?;
        }
        for (index, context) in self.contexts.iter_mut().enumerate() {
            *context = self.machine.hash(index);
        }
        Ok(())
    }

    fn update_one(&mut self, index: usize, bit: usize) {
        let (tables, predictions) = (&self.tables, &self.predictions);
        let memory = &mut self.memories[index];
        let target = bit as i32 * 32767;
        let error = target - tables.squash(clamp_stretched(predictions[index]));
        let in_row = self.partial_in_row as usize & 15;
        match self.components[index] {
            Component::Const { .. } | Component::Avg { .. } => {}
            Component::Cm { .. } | Component::Sse { .. } => {
                let limit = memory.limit;
                let counter = memory.counter(memory.context);
                let count = *counter & 0x3FF;
                let error = target - (*counter >> 17) as i32;
                let change = error.wrapping_mul(tables.rate[count as usize]) & -1024;
                *counter = counter
                    .wrapping_add(change as u32)
                    .wrapping_add(u32::from(count < limit));
            }
            Component::Icm { .. } => {
                let state = &mut memory.bytes[memory.row + in_row];
                let counter = &mut memory.counters[usize::from(*state)];
                *state = tables.next(*state, bit);
                let change = (target - (*counter >> 8) as i32) >> 2;
                *counter = counter.wrapping_add(change as u32);
            }
            Component::Match { buffer_bits, .. } => {
                update_match(memory, self.contexts[index], buffer_bits, bit as u32);
            }
            Component::Mix2 {
                inputs: [a, b],
                rate,
                ..
            } => {
                let error = (error * i32::from(rate)) >> 5;
                let weight = &mut memory.weights[memory.context];
                let change = (error * (predictions[a] - predictions[b]) + (1 << 12)) >> 13;
                *weight = (i32::from(*weight) + change).clamp(0, 65535) as u16;
            }
            Component::Mix {
                first, count, rate, ..
            } => {
                let error = (error * i32::from(rate)) >> 4;
                let weights = &mut memory.counters[memory.context..memory.context + count];
                for (weight, &input) in weights.iter_mut().zip(&predictions[first..first + count]) {
                    let change = (error.wrapping_mul(input).wrapping_add(1 << 12)) >> 13;
                    *weight = clamp_weight((*weight as i32).wrapping_add(change)) as u32;
                }
            }
            Component::Isse { input, .. } => {
                let [weight, bias] = pair(&memory.counters, memory.context);
                let change = (error * predictions[input] + (1 << 12)) >> 13;
                let place = memory.context * 2;
                memory.counters[place] = clamp_weight(weight + change) as u32;
                memory.counters[place + 1] = clamp_weight(bias + ((error + 16) >> 5)) as u32;
                memory.bytes[memory.row + in_row] = tables.next(memory.context as u8, bit);
            }
        }
    }

    /// Forgets nothing, but begins a new segment at a whole byte.
    pub(super) fn check_whole_byte(&self) -> Result<()> {
        match self.partial {
            1 => Ok(()),
            _ => Err(wrong("a segment ends inside a byte")),
        }
    }
}

/// The weights of a bit history.
fn pair(counters: &[u32], state: usize) -> [i32; 2] {
    [counters[state * 2] as i32, counters[state * 2 + 1] as i32]
}

fn update_match(memory: &mut Memory, context: u32, buffer_bits: u8, bit: u32) {
    const LENGTH_MAX: u32 = 255;
    if memory.predicted != bit {
        memory.length = 0;
    }
    let mask = memory.bytes.len() - 1;
    let byte = &mut memory.bytes[memory.place as usize & mask];
    *byte = byte.wrapping_mul(2) | bit as u8;
    memory.bits += 1;
    if memory.bits < 8 {
        return;
    }
    memory.bits = 0;
    memory.place = memory.place.wrapping_add(1) & (1u64 << buffer_bits).wrapping_sub(1) as u32;
    if memory.length == 0 {
        memory.distance = memory.place.wrapping_sub(*memory.counter(context as usize));
        if memory.distance as usize & mask != 0 {
            let back = |length: u32| memory.place.wrapping_sub(length + 1);
            let mut length = 0;
            while length < LENGTH_MAX
                && memory.byte(back(length))
                    == memory.byte(back(length).wrapping_sub(memory.distance))
            {
                length += 1;
            }
            memory.length = length;
        }
    } else {
        memory.length = (memory.length + 1).min(LENGTH_MAX);
    }
    let place = memory.place;
    *memory.counter(context as usize) = place;
}
