//! How a file is cut into slices, rows and columns.

use std::fmt;

/// The smallest share of parity that can be asked for, in hundredths of a percent of the file.
pub const SHARE_MIN: u32 = 10;

/// The largest share of parity that can be asked for, in hundredths of a percent of the file.
pub const SHARE_MAX: u32 = 10_000;

/// The smallest slice. A multiple of the 64 bytes that the code works on.
pub(crate) const SLICE_BYTES_MIN: u32 = 256;
/// A sector of today's disks. Larger slices only keep the number of slices within [`SLICES_MAX`].
const SLICE_BYTES_USUAL: u64 = 4096;
const SLICE_BYTES_MAX: u32 = 1 << 26;
/// Bounds the digests in memory to 16 MiB, whatever the size of the file.
const SLICES_MAX: u64 = 1 << 21;
/// Small files have this many slices before slices grow.
const SLICES_OF_SMALL_FILES: u64 = 128;
const DATA_ROWS_MAX: u32 = 1 << 15;
const PARITY_ROWS_MAX: u32 = 1 << 14;
/// More rows than this make a random damage no more likely to heal, and the code slower.
const DATA_ROWS_CHOSEN_MAX: u64 = 2048;
/// The fewest rows of parity that are chosen. An insertion and a lost sector that is not aligned
/// cost a small file three slices.
pub const PARITY_ROWS_MIN: u32 = 4;
/// The places among the parity of a file where there are pieces of the table: at its start, at its
/// end, and between its thirds. Any one of them is enough.
pub const PIECE_GROUPS: usize = 4;
const PIECE_BYTES_MAX: u64 = 4096;
const PIECE_BYTES_MIN: u64 = 64;

/// The numbers that determine the layout of recovery data. They are stated in each of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecoveryParameters {
    /// The size of the file that is protected, in bytes.
    pub protected_bytes: u64,
    /// The size of a slice in bytes. The last slice of the file is extended by zeros.
    pub slice_bytes: u32,
    /// The number of rows that the slices of the file are cut into. The last one may be shorter;
    /// what it lacks counts as zeros.
    pub data_rows: u32,
    /// The number of rows of parity: so many slices of each column may be lost.
    pub parity_rows: u32,
}

/// Parameters that no writer chooses, or that exceed a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadParameters {
    /// Which number is wrong.
    pub what: &'static str,
    /// The number.
    pub value: u64,
}

impl fmt::Display for BadParameters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, value } = self;
        write!(out, "recovery data with {what} of {value}")
    }
}

impl std::error::Error for BadParameters {}

impl RecoveryParameters {
    /// Chooses parameters for a file of `protected_bytes`, with a `share` of parity in hundredths
    /// of a percent, limited to [`SHARE_MIN`] and [`SHARE_MAX`]. Small files get more than the
    /// share.
    ///
    /// # Errors
    /// The file is empty, or larger than 128 TiB.
    pub fn choose(protected_bytes: u64, share: u32) -> Result<Self, BadParameters> {
        let share = u64::from(share.clamp(SHARE_MIN, SHARE_MAX));
        let slice_bytes = chosen_slice_bytes(protected_bytes);
        let slices = protected_bytes.div_ceil(slice_bytes).max(1);
        // Few long rows are read faster from a disk, more and shorter ones heal more scattered
        // damage. Files that memory holds need not be read in long pieces.
        let parity_wanted: u64 = match protected_bytes {
            0..=0x3fff_ffff => 64,
            0x4000_0000..=0x3_ffff_ffff => 32,
            _ => 16,
        };
        let rows_wanted = (parity_wanted * 10_000 / share).min(DATA_ROWS_CHOSEN_MAX);
        let columns = slices.div_ceil(rows_wanted);
        let data_rows = slices.div_ceil(columns);
        let parity_rows = (data_rows * share)
            .div_ceil(10_000)
            .max(u64::from(PARITY_ROWS_MIN));
        let parameters = Self {
            protected_bytes,
            slice_bytes: u32::try_from(slice_bytes).unwrap_or(u32::MAX),
            data_rows: u32::try_from(data_rows).unwrap_or(u32::MAX),
            parity_rows: u32::try_from(parity_rows).unwrap_or(u32::MAX),
        };
        parameters.check().map(|()| parameters)
    }

