//! What one component of the model remembers.

use super::header::Component;
use super::table;
use super::tables::{Tables, clamp_weight};
use crate::error::Result;

/// Tables and registers of one component; which it uses depends on its kind.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Predictions, weights, or places of contexts.
    pub counters: Vec<u32>,
    /// Bit histories in rows of 16, or the buffer of a match model.
    pub bytes: Vec<u8>,
    /// Weights of a two-input mixer.
    pub weights: Vec<u16>,
    /// The largest count of a counter: it stops the rate from falling further.
    pub limit: u32,
    /// The counter, row or state that was used for this bit.
    pub context: usize,
    /// The row of bit histories of this half byte.
    pub row: usize,
    /// Of a match model: length and distance of the match, the predicted bit, the place in the buffer, bits of this byte.
    pub length: u32,
    pub distance: u32,
    pub predicted: u32,
    pub place: u32,
    pub bits: u32,
}

impl Memory {
    /// Fresh memory for a component.
    pub(super) fn new(component: Component, tables: &Tables) -> Result<Memory> {
        let mut memory = Memory::default();
        match component {
            Component::Const { .. } | Component::Avg { .. } => {}
            Component::Cm { size_bits, limit } => {
                memory.counters = table(1 << size_bits, 0x8000_0000)?;
                memory.limit = u32::from(limit) * 4;
            }
            Component::Icm { size_bits } => {
                memory.bytes = table(64 << size_bits, 0)?;
                memory.counters = (0..=255).map(|state| tables.initial(state)).collect();
            }
            Component::Match {
                size_bits,
                buffer_bits,
            } => {
                memory.counters = table(1 << size_bits, 0)?;
                memory.bytes = table(1 << buffer_bits, 0)?;
                if let Some(first) = memory.bytes.first_mut() {
                    *first = 1;
                }
            }
            Component::Mix2 { size_bits, .. } => memory.weights = table(1 << size_bits, 32768)?,
            Component::Mix {
                size_bits, count, ..
            } => {
                memory.counters = table(count << size_bits, 65536 / count as u32)?;
            }
            Component::Isse { size_bits, .. } => {
                memory.bytes = table(64 << size_bits, 0)?;
                let weights = |state| {
                    let stretched = tables.stretch(tables.initial(state) >> 8);
                    [1 << 15, clamp_weight(stretched * 1024) as u32]
                };
                memory.counters = (0..=255).flat_map(weights).collect();
            }
            Component::Sse {
                size_bits,
                start,
                limit,
                ..
            } => {
                let row: Vec<u32> = (0..32)
                    .map(|step| (tables.squash(step * 64 - 992) as u32) << 17 | u32::from(start))
                    .collect();
                memory.counters = table(32 << size_bits, 0)?;
                for counters in memory.counters.as_chunks_mut::<32>().0 {
                    counters.copy_from_slice(&row);
                }
                memory.limit = u32::from(limit) * 4;
            }
        }
        Ok(memory)
    }

    /// Entry `index` of the counters, wrapped into the table.
    #[inline]
    pub(super) fn counter(&mut self, index: usize) -> &mut u32 {
        let mask = self.counters.len() - 1;
        &mut self.counters[index & mask]
    }

    /// Byte `index` of the bytes, wrapped into the table.
    #[inline]
    pub(super) fn byte(&self, index: u32) -> u8 {
        self.bytes[index as usize & (self.bytes.len() - 1)]
    }

    /// Finds or makes the row of bit histories for a context: of three candidates the one with the right check byte, else the
    /// one that was used least.
    pub(super) fn find_row(&mut self, size_bits: u32, context: u32) -> usize {
        const ROW_BYTES: usize = 16;
        let check = context.checked_shr(size_bits).unwrap_or(0) as u8;
        let first = (context as usize).wrapping_mul(ROW_BYTES) & (self.bytes.len() - ROW_BYTES);
        let rows = [first, first ^ 16, first ^ 32];
        if let Some(row) = rows.into_iter().find(|&row| self.bytes[row] == check) {
            return row;
        }
        let [a, b, c] = rows.map(|row| self.bytes[row + 1]);
        let row = match () {
            () if a <= b && a <= c => rows[0],
            () if b < c => rows[1],
            () => rows[2],
        };
        self.bytes[row..row + ROW_BYTES].fill(0);
        self.bytes[row] = check;
        row
    }
}
