//! The number of threads of a run.

/// The number of threads; 0 means one per processor.
pub(super) fn resolved(threads: usize) -> usize {
    match threads {
        0 => refrain_pool::processors(),
        threads => threads,
    }
}
