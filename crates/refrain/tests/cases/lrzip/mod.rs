//! Archives written by many versions of lrzip and by hand are read correctly from files, from
//! streams and by range.

mod blocks;
mod chunks;
mod next;

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::read_options as options;
use refrain::lrzip::LrzipLayout;
use refrain::storage::{MemoryOutput, MemorySink, MemorySource, Sink};
use refrain::{
    Archive, ErrorKind, Member, MemberStart, PasswordSource, ReadOptions, Result, Target, Targets,
    Unwatched, extract, verify,
};
use refrain_lrzip_codec::{LrzipFilter, StreamFilter};
use refrain_testkit::lrzip::{
    DIALECTS, SampleChunk, SampleDialect, SampleRecord, replay, sample_chunks, sample_lrzip_archive,
};
use refrain_testkit::rng::Rng;
use refrain_testkit::scaled;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/lrzip")
}

/// Collects the content of the one member.
#[derive(Default)]
struct Kept {
    output: Option<MemoryOutput>,
    closed: Option<Member>,
    /// Whether the output cannot be read back.
    is_pipe: bool,
}

impl Targets for Kept {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        let sink = MemorySink::new();
        self.output = Some(sink.output());
        Ok(Target::Sink(if self.is_pipe {
            Box::new(sink.as_pipe())
        } else {
            Box::new(sink)
        }))
    }

    fn close(&mut self, member: &Member, sink: Target) -> Result<()> {
        sink.into_sink().expect("a sink").publish()?;
        self.closed = Some(member.clone());
        Ok(())
    }
}

impl Kept {
    fn content(self) -> Vec<u8> {
        assert!(self.closed.is_some());
        self.output.unwrap().published().unwrap()
    }
}

fn by_file(archive: &[u8], options: &ReadOptions) -> Result<Vec<u8>> {
    let mut kept = Kept::default();
    let source = Arc::new(MemorySource::new(archive.to_vec()));
    extract(source, &mut kept, options, &Unwatched)?;
    Ok(kept.content())
}

/// From a file to a stream.
fn to_pipe(archive: &[u8], options: &ReadOptions) -> Result<Vec<u8>> {
    let mut kept = Kept {
        is_pipe: true,
        ..Kept::default()
    };
    let source = Arc::new(MemorySource::new(archive.to_vec()));
    extract(source, &mut kept, options, &Unwatched)?;
    Ok(kept.content())
}

/// From a stream to a stream.
fn by_pipe(archive: &[u8], options: &ReadOptions) -> Result<Vec<u8>> {
    let mut kept = Kept {
        is_pipe: true,
        ..Kept::default()
    };
    let stream = Box::new(Cursor::new(archive.to_vec()));
    extract(stream, &mut kept, options, &Unwatched)?;
    Ok(kept.content())
}

/// The plain archives with their contents.
fn archives() -> BTreeMap<String, (Vec<u8>, Vec<u8>)> {
    let plain = |name: &str| fs::read(folder().join(name)).unwrap();
    let contents = [
        ("next014-lzma", "plain56k.bin"),
        ("next014-zpaq", "plain56k.bin"),
        ("v04-lzma", "plain56k.bin"),
        ("v04-none", "plain56k.bin"),
        ("v05-lzma", "plain56k.bin"),
        ("v06-36bytes-csize0", "plain36.bin"),
        ("v06-bzip2", "plain56k.bin"),
        ("v06-gzip", "plain56k.bin"),
        ("v06-lzma-pipe-dict0-BROKEN-upstream", "plain80k.bin"),
        ("v06-lzma-pipe-ok", "plain60k.bin"),
        ("v06-lzma", "plain56k.bin"),
        ("v06-lzo", "plain56k.bin"),
        ("v06-none", "plain56k.bin"),
        ("v06-zpaq", "plain56k.bin"),
        ("v070-lzma", "plain56k.bin"),
        ("v071-lzma", "plain56k.bin"),
    ];
    let mut found: BTreeMap<_, _> = contents
        .into_iter()
        .map(|(name, content)| {
            (
                name.to_owned(),
                (plain(&format!("{name}.lrz")), plain(content)),
            )
        })
        .collect();
    found.insert("v06-empty".into(), (plain("v06-empty.lrz"), Vec::new()));
    for entry in fs::read_dir(folder().join("handmade")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "lrz") {
            let content = fs::read(path.with_extension("ref")).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            found.insert(name, (fs::read(&path).unwrap(), content));
        }
    }
    assert_eq!(found.len(), 28);
    found
}

