//! zip: the entries of its central directory, and their content. The crate `zip` reads both.

use std::io::{Read, Seek};

use zip::result::ZipError;
use zip::{CompressionMethod, DateTime, ExtraField, ZipArchive};

use crate::describe::{Description, ZipCounts};
use crate::error::{Error, Result};
use crate::format::Format;

/// The bits of a Unix mode that state the kind of file.
const KIND_MASK: u32 = 0o170_000;
const KIND_DIRECTORY: u32 = 0o040_000;
const KIND_SYMLINK: u32 = 0o120_000;

/// The beginning of the record that ends a zip file, and its length without a comment.
const END_MAGIC: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;

const READ_BYTES: usize = 256 << 10;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZipKind {
    /// A file. Pipes, sockets and devices count as files: what was read from them is their content,
    /// and `unzip` writes it to a file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; its content is the target.
    Symlink,
}

/// An entry of a zip file, as its central directory describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    /// The path as bytes, without a slash at the end; not trusted.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: ZipKind,
    /// Permission bits, if a Unix program wrote it.
    pub mode: Option<u32>,
    /// Seconds since 1970; DOS times, which have no time zone, are taken for UTC.
    pub modified: Option<i64>,
    /// The length of the content.
    pub content_bytes: u64,
    /// The length in the file.
    pub stored_bytes: u64,
    /// The name of the method.
    pub method: String,
    /// Whether it is encrypted and thus unreadable.
    pub is_encrypted: bool,
    /// The offset of its header.
    pub offset: u64,
}

/// A zip file, whose entries can be read in any order. Clones read independently.
#[derive(Clone)]
pub struct ZipFile<R>(ZipArchive<R>);

impl<R: Read + Seek> ZipFile<R> {
    /// Reads the central directory of a file of this length.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Io`.
    pub fn open(reader: R, file_bytes: u64) -> Result<ZipFile<R>> {
        ZipArchive::new(reader)
            .map(ZipFile)
            .map_err(|error| failure(error, file_bytes))
    }

