//! Samples the stacks of all threads of its own process: where processor time goes and where page
//! faults come from, by stage of the work, crate and function.
//!
//! [`Sampler::start`] asks the kernel for samples of all threads, also of those that start later;
//! [`Sampler::finish`] returns the [`Profile`]. Nothing is needed for that but the kernel's
//! permission: neither privileges nor a program that was built for it. Each sample carries the top
//! of the thread's stack, and one thread follows the stacks while the program runs, with the tables
//! that exceptions use. Equal stacks are counted, not kept.
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

/// Stands for the sampler where there is none.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[derive(Debug)]
pub struct Sampler {}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
impl Sampler {
    /// Refuses.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn start(_options: Options, _take_changes: TakeChanges) -> Result<Sampler, Error> {
        Err(Error::Unsupported)
    }

    /// Cannot be reached.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn finish(self) -> Result<Profile, Error> {
        Err(Error::Unsupported)
    }
}
