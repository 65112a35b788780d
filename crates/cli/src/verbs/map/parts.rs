//! Content by where its bytes are.

/// The content of one column, of a generation, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// Bytes that occur for the first time.
    pub first_bytes: u64,
    /// Bytes that earlier content also has.
    pub repeated_bytes: u64,
    /// Bytes of runs and short periods.
    pub run_bytes: u64,
}
