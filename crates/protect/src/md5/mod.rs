//! MD5 (R. Rivest, RFC 1321, 1992) of one input, or of many in parallel vector lanes.
//!
//! MD5 serves to compare files with published digests, not against forgery: collisions take seconds
//! to compute.
//!
//! | file | contents |
//! |---|---|
//! | `hash` | the hasher, for one input or many |
//! | `block` | the size of a block |
//! | `rounds` | the 64 steps, for one word or a vector of words; the short dependency chain |
//! | `lanes/` | many inputs at a time, with AVX-512, AVX2 or NEON; one input with AVX-512 |
//! | `reference` | the reference implementation, directly from the RFC |
//!
//! [`Md5`] takes one input in parts, in constant memory. [`update_many`] and [`finish_many`] do the
//! same for many inputs, and [`md5_many`] hashes many complete inputs.

mod block;
mod hash;
mod lanes;
#[cfg(any(test, feature = "property"))]
pub(crate) mod reference;
mod rounds;

#[cfg(test)]
mod tests;

pub use block::MD5_BYTES;
pub use hash::{Md5, finish_many, md5, md5_many, update_many};
pub use lanes::kernel::LANES_MAX;
