//! How to make recovery data, and with which resources.

use std::path::PathBuf;

use crate::recovery_share::RecoveryShare;

/// How to make recovery data, and with which resources.
#[derive(Debug, Clone)]
pub struct RecoveryOptions {
    /// How much.
    pub share: RecoveryShare,
    /// Worker threads, at least 1.
    pub threads: usize,
    /// The memory budget in bytes.
    pub memory_bytes: u64,
    /// The directory of temporary files. `None`: only what fits into a quarter of the memory.
    pub temporary: Option<PathBuf>,
}
