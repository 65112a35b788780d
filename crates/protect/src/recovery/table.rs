//! The digests of all slices, in the order of the file, cut into pieces with parity of their own.

use super::code::{ColumnDecoder, ColumnEncoder, NotEnough};
use super::parameters::RecoveryParameters;
use crate::hash::xxh3::Checksum64;

/// The digests of all slices of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestTable {
    parameters: RecoveryParameters,
    digests: Vec<u64>,
}

impl DigestTable {
    /// Takes the digests of all slices.
    ///
    /// # Errors
    /// Their number is not that of the slices.
    pub fn new(parameters: RecoveryParameters, digests: Vec<u64>) -> Result<Self, NotEnough> {
        if digests.len() as u64 != parameters.slice_count() {
            return Err(NotEnough);
        }
        Ok(Self {
            parameters,
            digests,
        })
    }

    /// The digests.
    #[must_use]
    pub fn digests(&self) -> &[u64] {
        &self.digests
    }

    /// What the table is of.
    #[must_use]
    pub fn parameters(&self) -> &RecoveryParameters {
        &self.parameters
    }

    /// The number by which all frames of this recovery data know each other: a checksum of the
    /// parameters and the digests.
    #[must_use]
    pub fn set_id(&self) -> u64 {
        let RecoveryParameters {
            protected_bytes,
            slice_bytes,
            data_rows,
            parity_rows,
        } = self.parameters;
        let mut checksum = Checksum64::new();
        checksum.update(&protected_bytes.to_le_bytes());
        for number in [slice_bytes, data_rows, parity_rows] {
            checksum.update(&number.to_le_bytes());
        }
        for digest in &self.digests {
            checksum.update(&digest.to_le_bytes());
        }
        checksum.value()
    }

    /// The pieces of the table and then those of its parity, one after the other, each of
    /// [`RecoveryParameters::piece_bytes`].
    ///
    /// # Errors
    /// None for checked parameters.
    pub fn to_pieces(&self) -> Result<Vec<u8>, NotEnough> {
        let parameters = &self.parameters;
        let width = parameters.piece_bytes();
        let data_bytes = parameters.table_pieces() * width;
        let mut pieces = Vec::with_capacity(data_bytes + parameters.table_parity() * width);
        for digest in &self.digests {
            pieces.extend_from_slice(&digest.to_le_bytes());
        }
        pieces.resize(data_bytes + parameters.table_parity() * width, 0);
        let (data, parity) = pieces.split_at_mut(data_bytes);
        let mut encoder = ColumnEncoder::new(parameters.table_pieces(), parameters.table_parity())?;
        encoder.encode(data, width, parity)?;
        Ok(pieces)
    }

    /// Restores a table from pieces: the number of each, and its bytes. Their number is to be that
    /// of [`RecoveryParameters::table_pieces`].
    ///
    /// # Errors
    /// There are too few, or they are not of this table.
    pub fn from_pieces<'a>(
        parameters: RecoveryParameters,
        pieces: impl Iterator<Item = (usize, &'a [u8])>,
        set_id: u64,
    ) -> Result<Self, NotEnough> {
        let (width, count) = (parameters.piece_bytes(), parameters.table_pieces());
        let mut data = vec![0; count * width];
        let mut is_there = vec![false; count];
        let mut parity = Vec::new();
        for (number, bytes) in pieces {
            if bytes.len() != width {
                return Err(NotEnough);
            }
            match is_there.get_mut(number) {
                Some(there) => {
                    data[number * width..][..width].copy_from_slice(bytes);
                    *there = true;
                }
                None => parity.push((number - count, bytes)),
            }
        }
        let lost: Vec<usize> = (0..count).filter(|&number| !is_there[number]).collect();
        if !lost.is_empty() {
            let mut decoder = ColumnDecoder::new(count, parameters.table_parity())?;
            decoder.decode(&mut data, width, &lost, &parity)?;
        }
        let digests = data
            .chunks_exact(8)
            .take(parameters.slice_count() as usize)
            .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        let table = Self::new(parameters, digests.collect())?;
        if table.set_id() == set_id { Ok(table) } else { Err(NotEnough) }
    }
}
