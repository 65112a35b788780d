//! What is measured.

use std::time::Duration;

use refrain_pool::Cancellation;

use crate::args::CacheArgs;

/// The largest value that memcached stores as it is started here.
pub const VALUE_BYTES_MAX: u64 = 4 << 20;

/// What is measured.
pub struct Settings<'a> {
    /// From the command line.
    pub args: &'a CacheArgs,
    /// Ends the run early.
    pub cancellation: &'a Cancellation,
}

impl Settings<'_> {
    /// The whole of a run.
    pub fn duration(&self) -> Duration {
        self.args.well * 2 + self.args.sick
    }
}
