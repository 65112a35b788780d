//! Waits for the sockets of reads.

use super::read::Read;
use super::sockets::{Waited, wait_for_sockets};

/// Waits until one of the reads can go on, for at most so many nanoseconds.
pub fn wait<'a>(reads: impl IntoIterator<Item = &'a Read>, duration_ns: u64) -> Waited {
    wait_for_sockets(reads.into_iter().flat_map(Read::sockets), duration_ns)
}
