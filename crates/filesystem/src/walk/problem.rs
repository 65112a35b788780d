//! What could not be archived, and why.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// The class of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// A file, a directory or an attribute that cannot be read.
    Unreadable,
    /// A path that no longer exists (or a listed path that never did).
    Vanished,
    /// A file or directory that changed while it was read, or became something else.
    Changed,
    /// A file that no archive can hold: a socket. Not a failure by itself.
    Skipped,
    /// Reading: the data is damaged, cut off, or not described by the format.
    Damaged,
    /// Reading: an entry of an unknown kind, which becomes a file. Not a failure by itself.
    Unusual,
    /// Reading: a feature that this version lacks, such as encrypted zip entries.
    Unsupported,
    /// The output of this run, which an archive of it cannot hold. Not a failure.
    OwnOutput,
}

/// A file that the archive lacks, in part or as it was at one moment; or a part of an archive that
/// could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path as in [`Entry::path`](refrain_entries::Entry::path); empty if it does not concern
    /// an entry.
    pub path: Vec<u8>,
    /// The class.
    pub kind: ProblemKind,
    /// What happened, not including the path.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", String::from_utf8_lossy(&self.path))?;
        }
        f.write_str(&self.text)
    }
}

impl Problem {
    /// The problem of an entry that cannot be opened or read because of `error`.
    #[must_use]
    pub fn from_error(path: &[u8], error: &io::Error) -> Problem {
        let errno = Errno::from_io_error(error);
        let (kind, text) = match errno {
            Some(Errno::NOENT) => (ProblemKind::Vanished, "no longer exists".to_string()),
            Some(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => (
                ProblemKind::Changed,
                "was replaced by something else".to_string(),
            ),
            None if error.kind() == io::ErrorKind::NotFound => {
                (ProblemKind::Vanished, error.to_string())
            }
            None if error.kind() == io::ErrorKind::InvalidInput => {
                (ProblemKind::Changed, error.to_string())
            }
            _ => (ProblemKind::Unreadable, error.to_string()),
        };
        Problem {
            path: path.to_vec(),
            kind,
            text,
        }
    }

    /// Whether something that an archive can hold is missing or changed.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        !matches!(
            self.kind,
            ProblemKind::Skipped | ProblemKind::Unusual | ProblemKind::OwnOutput
        )
    }

    /// Damaged data that cannot be read.
    #[must_use]
    pub fn damaged(path: &[u8], text: impl Into<String>) -> Problem {
        Problem {
            path: path.to_vec(),
            kind: ProblemKind::Damaged,
            text: text.into(),
        }
    }

    /// An entry of an unknown kind, restored as a file.
    #[must_use]
    pub fn unusual(path: &[u8]) -> Problem {
        Problem {
            path: path.to_vec(),
            kind: ProblemKind::Unusual,
            text: "of an unknown kind: restored as a file".to_owned(),
        }
    }

    /// The problem as an error that includes the path.
    #[must_use]
    pub fn into_error(self) -> io::Error {
        let kind = match self.kind {
            ProblemKind::Vanished => io::ErrorKind::NotFound,
            ProblemKind::Unreadable => io::ErrorKind::PermissionDenied,
            ProblemKind::Damaged => io::ErrorKind::InvalidData,
            ProblemKind::Unsupported => io::ErrorKind::Unsupported,
            ProblemKind::Changed
            | ProblemKind::Skipped
            | ProblemKind::Unusual
            | ProblemKind::OwnOutput => io::ErrorKind::Other,
        };
        let path = String::from_utf8_lossy(&self.path);
        io::Error::new(kind, format!("read {path}: {}", self.text))
    }
}