    /// The number of entries. Among entries with the same name, only the last one counts.
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.0.len()
    }

    /// Whether several entries have the same name: all but the last cannot be read.
    #[must_use]
    pub fn has_equal_names(&self) -> bool {
        self.0.has_duplicate_names()
    }

    /// What the central directory of a file of this length states.
    ///
    /// # Errors
    /// As [`ZipFile::entry`].
    pub fn describe(&mut self, file_bytes: u64) -> Result<Description> {
        let mut description = Description::new(Format::Zip, file_bytes);
        description.add_check("CRC-32");
        description.content_bytes = Some(0);
        description.parts = Some(0);
        let mut counts = ZipCounts::default();
        for index in 0..self.entry_count() {
            let entry = self.entry(index)?;
            let is_file = entry.kind == ZipKind::File;
            description.add_part(Some(if is_file { entry.content_bytes } else { 0 }));
            counts.encrypted += u64::from(entry.is_encrypted);
            if is_file {
                counts.files += 1;
                *counts.methods.entry(entry.method).or_default() += 1;
            }
        }
        description.zip = Some(counts);
        Ok(description)
    }

    /// The offset of the central directory.
    #[must_use]
    pub fn directory_offset(&self) -> u64 {
        self.0.central_directory_start()
    }

    /// Finds the record that ends the file in `tail`, which begins in or before the central
    /// directory. Returns the offset after it and its comment.
    #[must_use]
    pub fn end_in(&self, tail: &[u8]) -> Option<usize> {
        let comment = self.0.comment();
        let length = u16::try_from(comment.len()).ok()?.to_le_bytes();
        let is_end = |at: &usize| {
            let record = tail.get(*at..).unwrap_or_default();
            record.starts_with(END_MAGIC)
                && record.get(END_BYTES - 2..END_BYTES) == Some(&length)
                && (record.get(END_BYTES..)).is_some_and(|rest| rest.starts_with(comment))
        };
        let last = tail.len().checked_sub(END_BYTES)?;
        let found = (0..=last).rev().find(is_end)?;
        Some(found + END_BYTES + comment.len())
    }

    /// An entry by its number.
    ///
    /// # Errors
    /// `Damaged` if there is none.
    pub fn entry(&mut self, index: usize) -> Result<ZipEntry> {
        let extended = self.extended_time(index);
        let found = self
            .0
            .by_index_data(index)
            .map_err(|error| failure(error, 0))?;
        // Names are UTF-8, or raw bytes as most programs write them, or code page 437.
        let raw = found.name_raw();
        let mut path = match std::str::from_utf8(raw) {
            Ok(_) => raw.to_vec(),
            Err(_) => (found.name())
                .map_err(|error| failure(error, found.header_start()))?
                .as_bytes()
                .to_vec(),
        };
        let is_directory = path.ends_with(b"/");
        while path.ends_with(b"/") && path.len() > 1 {
            path.pop();
        }
        let mode = found.unix_mode();
        let kind = match mode.map_or(0, |mode| mode & KIND_MASK) {
            KIND_SYMLINK => ZipKind::Symlink,
            _ if is_directory => ZipKind::Directory,
            KIND_DIRECTORY if found.size() == 0 => ZipKind::Directory,
            _ => ZipKind::File,
        };
        Ok(ZipEntry {
            path,
            kind,
            mode: mode.map(|mode| mode & 0o7777),
            modified: extended
                .map(i64::from)
                .or_else(|| found.last_modified().map(seconds)),
            content_bytes: found.size(),
            stored_bytes: found.compressed_size(),
            method: method_name(found.compression()),
            is_encrypted: found.encrypted(),
            offset: found.header_start(),
        })
    }

    /// The time of an entry in Info-ZIP's field, which is UTC. `None` for a damaged header, which
    /// reading the entry reports.
    fn extended_time(&mut self, index: usize) -> Option<u32> {
        let found = self.0.by_index_raw(index).ok()?;
        let mut fields = found.extra_data_fields();
        fields.find_map(|field| match field {
            ExtraField::ExtendedTimestamp(times) => times.mod_time(),
            _ => None,
        })
    }

    /// Passes the content of an entry to `each`, in pieces, up to its end or until `each` returns
    /// false. At the end its length and CRC-32 are compared.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Io`; the errors of `each`.
    pub fn read<E: From<Error>>(
        &mut self,
        index: usize,
        each: &mut dyn FnMut(&[u8]) -> std::result::Result<bool, E>,
    ) -> std::result::Result<(), E> {
        let entry = self.entry(index)?;
        let offset = entry.offset;
        if entry.is_encrypted {
            let path = String::from_utf8_lossy(&entry.path).into_owned();
            let what = format!("the entry {path:?} is encrypted, which is not supported");
            return Err(Error::unsupported(offset, what).into());
        }
        let mut reader = self
            .0
            .by_index(index)
            .map_err(|error| failure(error, offset))?;
        let mut buffer = vec![0; READ_BYTES];
        let mut content_bytes = 0_u64;
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(read_failure(error, &entry).into()),
            };
            content_bytes = content_bytes.saturating_add(count as u64);
            if content_bytes > entry.content_bytes {
                break;
            }
            if !each(buffer.get(..count).unwrap_or_default())? {
                return Ok(());
            }
        }
        if content_bytes == entry.content_bytes {
            Ok(())
        } else {
            let path = String::from_utf8_lossy(&entry.path).into_owned();
            let what = format!(
                "the length of the entry {path:?} is not the {} bytes that the directory states",
                entry.content_bytes
            );
            Err(Error::damaged(offset, what).into())
        }
    }
}

fn read_failure(error: std::io::Error, entry: &ZipEntry) -> Error {
    use std::io::ErrorKind;
    let is_of_data = matches!(
        error.kind(),
        ErrorKind::InvalidData
            | ErrorKind::InvalidInput
            | ErrorKind::UnexpectedEof
            | ErrorKind::Other
    );
    match is_of_data {
        false if error.kind() == ErrorKind::Unsupported => Error::unsupported(
            entry.offset,
            format!("the zip file is not supported: {error}"),
        ),
        false => Error::Io(error),
        true => {
            let path = String::from_utf8_lossy(&entry.path).into_owned();
            Error::damaged(
                entry.offset,
                format!("the entry {path:?} is damaged: {error}"),
            )
        }
    }
}

