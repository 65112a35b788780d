//! How a file system is mounted.

use std::fmt;
use std::sync::Arc;

use crate::tree::TreeOptions;

/// Takes a message about something that cannot be read, for a person.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// How a file system is mounted.
#[derive(Clone)]
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
    /// Is told what cannot be read, once for each thing.
    pub report: Report,
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
            report: Arc::new(|_| ()),
        }
    }
}

impl fmt::Debug for MountOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MountOptions")
            .field("tree", &self.tree)
            .field("source_name", &self.source_name)
            .field("allow_other", &self.allow_other)
            .field("owner", &self.owner)
            .field("extra", &self.extra)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
