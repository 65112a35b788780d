//! Where the kernel's files are.

use std::path::PathBuf;

/// The locations of the kernel's files; tests use other ones.
#[derive(Debug, Clone)]
pub struct Sources {
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
    /// The CPUs of this process's affinity mask, by the operating system's numbers; empty if
    /// unknown.
    pub affinity: Vec<u32>,
}