fn failure(error: ZipError, offset: u64) -> Error {
    match error {
        ZipError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Error::Truncated {
                offset,
                what: "a zip file",
            }
        }
        ZipError::Io(error) => Error::Io(error),
        ZipError::UnsupportedArchive(what) => {
            Error::unsupported(offset, format!("the zip file is not supported: {what}"))
        }
        ZipError::CompressionMethodNotSupported(method) => {
            Error::unsupported(offset, format!("the zip method {method} is not supported"))
        }
        error => Error::damaged(offset, format!("the zip file is damaged: {error}")),
    }
}

fn method_name(method: CompressionMethod) -> String {
    match method {
        CompressionMethod::Stored => "stored".to_owned(),
        CompressionMethod::Deflated => "deflate".to_owned(),
        other => format!("{other:?}").to_ascii_lowercase(),
    }
}

/// Seconds since 1970 of a time in the proleptic Gregorian calendar, taken for UTC.
fn seconds(time: DateTime) -> i64 {
    let (year, month) = (i64::from(time.year()), i64::from(time.month()));
    let day = i64::from(time.day());
    // Years that begin in March have their leap day at the end.
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468;
    let (hour, minute) = (i64::from(time.hour()), i64::from(time.minute()));
    ((days * 24 + hour) * 60 + minute) * 60 + i64::from(time.second())
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::write::SimpleFileOptions;

    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let time = DateTime::from_date_and_time(2024, 2, 29, 12, 30, 58).unwrap();
        let options = SimpleFileOptions::default().last_modified_time(time);
        writer.add_directory("d/", options).unwrap();
        writer
            .start_file("d/a", options.unix_permissions(0o640))
            .unwrap();
        writer.write_all(&b"content ".repeat(1000)).unwrap();
        let stored = options.compression_method(CompressionMethod::Stored);
        writer.start_file("b", stored).unwrap();
        writer.write_all(b"stored").unwrap();
        writer.add_symlink("d/link", "a", options).unwrap();
        writer.finish().unwrap().into_inner()
    }

    fn read(bytes: &[u8], index: usize) -> Result<Vec<u8>> {
        let mut file = ZipFile::open(Cursor::new(bytes), bytes.len() as u64)?;
        if index >= file.entry_count() {
            return Ok(Vec::new());
        }
        let mut content = Vec::new();
        file.read(index, &mut |piece| -> Result<bool> {
            content.extend_from_slice(piece);
            Ok(true)
        })?;
        Ok(content)
    }

    #[test]
    fn entries_and_their_content_are_read() {
        let bytes = sample();
        let mut file = ZipFile::open(Cursor::new(&bytes[..]), bytes.len() as u64).unwrap();
        let entries: Vec<_> = (0..file.entry_count())
            .map(|index| file.entry(index).unwrap())
            .collect();
        let kinds: Vec<_> = entries
            .iter()
            .map(|entry| (entry.path.as_slice(), entry.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                (&b"d"[..], ZipKind::Directory),
                (b"d/a", ZipKind::File),
                (b"b", ZipKind::File),
                (b"d/link", ZipKind::Symlink),
            ]
        );
        assert_eq!(entries[1].mode, Some(0o640));
        assert_eq!(entries[1].modified, Some(1_709_209_858));
        assert_eq!(read(&bytes, 1).unwrap(), b"content ".repeat(1000));
        assert_eq!(read(&bytes, 2).unwrap(), b"stored");
        assert_eq!(read(&bytes, 3).unwrap(), b"a");
    }

    #[test]
    fn cut_and_changed_files_are_refused_or_right() {
        let bytes = sample();
        let contents: Vec<_> = (0..4).map(|index| read(&bytes, index).unwrap()).collect();
        for length in 0..bytes.len() {
            for index in 0..4 {
                if let Ok(found) = read(&bytes[..length], index) {
                    assert!(found.is_empty() || contents.contains(&found), "{length}");
                }
            }
        }
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            for index in 0..4 {
                if let Ok(found) = read(&changed, index) {
                    assert!(found.is_empty() || contents.contains(&found), "bit {bit}");
                }
            }
        }
    }
}
