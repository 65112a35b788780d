//! Errors, with the offending values in their messages.

use crate::constants::{FrameKind, MAGIC};

/// The class of an error: what it means for the owner of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// No writer of this format writes these bytes: the archive is damaged, truncated, or not an
    /// archive.
    Damaged,
    /// The archive may be intact, but needs a feature that this version does not have.
    Unsupported,
    /// The archive may be intact, but a value exceeds the stated limit.
    Limit,
}

/// An error. The caller, which supplies the bytes, adds the archive offset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes end too early.
    Truncated {
        /// What was being read.
        what: &'static str,
        /// The number of bytes it needs.
        needed_bytes: u64,
        /// The number of bytes available.
        available_bytes: u64,
    },
    /// The file does not begin with the magic number.
    Magic {
        /// The first bytes of the file.
        found: [u8; 8],
    },
    /// A frame does not begin with the sync word.
    Sync {
        /// The four bytes found instead.
        found: [u8; 4],
    },
    /// A checksum does not match.
    Checksum {
        /// The data that it covers.
        what: &'static str,
        /// The checksum of the data as read.
        found: u64,
        /// The checksum stated in the archive.
        expected: u64,
    },
    /// A variable-length number is not in its shortest form, or exceeds 64 bits.
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
        /// The allowed values.
        rule: &'static str,
    },
    /// Two values of the archive contradict each other.
    Mismatch {
        /// The name of the value.
        what: &'static str,
        /// The value found.
        found: u64,
        /// The value expected from earlier frames.
        expected: u64,
    },
    /// A value exceeds the maximum that the Archive frame states.
    OverSetting {
        /// The name of the value, with its unit.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The maximum in the Archive frame.
        setting: u64,
    },
    /// An entry contradicts other entries, or its member's end.
    EntryList {
        /// The number of the entry in its member, from 0.
        entry: u64,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// There are unexpected bytes at the end.
    Trailing {
        /// What they follow.
        what: &'static str,
        /// The number of bytes.
        extra_bytes: u64,
    },
    /// A frame is in a position where its kind is not allowed.
    Order {
        /// The kind of the frame.
        kind: FrameKind,
        /// The rule that it violates.
        rule: &'static str,
    },
    /// The archive was written by a later major version.
    Version {
        /// Its major version.
        major: u16,
        /// Its minor version.
        minor: u16,
    },
    /// The archive needs features that this version does not have.
    Features {
        /// The unknown bits.
        unknown_bits: u64,
    },
    /// A frame of a kind that this version cannot read and may not skip.
    Kind {
        /// The id of the kind.
        kind: u8,
    },
    /// A frame has flags that this version does not know.
    Flags {
        /// The unknown bits.
        unknown_bits: u8,
    },
    /// A field has a value that is reserved for later versions.
    Reserved {
        /// The field.
        what: &'static str,
        /// Its value, or its unknown bits.
        value: u64,
    },
    /// A value exceeds its limit.
    OverLimit {
        /// The name of the value, with its unit.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The limit.
        limit: u64,
    },
}

/// What a file begins with, in [`FormatError::Truncated`].
pub(crate) const MAGIC_NAME: &str = "archive magic";

/// Bytes for people: as text in quotes if they are some, otherwise in hexadecimal.
struct Shown<'a>(&'a [u8]);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
        if self.0.iter().all(is_text) {
            return write!(out, "{:?}", String::from_utf8_lossy(self.0));
        }
        for (number, byte) in self.0.iter().enumerate() {
            let space = if number == 0 { "" } else { " " };
            write!(out, "{space}{byte:02x}")?;
        }
        Ok(())
    }
}

impl FormatError {
    /// Returns the class of the error.
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
            | Self::OverSetting { .. }
            | Self::EntryList { .. }
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
                what: MAGIC_NAME,
                needed_bytes,
                available_bytes,
            } => write!(
                out,
                "too short for a Refrain archive, which begins with {needed_bytes} bytes: \
                 only {available_bytes} are left"
            ),
            Self::Truncated {
                what,
                needed_bytes,
                available_bytes,
            } => write!(
                out,
                "{what} needs {needed_bytes} bytes, only {available_bytes} are left"
            ),
            Self::Magic { found } => {
                let found = Shown(found);
                write!(out, "not a Refrain archive: it begins with {found}")
            }
            Self::Sync { found } if MAGIC.starts_with(found) => {
                write!(
                    out,
                    "another archive begins here; give each archive as a file or pipe of its own"
                )
            }
            Self::Sync { found } => {
                write!(out, "no frame begins here, but {}", Shown(found))
            }
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
            Self::OverSetting {
                what,
                value,
                setting,
            } => write!(
                out,
                "{what} is {value}, above the archive's own setting of {setting}"
            ),
            Self::EntryList { entry, rule } => {
                write!(out, "entry {entry} of its member breaks a rule: {rule}")
            }
            Self::Trailing { what, extra_bytes } => {
                write!(out, "{extra_bytes} unexpected bytes after {what}")
            }
            Self::Order { kind, rule } => write!(out, "{kind} frame in the wrong position: {rule}"),
            Self::Version { major, minor } => write!(
                out,
                "archive format {major}.{minor} is not supported by this version"
            ),
            Self::Features { unknown_bits } => write!(
                out,
                "the archive needs features that this version does not have (bits {unknown_bits:#x})"
            ),
            Self::Kind { kind } => write!(
                out,
                "frame kind {kind} is not supported by this version and must not be skipped"
            ),
            Self::Flags { unknown_bits } => write!(
                out,
                "a frame has flags that this version does not know (bits {unknown_bits:#x})"
            ),
            Self::Reserved { what, value } => {
                write!(out, "{what} {value} is not supported by this version")
            }
            Self::OverLimit { what, value, limit } => {
                write!(out, "{what} is {value}, above the limit of {limit}")
            }
        }
    }
}

impl std::error::Error for FormatError {}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, FormatError>;

#[cfg(test)]
mod tests {
    use crate::frame::check_magic;

    #[test]
    fn what_is_no_archive_is_shown_as_people_read_it() {
        for (start, expected) in [
            (&b"the file"[..], "it begins with \"the file\""),
            (
                b"\x7fELF\x02\x01\x01\0",
                "it begins with 7f 45 4c 46 02 01 01 00",
            ),
            (b"hello\n", "too short for a Refrain archive"),
        ] {
            let text = check_magic(start).unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
