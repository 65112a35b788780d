//! What a library was made from: a file beside it, with the size and the time of each part. A part
//! that gets an earlier time (`cp -p`, `rsync -t`) has changed as well.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use refrain_plugin::ABI;

use super::dependencies::prerequisites;

/// The size and the time of the last change of a file, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(String);

impl Stamp {
    /// That of a file; `None` if there is none.
    pub fn of(path: &Path) -> Option<Stamp> {
        let found = fs::metadata(path).ok()?;
        let (seconds, nanoseconds) = (found.mtime(), found.mtime_nsec());
        let bytes = found.len();
        Some(Stamp(format!(
            "{bytes} bytes at {seconds}.{nanoseconds:09}"
        )))
    }

    /// That of a file which changed while it was read: no file has it.
    fn changing() -> Stamp {
        Stamp("changing".to_owned())
    }
}

/// Files and their stamps.
pub type Stamps = BTreeMap<PathBuf, Option<Stamp>>;

/// The stamps of files.
pub fn stamps_of(paths: impl IntoIterator<Item = PathBuf>) -> Stamps {
    let stamped = paths.into_iter().map(|path| {
        let stamp = Stamp::of(&path);
        (path, stamp)
    });
    stamped.collect()
}

/// The text of a record: rules for `make`, with a stamp before each.
pub struct Record(Vec<u8>);

impl Record {
    /// Of a library that was just made of these parts, since the time at which `begun` was written.
    /// `before` has stamps of that time, of the parts that were known.
    pub fn of(library: &Path, parts: &[PathBuf], begun: &Path, before: &Stamps) -> Record {
        let mut record = Record(first_line().into_bytes());
        record.add_stamp(Stamp::of(library));
        // The time of a change can be set; not the time at which that was done.
        let changed_at = |path: &Path| {
            let found = fs::metadata(path).ok()?;
            Some((found.ctime(), found.ctime_nsec()))
        };
        let begun_at = changed_at(begun);
        for part in parts {
            let is_old = changed_at(part).is_some_and(|time| Some(time) < begun_at);
            let stamp = Stamp::of(part);
            // Clocks differ: what is new by its time may be as it was.
            let is_same = stamp.is_some() && before.get(part) == Some(&stamp);
            record.add_stamp(stamp.filter(|_| is_old || is_same));
            record.0.extend(rule(part));
        }
        record
    }

    fn add_stamp(&mut self, stamp: Option<Stamp>) {
        let Stamp(text) = stamp.unwrap_or_else(Stamp::changing);
        self.0.extend(format!("{STAMP}{text}\n").into_bytes());
    }

    /// Its text.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads one. `None` if there is none.
    pub fn read(path: &Path) -> Option<Record> {
        fs::read(path).ok().map(Record)
    }

    /// The parts.
    pub fn parts(&self) -> Vec<PathBuf> {
        prerequisites(&self.0)
    }

    /// Whether the library and all it was made from, the source among it, are what they were, and
    /// the interface too.
    pub fn is_true(&self, library: &Path, source: &Path) -> bool {
        let parts = self.parts();
        let files = std::iter::once(library).chain(parts.iter().map(PathBuf::as_path));
        let found: Option<Vec<Stamp>> = files.map(Stamp::of).collect();
        self.0.starts_with(first_line().as_bytes())
            && parts.iter().any(|part| part == source)
            && found.is_some_and(|found| found == self.stamps())
    }

    fn stamps(&self) -> Vec<Stamp> {
        let lines = self.0.split(|&byte| byte == b'\n');
        let stamps = lines.filter_map(|line| line.strip_prefix(STAMP.as_bytes()));
        let stamps = stamps.map(|text| Stamp(String::from_utf8_lossy(text).into_owned()));
        stamps.collect()
    }
}

/// What a stamp begins with: a comment in the eyes of `make`.
const STAMP: &str = "# was ";

/// The version of the interface that the header had.
fn first_line() -> String {
    format!("# interface {ABI} for plug-ins\n")
}

/// A rule of its own for a prerequisite.
fn rule(path: &Path) -> Vec<u8> {
    let mut rule = b"library: ".to_vec();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b' ' | b'#' => rule.push(b'\\'),
            b'$' => rule.push(b'$'),
            _ => {}
        }
        rule.push(byte);
    }
    rule.push(b'\n');
    rule
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_change_is_seen_whatever_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let [library, source, part, begun] =
            ["a.so", "a $#b.c", "part.h", "begun"].map(|name| folder.path().join(name));
        for path in [&library, &source, &part] {
            fs::write(path, "first").unwrap();
        }
        // The kernel dates files by ticks of some milliseconds.
        let changed_at = |path: &Path| fs::metadata(path).unwrap().ctime_nsec();
        fs::write(&begun, "").unwrap();
        while changed_at(&begun) == changed_at(&part) {
            fs::remove_file(&begun).unwrap();
            fs::write(&begun, "").unwrap();
        }
        let parts = [source.clone(), part.clone()];
        let record = Record::of(&library, &parts, &begun, &Stamps::new());
        assert!(record.is_true(&library, &source));
        assert_eq!(record.parts(), parts);
        assert!(!record.is_true(&library, &begun), "of another source");
        // With the same time it has another size, with the same size an earlier time.
        let first = fs::metadata(&part).unwrap().modified().unwrap();
        let dated = |time: SystemTime| {
            let file = fs::File::options().write(true).open(&part).unwrap();
            file.set_modified(time).unwrap();
        };
        fs::write(&part, "longer").unwrap();
        dated(first);
        assert!(!record.is_true(&library, &source));
        fs::write(&part, "first").unwrap();
        dated(first - Duration::from_secs(3600));
        assert!(!record.is_true(&library, &source));
        dated(first);
        assert!(record.is_true(&library, &source));
        // What changed since the beginning may have changed while it was read, unless it is known
        // to be as it was.
        let record = Record::of(&library, &parts, &begun, &Stamps::new());
        assert!(!record.is_true(&library, &source));
        let before = stamps_of(parts.clone());
        let record = Record::of(&library, &parts, &begun, &before);
        assert!(record.is_true(&library, &source));
        fs::write(&part, "another").unwrap();
        let record = Record::of(&library, &parts, &begun, &before);
        assert!(!record.is_true(&library, &source));
    }
}
