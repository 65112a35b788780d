//! Sampling options, and what the sampler needs from its caller.

/// Sampling options.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Samples per second of each thread's processor time.
    pub samples_per_second: u32,
    /// Page faults of a thread between samples.
    pub faults_per_sample: u64,
    /// The bytes of stack in each sample. Anything deeper is cut off.
    pub stack_bytes: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            // Primes, so that periodic work is not always sampled at the same point.
            samples_per_second: 997,
            faults_per_sample: 97,
            stack_bytes: 16 << 10,
        }
    }
}

/// A thread changed to another stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageChange {
    /// The kernel's number of the thread.
    pub thread_id: u32,
    /// When, on the system's monotonic clock, in nanoseconds.
    pub at_ns: u64,
    /// The stage from then on; `None` outside of any stage.
    pub stage: Option<&'static str>,
}

/// Passes on the changes since the last call, in order for each thread, and returns how many were
/// lost in total.
pub type TakeChanges = Box<dyn FnMut(&mut dyn FnMut(StageChange)) -> u64 + Send>;
