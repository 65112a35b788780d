//! What was restored, what failed, and what was not permitted.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_pool::Lock;
use refrain_storage::ReadBack;
use rustix::io::Errno;

/// The memory for problems until [`take_problems`](super::TreeRestore::take_problems) is called, in
/// bytes; further ones are only counted.
const PROBLEM_BYTES_MAX: usize = 16 << 20;

/// The memory of a problem, without its path.
const PROBLEM_BYTES: usize = 160;

/// An entry that was not restored, or not completely.
#[derive(Debug)]
pub struct Problem {
    /// The path of the entry, as the archive has it.
    pub path: Vec<u8>,
    /// The reason. `InvalidData`: a restore refuses what the archive contains.
    pub error: io::Error,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(&self.path);
        write!(f, "restore {path:?}: {}", self.error)
    }
}

/// A hard link: another name of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardLink {
    /// The path of the link, as the archive has it.
    pub path: Vec<u8>,
    /// The path of the file, as the archive has it.
    pub target: Vec<u8>,
}

/// How much was left out because the user may not create it, or the file system cannot hold it.
/// These are not [problems](Problem).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Character and block devices.
    pub devices: u64,
    /// FIFOs and symbolic links.
    pub special_files: u64,
    /// Entries whose owner or group differs from the recorded one.
    pub owners: u64,
    /// Entries without their set-user-id or set-group-id bit, because their owner or group differs.
    pub set_id_bits: u64,
    /// Extended attributes.
    pub attributes: u64,
    /// Entries whose mode differs from the recorded one.
    pub modes: u64,
}

impl LeftOut {
    /// Whether nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == LeftOut::default()
    }
}

impl fmt::Display for LeftOut {
    /// For example `3 device nodes, 12 owners`; empty if nothing was left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.devices, "device node"),
            (self.special_files, "special file"),
            (self.owners, "owner"),
            (self.set_id_bits, "set-id bit"),
            (self.attributes, "extended attribute"),
            (self.modes, "mode"),
        ];
        let mut separator = "";
        for (count, name) in parts.into_iter().filter(|(count, _)| *count > 0) {
            let plural = if count == 1 { "" } else { "s" };
            write!(f, "{separator}{count} {name}{plural}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// The result of a restore.
#[derive(Debug)]
pub struct RestoreSummary {
    /// The number of entries that were restored.
    pub entries: u64,
    /// The number of entries other than directories.
    pub files: u64,
    /// The number of entries to restore, without directories, as far as the caller [said
    /// so](super::TreeRestore::expect).
    pub files_asked: u64,
    /// The number of problems, including those already taken.
    pub problem_count: u64,
    /// The problems not taken yet.
    pub problems: Vec<Problem>,
    /// What was left out without being a problem.
    pub left_out: LeftOut,
    /// Set if the restore ended early because the file system is full or the user's quota is used
    /// up. Files complete by then were kept.
    pub stopped: Option<io::Error>,
    /// What was read back from the disk, if anything was to be.
    pub read_back: Option<ReadBack>,
    /// Hard links that were not restored because their target was not. Each is also a problem.
    pub missing_targets: Vec<HardLink>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Omission {
    Device,
    SpecialFile,
    Owner,
    SetIdBit,
    Attribute,
    Mode,
}

#[derive(Debug, Default)]
struct Problems {
    kept: Vec<Problem>,
    bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    entries: AtomicU64,
    files: AtomicU64,
    files_asked: AtomicU64,
    problem_count: AtomicU64,
    problems: Lock<Problems>,
    left_out: Lock<LeftOut>,
}

impl Tally {
    /// Counts an entry that is not a directory.
    pub(super) fn entry(&self) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn directory(&self) {
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn expect_file(&self) {
        self.files_asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    pub(super) fn files_asked(&self) -> u64 {
        self.files_asked.load(Ordering::Relaxed)
    }

    pub(super) fn problem(&self, path: &[u8], error: io::Error) {
        self.problem_count.fetch_add(1, Ordering::Relaxed);
        let mut problems = self.problems.lock();
        problems.bytes += PROBLEM_BYTES + path.len();
        if problems.bytes <= PROBLEM_BYTES_MAX {
            problems.kept.push(Problem {
                path: path.to_vec(),
                error,
            });
        }
    }

    pub(super) fn omission(&self, what: Omission) {
        let mut left_out = self.left_out.lock();
        let count = match what {
            Omission::Device => &mut left_out.devices,
            Omission::SpecialFile => &mut left_out.special_files,
            Omission::Owner => &mut left_out.owners,
            Omission::SetIdBit => &mut left_out.set_id_bits,
            Omission::Attribute => &mut left_out.attributes,
            Omission::Mode => &mut left_out.modes,
        };
        *count += 1;
    }

    pub(super) fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.problems.lock()).kept
    }

    pub(super) fn problem_count(&self) -> u64 {
        self.problem_count.load(Ordering::Relaxed)
    }

    pub(super) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    pub(super) fn left_out(&self) -> LeftOut {
        *self.left_out.lock()
    }
}

/// Whether the user may not do an operation, or the file system cannot.
pub(super) fn is_not_permitted(error: Errno) -> bool {
    matches!(
        error,
        Errno::PERM | Errno::ACCESS | Errno::NOTSUP | Errno::NOSYS | Errno::INVAL
    )
}

/// Whether nothing more can be written.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_named_with_its_number() {
        let tally = Tally::default();
        assert_eq!(tally.left_out().to_string(), "");
        assert!(tally.left_out().is_empty());
        for _ in 0..3 {
            tally.omission(Omission::Device);
        }
        tally.omission(Omission::Owner);
        assert_eq!(tally.left_out().to_string(), "3 device nodes, 1 owner");
        assert!(!tally.left_out().is_empty());
    }
}
