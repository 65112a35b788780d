//! The inputs of a run.

use std::io::{self, Read};

use refrain_protect::DigestAlgorithm;

/// The inputs to hash. Each is opened once, shortly before it is read, on any thread.
pub trait HashInputs: Sync {
    /// The number of inputs.
    fn count(&self) -> usize;

    /// The hash function for an input.
    fn algorithm(&self, index: usize) -> DigestAlgorithm;

    /// Opens an input.
    ///
    /// # Errors
    /// Any error becomes the result of that input; the others are still hashed.
    fn open(&self, index: usize) -> io::Result<Box<dyn Read + Send>>;

    /// The bytes of all inputs, if known, to display progress.
    fn content_bytes_total(&self) -> Option<u64> {
        None
    }
}
