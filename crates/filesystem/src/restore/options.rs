//! How a tree is restored.

/// The owner and group of restored entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OwnerPolicy {
    /// The recorded ones where the user may set them: root any, others only groups that they are
    /// members of. What is not permitted is counted in [`LeftOut`](super::LeftOut).
    #[default]
    AsPermitted,
    /// The recorded ones. Failing to set an owner is a problem.
    Same,
    /// What the system gives the user's new files.
    Current,
}

/// How a tree is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Whether existing files are replaced and the metadata of existing directories is set.
    pub overwrite: bool,
    /// The owner and group of the entries.
    pub owners: OwnerPolicy,
    /// Whether owners are restored by number even if their name exists on this machine.
    pub numeric_owner: bool,
    /// Whether extended attributes, including access control lists and capabilities, are restored.
    pub keep_attributes: bool,
    /// Whether the data of files is read back from the disk, and compared with what was written,
    /// before they get their names.
    pub reads_back: bool,
    /// The memory budget of the run. A restore into an existing directory uses part of it to
    /// remember what it created.
    pub memory_bytes: u64,
}

/// The default memory budget.
const MEMORY_BYTES: u64 = 1 << 30;

impl Default for RestoreOptions {
    /// Overwrites nothing; owners by name where permitted; with extended attributes.
    fn default() -> Self {
        RestoreOptions {
            overwrite: false,
            owners: OwnerPolicy::AsPermitted,
            numeric_owner: false,
            keep_attributes: true,
            reads_back: false,
            memory_bytes: MEMORY_BYTES,
        }
    }
}
