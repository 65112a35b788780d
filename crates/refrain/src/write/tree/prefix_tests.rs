//! Truncated archives: what precedes the cut is listed and restored.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use refrain_entries::Entry;
use refrain_format::{Limits, NodeRows, Payload, walk_archive};
use refrain_storage::{MemorySink, MemorySource, Sink};
use refrain_testkit::{Rng, data};

use crate::archive::Archive;
use crate::compress::compress_in_runs;
use crate::error::ErrorKind;
use crate::options::{CompressOptions, ReadOptions};
use crate::progress::Unwatched;
use crate::write::input::{Content, DirectoryContent, MemberInput};

const RUN_BYTES: u64 = 256 << 10;

/// Small blocks, and epochs of a segment, so that little content has many of both.
fn options(threads: usize) -> CompressOptions {
    CompressOptions {
        codec: "zstd:1".parse().ok(),
        block_bytes: Some(64 << 10),
        threads,
        memory_bytes: Some(128 << 20),
        reach_bytes: Some(8 << 20),
        ..CompressOptions::default()
    }
}

fn read_options() -> ReadOptions {
    ReadOptions {
        threads: 2,
        memory_bytes: 128 << 20,
        ..ReadOptions::default()
    }
}

fn compressed(content: Content, run_bytes: u64, threads: usize) -> Vec<u8> {
    let member = MemberInput {
        name: b"member".to_vec(),
        mode: None,
        modified: None,
        content,
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    compress_in_runs(
        vec![member],
        &mut sink,
        &options(threads),
        run_bytes,
        &Unwatched,
    )
    .unwrap();
    output.published().unwrap()
}

/// Versions of a tree, whose files are stored side by side, and whatever else trees have.
fn make_tree(root: &Path, seed: u64) {
    let mut rng = Rng::new(seed);
    for version in 1..=4 {
        for name in 0..24 {
            let directory = root.join(format!("version-{version}/part-{}", name % 4));
            fs::create_dir_all(directory.join("empty")).unwrap();
            let path = directory.join(format!("file-{name:02}"));
            // Some are equal in all versions.
            let content_seed = match name % 3 {
                0 => name,
                _ => 1000 * version + name,
            };
            let length = [0, 5, 3000, 70_000][rng.below(4) as usize] + name as usize;
            fs::write(&path, data::random(length, content_seed)).unwrap();
            let mode = [0o600, 0o755][rng.below(2) as usize];
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match rng.below(4) {
                0 => symlink("file-00", directory.join(format!("link-{name}"))).unwrap(),
                1 => fs::hard_link(&path, directory.join(format!("name-{name}"))).unwrap(),
                _ => {}
            }
        }
    }
    fs::write(root.join("large"), data::random(9 << 20, seed)).unwrap();
    fs::write(root.join("last"), b"last").unwrap();
}

fn directory(root: &Path) -> Content {
    Content::directory(DirectoryContent::all(root))
}

fn tar_of(root: &Path) -> Vec<u8> {
    let archive = compressed(directory(root), u64::MAX, 2);
    let archive = Archive::open(Arc::new(MemorySource::new(archive)), &read_options()).unwrap();
    tar_view(&archive)
}

fn tar_view(archive: &Archive) -> Vec<u8> {
    let mut sink = MemorySink::new();
    let output = sink.output();
    archive.write_member(0, &mut sink, &Unwatched).unwrap();
    sink.publish().unwrap();
    output.published().unwrap()
}

fn open(archive: &[u8]) -> Archive {
    Archive::open(
        Arc::new(MemorySource::new(archive.to_vec())),
        &read_options(),
    )
    .unwrap()
}

fn content_of(archive: &Archive, entry: &Entry) -> crate::Result<Vec<u8>> {
    let mut bytes = vec![0; entry.size_bytes as usize];
    let count = archive.read_at((0, entry), 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Where frames end, and which frames of entries and blocks end there.
struct Frames {
    ends: Vec<usize>,
    /// Ends of frames of entries, with the number of entries so far.
    entries: Vec<(usize, u64)>,
    /// Ends of frames after which content is complete up to an offset.
    complete: Vec<(usize, u64)>,
}

fn frames_of(archive: &[u8]) -> Frames {
    let mut frames = Frames {
        ends: vec![],
        entries: vec![],
        complete: vec![],
    };
    let (mut entries, mut store, mut epochs) = (0, 0, vec![]);
    walk_archive(archive, &Limits::default(), |offset, header, payload| {
        let end = (offset + header.frame_bytes()) as usize;
        frames.ends.push(end);
        match payload {
            Payload::Entries { header, .. } => {
                entries += header.entry_count;
                frames.entries.push((end, entries));
            }
            Payload::Block { header, .. } => store = header.store_end(),
            Payload::Extents { header, .. } => {
                epochs.push((header.store_end(), header.content_end()));
            }
            _ => {}
        }
        let complete = epochs.iter().filter(|(needed, _)| *needed <= store);
        frames
            .complete
            .push((end, complete.map(|(_, end)| *end).max().unwrap_or(0)));
        Ok(())
    })
    .unwrap();
    frames
}

/// Cuts an archive everywhere: each entry whose frame and content precede the cut is listed
/// unchanged, and its content is right; nothing that is listed or read is wrong.
fn check_cuts(archive: &[u8], seed: u64) {
    let whole = open(archive);
    let entries = whole.entries(0).unwrap();
    let expected: BTreeMap<Vec<u8>, (Entry, Vec<u8>)> = entries
        .into_iter()
        .map(|entry| {
            let content = content_of(&whole, &entry).unwrap();
            (entry.path.clone(), (entry, content))
        })
        .collect();
    let frames = frames_of(archive);
    assert!(frames.entries.len() >= 4, "{} runs", frames.entries.len());
    let mut rng = Rng::new(seed);
    let mut cuts: Vec<_> = frames.ends.iter().copied().step_by(20).collect();
    cuts.extend(frames.entries.iter().flat_map(|(end, _)| [*end, end - 1]));
    cuts.extend((0..10).map(|_| rng.below(archive.len() as u64) as usize));
    let mut most = 0;
    for (turn, cut) in cuts.into_iter().enumerate() {
        let complete = frames.complete.iter().rev().find(|(end, _)| *end <= cut);
        let complete = complete.map_or(0, |(_, complete)| *complete);
        let listed = frames.entries.iter().rev().find(|(end, _)| *end <= cut);
        let listed = listed.map_or(0, |(_, count)| *count);
        let source = Arc::new(MemorySource::new(archive[..cut].to_vec()));
        let Ok(scanned) = Archive::open_by_scan(source, &read_options()) else {
            assert_eq!(complete, 0, "cut at {cut}");
            continue;
        };
        let mut found = vec![];
        let ended = scanned.for_each_entry(0, &mut |entry| {
            found.push(entry.clone());
            Ok(())
        });
        // A list without its end is an error.
        let is_whole = ended.is_ok();
        assert!(!is_whole || found.len() == expected.len(), "cut at {cut}");
        assert!(ended.is_ok() || ended.is_err_and(|error| error.kind == ErrorKind::Damaged));
        // A tar stream's end mark has no path.
        let listed = listed.min(expected.len() as u64);
        assert_eq!(found.len() as u64, listed, "cut at {cut}");
        for (number, entry) in found.into_iter().enumerate() {
            let (same, content) = &expected[&entry.path];
            assert_eq!(entry, *same);
            // Some in turn: all would take seconds.
            if number % 7 != turn % 7 {
                continue;
            }
            match content_of(&scanned, &entry) {
                Ok(read) => assert!(read == *content, "cut at {cut}: {entry:?}"),
                Err(_) => assert!(
                    entry.content_range().end > complete,
                    "cut at {cut}: {entry:?}"
                ),
            }
            most = most.max(entry.content_range().end);
        }
    }
    assert!(most > 8 << 20);
}

/// The numbers of slices and of frames of entries in an archive.
fn slices_and_frames(archive: &[u8]) -> (usize, usize) {
    let (mut slices, mut frames) = (0, 0);
    walk_archive(archive, &Limits::default(), |_, _, payload| {
        let nodes = match payload {
            Payload::Entries { .. } => {
                frames += 1;
                &[][..]
            }
            Payload::Index(node) => std::slice::from_ref(node),
            Payload::End { roots, .. } => &roots[..],
            _ => &[],
        };
        for node in nodes {
            if let NodeRows::Slices(rows) = &node.rows {
                slices += rows.len();
            }
        }
        Ok(())
    })
    .unwrap();
    (slices, frames)
}

#[test]
fn entries_of_a_directory_are_written_with_their_content() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), 1);
    let at_the_end = compressed(directory(root.path()), u64::MAX, 2);
    let archive = compressed(directory(root.path()), RUN_BYTES, 2);
    assert_eq!(slices_and_frames(&at_the_end), (0, 1));
    let (slices, frames) = slices_and_frames(&archive);
    assert!(
        frames >= 4 && slices >= 3 * frames,
        "{slices} slices of {frames} frames"
    );
    for threads in [1, 4] {
        assert!(compressed(directory(root.path()), RUN_BYTES, threads) == archive);
    }
    // Neither the list, whose hash is compared, nor the tar stream depends on the runs.
    let (expected, found) = (open(&at_the_end), open(&archive));
    let entries = expected.entries(0).unwrap();
    assert_eq!(found.entries(0).unwrap(), entries);
    assert!(tar_view(&found) == tar_view(&expected));
    for entry in &entries {
        assert_eq!(
            found.find_entry(0, &entry.path).unwrap().as_ref(),
            Some(entry)
        );
    }
    assert_eq!(found.find_entry(0, b"version-1/part-9").unwrap(), None);
    crate::verify(
        Arc::new(MemorySource::new(archive.clone())),
        &read_options(),
        &Unwatched,
    )
    .unwrap();
    check_cuts(&archive, 1);
}

#[test]
fn entries_of_a_tar_stream_are_written_with_their_content() {
    let root = tempfile::tempdir().unwrap();
    make_tree(root.path(), 2);
    let tar = tar_of(root.path());
    let content = || Content::Source(Arc::new(MemorySource::new(tar.clone())));
    let stream = || Content::Stream(Box::new(std::io::Cursor::new(tar.clone())));
    let archive = compressed(content(), RUN_BYTES, 2);
    for threads in [1, 4] {
        assert!(compressed(content(), RUN_BYTES, threads) == archive);
    }
    assert!(tar_view(&open(&archive)) == tar);
    assert!(tar_view(&open(&compressed(stream(), RUN_BYTES, 2))) == tar);
    check_cuts(&archive, 2);
}
