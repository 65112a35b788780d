//! The functions of `linux.rs` for other systems: all are refused or unknown.

use super::class::{KernelClass, ThreadId};

pub(super) type Processors = ();

pub(super) fn this_thread() -> ThreadId {
    0
}

pub(super) fn main_thread() -> ThreadId {
    0
}

pub(super) fn nice_of(_: ThreadId) -> Option<i32> {
    None
}

pub(super) fn set_class(_: ThreadId, _: KernelClass) -> bool {
    false
}

pub(super) fn set_class_and_nice(_: KernelClass, _is_batch: bool, _nice: i32) -> bool {
    false
}

pub(super) fn is_idle_class(_: ThreadId) -> bool {
    false
}

pub(super) fn is_batch(_: ThreadId) -> bool {
    false
}

pub(super) fn shorten_slice(_: u64) -> bool {
    false
}

pub(super) fn set_exact_wakeups() -> bool {
    false
}

pub(super) fn processors_of(_: ThreadId) -> Option<Processors> {
    None
}

pub(super) fn processors_with_numbers(_: impl Iterator<Item = u32>) -> Processors {}

pub(super) fn set_processors(_: &Processors) -> bool {
    false
}

pub(super) fn voluntary_switches() -> u64 {
    0
}

pub(super) fn thread_cpu_ns() -> Option<u64> {
    None
}
