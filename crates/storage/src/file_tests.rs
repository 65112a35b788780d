use std::io::Write;

use super::*;

fn file_with(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

#[test]
fn reads_at_offsets_and_is_short_only_at_the_end() {
    let data: Vec<u8> = (0..100_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    let file = file_with(&data);
    let source = FileSource::open(file.path()).unwrap();
    assert_eq!(source.size_bytes().unwrap(), 100_000);
    let mut buffer = vec![0; 70_000];
    assert_eq!(source.read_at(10, &mut buffer).unwrap(), 70_000);
    assert_eq!(buffer, data[10..70_010]);
    assert_eq!(source.read_at(99_990, &mut buffer).unwrap(), 10);
    assert_eq!(source.read_at(100_000, &mut buffer).unwrap(), 0);
    assert_eq!(source.read_at(i64::MAX as u64, &mut buffer).unwrap(), 0);
    assert_eq!(source.read_at(u64::MAX, &mut buffer).unwrap(), 0);
    assert_eq!(source.read_at(0, &mut []).unwrap(), 0);
}

#[test]
fn follows_a_file_that_grows_and_shrinks() {
    let file = file_with(b"0123456789");
    let source = FileSource::open(file.path()).unwrap();
    let before = source.identity().unwrap();
    assert_eq!(source.identity().unwrap(), before);
    file.as_file().set_len(4).unwrap();
    let mut buffer = [0; 10];
    assert_eq!(source.read_at(2, &mut buffer).unwrap(), 2);
    assert_eq!(source.size_bytes().unwrap(), 4);
    assert_eq!(source.next_data(5).unwrap(), None);
    let after = source.identity().unwrap();
    assert_ne!(after, before);
    assert!(after.is_same_file(&before));
    file.as_file().set_len(20).unwrap();
    assert_eq!(source.read_at(2, &mut buffer).unwrap(), 10);
    let other = file_with(b"");
    assert!(
        !FileIdentity::from_path(other.path())
            .unwrap()
            .is_same_file(&after)
    );
    assert_eq!(
        FileIdentity::from_path(file.path()).unwrap(),
        source.identity().unwrap()
    );
}

fn data_ranges(source: &FileSource) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    let mut offset = 0;
    while let Some((start, end)) = source.next_data(offset).unwrap() {
        assert!(offset <= start && start < end);
        ranges.push((start, end));
        offset = end;
    }
    ranges
}

#[test]
fn holes_are_found_and_contain_no_data() {
    let file = tempfile::NamedTempFile::new().unwrap();
    const MIB: u64 = 1 << 20;
    file.as_file().write_all_at(b"data", 4 * MIB).unwrap();
    file.as_file().write_all_at(b"more", 9 * MIB).unwrap();
    file.as_file().set_len(16 * MIB).unwrap();
    let shared = file.reopen().unwrap();
    (&shared).seek(SeekFrom::Start(5)).unwrap();
    for source in [
        FileSource::open(file.path()).unwrap(),
        FileSource::from_file(shared.try_clone().unwrap(), "shared").unwrap(),
    ] {
        let ranges = data_ranges(&source);
        let is_data = |offset| {
            ranges
                .iter()
                .any(|(start, end)| (*start..*end).contains(&offset))
        };
        assert!(is_data(4 * MIB) && is_data(4 * MIB + 3) && is_data(9 * MIB));
        if ranges != [(0, 16 * MIB)] {
            assert!(!is_data(0) && !is_data(7 * MIB) && !is_data(16 * MIB - 1));
            assert_eq!(source.next_data(12 * MIB).unwrap(), None);
        }
        // An offset inside data yields the rest of it.
        assert_eq!(
            source.next_data(4 * MIB + 1).unwrap().unwrap().0,
            4 * MIB + 1
        );
        assert_eq!(source.next_data(16 * MIB).unwrap(), None);
        assert_eq!(source.next_data(u64::MAX).unwrap(), None);
    }
    assert_eq!(
        (&shared).stream_position().unwrap(),
        5,
        "the shared offset is unchanged"
    );
}

/// The hole search of one thread must not disturb the reads or the searches of another.
#[test]
fn threads_share_a_source() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for piece in 0..32u64 {
        file.as_file()
            .write_all_at(&[piece as u8 + 1; 4096], piece * 65_536)
            .unwrap();
    }
    let source = FileSource::open(file.path()).unwrap();
    let expected = data_ranges(&source);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (source, expected) = (&source, &expected);
            scope.spawn(move || {
                for round in 0..50u64 {
                    assert_eq!(&data_ranges(source), expected);
                    let piece = (round * 7 + thread) % 32;
                    let mut buffer = [0; 4096];
                    source.read_at(piece * 65_536, &mut buffer).unwrap();
                    assert_eq!(buffer, [piece as u8 + 1; 4096]);
                }
            });
        }
    });
}

#[test]
fn files_without_offsets_are_refused_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let error = FileSource::open(directory.path()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    assert!(error.to_string().contains("is a directory"), "{error}");
    assert!(
        error
            .to_string()
            .contains(directory.path().to_str().unwrap()),
        "{error}"
    );

    // It has no writer: an open that waits would hang here.
    let pipe = directory.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for path in [pipe.as_path(), Path::new("/dev/null")] {
        let error = FileSource::open(path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotSeekable);
        assert!(error.to_string().contains("stream"), "{error}");
    }
    let (reader, _writer) = std::io::pipe().unwrap();
    let reader = File::from(std::os::fd::OwnedFd::from(reader));
    let error = FileSource::from_file(reader, "standard input").unwrap_err();
    assert!(error.to_string().contains("standard input"), "{error}");

    let error = FileSource::open(directory.path().join("absent")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("cannot open"), "{error}");
}