    /// Checks numbers that were read. Afterwards no sum or product of this type overflows.
    ///
    /// # Errors
    /// The first number that is out of its range.
    pub fn check(&self) -> Result<(), BadParameters> {
        let bad = |what, value| Err(BadParameters { what, value });
        if self.protected_bytes == 0 || self.protected_bytes > SLICES_MAX << 26 {
            return bad("protected bytes", self.protected_bytes);
        }
        if !self.slice_bytes.is_power_of_two()
            || self.slice_bytes < SLICE_BYTES_MIN
            || self.slice_bytes > SLICE_BYTES_MAX
            || self.slice_count() > SLICES_MAX
        {
            return bad("slice bytes", u64::from(self.slice_bytes));
        }
        if self.data_rows == 0
            || self.data_rows > DATA_ROWS_MAX
            || u64::from(self.data_rows) != self.slice_count().div_ceil(self.columns())
        {
            return bad("data rows", u64::from(self.data_rows));
        }
        if self.parity_rows == 0
            || self.parity_rows > PARITY_ROWS_MAX
            || self.parity_slices() > SLICES_MAX * 2
        {
            return bad("parity rows", u64::from(self.parity_rows));
        }
        Ok(())
    }

    /// The number of slices of the file.
    #[must_use]
    pub fn slice_count(&self) -> u64 {
        self.protected_bytes
            .div_ceil(u64::from(self.slice_bytes).max(1))
    }

    /// The number of columns: slices of a row.
    #[must_use]
    pub fn columns(&self) -> u64 {
        self.slice_count()
            .div_ceil(u64::from(self.data_rows).max(1))
    }

    /// The number of slices of parity.
    #[must_use]
    pub fn parity_slices(&self) -> u64 {
        self.columns().saturating_mul(u64::from(self.parity_rows))
    }

    /// The bytes of the file that a slice has: fewer than [`slice_bytes`](Self::slice_bytes) for
    /// the last one.
    #[must_use]
    pub fn bytes_of_slice(&self, slice: u64) -> usize {
        let slice_bytes = u64::from(self.slice_bytes);
        let start = slice.saturating_mul(slice_bytes);
        self.protected_bytes.saturating_sub(start).min(slice_bytes) as usize
    }

    /// The bytes of a piece of the table of digests.
    #[must_use]
    pub fn piece_bytes(&self) -> usize {
        // A quarter of a small table.
        let piece = (self.slice_count() * 2).next_power_of_two();
        piece.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX) as usize
    }

    /// The number of pieces that hold the table of digests.
    #[must_use]
    pub fn table_pieces(&self) -> usize {
        ((self.slice_count() * 8).div_ceil(self.piece_bytes() as u64)) as usize
    }

    /// The number of pieces of the table's own parity.
    #[must_use]
    pub fn table_parity(&self) -> usize {
        PIECE_GROUPS * self.group_pieces() - self.table_pieces()
    }

    /// The number of pieces in each of the [`PIECE_GROUPS`]: as many as restore the table, and in
    /// large files an eighth more, because of sectors that are lost besides bursts.
    #[must_use]
    pub fn group_pieces(&self) -> usize {
        self.table_pieces() + self.table_pieces() / 8
    }
}

fn chosen_slice_bytes(protected_bytes: u64) -> u64 {
    let of_small = protected_bytes
        .div_ceil(SLICES_OF_SMALL_FILES)
        .checked_next_power_of_two()
        .unwrap_or(SLICE_BYTES_USUAL);
    let usual = of_small.clamp(u64::from(SLICE_BYTES_MIN), SLICE_BYTES_USUAL);
    let of_large = protected_bytes.div_ceil(SLICES_MAX);
    usual.max(of_large.checked_next_power_of_two().unwrap_or(u64::MAX))
}
