//! Parity of columns, and lost rows from it.
//!
//! The code is that of `reed-solomon-simd` at its high rate, after Lin, Chung and Han, *Novel
//! polynomial basis and its application to Reed-Solomon erasure codes*, 2014: systematic, over
//! GF(2^16), in O(n log n). As a matrix it is a Cauchy matrix whose columns are scaled, so any
//! `data_rows` slices of a column give the others; `docs/recovery.md` states it that way.

use std::fmt;

use reed_solomon_simd::Error;
use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{
    HighRateDecoder, HighRateEncoder, RateDecoder as _, RateEncoder as _,
};

/// All rows of a tile stay in the second cache while they are encoded.
const TILE_BYTES: usize = 3 << 19;
/// The code works on so many bytes at a time.
const UNIT_BYTES: usize = 64;

/// There is not enough parity to solve, or the rows do not fit the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotEnough;

impl fmt::Display for NotEnough {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("more slices are lost than there is parity for")
    }
}

impl std::error::Error for NotEnough {}

impl From<Error> for NotEnough {
    fn from(_: Error) -> Self {
        NotEnough
    }
}

/// The largest multiple of the unit for which a tile of all rows stays small, and which divides
/// widths that are multiples of powers of two.
fn tile_bytes(rows: usize, width: usize) -> usize {
    let widest = (TILE_BYTES / rows.max(1)).max(UNIT_BYTES);
    let power = 1 << widest.ilog2();
    width.min(power)
}

/// Computes the parity of columns.
pub struct ColumnEncoder {
    data_rows: usize,
    parity_rows: usize,
    encoder: HighRateEncoder<DefaultEngine>,
}

impl ColumnEncoder {
    /// Prepares for these numbers of rows.
    ///
    /// # Errors
    /// The code has no such numbers of rows.
    pub fn new(data_rows: usize, parity_rows: usize) -> Result<Self, NotEnough> {
        let engine = DefaultEngine::new();
        let encoder = HighRateEncoder::new(data_rows, parity_rows, UNIT_BYTES, engine, None)?;
        Ok(Self {
            data_rows,
            parity_rows,
            encoder,
        })
    }

    /// Computes the parity of neighboring columns. `data` has all data rows one after the other,
    /// each `width` bytes long, a multiple of 64; `parity` gets the parity rows in the same form.
    ///
    /// # Errors
    /// The lengths do not fit.
    pub fn encode(
        &mut self,
        data: &[u8],
        width: usize,
        parity: &mut [u8],
    ) -> Result<(), NotEnough> {
        let fits = data.len() == self.data_rows * width && parity.len() == self.parity_rows * width;
        if width == 0 || !fits {
            return Err(NotEnough);
        }
        let tile = tile_bytes(self.data_rows, width);
        let mut start = 0;
        while start < width {
            let end = width.min(start + tile);
            self.encoder
                .reset(self.data_rows, self.parity_rows, end - start)?;
            for row in data.chunks_exact(width) {
                self.encoder.add_original_shard(&row[start..end])?;
            }
            let encoded = self.encoder.encode()?;
            for (row, shard) in parity.chunks_exact_mut(width).zip(encoded.recovery_iter()) {
                row[start..end].copy_from_slice(shard);
            }
            start = end;
        }
        Ok(())
    }
}

/// Computes lost data rows of columns.
pub struct ColumnDecoder {
    data_rows: usize,
    parity_rows: usize,
    decoder: HighRateDecoder<DefaultEngine>,
}

impl ColumnDecoder {
    /// Prepares for these numbers of rows.
    ///
    /// # Errors
    /// The code has no such numbers of rows.
    pub fn new(data_rows: usize, parity_rows: usize) -> Result<Self, NotEnough> {
        let engine = DefaultEngine::new();
        let decoder = HighRateDecoder::new(data_rows, parity_rows, UNIT_BYTES, engine, None)?;
        Ok(Self {
            data_rows,
            parity_rows,
            decoder,
        })
    }

    /// Overwrites the rows of `data` that are `lost` (numbers of data rows, ascending) with what
    /// they were. `data` is as for [`ColumnEncoder::encode`]. `parity` has the numbers of as many
    /// parity rows, and their bytes.
    ///
    /// # Errors
    /// Too few parity rows, or the lengths do not fit.
    pub fn decode(
        &mut self,
        data: &mut [u8],
        width: usize,
        lost: &[usize],
        parity: &[(usize, &[u8])],
    ) -> Result<(), NotEnough> {
        let fits = data.len() == self.data_rows * width
            && parity.iter().all(|(_, bytes)| bytes.len() == width)
            && parity.len() >= lost.len();
        if width == 0 || !fits {
            return Err(NotEnough);
        }
        let tile = tile_bytes(self.data_rows + self.parity_rows, width);
        let mut start = 0;
        while start < width {
            let end = width.min(start + tile);
            self.decoder
                .reset(self.data_rows, self.parity_rows, end - start)?;
            for (number, row) in data.chunks_exact(width).enumerate() {
                if lost.binary_search(&number).is_err() {
                    self.decoder.add_original_shard(number, &row[start..end])?;
                }
            }
            for (number, row) in parity {
                self.decoder.add_recovery_shard(*number, &row[start..end])?;
            }
            let decoded = self.decoder.decode()?;
            for &number in lost {
                let restored = decoded.restored_original(number).ok_or(NotEnough)?;
                let row = data.get_mut(number * width..(number + 1) * width);
                row.ok_or(NotEnough)?[start..end].copy_from_slice(restored);
            }
            start = end;
        }
        Ok(())
    }
}
