//! lrzip archives written by Refrain are read correctly, for every back end, kind of input and
//! output, chunk size and cipher.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{MIB, file, member, pipe};
use refrain::lrzip::{
    LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions, LrzipSummary, compress_lrzip,
};
use refrain::storage::{MemorySink, MemorySource, Source};
use refrain::{
    Archive, Content, ErrorKind, Level, PasswordSource, ReadOptions, Result, Unwatched, verify,
};
use refrain_testkit::{Rng, scaled};

fn of_source(content: &[u8]) -> Content {
    file("", content).content
}

fn of_stream(content: &[u8]) -> Content {
    pipe("", content).content
}

fn packed(content: Content, options: &LrzipOptions) -> Result<(Vec<u8>, LrzipSummary)> {
    let mut sink = MemorySink::new();
    let output = sink.output();
    let summary = compress_lrzip(member("content", content), &mut sink, options, &Unwatched)?;
    Ok((output.published().unwrap(), summary))
}

/// Passages that repeat at many distances, runs, periods, incompressible data.
fn mixture(length: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Rng::new(seed);
    let mut bytes = Vec::with_capacity(length + MIB);
    while bytes.len() < length {
        let count = 1 + numbers.below(400_000) as usize;
        match numbers.below(6) {
            0 => bytes.resize(bytes.len() + count, 0),
            1 => bytes.extend(b"abcdefg".iter().cycle().take(count)),
            2 | 3 if !bytes.is_empty() => {
                let from = numbers.below(bytes.len() as u64) as usize;
                let to = bytes.len().min(from + count);
                bytes.extend_from_within(from..to);
            }
            4 => (0..count / 30).for_each(|i| bytes.extend(format!("line {i}, a text\n").bytes())),
            _ => {
                let start = bytes.len();
                bytes.resize(start + count, 0);
                numbers.fill(&mut bytes[start..]);
            }
        }
    }
    bytes.truncate(length);
    bytes
}

/// Reads everything from a file, from a stream and by range.
fn check(archive: &[u8], content: &[u8], options: &ReadOptions, what: &str) {
    let source = Arc::new(MemorySource::new(archive.to_vec()));
    let summary = verify(source.clone(), options, &Unwatched);
    let summary = summary.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(summary.content_bytes, content.len() as u64, "{what}");
    let piped = verify(Box::new(Cursor::new(archive.to_vec())), options, &Unwatched);
    assert_eq!(piped.unwrap(), summary, "{what}");
    let opened = Archive::open(source, options).unwrap();
    let mut buffer = vec![0; content.len().min(300_000)];
    for start in [
        0,
        content.len() / 3,
        content.len() - content.len().min(1000),
    ] {
        let count = opened.read_at(0, start as u64, &mut buffer).unwrap();
        assert!(
            buffer[..count] == content[start..start + count],
            "{what}: from {start}"
        );
    }
}

/// Regression: with the default memory the ZPAQ models of the upper levels fitted into the share of
/// a reader of files, but not of a reader of streams.
#[test]
fn reads_archives_of_the_upper_levels_with_the_default_memory() {
    let content = mixture(100_000, 3);
    for (back_end, level) in [
        (LrzipBackEnd::Zpaq, 7),
        (LrzipBackEnd::Zpaq, 9),
        (LrzipBackEnd::Lzma, 9),
    ] {
        let options = LrzipOptions {
            back_end,
            level: Level(level),
            ..LrzipOptions::default()
        };
        let (archive, _) = packed(of_source(&content), &options).unwrap();
        let what = format!("{back_end:?}, level {level}");
        check(&archive, &content, &ReadOptions::default(), &what);
    }
}

#[test]
fn every_back_end_round_trips_every_content() {
    let contents = [
        Vec::new(),
        b"x".to_vec(),
        mixture(300, 1),
        vec![0; 3 * MIB],
        mixture(9 * MIB, 2),
    ];
    for back_end in LrzipBackEnd::ALL {
        for content in &contents {
            if back_end == LrzipBackEnd::Zpaq && content.len() > 4 * MIB {
                continue;
            }
            let options = LrzipOptions {
                back_end,
                level: Level(3),
                ..LrzipOptions::default()
            };
            let what = format!("{back_end:?}, {} bytes", content.len());
            let (archive, summary) = packed(of_source(content), &options).unwrap();
            assert_eq!(summary.archive_bytes, archive.len() as u64);
            assert_eq!(summary.content_bytes, content.len() as u64);
            assert_eq!(summary.md5.as_bytes(), &archive[archive.len() - 16..]);
            check(&archive, content, &ReadOptions::default(), &what);
            let threads = 4;
            let (again, _) = packed(
                of_source(content),
                &LrzipOptions {
                    threads,
                    ..options.clone()
                },
            )
            .unwrap();
            assert!(archive == again, "{what}: threads change the archive");
            let (piped, _) = packed(of_stream(content), &options).unwrap();
            check(&piped, content, &ReadOptions::default(), &what);
            if content.len() < 16 * MIB {
                assert!(
                    archive == piped,
                    "{what}: a short pipe is as good as a file"
                );
            }
        }
    }
}

