//! What could not be archived, and why.

use std::io;

use rustix::io::Errno;

/// The class of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// A file, a directory or an attribute that cannot be read.
    Unreadable,
    /// A path that no longer exists (a listed one: that does not exist).
    Vanished,
    /// A file or directory that changed while it was read, or became something else.
    Changed,
    /// What no archive holds: a socket. This alone is no failure.
    Skipped,
    /// Reading: what is damaged, cut off, or no part of what the format describes.
    Damaged,
    /// Reading: an entry of an unknown kind, which becomes a file. This alone is no failure.
    Unusual,
    /// Reading: what this version cannot read, such as an encrypted entry of a zip file.
    Unsupported,
    /// The output of the run itself, which an archive of it cannot hold. No failure either.
    OwnOutput,
}

/// A file, or a part of one, that is missing in the archive or not as it was at one moment; or what
/// of an archive could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path as in [`Entry::path`](crate::Entry::path); empty for what is no entry.
    pub path: Vec<u8>,
    /// The class.
    pub kind: ProblemKind,
    /// What happened, without the path.
    pub text: String,
}

impl Problem {
    /// The problem of an entry that cannot be opened or read because of `error`.
    #[must_use]
    pub fn of_error(path: &[u8], error: &io::Error) -> Problem {
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

    /// What cannot be read because it is damaged.
    #[must_use]
    pub fn damaged(path: &[u8], text: impl Into<String>) -> Problem {
        Problem {
            path: path.to_vec(),
            kind: ProblemKind::Damaged,
            text: text.into(),
        }
    }

    /// An entry of an unknown kind that becomes a file.
    #[must_use]
    pub fn unusual(path: &[u8]) -> Problem {
        Problem {
            path: path.to_vec(),
            kind: ProblemKind::Unusual,
            text: "of an unknown kind: restored as a file".to_owned(),
        }
    }

    /// The problem as an error, with the path.
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
