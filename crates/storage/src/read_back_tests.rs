use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::*;
use crate::{AtomicFile, Checking, OutputOptions, Sink, Temporary, is_in_memory};

const CHECKED: OutputOptions = OutputOptions {
    checking: Checking::ReadBack,
    temporary: Temporary::Hidden,
    sparse: true,
    overwrite: crate::Overwrite::Replace,
    durability: crate::Durability::Unsynced,
    mode: None,
    mode_limit: None,
    modified: None,
    cache_bytes: None,
};

/// A directory whose files are on a disk, if there is one.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

/// Writes data, a hole and data of no round lengths. Returns the number of bytes.
fn write_pieces(sink: &mut dyn Sink) -> u64 {
    let piece: Vec<u8> = (0..5_000_003_u32).map(|n| (n / 7) as u8).collect();
    sink.write_all(&piece).unwrap();
    sink.write_zeros(3 << 20).unwrap();
    sink.write_all(&[0; 20_000]).unwrap();
    sink.write_all(&piece[..70_001]).unwrap();
    sink.write_zeros(10_000).unwrap();
    5_000_003 + (3 << 20) + 20_000 + 70_001 + 10_000
}

/// Changes the only file of a directory: what a disk does that lies.
fn change(directory: &Path, offset: u64) {
    let found = fs::read_dir(directory).unwrap().next().unwrap().unwrap();
    let file = OpenOptions::new().write(true).open(found.path()).unwrap();
    file.write_at(b"\x55", offset).unwrap();
}

#[test]
fn what_was_written_is_read_back_from_the_disk() {
    for temporary in [Temporary::Hidden, Temporary::Unnamed] {
        let directory = on_disk();
        let path = directory.path().join("file");
        let mut sink = AtomicFile::create(
            &path,
            &OutputOptions {
                temporary,
                ..CHECKED
            },
        )
        .unwrap();
        let bytes = write_pieces(&mut sink);
        assert_eq!(sink.read_back_result(), None);
        sink.publish().unwrap();
        let found = sink.read_back_result().unwrap();
        assert_eq!((found.files, found.bytes), (1, bytes));
        let is_cached = is_in_memory(directory.path());
        assert_eq!(
            (found.cached_files, found.cached.is_some()),
            (u64::from(is_cached), is_cached)
        );
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
    }
}

#[test]
fn a_file_that_differs_gets_no_name() {
    // In data, in zeros that were written as a hole, in a hole at the end.
    for offset in [4_999_999, 5_000_003 + (1 << 20), 8_220_000] {
        let directory = on_disk();
        let path = directory.path().join("file");
        fs::write(&path, "old").unwrap();
        let mut sink = AtomicFile::create(&path, &CHECKED).unwrap();
        write_pieces(&mut sink);
        fs::rename(&path, directory.path().with_extension("aside")).unwrap();
        change(directory.path(), offset);
        fs::rename(directory.path().with_extension("aside"), &path).unwrap();
        let error = sink.publish().unwrap_err();
        assert!(NotAsWritten::is_inside(&error));
        let text = error.to_string();
        assert!(
            text.contains("cannot confirm what was written to"),
            "{text}"
        );
        let range = text
            .split(' ')
            .find_map(|word| word.split_once(".."))
            .unwrap();
        let (start, end) = (range.0.parse().unwrap(), range.1.parse().unwrap());
        assert!((start..end).contains(&offset), "{offset}: {text}");
        assert!(sink.publish().is_err());
        drop(sink);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_file_that_differs_is_kept_on_request() {
    let directory = on_disk();
    let path = directory.path().join("file");
    let options = OutputOptions {
        checking: Checking::ReadBackAndKeep,
        ..CHECKED
    };
    let mut sink = AtomicFile::create(&path, &options).unwrap();
    sink.write_all(b"written").unwrap();
    // The last bytes are written when the file is complete.
    sink.write_zeros(8192).unwrap();
    change(directory.path(), 3);
    assert!(sink.publish().is_err());
    assert_eq!(&fs::read(&path).unwrap()[..7], b"wriUten");
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_told_from_disks() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut sink = AtomicFile::create(directory.path().join("file"), &CHECKED).unwrap();
    sink.write_all(b"written").unwrap();
    sink.publish().unwrap();
    let found = sink.read_back_result().unwrap();
    assert_eq!((found.files, found.cached_files), (1, 1));
    assert_eq!(found.cached, Some("its file system keeps files in memory"));
}

#[test]
fn parts_are_compared() {
    let directory = on_disk();
    let path = directory.path().join("file");
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(&path, &bytes).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    file.sync_all().unwrap();
    let parts = [
        (0, &bytes[..3]),
        (4090, &bytes[4090..20_000]),
        (99_999, &bytes[99_999..]),
    ];
    let found = read_back_parts(&file, &path, parts).unwrap();
    assert_eq!((found.files, found.bytes), (1, 3 + 15_910 + 1));
    for wrong in [(4090, &bytes[4091..20_000]), (99_999, &bytes[99_998..])] {
        let error = read_back_parts(&file, &path, [wrong]).unwrap_err();
        assert!(error.to_string().contains("read back"), "{error}");
    }
}
