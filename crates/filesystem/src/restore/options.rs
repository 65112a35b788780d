//! How a tree is restored.

/// Which owner and group the restored entries get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OwnerPolicy {
    /// The recorded ones as far as the user may set them: all for root, for others the groups that
    /// they are members of. What is not permitted is counted in [`LeftOut`](super::LeftOut).
    #[default]
    AsPermitted,
    /// The recorded ones. An owner that cannot be set is a problem.
    Same,
    /// Those that the system gives to new files of the user.
    Current,
}

/// How a tree is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Whether existing files are replaced and the metadata of existing directories is set.
    pub overwrite: bool,
    /// Which owner and group the entries get.
    pub owners: OwnerPolicy,
    /// Whether owners are restored by their number also if their name exists on this machine.
    pub numeric_owner: bool,
    /// Whether extended attributes are restored, access control lists and capabilities among them.
    pub keep_attributes: bool,
    /// The memory of the run, of which the restore takes a part: below a directory that exists it
    /// remembers what it created.
    pub memory_bytes: u64,
}

/// The memory unless options say something else.
const MEMORY_BYTES: u64 = 1 << 30;

impl Default for RestoreOptions {
    /// Nothing is overwritten; owners by name as far as permitted; with extended attributes.
    fn default() -> Self {
        RestoreOptions {
            overwrite: false,
            owners: OwnerPolicy::AsPermitted,
            numeric_owner: false,
            keep_attributes: true,
            memory_bytes: MEMORY_BYTES,
        }
    }
}
