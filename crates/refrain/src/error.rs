//! Failures: kind, location and cause.
//!
//! Errors of lower crates state *what* is wrong with their values. The engine adds the location:
//! file, archive offset, block.

use std::fmt;
use std::io;

use refrain_format::limits::{
    BLOCK_RAW_BYTES_MAX, ENTRY_BYTES_PER_FRAME_MAX, EXTENTS_PER_FRAME_MAX, HELD_BYTES_MAX,
    PACKED_RAW_BYTES_MAX,
};
use refrain_format::{ErrorClass, FormatError};

use crate::damage::{CutOff, GivenBack};

/// Formats bytes of memory for messages: `128 MiB`, `0.5 MiB`, `12 KiB`, `7 bytes`.
pub(crate) fn mebibytes(bytes: u64) -> String {
    if bytes < 1 << 10 {
        let plural = if bytes == 1 { "" } else { "s" };
        return format!("{bytes} byte{plural}");
    }
    if bytes < (1 << 20) / 10 {
        return format!("{} KiB", bytes.div_ceil(1 << 10));
    }
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 20);
    if tenths.is_multiple_of(10) || tenths > 1000 {
        format!("{} MiB", bytes.div_ceil(1 << 20))
    } else {
        format!("{}.{} MiB", tenths / 10, tenths % 10)
    }
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of a failure. The numbers are the command line's exit codes, where 4 means done with
/// exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call is invalid: contradictory options, a level that does not exist.
    Usage = 1,
    /// The input is damaged, truncated or forged.
    Damaged = 2,
    /// The archive has a newer format, or needs a codec or feature that this build lacks.
    Unsupported = 3,
    /// A stated limit would be exceeded: memory, sizes, counts.
    Limit = 5,
    /// Reading or writing failed.
    Io = 6,
    /// A defect of this library: a job panicked or an invariant is broken. The output was not
    /// published.
    Internal = 70,
    /// The caller cancelled the run.
    Cancelled = 130,
}

/// The location of a failure, as far as known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Location {
    /// Name of the file or member.
    pub file: Option<String>,
    /// Offset in the archive, in bytes.
    pub archive_offset: Option<u64>,
    /// Number of the store block.
    pub block: Option<u64>,
    /// Offset in the content, in bytes.
    pub content_offset: Option<u64>,
}

/// A failure. Displays as `FILE: at archive offset N, block M: why`.
#[derive(Debug)]
pub struct Error {
    /// The kind.
    pub kind: ErrorKind,
    /// The location.
    pub location: Location,
    /// The cause.
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

impl Error {
    /// An error of this kind with a message.
    pub fn new(
        kind: ErrorKind,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        Error {
            kind,
            location: Location::default(),
            cause: cause.into(),
        }
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Damaged, message.into())
    }

    pub(crate) fn limit(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Limit, message.into())
    }

    pub(crate) fn cancelled() -> Error {
        Error::new(ErrorKind::Cancelled, "cancelled")
    }

    /// Adds the file's name, unless known.
    #[must_use]
    pub fn in_file(mut self, name: impl Into<String>) -> Error {
        self.location.file.get_or_insert(name.into());
        self
    }

    /// Adds the offset in the archive, unless known.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Error {
        self.location.archive_offset.get_or_insert(offset);
        self
    }

    /// Adds the block's number, unless known.
    #[must_use]
    pub fn in_block(mut self, block: u64) -> Error {
        self.location.block.get_or_insert(block);
        self
    }

    /// Adds the offset in the content, unless known.
    #[must_use]
    pub fn at_content(mut self, offset: u64) -> Error {
        self.location.content_offset.get_or_insert(offset);
        self
    }

    /// The archive is encrypted, and no secret that was given opens it.
    pub(crate) fn locked(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, Locked(message.into()))
    }

    /// Whether the archive is encrypted, and no secret that was given opens it: another password or
    /// key may help.
    pub fn is_locked(&self) -> bool {
        self.cause.is::<Locked>()
    }

    /// Where the archive is truncated, if that is the cause: its length in bytes.
    pub fn cut_off_at(&self) -> Option<u64> {
        self.cause.downcast_ref::<CutOff>().map(|cut| cut.at)
    }

    /// What was to be read was given back to the file system: the cause is [`GivenBack`].
    pub(crate) fn given_back() -> Error {
        Error::new(ErrorKind::Damaged, GivenBack)
    }

    /// Whether that is the cause.
    pub fn is_given_back(&self) -> bool {
        self.cause.is::<GivenBack>()
    }

    /// Whether the system, not a limit of ours, refused memory. The same may succeed when other
    /// memory was freed.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let cause = &self.cause;
        matches!(
            cause.downcast_ref::<refrain_codec::Error>(),
            Some(refrain_codec::Error::OutOfMemory { .. })
        ) || matches!(
            cause.downcast_ref::<refrain_pool::Error>(),
            Some(refrain_pool::Error::MemoryUnavailable { .. })
        )
    }

    /// Whether the reader of the output closed its end of the pipe.
    pub fn is_broken_pipe(&self) -> bool {
        self.cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The cause of an error: the password or key that the archive needs is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Locked(String);

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Locked {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Location {
            file,
            archive_offset,
            block,
            content_offset,
        } = &self.location;
        if let Some(file) = file {
            write!(f, "{file}: ")?;
        }
        let places = [
            ("archive offset", archive_offset),
            ("block", block),
            ("content offset", content_offset),
        ];
        let mut before = "at ";
        for (name, value) in places {
            if let Some(value) = value {
                write!(f, "{before}{name} {value}")?;
                before = ", ";
            }
        }
        if before == ", " {
            write!(f, ": ")?;
        }
        write!(f, "{}", self.cause)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}

impl From<io::Error> for Error {
    /// An error of this crate that passed through a reader comes back unchanged.
    fn from(error: io::Error) -> Error {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::new(ErrorKind::Io, error),
        }
    }
}

