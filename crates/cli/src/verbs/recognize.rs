//! Recognizes inputs that are not archives of a known format, by their first bytes.

use std::path::Path;

use refrain::Dialect;

use crate::failure::{Failure, Result};
use crate::names;
use crate::text::counted;

/// How many bytes recognition examines: a tar header has its magic number at offset 257.
pub const PREFIX_BYTES: usize = Dialect::PREFIX_BYTES;

/// What to say about an input of unknown format.
const UNKNOWN_TEXT: &str = "unknown format (reads rfn, lrz, gz, xz, zst, bz2, lz4, zip)";

/// Magic numbers of other formats: offset, bytes, name.
const MAGIC_NUMBERS: [(usize, &[u8], &str); 8] = [
    (0, b"7z\xbc\xaf\x27\x1c", "7z"),
    (0, b"Rar!\x1a\x07", "rar"),
    (257, b"ustar", "tar"),
    (0, b"LRZI", "lrzip, which this build cannot read"),
    (0, b"\x1f\x9d", "compress (.Z)"),
    (0, b"\x5d\x00\x00", "lzma"),
    (0, b"hsqs", "SquashFS"),
    (0, b"DWARFS", "DwarFS"),
];

/// The dialect of an input, or `None` if only its name is an archive's: the engine knows what a
/// damaged archive looks like. Refuses an input that is empty or in an unsupported format. `first`
/// are its first [`PREFIX_BYTES`] bytes, or all of a shorter input.
///
/// # Errors
/// `NotAnArchive`.
pub fn dialect(label: &str, first: &[u8]) -> Result<Option<Dialect>> {
    let found = Dialect::from_prefix(first);
    let text = if first.is_empty() {
        "empty file, not a Refrain archive".to_string()
    } else if found.is_some() {
        return Ok(found);
    } else if let Some(name) = other_format(first) {
        this_is(name)
    } else if first.len() < Dialect::PREFIX_BYTES_MIN {
        let length = counted(first.len() as u64, "byte");
        format!("not a Refrain archive: only {length} long")
    } else if names::has_archive_suffix(Path::new(label)) {
        return Ok(None);
    } else {
        UNKNOWN_TEXT.to_string()
    };
    Err(refused(label, text))
}

/// As [`dialect`], for verbs that read archives at any offset: also refuses files of other
/// programs.
///
/// # Errors
/// `NotAnArchive`.
pub fn check(label: &str, first: &[u8]) -> Result<Option<Dialect>> {
    match dialect(label, first)? {
        Some(Dialect::Foreign(format)) => Err(refused(label, this_is(format.name()))),
        found => Ok(found),
    }
}

fn this_is(name: &str) -> String {
    format!("not a Refrain archive: this is {name}")
}

fn refused(label: &str, text: String) -> Failure {
    Failure::NotAnArchive {
        file: label.to_string(),
        text,
    }
}

/// The name of another format that starts with these bytes.
fn other_format(first: &[u8]) -> Option<&'static str> {
    let found = MAGIC_NUMBERS.iter().find(|(offset, magic, _)| {
        let rest = first.get(*offset..).unwrap_or_default();
        rest.starts_with(magic)
    });
    found.map(|(_, _, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(first: &[u8]) -> Option<String> {
        let refused = check("x", first).err();
        refused.map(|failure| failure.to_string())
    }

    #[test]
    fn other_formats_are_named() {
        for (first, name) in [
            (&b"\x1f\x8b\x08\0"[..], "gzip"),
            (b"\xfd7zXZ\0\0", "xz"),
            (b"\x28\xb5\x2f\xfd\0", "zstd"),
            (b"BZh91AY&SY", "bzip2"),
            (b"PK\x03\x04\x14", "zip"),
        ] {
            let expected = format!("x: not a Refrain archive: this is {name}");
            assert_eq!(message(first), Some(expected));
        }
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(message(&tar).is_some_and(|text| text.ends_with("this is tar")));
        let empty = message(b"");
        assert_eq!(
            empty.as_deref(),
            Some("x: empty file, not a Refrain archive")
        );
        let short = message(b"x");
        assert_eq!(
            short.as_deref(),
            Some("x: not a Refrain archive: only 1 byte long")
        );
        let unknown = message(b"a longer text");
        assert!(unknown.is_some_and(|text| text.starts_with("x: unknown format (reads rfn, ")));
        assert!(check("x.rfn", b"a longer text").is_ok());
    }
}
