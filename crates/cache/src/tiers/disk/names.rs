//! Where values with names are: one that several archives have is in the files of one of them.
//!
//! A table of fixed size, a bucket for each hash of a name. What has no room replaces something,
//! and an entry may say what is no longer so: whoever uses it checks the range, and its name.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use refrain_protect::checksum64;

use super::files::{open_file, read_whole};

/// What the table has of a value: identity (32 bytes), offset and length of the range, the second
/// half of the name, and a checksum of these (8 bytes each).
const ENTRY_BYTES: usize = 64;
const BUCKET_ENTRIES: usize = 4;
const BUCKET_BYTES: u64 = (ENTRY_BYTES * BUCKET_ENTRIES) as u64;
/// A bucket for so many bytes of the directory's limit, so that the table takes 0.2 % of it.
const BYTES_PER_BUCKET: u64 = 128 << 10;

/// The name of the file.
pub(super) const FILE: &str = "names";

/// A range of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The identity of the archive.
    pub identity: [u8; 32],
    /// Where the range begins.
    pub offset: u64,
    /// How long it is.
    pub length_bytes: u64,
}

type Entry = [u8; ENTRY_BYTES];

/// The table.
pub(super) struct Names {
    file: File,
    buckets: u64,
}

impl Names {
    /// The table in a directory. Its size is that of the limit when it was made.
    pub(super) fn open(directory: &Path, limit_bytes: u64) -> io::Result<Names> {
        let file = open_file(&directory.join(FILE))?;
        if file.metadata()?.len() < BUCKET_BYTES {
            file.set_len(limit_bytes.div_ceil(BYTES_PER_BUCKET).max(1) * BUCKET_BYTES)?;
        }
        let buckets = file.metadata()?.len() / BUCKET_BYTES;
        Ok(Names { file, buckets })
    }

    /// A range that had the value of this name.
    pub(super) fn find(&self, name: &[u8; 16]) -> io::Result<Option<Place>> {
        let entries = self.bucket(name)?;
        Ok(entries.iter().find_map(|entry| place_in(entry, name)))
    }

    /// Notes that a range has the value of this name.
    pub(super) fn note(&self, name: &[u8; 16], place: &Place) -> io::Result<()> {
        let entries = self.bucket(name)?;
        let same = |entry: &Entry| place_in(entry, name).is_some();
        let at = entries.iter().position(same);
        let at = at.or_else(|| entries.iter().position(|entry| !is_whole(entry)));
        let at = at.unwrap_or(usize::from(name[15]) % BUCKET_ENTRIES);
        let offset = self.bucket_offset(name) + (at * ENTRY_BYTES) as u64;
        self.file.write_all_at(&entry_of(name, place), offset)
    }

    fn bucket_offset(&self, name: &[u8; 16]) -> u64 {
        let [first, _] = halves(name);
        u64::from_le_bytes(first) % self.buckets.max(1) * BUCKET_BYTES
    }

    fn bucket(&self, name: &[u8; 16]) -> io::Result<Vec<Entry>> {
        let mut bytes = [0; BUCKET_BYTES as usize];
        read_whole(&self.file, self.bucket_offset(name), &mut bytes)?;
        Ok(bytes.as_chunks().0.to_vec())
    }
}

fn halves(name: &[u8; 16]) -> [[u8; 8]; 2] {
    let number = u128::from_le_bytes(*name);
    [number as u64, (number >> 64) as u64].map(u64::to_le_bytes)
}

fn entry_of(name: &[u8; 16], place: &Place) -> Entry {
    let mut entry = [0; ENTRY_BYTES];
    let (fields, checksum) = entry.split_at_mut(ENTRY_BYTES - 8);
    let numbers = [place.offset, place.length_bytes].map(u64::to_le_bytes);
    let [_, second] = halves(name);
    let found = [&place.identity[..], &numbers[0], &numbers[1], &second].concat();
    fields.copy_from_slice(&found);
    checksum.copy_from_slice(&checksum64(fields).to_le_bytes());
    entry
}

/// Whether there is something, and not a part of it.
fn is_whole(entry: &Entry) -> bool {
    let (fields, checksum) = entry.split_at(ENTRY_BYTES - 8);
    checksum64(fields).to_le_bytes() == checksum && fields != [0; ENTRY_BYTES - 8]
}

/// What an entry says of the value of a name.
fn place_in(entry: &Entry, name: &[u8; 16]) -> Option<Place> {
    let (identity, rest) = entry.split_first_chunk::<32>()?;
    let (numbers, _) = rest.as_chunks::<8>();
    let [offset, length_bytes, second, _] = numbers else { return None };
    let is_this = is_whole(entry) && *second == halves(name)[1];
    is_this.then(|| Place {
        identity: *identity,
        offset: u64::from_le_bytes(*offset),
        length_bytes: u64::from_le_bytes(*length_bytes),
    })
}

#[cfg(test)]
mod tests {
    use refrain_testkit::Rng;

    use super::*;

    #[test]
    fn places_are_found_by_names_until_there_is_no_room() {
        let directory = tempfile::tempdir().unwrap();
        let names = Names::open(directory.path(), 64 << 20).unwrap();
        let mut rng = Rng::new(1);
        let mut row = || {
            let name = u128::from(rng.any()) << 64 | u128::from(rng.any());
            let place = Place {
                identity: [rng.any() as u8; 32],
                offset: rng.any(),
                length_bytes: rng.any(),
            };
            (name.to_le_bytes(), place)
        };
        // 512 buckets for four each.
        let rows: Vec<_> = (0..1024).map(|_| row()).collect();
        for (name, place) in &rows {
            assert_eq!(names.find(name).unwrap(), None);
            names.note(name, place).unwrap();
            assert_eq!(names.find(name).unwrap(), Some(*place));
        }
        // Another process with another limit uses the same table.
        let names = Names::open(directory.path(), 1 << 30).unwrap();
        let kept = |(name, place): &&([u8; 16], Place)| names.find(name).unwrap() == Some(*place);
        let count = rows.iter().filter(kept).count();
        assert!(count > 950, "{count}");
        // What is damaged says nothing, and something newer replaces what is older.
        let (name, place) = rows[1023];
        let newer = Place { offset: 7, ..place };
        names.note(&name, &newer).unwrap();
        assert_eq!(names.find(&name).unwrap(), Some(newer));
        let mut bytes = std::fs::read(directory.path().join(FILE)).unwrap();
        for at in (0..bytes.len()).step_by(ENTRY_BYTES) {
            bytes[at + at / ENTRY_BYTES % ENTRY_BYTES] ^= 1;
        }
        std::fs::write(directory.path().join(FILE), bytes).unwrap();
        assert!(
            rows.iter()
                .all(|(name, _)| names.find(name).unwrap().is_none())
        );
    }
}
