//! Decoders as WebAssembly modules: those that an archive carries for its blocks, and an
//! interpreter that runs the ones found in an archive.
//!
//! [`decoder`] returns the module for a codec or filter of ours. They are in `modules/`, compiled
//! from the crate `codec` by `tools/carried-decoders/build`: in the repository, because a build
//! should need neither the compiler's target for WebAssembly nor other compilers' bytes.
//! `docs/format-extensions.md` specifies the interface of a module.
//!
//! [`Module`] runs modules that nobody vouches for: without imports, with
//! limits for instructions and memory.
//!
//! Bytes in, bytes out: no files, threads or clocks. Depends on no other crate of this workspace.
//!
//! ```
//! use refrain_carried::{Role, decoder};
//!
//! let lz4 = decoder(Role::Codec, 1).expect("there is a module for every codec");
//! assert!(lz4.module.starts_with(b"\0asm") && lz4.module.len() <= 100 << 10);
//! assert!(decoder(Role::Codec, 0).is_none(), "stored bytes need no decoder");
//! ```

#![deny(unsafe_code)]

mod modules;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod run;
#[cfg(test)]
mod tests;

pub use modules::{Decoder, Role, decoder, decoders};
pub use run::{Error, Limits, Module};
