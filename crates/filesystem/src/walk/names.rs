//! The names of one directory.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::FileType;

#[derive(Debug, Default)]
pub(crate) struct Names {
    /// A mark, the name and NUL for each name.
    bytes: Vec<u8>,
    /// Where the names start in `bytes`, after the mark.
    starts: Vec<usize>,
}

/// Marks a name that the file system lists as a directory, and all others.
const DIRECTORY_MARK: u8 = 1;
const NO_MARK: u8 = 0;

/// Memory for reading directories.
#[derive(Debug)]
pub(crate) struct ListBuffer(Vec<u8>);

impl ListBuffer {
    const BYTES: usize = 64 << 10;

    pub(crate) fn new() -> ListBuffer {
        ListBuffer(Vec::with_capacity(Self::BYTES))
    }
}

impl Names {
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The name at a position, without the NUL.
    pub(crate) fn get(&self, position: usize) -> Option<&[u8]> {
        let rest = self.bytes.get(*self.starts.get(position)?..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        rest.get(..length)
    }

    /// Whether the file system listed a name as a directory. If not, it may still be one.
    pub(crate) fn is_directory(&self, position: usize) -> bool {
        let start = self.starts.get(position).copied().unwrap_or(0);
        self.bytes.get(start.wrapping_sub(1)) == Some(&DIRECTORY_MARK)
    }

    /// Adds a name, without NUL.
    pub(crate) fn push(&mut self, name: &[u8]) {
        self.push_marked(name, NO_MARK);
    }

    fn push_marked(&mut self, name: &[u8], mark: u8) {
        self.bytes.push(mark);
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
    }

    /// The names must be sorted.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).unwrap_or_default().cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        false
    }

    /// Sorts the names, and removes a name listed twice because the directory changed.
    fn sort(&mut self) {
        let bytes = &self.bytes;
        // Two names differ at the NUL of one of them at the latest.
        let rest = |start: usize| bytes.get(start..).unwrap_or_default();
        self.starts.sort_unstable_by(|a, b| rest(*a).cmp(rest(*b)));
        let name = |start: usize| rest(start).split(|byte| *byte == 0).next();
        self.starts.dedup_by(|a, b| name(*a) == name(*b));
    }

    /// Lists an open directory, without `.` and `..`. An error comes with the names read so far.
    #[cfg(target_os = "linux")]
    pub(crate) fn list(directory: impl AsFd, buffer: &mut ListBuffer) -> (Names, io::Result<()>) {
        let mut names = Names::default();
        let mut result = Ok(());
        let mut entries = rustix::fs::RawDir::new(directory, buffer.0.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) => names.push_listed(entry.file_name().to_bytes(), entry.file_type()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            }
        }
        names.sort();
        (names, result)
    }

    /// Lists an open directory, without `.` and `..`. An error comes with the names read so far.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn list(directory: impl AsFd, _: &mut ListBuffer) -> (Names, io::Result<()>) {
        let mut names = Names::default();
        let mut result = Ok(());
        match rustix::fs::Dir::read_from(directory) {
            Err(error) => result = Err(error.into()),
            Ok(entries) => {
                for entry in entries {
                    match entry {
                        Ok(entry) => {
                            names.push_listed(entry.file_name().to_bytes(), entry.file_type())
                        }
                        Err(error) => {
                            result = Err(error.into());
                            break;
                        }
                    }
                }
            }
        }
        names.sort();
        (names, result)
    }

    fn push_listed(&mut self, name: &[u8], file_type: FileType) {
        if name != b"." && name != b".." {
            let is_directory = file_type == FileType::Directory;
            self.push_marked(name, if is_directory { DIRECTORY_MARK } else { NO_MARK });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_bytes_once_each_and_found() {
        let mut names = Names::default();
        for name in ["b", "a-", "a", "ab", "\u{1}", "é", "a", "b"] {
            names.push(name.as_bytes());
        }
        names.sort();
        let sorted: Vec<_> = (0..names.len()).map(|i| names.get(i).unwrap()).collect();
        let expected = ["\u{1}", "a", "a-", "ab", "b", "é"];
        assert_eq!(sorted, expected.map(str::as_bytes));
        assert!(names.contains(b"a-") && names.contains("é".as_bytes()));
        assert!(!names.contains(b"") && !names.contains(b"aa") && !names.contains(b"zz"));
    }
}