#[test]
fn reads_every_archive_from_a_file_and_from_a_stream() {
    for (name, (archive, content)) in archives() {
        for threads in [0, 1, 3] {
            let found = by_file(&archive, &options(threads))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(
                found == content,
                "{name}: by file, {} of {} bytes",
                found.len(),
                content.len()
            );
            let found = by_pipe(&archive, &options(threads))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(found == content, "{name}: by pipe");
        }
        let source = Arc::new(MemorySource::new(archive.clone()));
        let summary = verify(source, &options(2), &Unwatched).unwrap();
        assert_eq!(summary.content_bytes, content.len() as u64);
        assert_eq!(summary.archive_bytes, archive.len() as u64, "{name}");
        let piped = verify(Box::new(Cursor::new(archive)), &options(2), &Unwatched);
        assert_eq!(piped.unwrap(), summary, "{name}");
    }
}

#[test]
fn delivers_no_more_content_than_the_limit_allows() {
    for (name, (archive, content)) in archives() {
        let Some(too_few) = content.len().checked_sub(1) else {
            continue;
        };
        for read in [by_file, to_pipe, by_pipe] {
            let limited = |content_bytes: usize| {
                let limited = ReadOptions {
                    content_bytes_max: Some(content_bytes as u64),
                    ..options(2)
                };
                read(&archive, &limited)
            };
            assert!(limited(content.len()).unwrap() == content, "{name}");
            let error = limited(too_few).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Limit, "{name}: {error}");
        }
    }
}

#[test]
fn reads_any_range() {
    for (name, (archive, content)) in archives() {
        let source = Arc::new(MemorySource::new(archive));
        let opened =
            Archive::open(source, &options(2)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            opened.members().unwrap()[0].content_bytes,
            content.len() as u64,
            "{name}"
        );
        for start in [
            0,
            1,
            content.len() / 3,
            content.len().saturating_sub(7),
            content.len(),
        ] {
            let start = start.min(content.len());
            for length in [0, 1, 100, content.len()] {
                let mut buffer = vec![0; length];
                let count = opened.read_at(0, start as u64, &mut buffer).unwrap();
                let end = (start + length).min(content.len());
                assert!(
                    buffer[..count] == content[start..end],
                    "{name}: {length} from {start}"
                );
            }
        }
        let info = opened.info().unwrap();
        assert_eq!(
            info.content_bytes,
            info.store_bytes + info.matched_bytes + info.run_bytes
        );
    }
}

#[test]
fn refuses_truncated_and_damaged_archives() {
    for (name, (archive, content)) in archives() {
        for length in [4, 20, 24, 30, archive.len() / 2, archive.len() - 1] {
            let error = by_file(&archive[..length], &options(1)).expect_err(&name);
            assert_eq!(
                error.kind,
                ErrorKind::Damaged,
                "{name}: first {length} bytes: {error}"
            );
            by_pipe(&archive[..length], &options(1)).expect_err(&name);
        }
        // Changes of some bytes have no effect: unused ones, and the length of a chunk, which
        // readers ignore.
        let steps = scaled(20) as usize;
        for step in 0..steps {
            let at = archive.len() * step / steps;
            let mut broken = archive.clone();
            broken[at] ^= 1 << (step % 8);
            match by_file(&broken, &options(1)) {
                Ok(found) => assert!(found == content, "{name}: byte {at}"),
                Err(error) => assert_ne!(
                    error.kind,
                    ErrorKind::Internal,
                    "{name}: byte {at}: {error}"
                ),
            }
        }
    }
}

fn with_password(password: &str) -> ReadOptions {
    ReadOptions {
        threads: 2,
        password: Some(PasswordSource::from_bytes(password.as_bytes())),
        ..ReadOptions::default()
    }
}

#[test]
fn reads_encrypted_archives_with_their_password() {
    let content = fs::read(folder().join("plain56k.bin")).unwrap();
    for name in [
        "v06-enc-lzma-pw_secret",
        "v071-legacyenc-pw_secret",
        "v071-aead-pw_secret",
    ] {
        let archive = fs::read(folder().join(format!("{name}.lrz"))).unwrap();
        // Each key takes a second or more.
        let found = by_file(&archive, &with_password("secret"));
        assert!(
            found.unwrap_or_else(|error| panic!("{name}: {error}")) == content,
            "{name}"
        );
        for wrong in [options(1), with_password("Secret"), with_password("")] {
            let error = by_file(&archive, &wrong).expect_err(name);
            assert_eq!(error.kind, ErrorKind::Usage, "{name}: {error}");
            assert!(error.to_string().contains("password"), "{name}: {error}");
        }
    }
    let archive = fs::read(folder().join("v071-aead-pw_secret.lrz")).unwrap();
    assert!(by_pipe(&archive, &with_password("secret")).unwrap() == content);
    let source = Arc::new(MemorySource::new(archive));
    let opened = Archive::open(source, &with_password("secret")).unwrap();
    assert_eq!(
        opened.info().unwrap().lrzip.unwrap().cipher,
        Some("AES-256-GCM")
    );
}

