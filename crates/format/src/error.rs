//! What this crate refuses, with the values in the message.

use crate::layout::{FrameKind, MAGIC};

/// What a refusal means for the one who gave the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The bytes are not what a writer of this format writes: damaged, cut off, or something else altogether.
    Damaged,
    /// The bytes may be fine, but ask for something this version does not know.
    Unsupported,
    /// The bytes may be fine, but ask for more than the stated limit.
    Limit,
}

/// One refusal. The place (archive offset) is known to the caller, who feeds the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes end too early.
    Truncated {
        /// What was being read.
        what: &'static str,
        /// How many bytes it needs.
        needed_bytes: u64,
        /// How many there are.
        available_bytes: u64,
    },
    /// The file does not begin with the magic.
    Magic {
        /// The first bytes of the file.
        found: [u8; 8],
    },
    /// A frame does not begin with the sync word.
    Sync {
        /// The four bytes found in its place.
        found: [u8; 4],
    },
    /// A checksum disagrees.
    Checksum {
        /// What it covers.
        what: &'static str,
        /// The checksum of the bytes as they are.
        found: u64,
        /// The checksum as it was written.
        expected: u64,
    },
    /// A variable-length number is longer than needed, or than 64 bits.
    Varint {
        /// What was being read.
        what: &'static str,
    },
    /// A field has a value that no writer writes.
    Value {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        rule: &'static str,
    },
    /// Two statements of the archive contradict each other.
    Mismatch {
        /// What they are about.
        what: &'static str,
        /// The one found here.
        found: u64,
        /// The one expected from what came before.
        expected: u64,
    },
    /// Bytes are left over.
    Trailing {
        /// After what.
        what: &'static str,
        /// How many.
        extra_bytes: u64,
    },
    /// A frame stands where its kind may not stand.
    Order {
        /// The kind of the frame.
        kind: FrameKind,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// The archive was written by a later major version.
    Version {
        /// Its major version.
        major: u16,
        /// Its minor version.
        minor: u16,
    },
    /// The archive needs features that this version does not know.
    Features {
        /// The unknown bits.
        unknown_bits: u64,
    },
    /// A frame of a kind that this version cannot read and may not skip.
    Kind {
        /// The kind's number.
        kind: u8,
    },
    /// A frame has flags that this version does not know.
    Flags {
        /// The unknown bits.
        unknown_bits: u8,
    },
    /// A reserved field is in use.
    Reserved {
        /// The field.
        what: &'static str,
        /// Its value; 0 is the only one known.
        value: u64,
    },
    /// A value is over the limit.
    OverLimit {
        /// What it is, with its unit.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The limit.
        limit: u64,
    },
}

impl FormatError {
    /// What the refusal means.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Truncated { .. }
            | Self::Magic { .. }
            | Self::Sync { .. }
            | Self::Checksum { .. }
            | Self::Varint { .. }
            | Self::Value { .. }
            | Self::Mismatch { .. }
            | Self::Trailing { .. }
            | Self::Order { .. } => ErrorClass::Damaged,
            Self::Version { .. }
            | Self::Features { .. }
            | Self::Kind { .. }
            | Self::Flags { .. }
            | Self::Reserved { .. } => ErrorClass::Unsupported,
            Self::OverLimit { .. } => ErrorClass::Limit,
        }
    }
}

impl std::fmt::Display for FormatError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated {
                what,
                needed_bytes,
                available_bytes,
            } => write!(
                out,
                "{what} needs {needed_bytes} bytes, only {available_bytes} are left"
            ),
            Self::Magic { found } => {
                write!(out, "not a Refrain archive: it begins with {found:02x?}")
            }
            Self::Sync { found } if MAGIC.starts_with(found) => {
                write!(
                    out,
                    "another archive begins here; each is read from a file or pipe of its own"
                )
            }
            Self::Sync { found } => write!(out, "no frame begins here: found {found:02x?}"),
            Self::Checksum {
                what,
                found,
                expected,
            } => write!(
                out,
                "{what} checksum is {found:016x}, expected {expected:016x}"
            ),
            Self::Varint { what } => {
                write!(
                    out,
                    "{what} is not a variable-length number in shortest form"
                )
            }
            Self::Value { what, value, rule } => {
                write!(out, "{what} is {value}, but must be {rule}")
            }
            Self::Mismatch {
                what,
                found,
                expected,
            } => write!(out, "{what} is {found}, expected {expected}"),
            Self::Trailing { what, extra_bytes } => {
                write!(out, "{extra_bytes} unexpected bytes after {what}")
            }
            Self::Order { kind, rule } => write!(out, "{kind} frame out of place: {rule}"),
            Self::Version { major, minor } => write!(
                out,
                "archive format {major}.{minor} is newer than this reader"
            ),
            Self::Features { unknown_bits } => write!(
                out,
                "archive needs features unknown to this reader (bits {unknown_bits:#x})"
            ),
            Self::Kind { kind } => write!(
                out,
                "frame kind {kind} is unknown to this reader and must not be skipped"
            ),
            Self::Flags { unknown_bits } => write!(
                out,
                "frame has flags unknown to this reader (bits {unknown_bits:#x})"
            ),
            Self::Reserved { what, value } => write!(
                out,
                "reserved field {what} is {value}: a use unknown to this reader"
            ),
            Self::OverLimit { what, value, limit } => {
                write!(out, "{what} is {value}, over the limit of {limit}")
            }
        }
    }
}

impl std::error::Error for FormatError {}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, FormatError>;