/// A block of records ends after a number of literals and after a number of records. Both may occur
/// at once, or without any record.
#[test]
fn no_block_of_records_is_empty() {
    let mut numbers = Rng::new(5);
    let mut noise = vec![0; 40 * MIB];
    numbers.fill(&mut noise);
    let mut pieces = noise[..MIB].to_vec();
    for number in 0..450_000u32 {
        let from = numbers.below((MIB - 250) as u64) as usize;
        pieces.extend_from_within(from..from + 200);
        pieces.extend(number.to_le_bytes());
    }
    let options = LrzipOptions {
        back_end: LrzipBackEnd::None,
        threads: 2,
        memory_bytes: Some(refrain::MEMORY_BYTES_MIN),
        ..LrzipOptions::default()
    };
    for (content, what) in [(&noise, "noise"), (&pieces, "short repeats")] {
        let (archive, _) = packed(of_source(content), &options).unwrap();
        check(&archive, content, &ReadOptions::default(), what);
    }
}

#[test]
fn matches_do_not_cross_chunks() {
    let half = mixture(19 * MIB, 3);
    let content = [&half[..], &half].concat();
    let options = |chunk_mib: usize| LrzipOptions {
        back_end: LrzipBackEnd::None,
        chunk_bytes: Some((chunk_mib * MIB) as u64),
        threads: 2,
        ..LrzipOptions::default()
    };
    let (whole, summary) = packed(of_source(&content), &options(64)).unwrap();
    assert_eq!(summary.chunks, 1);
    check(&whole, &content, &ReadOptions::default(), "one chunk");
    let (cut, summary) = packed(of_source(&content), &options(16)).unwrap();
    assert_eq!(summary.chunks, 3);
    check(&cut, &content, &ReadOptions::default(), "three chunks");
    assert!(cut.len() > whole.len());
    // The last chunk of a stream is not known in advance: a chunk without content marks the end.
    let (piped, summary) = packed(of_stream(&content), &options(16)).unwrap();
    assert_eq!(summary.chunks, 4);
    check(
        &piped,
        &content,
        &ReadOptions::default(),
        "three chunks, piped",
    );
    // The same for a stream that ends together with a chunk.
    let even = &content[..32 * MIB];
    let (piped, summary) = packed(of_stream(even), &options(16)).unwrap();
    assert_eq!(summary.chunks, 3);
    check(
        &piped,
        even,
        &ReadOptions::default(),
        "an empty chunk at the end",
    );
}

#[test]
fn finds_repeats_of_old_content_of_a_stream() {
    let half = mixture(40 * MIB, 4);
    let content = [&half[..], &half].concat();
    for back_end in [LrzipBackEnd::Gzip, LrzipBackEnd::Lzo] {
        let options = LrzipOptions {
            back_end,
            level: Level(1),
            memory_bytes: Some(refrain::MEMORY_BYTES_MIN),
            threads: 3,
            ..LrzipOptions::default()
        };
        let (archive, summary) = packed(of_stream(&content), &options).unwrap();
        check(&archive, &content, &ReadOptions::default(), "a pipe");
        assert!(summary.matched_bytes > half.len() as u64, "{summary:?}");
        let threads = 1;
        let (again, _) = packed(of_stream(&content), &LrzipOptions { threads, ..options }).unwrap();
        assert!(archive == again, "threads change the archive");
    }
}

/// The chunks of an encrypted archive follow each other as in an unencrypted one.
#[test]
fn writes_several_chunks_with_the_second_cipher() {
    let content = mixture(20 * MIB, 8);
    let options = LrzipOptions {
        back_end: LrzipBackEnd::Lzo,
        chunk_bytes: Some((16 * MIB) as u64),
        encryption: Some(LrzipEncryption {
            cipher: LrzipCipher::Aes256Gcm,
            password: PasswordSource::from_bytes(b"secret"),
            written_unix_seconds: 0,
        }),
        threads: 2,
        ..LrzipOptions::default()
    };
    let read = ReadOptions {
        password: Some(PasswordSource::from_bytes(b"secret")),
        ..ReadOptions::default()
    };
    for (input, chunks) in [(of_source(&content), 2), (of_stream(&content), 3)] {
        let (archive, summary) = packed(input, &options).unwrap();
        assert_eq!(summary.chunks, chunks);
        let source = Arc::new(MemorySource::new(archive));
        let read = verify(source, &read, &Unwatched).unwrap();
        assert_eq!(read.content_bytes, content.len() as u64);
    }
}

