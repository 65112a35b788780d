//! The inputs of a run.

use std::io::{self, Read};

use refrain_protect::DigestAlgorithm;

/// What is to be hashed. Inputs are opened when it is their turn, from any thread, each once.
pub trait HashInputs: Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// The function for one of them.
    fn algorithm(&self, index: usize) -> DigestAlgorithm;

    /// Opens one of them.
    ///
    /// # Errors
    /// Whatever keeps it from being read; it becomes the result for that input, and the others are hashed all the same.
    fn open(&self, index: usize) -> io::Result<Box<dyn Read + Send>>;

    /// Bytes of all of them, if known; for the display of progress.
    fn content_bytes_total(&self) -> Option<u64> {
        None
    }
}