/// Random records of every version: the engine and the reference replay agree for all numbers of
/// threads and amounts of memory.
#[test]
fn archives_from_random_records_match_the_reference_replay() {
    // Few of the large ones: they take most of the time.
    for seed in 0..8 + u64::from(scaled(1).min(4)) {
        let chunk_count = 1 + seed as usize % 3;
        let content_bytes = [3_000, 200_000, 12_000_000][seed as usize / 4];
        let mut chunks = sample_chunks(content_bytes, chunk_count, seed);
        for dialect in DIALECTS {
            // Archives of the oldest version have one chunk.
            let chunks = match dialect.minor {
                4 => &mut chunks[..1],
                _ => &mut chunks[..],
            };
            let content = replay(chunks);
            let archive = sample_lrzip_archive(chunks, dialect, 1 + content_bytes / 5, seed);
            let what = format!("seed {seed}, {dialect:?}");
            let small = ReadOptions {
                threads: 2,
                memory_bytes: 16 << 20,
                ..ReadOptions::default()
            };
            for options in [options(0), small] {
                let found =
                    by_file(&archive, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
                let differs = found.iter().zip(&content).position(|(a, b)| a != b);
                assert!(
                    found == content,
                    "{what}: {} of {} bytes, first difference {differs:?}",
                    found.len(),
                    content.len()
                );
            }
            // Content that matches need is retained, or mapped where there is too little memory for
            // it.
            for memory_bytes in [16 << 20, 64 << 20, 1 << 30] {
                let options = ReadOptions {
                    memory_bytes,
                    ..options(2)
                };
                match to_pipe(&archive, &options) {
                    Ok(found) => assert!(found == content, "{what}: to a pipe, {memory_bytes}"),
                    Err(error) => {
                        assert_eq!(error.kind, ErrorKind::Limit, "{what}: {error}");
                        assert_eq!(memory_bytes, 16 << 20, "{what}: {error}");
                    }
                }
            }
            assert!(
                by_pipe(&archive, &options(2)).unwrap() == content,
                "{what}: by pipe"
            );
            let opened = Archive::open(Arc::new(MemorySource::new(archive)), &options(1)).unwrap();
            let mut buffer = vec![0; 70_000];
            for start in (0..content.len()).step_by(1 + content.len() / 7) {
                let count = opened.read_at(0, start as u64, &mut buffer).unwrap();
                assert!(
                    buffer[..count] == content[start..start + count],
                    "{what}: from {start}"
                );
            }
        }
    }
}

/// Incompressible content that repeats completely, so that all of it has to be retained. With too
/// little memory it is mapped, and the literals are decoded again from there on.
#[test]
fn maps_content_that_does_not_fit_in_memory() {
    const HALF_BYTES: usize = 20 << 20;
    let mut chunk = SampleChunk {
        literals: vec![0; HALF_BYTES + 1000],
        ..Default::default()
    };
    Rng::new(5).fill(&mut chunk.literals);
    chunk.records = vec![
        SampleRecord::Literals(HALF_BYTES),
        SampleRecord::Match(HALF_BYTES - 77, HALF_BYTES),
        SampleRecord::Literals(1000),
    ];
    let chunks = [chunk];
    let content = replay(&chunks);
    let archive = sample_lrzip_archive(&chunks, DIALECTS[2], 3 << 20, 3);
    for memory_bytes in [32 << 20, 256 << 20] {
        let options = ReadOptions {
            memory_bytes,
            ..options(2)
        };
        let found = to_pipe(&archive, &options).unwrap_or_else(|error| panic!("{error}"));
        assert!(found == content, "with {memory_bytes} bytes of memory");
    }
}

#[test]
fn detects_a_wrong_crc() {
    let chunks = sample_chunks(10_000, 2, 1);
    let mut archive = sample_lrzip_archive(&chunks, DIALECTS[2], 1 << 20, 1);
    // The last block holds the records or the literals of the last chunk; its last byte matters in
    // both cases.
    let last = archive.len() - 1;
    archive[last] ^= 1;
    let error = by_file(&archive, &options(1)).expect_err("damaged");
    assert_eq!(error.kind, ErrorKind::Damaged);
}

/// A filter over whole chunks, undone piece by piece and by ranges.
#[test]
fn undoes_filters_over_chunks() {
    let dialect = DIALECTS[5];
    assert!(dialect.names_filter);
    for (filter, foreign) in [(1, LrzipFilter::X86), (2, LrzipFilter::Arm64)] {
        let mut chunks = sample_chunks(3_000_000, 3, u64::from(filter));
        // Plausible calls and branches everywhere; the last chunk is not filtered.
        for chunk in &mut chunks {
            let words = [0xE8, 0x00, 0x94, 0xFF, 0x25, 0x10, 0x02, 0x97];
            chunk
                .literals
                .iter_mut()
                .for_each(|byte| *byte = words[usize::from(*byte & 7)]);
        }
        (chunks[0].filter, chunks[1].filter) = (filter, filter);
        let mut content = Vec::new();
        let mut sizes = Vec::new();
        for count in 1..=chunks.len() {
            sizes.push(replay(&chunks[..count]).len());
        }
        let mapped = replay(&chunks);
        for (index, chunk) in chunks.iter().enumerate() {
            let start = index.checked_sub(1).map_or(0, |before| sizes[before]);
            let mut part = mapped[start..sizes[index]].to_vec();
            if chunk.filter != 0 {
                StreamFilter::new(foreign).apply(&mut part);
            }
            content.extend(part);
        }
        assert!(content != mapped, "{foreign}: nothing to undo");
        let archive = sample_lrzip_archive(&chunks, dialect, 1 << 20, 9);
        assert!(
            by_file(&archive, &options(2)).unwrap() == content,
            "{foreign}"
        );
        assert!(
            to_pipe(&archive, &options(1)).unwrap() == content,
            "{foreign}"
        );
        assert!(
            by_pipe(&archive, &options(2)).unwrap() == content,
            "{foreign}"
        );
        let opened = Archive::open(Arc::new(MemorySource::new(archive)), &options(1)).unwrap();
        let mut buffer = vec![0; 300_000];
        for start in [
            0,
            250_000,
            900_000,
            100,
            sizes[0] - 5,
            sizes[1] - 150_000,
            content.len() - 9,
        ] {
            let count = opened.read_at(0, start as u64, &mut buffer).unwrap();
            let end = content.len().min(start + buffer.len());
            assert!(
                buffer[..count] == content[start..end],
                "{foreign}: from {start}"
            );
        }
    }
}

#[test]
fn the_layout_agrees_with_the_opened_archive() {
    for (name, (archive, content)) in archives() {
        let source = Arc::new(MemorySource::new(archive.clone()));
        let layout = LrzipLayout::read(source.clone(), &options(1)).unwrap();
        let opened = Archive::open(source, &options(1)).unwrap();
        let info = opened.info().unwrap();
        assert_eq!(layout.archive_bytes, archive.len() as u64, "{name}");
        if let Some(stated) = layout.content_bytes {
            assert_eq!(stated, content.len() as u64, "{name}");
        }
        let lrzip = info.lrzip.unwrap();
        assert_eq!(layout.version, lrzip.version, "{name}");
        assert_eq!(layout.chunks.len() as u64, lrzip.chunks, "{name}");
        let literals = layout.chunks.iter().flat_map(|chunk| &chunk.streams[1]);
        let by_heads: Vec<_> = literals
            .map(|block| (block.back_end.clone(), block.raw_bytes, block.coded_bytes))
            .collect();
        let blocks = opened.blocks().unwrap().into_iter();
        let by_walk: Vec<_> = blocks
            .map(|block| (block.codec, block.raw_bytes, block.stored_bytes))
            .collect();
        assert_eq!(by_heads, by_walk, "{name}");
        let md5 = opened.member(0).unwrap().digests;
        let md5 = md5.first().map(|(_, value)| value.as_bytes().to_vec());
        assert_eq!(layout.md5.map(|md5| md5.to_vec()), md5, "{name}");
        for length in [5, 30, archive.len() / 2] {
            let cut = Arc::new(MemorySource::new(archive[..length].to_vec()));
            assert!(
                LrzipLayout::read(cut, &options(1)).is_err(),
                "{name}: {length}"
            );
        }
    }
}
