#![doc = include_str!("../README.md")]
//!
//! # Method
//!
//! [`Sampler::start`] asks the kernel for samples of all threads, including later ones;
//! [`Sampler::finish`] returns the [`Profile`]. This needs only the kernel's permission, neither
//! privileges nor a special build. Each sample has the top of the thread's stack. While the program
//! runs, one thread unwinds the stacks with the tables used for exceptions. Equal stacks are
//! counted, not kept.
//!
//! | module | what |
//! |---|---|
//! | `options` | how to sample, and the stages of the threads |
//! | `profile` | the result |
//! | [`flame`] | the tree of a flame graph |
//! | [`pprof`] | the format of pprof |
//! | [`tables`] | sums by stage, thread, crate and function |
//! | `origin` | the crate or library of a function |
//! | `linux` | events, rings, records, unwinding, symbols |

mod error;
pub mod flame;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux;
mod options;
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    allow(dead_code, reason = "nothing is sampled there")
)]
mod origin;
pub mod pprof;
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    allow(dead_code, reason = "nothing is sampled there")
)]
mod profile;
pub mod tables;

pub use error::Error;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use linux::Sampler;
pub use options::{Options, StageChange, TakeChanges};
pub use profile::{
    CallPath, Count, Function, FunctionNumber, PathNumber, Profile, ROOT, StackSamples,
};

/// Replaces the sampler on other systems.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[derive(Debug)]
pub struct Sampler {}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
impl Sampler {
    /// Always fails.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn start(_options: Options, _take_changes: TakeChanges) -> Result<Sampler, Error> {
        Err(Error::Unsupported)
    }

    /// Never called.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn finish(self) -> Result<Profile, Error> {
        Err(Error::Unsupported)
    }
}
