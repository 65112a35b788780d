//! How to sample, and what the sampler asks for.

/// How to sample.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Samples of each thread in a second of its processor time.
    pub samples_per_second: u32,
    /// The page faults of a thread from one sample to the next.
    pub faults_per_sample: u64,
    /// The bytes of the stack in each sample. What lies deeper is cut off.
    pub stack_bytes: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            // Primes, so that nothing that repeats is always met at the same point.
            samples_per_second: 997,
            faults_per_sample: 97,
            stack_bytes: 16 << 10,
        }
    }
}

/// A thread went to another stage of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageChange {
    /// The kernel's number of the thread.
    pub thread_id: u32,
    /// When, by the system's monotonic clock, in nanoseconds.
    pub at_ns: u64,
    /// The stage from then on; `None` for none.
    pub stage: Option<&'static str>,
}

/// Gives the changes since the last call, those of a thread in their order, and returns how many
/// were ever lost.
pub type TakeChanges = Box<dyn FnMut(&mut dyn FnMut(StageChange)) -> u64 + Send>;