/// Values whose limits depend on the reader's memory, and the format's limits.
const LIMITED_BY_MEMORY: [(&str, u64); 6] = [
    ("raw bytes of a block", BLOCK_RAW_BYTES_MAX),
    ("extents", EXTENTS_PER_FRAME_MAX),
    ("packed extents bytes", PACKED_RAW_BYTES_MAX),
    ("packed entries bytes", PACKED_RAW_BYTES_MAX),
    (
        "bytes of the entries of a frame",
        ENTRY_BYTES_PER_FRAME_MAX as u64,
    ),
    ("bytes of frames that wait for blocks", HELD_BYTES_MAX),
];

/// Whether a reader with more memory would accept the value.
fn needs_memory(error: &FormatError) -> bool {
    let FormatError::OverLimit { what, value, .. } = error else {
        return false;
    };
    let mut limits = LIMITED_BY_MEMORY.iter();
    limits.any(|(name, of_format)| name == what && value <= of_format)
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Error {
        if needs_memory(&error) {
            return Error::limit(format!("{error}: raise the memory limit"));
        }
        let kind = match error.class() {
            ErrorClass::Damaged => ErrorKind::Damaged,
            ErrorClass::Unsupported => ErrorKind::Unsupported,
            ErrorClass::Limit => ErrorKind::Limit,
        };
        Error::new(kind, error)
    }
}

impl From<refrain_codec::Error> for Error {
    fn from(error: refrain_codec::Error) -> Error {
        use refrain_codec::Error as Codec;
        let kind = match error {
            Codec::UnsupportedCodec(_)
            | Codec::UnsupportedNamedCodec(_)
            | Codec::UnsupportedFilter(_) => ErrorKind::Unsupported,
            Codec::Setting { .. } => ErrorKind::Usage,
            Codec::OutOfMemory { .. } | Codec::Limit { .. } => ErrorKind::Limit,
            _ => ErrorKind::Damaged,
        };
        Error::new(kind, error)
    }
}

impl From<refrain_pool::Error> for Error {
    fn from(error: refrain_pool::Error) -> Error {
        Error::new(ErrorKind::Limit, error)
    }
}

impl From<refrain_pool::JobPanicked> for Error {
    fn from(error: refrain_pool::JobPanicked) -> Error {
        Error::new(ErrorKind::Internal, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_in_mebibytes_or_less_rounded_up() {
        assert_eq!(mebibytes(64 << 20), "64 MiB");
        assert_eq!(mebibytes(1 << 19), "0.5 MiB");
        assert_eq!(mebibytes(12 << 10), "12 KiB");
        assert_eq!(mebibytes(1), "1 byte");
        assert_eq!(mebibytes((5 << 20) + 1), "5.1 MiB");
        assert_eq!(mebibytes((500 << 20) + 1), "501 MiB");
    }

    #[test]
    fn limits_that_follow_from_the_memory_say_so() {
        let text = |what, value| {
            let error = Error::from(FormatError::OverLimit {
                what,
                value,
                limit: 1000,
            });
            assert_eq!(error.kind, ErrorKind::Limit);
            error.to_string()
        };
        let message = text("extents", EXTENTS_PER_FRAME_MAX);
        assert!(
            message.ends_with("limit of 1000: raise the memory limit"),
            "{message}"
        );
        for other in [
            text("extents", EXTENTS_PER_FRAME_MAX + 1),
            text("members", 2000),
        ] {
            assert!(other.ends_with("above the limit of 1000"), "{other}");
        }
    }

    #[test]
    fn the_place_comes_first() {
        let error = Error::damaged("checksum")
            .in_file("a.rfn")
            .at_offset(7)
            .in_block(2)
            .at_offset(9);
        assert_eq!(
            error.to_string(),
            "a.rfn: at archive offset 7, block 2: checksum"
        );
        assert_eq!(Error::damaged("x").to_string(), "x");
    }
}
