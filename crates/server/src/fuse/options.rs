//! Options for mounting.

use crate::tree::TreeOptions;

/// Options for mounting.
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// What is shown, and the memory for it.
    pub tree: TreeOptions,
    /// The directory of the tree to mount, as MEMBER or MEMBER/PATH; empty for all members.
    pub root: Vec<u8>,
    /// Whether to show a directory for each generation instead of one generation.
    pub generations: bool,
    /// The source in the system's list of mounts, such as the archive's name.
    pub source_name: String,
    /// Whether other users have access, within the permissions of the files. Otherwise only the
    /// user who mounts has, and may read everything.
    pub allow_other: bool,
    /// Owner and group of all files, instead of the archive's.
    pub owner: Option<(u32, u32)>,
    /// Further options for the kernel or fusermount3.
    pub extra: Vec<String>,
    /// How many threads answer requests, at least 1. While all of them wait, others are started.
    pub threads: usize,
}

impl Default for MountOptions {
    fn default() -> Self {
        MountOptions {
            tree: TreeOptions::default(),
            root: vec![],
            generations: false,
            source_name: "refrain".into(),
            allow_other: false,
            owner: None,
            extra: vec![],
            threads: 4,
        }
    }
}