#[test]
fn reads_encrypted_archives_only_with_their_password() {
    let content = mixture(2 * MIB, 5);
    for cipher in [LrzipCipher::Aes128Cbc, LrzipCipher::Aes256Gcm] {
        let with = |password: &[u8]| {
            Some(LrzipEncryption {
                cipher,
                password: PasswordSource::from_bytes(password),
                written_unix_seconds: 0,
            })
        };
        let options = LrzipOptions {
            back_end: LrzipBackEnd::Gzip,
            encryption: with(b"secret"),
            threads: 2,
            ..LrzipOptions::default()
        };
        let (archive, _) = packed(of_source(&content), &options).unwrap();
        let read = |password: &[u8]| ReadOptions {
            password: Some(PasswordSource::from_bytes(password)),
            ..ReadOptions::default()
        };
        // Deriving a key takes a second or more.
        let source = Arc::new(MemorySource::new(archive.clone()));
        let opened = verify(source.clone(), &read(b"secret"), &Unwatched).unwrap();
        assert_eq!(opened.content_bytes, content.len() as u64);
        let error = verify(source, &read(b"Secret"), &Unwatched).expect_err("another password");
        assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        if cipher == LrzipCipher::Aes256Gcm || scaled(1) > 1 {
            let (again, _) = packed(of_source(&content), &options).unwrap();
            assert!(archive != again, "the salt is drawn anew");
            let (empty, _) = packed(of_stream(b""), &options).unwrap();
            let piped = verify(Box::new(Cursor::new(empty)), &read(b"secret"), &Unwatched);
            assert_eq!(piped.unwrap().content_bytes, 0);
        }
        for wrong in [&b""[..], &[b'x'; 504]] {
            let encryption = with(wrong);
            let options = LrzipOptions {
                encryption,
                ..options.clone()
            };
            let error = packed(of_source(&content), &options).expect_err("no such password");
            assert_eq!(error.kind, ErrorKind::Usage);
        }
    }
}

#[test]
fn refuses_invalid_options() {
    let base = LrzipOptions::default;
    for (options, kind) in [
        (
            LrzipOptions {
                level: Level(0),
                ..base()
            },
            ErrorKind::Usage,
        ),
        (
            LrzipOptions {
                level: Level(10),
                ..base()
            },
            ErrorKind::Usage,
        ),
        (
            LrzipOptions {
                memory_bytes: Some(1),
                ..base()
            },
            ErrorKind::Limit,
        ),
    ] {
        let error = packed(of_source(b"content"), &options).expect_err("refused");
        assert_eq!(error.kind, kind, "{error}");
    }
    assert!("zstd".parse::<LrzipBackEnd>().is_err());
    for back_end in LrzipBackEnd::ALL {
        assert_eq!(back_end.name().parse::<LrzipBackEnd>().unwrap(), back_end);
    }
}

/// A source that first states a larger size than it has, like a file truncated when it was opened.
struct Shrinking(AtomicU64);

impl Source for Shrinking {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = 1000_u64.saturating_sub(offset).min(buffer.len() as u64);
        buffer[..left as usize].fill(b'a');
        Ok(left as usize)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.fetch_min(1000, Ordering::Relaxed))
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk is gone"))
    }
}

#[test]
fn does_not_publish_a_stream_that_breaks() {
    let mut sink = MemorySink::new();
    let output = sink.output();
    let broken = member("content", Content::Stream(Box::new(Broken)));
    let result = compress_lrzip(broken, &mut sink, &LrzipOptions::default(), &Unwatched);
    assert_eq!(result.expect_err("not whole").kind, ErrorKind::Io);
    assert_eq!(output.published(), None);
}

#[test]
fn what_is_there_counts_and_not_the_size_that_was_stated_before() {
    let mut sink = MemorySink::new();
    let shrinking = Shrinking(AtomicU64::new(5_000_000));
    let content = member("content", Content::Source(Arc::new(shrinking)));
    let written = compress_lrzip(content, &mut sink, &LrzipOptions::default(), &Unwatched);
    let summary = written.expect("it shrank before it was read");
    assert_eq!((summary.content_bytes, summary.problems), (1000, 0));
}
