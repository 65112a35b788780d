//! Hashes many inputs, like md5sum, sha256sum and b3sum.
//!
//! A thread takes several inputs at once, reads a piece of each, and hashes the pieces side by side
//! (`batch.rs`). A single long input is read ahead by a second thread; BLAKE3 is hashed by all
//! threads (`ahead.rs`). Small inputs are hashed before any thread is started.

mod ahead;
mod batch;
mod delivery;
mod inputs;
mod run;
mod threads;

pub use inputs::HashInputs;
pub use run::hash;

#[cfg(test)]
mod tests;
