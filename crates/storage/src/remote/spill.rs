//! Fetched pages that do not fit into memory: in a temporary file, to be found again without a
//! request.

use std::ops::Range;
use std::path::PathBuf;

use refrain_pool::{Lock, OnceValue};

use super::runs::PAGE_BYTES;
use crate::scratch_file::ScratchFile;
use crate::source::Source;

/// The file is created only on a disk with this many times its length free.
const FREE_FACTOR: u64 = 2;

/// A partial copy of an object, which grows by what was fetched.
#[derive(Debug)]
pub(super) struct Spill {
    directory: Option<PathBuf>,
    length_bytes: u64,
    /// Created when needed; `None` if that failed.
    file: OnceValue<Option<ScratchFile>>,
    pages: Lock<Pages>,
}

/// One bit for each page that the file has.
#[derive(Debug, Default)]
struct Pages {
    words: Vec<u64>,
    /// Set after a failed write: nothing more is added.
    is_full: bool,
}

impl Pages {
    fn has(&self, page: u64) -> bool {
        let word = usize::try_from(page / 64).ok();
        let word = word.and_then(|word| self.words.get(word));
        word.is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    fn add(&mut self, page: u64) {
        let Ok(word) = usize::try_from(page / 64) else {
            return;
        };
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (page % 64);
    }
}

impl Spill {
    /// For an object of this length. Without a directory it stays empty.
    pub(super) fn new(directory: Option<PathBuf>, length_bytes: u64) -> Spill {
        Spill {
            directory,
            length_bytes,
            file: OnceValue::default(),
            pages: Lock::default(),
        }
    }

    /// Splits a range of whole pages where the file stops or starts having them. Tells for each
    /// part whether the file has it.
    pub(super) fn parts(&self, range: Range<u64>) -> Vec<(Range<u64>, bool)> {
        let pages = self.pages.lock();
        let mut parts: Vec<(Range<u64>, bool)> = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let end = ((start / PAGE_BYTES + 1) * PAGE_BYTES).min(range.end);
            let has = pages.has(start / PAGE_BYTES);
            match parts.last_mut() {
                Some((last, last_has)) if *last_has == has => last.end = end,
                _ => parts.push((start..end, has)),
            }
            start = end;
        }
        parts
    }

    /// Reads a range that the file has. `None` if that fails: then it is fetched again.
    pub(super) fn read(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let file = self.file.get()?.as_ref()?;
        let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
        let count = file.read_at(range.start, &mut bytes).ok()?;
        (count == bytes.len()).then_some(bytes)
    }

    /// Keeps the bytes starting at `start`: whole pages, except at the end of the object.
    pub(super) fn keep(&self, start: u64, bytes: &[u8]) {
        let first = start / PAGE_BYTES;
        let end = (start + bytes.len() as u64).div_ceil(PAGE_BYTES);
        {
            let pages = self.pages.lock();
            if pages.is_full || (first..end).all(|page| pages.has(page)) {
                return;
            }
        }
        let made = self.file.get_or_try_init(|| Ok::<_, ()>(self.make()));
        let written = match made {
            Ok(Some(file)) => file.write_at(start, bytes).is_ok(),
            _ => false,
        };
        let mut pages = self.pages.lock();
        if written {
            (first..end).for_each(|page| pages.add(page))
        } else {
            pages.is_full = true
        }
    }

    fn make(&self) -> Option<ScratchFile> {
        let file = ScratchFile::create(self.directory.as_ref()?).ok()?;
        let free_bytes = file.free_bytes().ok()?;
        (free_bytes / FREE_FACTOR >= self.length_bytes).then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = PAGE_BYTES;

    #[test]
    fn what_is_kept_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let length = 10 * PAGE + 3;
        let spill = Spill::new(Some(directory.path().to_owned()), length);
        assert_eq!(spill.parts(0..length), [(0..length, false)]);
        let bytes: Vec<u8> = (0..2 * PAGE).map(|at| (at / 7) as u8).collect();
        spill.keep(2 * PAGE, &bytes);
        spill.keep(10 * PAGE, b"end");
        let expected = [
            (PAGE..2 * PAGE, false),
            (2 * PAGE..4 * PAGE, true),
            (4 * PAGE..10 * PAGE, false),
            (10 * PAGE..length, true),
        ];
        assert_eq!(spill.parts(PAGE..length), expected);
        assert_eq!(
            spill.read(&(3 * PAGE..4 * PAGE)).as_deref(),
            Some(&bytes[PAGE as usize..])
        );
        assert_eq!(
            spill.read(&(10 * PAGE..length)).as_deref(),
            Some(&b"end"[..])
        );
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_a_directory_or_room_nothing_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        for (path, length) in [
            (None, PAGE),
            (Some(directory.path().join("absent")), PAGE),
            (Some(directory.path().to_owned()), u64::MAX / 4),
        ] {
            let spill = Spill::new(path, length);
            spill.keep(0, &[1; PAGE_BYTES as usize]);
            assert_eq!(spill.parts(0..PAGE), [(0..PAGE, false)]);
            assert_eq!(spill.read(&(0..PAGE)), None);
        }
    }
}
