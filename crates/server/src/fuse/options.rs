//! How a file system is mounted.

use crate::tree::TreeOptions;

/// How a file system is mounted.
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// What is shown, and the memory for it.
    pub tree: TreeOptions,
    /// The name of the mounted thing in the system's list, such as that of the archive.
    pub source_name: String,
    /// Whether other users may use it, within the permissions of the files. Else only the user who
    /// mounts can, and may read everything.
    pub allow_other: bool,
    /// User and group of all files, instead of those that the archive states.
    pub owner: Option<(u32, u32)>,
    /// Further options of the kernel or of fusermount3.
    pub extra: Vec<String>,
    /// Threads that answer requests, at least 1.
    pub threads: usize,
}

impl Default for MountOptions {
    fn default() -> Self {
        MountOptions {
            tree: TreeOptions::default(),
            source_name: "refrain".into(),
            allow_other: false,
            owner: None,
            extra: vec![],
            threads: 4,
        }
    }
}
