//! The number of threads of a run.

use std::num::NonZero;

/// The number of threads; 0 means one per processor.
pub(super) fn resolved(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    }
}
