//! Damaged and truncated archives yield every intact file, and report the others: an extraction
//! continues whatever part of the archive is damaged, and loses only what needs that part.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Cursor};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{archive_of, file, member, pipe, read_options, source};
use refrain::directory::{RestoreOptions, TreeRestore};
use refrain::storage::{MemoryOutput, MemorySink, Sink, Source};
use refrain::{
    Archive, CodecChoice, CompressOptions, Content, Damage, DamagedFile, DirectoryContent,
    ErrorKind, ExtentOrigin, Member, MemberInput, MemberKind, MemberStart, ReadOptions, Result,
    Target, Targets, TreeTarget, Unwatched, recover,
};
use refrain_testkit::{data, frames_of};

/// Files by their paths: `member` or `member/path`.
type Files = BTreeMap<String, Vec<u8>>;

/// Collects what is recovered: directories on the disk, other members in memory.
struct Recovered {
    root: tempfile::TempDir,
    open: Option<(String, Option<MemoryOutput>)>,
    files: Files,
    /// Broken members, as far as they were delivered.
    broken: Files,
    /// Whether directories are delivered as tar streams.
    are_streams: bool,
}

impl Recovered {
    fn new() -> Recovered {
        Recovered {
            root: tempfile::tempdir().unwrap(),
            open: None,
            files: Files::new(),
            broken: Files::new(),
            are_streams: false,
        }
    }

    fn content(&mut self, target: Target) -> Option<(String, Vec<u8>)> {
        let (name, output) = self.open.take()?;
        target.into_sink()?.publish().unwrap();
        Some((name, output?.published()?))
    }
}

impl Targets for Recovered {
    fn open(&mut self, member: &MemberStart) -> Result<Target> {
        let name = String::from_utf8(member.name.clone()).unwrap();
        let has_entries = matches!(member.kind, MemberKind::Tree | MemberKind::Tar);
        let is_tree = has_entries && !self.are_streams;
        let sink = MemorySink::new();
        self.open = Some((name.clone(), (!is_tree).then(|| sink.output())));
        if !is_tree {
            return Ok(Target::Sink(Box::new(sink)));
        }
        let path = self.root.path().join(name);
        let restore = TreeRestore::create(&path, RestoreOptions::default())?;
        Ok(Target::Tree(Box::new(TreeTarget {
            restore,
            selection: None,
        })))
    }

    fn close(&mut self, _member: &Member, target: Target) -> Result<()> {
        if let Target::Tree(tree) = target {
            let summary = tree.restore.finish()?;
            assert!(summary.problems.is_empty(), "{:?}", summary.problems);
            let (name, _) = self.open.take().unwrap();
            collect(&self.root.path().join(&name), &name, &mut self.files);
            return Ok(());
        }
        if let Some((name, content)) = self.content(target) {
            self.files.insert(name, content);
        }
        Ok(())
    }

    fn close_broken(
        &mut self,
        _member: &Member,
        target: Target,
        _file: &mut DamagedFile,
    ) -> Result<()> {
        if let Some((name, content)) = self.content(target) {
            self.broken.insert(name, content);
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<Box<dyn Sink>> {
        Ok(Box::new(MemorySink::new()))
    }
}

fn collect(root: &Path, name: &str, files: &mut Files) {
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{name}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            collect(&path, &name, files)
        } else {
            drop(files.insert(name, fs::read(&path).unwrap()))
        }
    }
}

/// The kind of frames of entries.
const ENTRIES: u8 = 6;

/// What one pass delivered.
pub(super) struct Pass {
    pub files: Files,
    broken: Files,
    pub damage: Damage,
}

pub(super) fn pass(archive: &[u8], by_pipe: bool, keep_broken: bool) -> Result<Pass> {
    pass_to(Recovered::new(), archive, by_pipe, keep_broken)
}

fn pass_to(
    mut targets: Recovered,
    archive: &[u8],
    by_pipe: bool,
    keep_broken: bool,
) -> Result<Pass> {
    let options = ReadOptions {
        temporary: Some(env!("CARGO_TARGET_TMPDIR").into()),
        ..read_options(2)
    };
    let recovered = if by_pipe {
        let stream = Box::new(Cursor::new(archive.to_vec()));
        recover(stream, &mut targets, keep_broken, &options, &Unwatched)
    } else {
        let archive = source(archive);
        recover(archive, &mut targets, keep_broken, &options, &Unwatched)
    };
    let (_, damage) = recovered?;
    Ok(Pass {
        files: targets.files,
        broken: targets.broken,
        damage,
    })
}

pub(super) fn name_of(file: &DamagedFile) -> String {
    let mut name = file.member_name.clone();
    if let Some(path) = &file.path {
        name = [&name[..], b"/", path].concat();
    }
    String::from_utf8(name).unwrap()
}

/// Checks a pass over a damaged archive. Returns the files that were lost.
#[track_caller]
fn check(original: &Files, archive: &[u8], by_pipe: bool, what: &str) -> BTreeSet<String> {
    let Pass { files, damage, .. } = match pass(archive, by_pipe, false) {
        Ok(pass) => pass,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Damaged, "{what}: {error}");
            return original.keys().cloned().collect();
        }
    };
    let named: BTreeSet<String> = damage.files.iter().map(name_of).collect();
    for (name, content) in &files {
        let is_right = match original.get(name) {
            Some(known) => known == content,
            // The content of a member with a lost start has another name.
            None => original.values().any(|known| known == content),
        };
        assert!(is_right, "{what}: {name} differs");
    }
    let lost: BTreeSet<String> = (original.iter())
        .filter(|(name, content)| {
            files.get(*name) != Some(content) && !files.values().any(|found| found == *content)
        })
        .map(|(name, _)| name.clone())
        .collect();
    let is_list_lost = damage.incomplete_lists > 0 || !damage.places.is_empty();
    for name in &lost {
        let is_named = named.contains(name);
        assert!(
            is_named || is_list_lost,
            "{what}: {name} is lost without a word"
        );
    }
    assert!(!damage.is_none() || lost.is_empty(), "{what}");
    lost
}

/// Files of all sizes: some share their content, some are incompressible, one is large.
fn tree(root: &Path) -> Files {
    let mut files = Files::new();
    for number in 0..36_usize {
        let content = match number % 6 {
            0..4 => data::random(7_000 + 900 * number, number as u64),
            4 => data::text(30_000, number as u64),
            _ => data::random(7_000 + 900 * (number - 5), number as u64 - 5),
        };
        files.insert(format!("sub{}/f{number}", number % 3), content);
    }
    files.insert("large".into(), data::random(9 << 20, 77));
    files.insert("zeros".into(), vec![0; 100_000]);
    for (name, content) in &files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    files
}

fn options(codec: &str) -> CompressOptions {
    CompressOptions {
        codec: codec.parse::<CodecChoice>().ok(),
        threads: 2,
        memory_bytes: Some(refrain::MEMORY_BYTES_MIN),
        block_bytes: Some(256 << 10),
        ..CompressOptions::default()
    }
}

/// A directory, and its files by their paths in the archive.
fn tree_member(name: &str) -> (tempfile::TempDir, MemberInput, Files) {
    let root = tempfile::tempdir().unwrap();
    let files = tree(root.path());
    let input = member(name, Content::directory(DirectoryContent::all(root.path())));
    let files = files.into_iter();
    let files = files.map(|(path, content)| (format!("{name}/{path}"), content));
    (root, input, files.collect())
}

/// The files of a member that need each block, by a walk over all extents: those that may be lost
/// with it. By the offset of the block's frame.
fn needed(archive: &[u8], member: usize, name: &str) -> BTreeMap<u64, BTreeSet<String>> {
    let opened = Archive::open(source(archive), &read_options(1)).unwrap();
    let mut blocks = vec![];
    let mut block_start = 0;
    for block in opened.blocks().unwrap() {
        blocks.push((block_start, block.raw_bytes, block.archive_offset));
        block_start += block.raw_bytes;
    }
    let mut extents = vec![];
    let mut each = |extent: refrain::ContentExtent| {
        match extent.origin {
            ExtentOrigin::First { offset_in_store } | ExtentOrigin::Repeat { offset_in_store } => {
                extents.push((extent.content_offset, extent.length_bytes, offset_in_store));
            }
            ExtentOrigin::Fill { .. } => {}
        }
        Ok(())
    };
    opened.layout().for_each_extent(&mut each).unwrap();
    let mut start = 0;
    let mut each = |number: usize, _: &Member, range: std::ops::Range<u64>| {
        if number == member {
            start = range.start;
        }
        Ok(())
    };
    opened.layout().for_each_member(&mut each).unwrap();
    let mut needed: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for entry in opened.entries(member).unwrap() {
        let content = entry.content_range();
        let path = String::from_utf8(entry.path.clone()).unwrap();
        for &(offset, length, store) in &extents {
            let from = offset.max(start + content.start);
            let to = (offset + length).min(start + content.end);
            if from >= to {
                continue;
            }
            let (store_from, store_to) = (store + from - offset, store + to - offset);
            for &(block_start, raw_bytes, frame) in &blocks {
                if block_start < store_to && store_from < block_start + raw_bytes {
                    let files = needed.entry(frame).or_default();
                    files.insert(format!("{name}/{path}"));
                }
            }
        }
    }
    needed
}

#[test]
fn eight_bytes_overwritten_anywhere_cost_only_what_needs_them() {
    let (root, _, files) = tree_member("d");
    let mut is_part_salvaged = false;
    for codec in ["none", "zstd"] {
        let (archive, _) = archive_of(vec![again(&root)], &options(codec));
        let needed = needed(&archive, 0, "d");
        assert!(check(&files, &archive, false, "intact").is_empty());
        let frames = frames_of(&archive);
        assert!(needed.len() > 8 && frames.len() > needed.len() + 5);
        let step = frames.len().div_ceil(14);
        for (number, frame) in frames.iter().enumerate() {
            // Some of the many blocks suffice; all other frames are hit.
            let of_block = needed.get(&(frame.start as u64));
            if of_block.is_some() && number % step != 0 {
                continue;
            }
            for at in [frame.start + 12, (frame.start + frame.end) / 2] {
                let mut bad = archive.clone();
                let end = (at + 8).min(frame.end);
                bad[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
                let by_pipe = number % 3 == 0;
                let what = format!("{codec}: frame {number} at {at}, by pipe: {by_pipe}");
                let lost = check(&files, &bad, by_pipe, &what);
                match of_block {
                    Some(of_block) => {
                        assert!(
                            lost.is_subset(of_block),
                            "{what}: {lost:?} for {of_block:?}"
                        );
                        is_part_salvaged |= lost.len() < of_block.len();
                    }
                    // The map of all content and the names of all files, a frame each, are repaired
                    // with their parity.
                    None => assert!(lost.is_empty(), "{what}: {lost:?}"),
                }
            }
        }
        for at in [0, archive.len() - 8] {
            let mut bad = archive.clone();
            bad[at..at + 8].iter_mut().for_each(|byte| *byte ^= 0x5a);
            let lost = check(&files, &bad, false, &format!("{codec}: at {at}"));
            assert!(lost.is_empty(), "{lost:?}");
        }
    }
    assert!(is_part_salvaged, "a block is more than one piece");
}

/// A directory once more.
fn again(root: &tempfile::TempDir) -> MemberInput {
    member("d", Content::directory(DirectoryContent::all(root.path())))
}

/// Several members of all kinds.
fn members() -> (tempfile::TempDir, Vec<u8>, Files) {
    let (root, input, mut files) = tree_member("tree");
    let contents = [
        ("first", data::random(600_000, 1)),
        ("second", data::text(700_000, 2)),
        ("third", data::random(500_000, 3)),
    ];
    let (archive, _) = archive_of(
        vec![
            file("first", &contents[0].1),
            input,
            pipe("second", &contents[1].1),
            file("third", &contents[2].1),
        ],
        &options("zstd"),
    );
    files.extend(contents.map(|(name, content)| (name.to_string(), content)));
    (root, archive, files)
}

#[test]
fn several_members_and_archives_go_on_after_damage() {
    let (_root, archive, mut files) = members();
    let others = [
        ("a", data::random(300_000, 8)),
        ("b", data::text(400_000, 9)),
    ];
    let inputs = others.iter().map(|(name, content)| file(name, content));
    let (next, _) = archive_of(inputs.collect(), &options("lz4"));
    files.extend(others.map(|(name, content)| (name.to_string(), content)));
    let both = [&archive[..], &next].concat();
    assert!(check(&files, &both, false, "intact").is_empty());
    // Every tenth of the file, the seam of both archives, and the ends of both.
    let places = (0..10).map(|tenth| both.len() * tenth / 10 + 5);
    let seam = archive.len();
    for at in places.chain([seam - 60, seam - 4, seam, seam + 10, both.len() - 30]) {
        let mut bad = both.clone();
        bad[at..at + 8].iter_mut().for_each(|byte| *byte ^= 0x33);
        for by_pipe in [false, true] {
            let what = format!("overwritten at {at}, by pipe: {by_pipe}");
            let lost = check(&files, &bad, by_pipe, &what);
            assert!(lost.len() * 2 < files.len(), "{what}: {lost:?}");
        }
    }
    // Not in the map of all content, whose loss would cost everything.
    for at in [3, 3000, both.len() / 3, seam, both.len() - 100] {
        let inserted = [&both[..at], b"inserted", &both[at..]].concat();
        let lost = check(&files, &inserted, false, &format!("inserted at {at}"));
        assert!(lost.len() * 2 < files.len(), "inserted at {at}: {lost:?}");
        let removed = [&both[..at], &both[at + 8..]].concat();
        let lost = check(&files, &removed, false, &format!("removed at {at}"));
        assert!(lost.len() * 2 < files.len(), "removed at {at}: {lost:?}");
    }
}

#[test]
fn what_is_whole_of_several_files_is_delivered_from_files_and_pipes() {
    let contents: Vec<(String, Vec<u8>)> = (0..6)
        .map(|number| (format!("m{number}"), data::random(400_000, number)))
        .collect();
    let inputs = contents.iter().map(|(name, content)| file(name, content));
    let (archive, _) = archive_of(inputs.collect(), &options("zstd"));
    let files: Files = contents.into_iter().collect();
    for at in [archive.len() / 3, archive.len() * 2 / 3] {
        let mut bad = archive.clone();
        bad[at..at + 8].fill(0x77);
        for by_pipe in [false, true] {
            let lost = check(
                &files,
                &bad,
                by_pipe,
                &format!("at {at}, by pipe: {by_pipe}"),
            );
            assert!((1..=2).contains(&lost.len()), "at {at}: {lost:?}");
        }
    }
    for tenth in 1..10 {
        let cut = archive.len() * tenth / 10;
        for by_pipe in [false, true] {
            let what = format!("cut at {cut}, by pipe: {by_pipe}");
            let lost = check(&files, &archive[..cut], by_pipe, &what);
            // Each is a sixth, and the extents and ends of members are between them.
            let whole = files.len() - lost.len();
            assert!(whole + 2 > 6 * tenth / 10, "{what}: {lost:?}");
            let pass = pass(&archive[..cut], by_pipe, false);
            if let Ok(pass) = pass {
                let at = pass.damage.cut_off_at();
                assert_eq!(at, Some(cut as u64), "{what}");
            }
        }
    }
}

#[test]
fn a_single_file_is_delivered_up_to_the_damage_and_behind_it_on_request() {
    let content = data::random(3 << 20, 4);
    let (archive, _) = archive_of(vec![file("f", &content)], &options("none"));
    let frames = frames_of(&archive);
    let largest: Vec<_> = frames
        .iter()
        .filter(|frame| frame.len() > 200_000)
        .collect();
    let mut bad = archive.clone();
    let hit = largest[largest.len() / 2];
    bad[hit.start + 100_000] ^= 1;
    for by_pipe in [false, true] {
        let pass = pass(&bad, by_pipe, false).unwrap();
        let prefix = &pass.broken["f"];
        assert!(!prefix.is_empty() && prefix[..] == content[..prefix.len()]);
        let file = &pass.damage.files[0];
        assert_eq!(file.delivered_bytes, prefix.len() as u64);
        assert_eq!(file.missing[0].start, prefix.len() as u64);
    }
    let pass = pass(&bad, false, true).unwrap();
    let kept = &pass.broken["f"];
    assert_eq!(kept.len(), content.len());
    let missing = &pass.damage.files[0].missing;
    // One piece of 64 KiB of an uncoded block.
    assert_eq!(missing.len(), 1);
    assert!(missing[0].end - missing[0].start <= 64 << 10, "{missing:?}");
    for (at, (kept, right)) in kept.iter().zip(&content).enumerate() {
        let is_missing = missing[0].contains(&(at as u64));
        assert!(kept == right || (is_missing && *kept == 0), "byte {at}");
    }
}

#[test]
fn the_stream_of_a_cut_directory_ends_at_the_cut_and_nobody_knows_how_long_it_was() {
    let (_root, input, _) = tree_member("d");
    let (archive, _) = archive_of(vec![input], &options("none"));
    let is_entries = |frame: &&std::ops::Range<usize>| archive[frame.start + 8] == ENTRIES;
    let list = frames_of(&archive).iter().rfind(is_entries).unwrap().end;
    let mut targets = Recovered::new();
    targets.are_streams = true;
    let cut = source(&archive[..list]);
    let recovered = recover(cut, &mut targets, false, &read_options(2), &Unwatched);
    let (_, damage) = recovered.unwrap();
    let [file] = &damage.files[..] else {
        panic!("{damage:?}");
    };
    let stream = &targets.broken["d"];
    assert_eq!(file.delivered_bytes, stream.len() as u64);
    assert!(stream.len() > 9 << 20, "{}", stream.len());
    let lost: Vec<_> = (file.missing.iter())
        .map(|lost| (lost.start, lost.end))
        .collect();
    assert_eq!(lost, [(stream.len() as u64, u64::MAX)]);
}

/// What waits for the list of files, which a pipe has last, is not taken for delivered.
#[test]
fn the_stream_of_a_damaged_directory_or_tar_begins_with_its_beginning() {
    let (_root, input, _) = tree_member("m");
    let (archive, _) = archive_of(vec![input], &options("none"));
    let mut whole = Recovered::new();
    whole.are_streams = true;
    let whole = pass_to(whole, &archive, true, false).unwrap();
    let tar = whole.files["m"].clone();
    let (archive_of_tar, _) = archive_of(vec![file("m", &tar)], &options("none"));
    let mut bad = Vec::new();
    for mut archive in [archive, archive_of_tar] {
        let (middle, end) = (archive.len() / 2, archive.len() - 20);
        bad.push(archive[..end].to_vec());
        archive[middle] ^= 1;
        bad.push(archive);
    }
    for bad in &bad {
        for keep_broken in [false, true] {
            let passes = [true, false].map(|by_pipe| {
                let mut targets = Recovered::new();
                targets.are_streams = true;
                pass_to(targets, bad, by_pipe, keep_broken).unwrap()
            });
            let streams = passes.each_ref().map(|pass| {
                let whole = pass.files.get("m");
                whole.or_else(|| pass.broken.get("m")).unwrap()
            });
            let what = format!("{} bytes, {keep_broken}", bad.len());
            assert!(streams[0] == streams[1], "{what}");
            let files = &passes[0].damage.files;
            let missing = files.last().map_or(&[][..], |file| &file.missing);
            assert!(streams[0].len() > 1 << 20, "{what}");
            for (at, (got, right)) in streams[0].iter().zip(&tar).enumerate() {
                let is_missing = missing.iter().any(|range| range.contains(&(at as u64)));
                assert!(got == right || (is_missing && *got == 0), "byte {at}");
            }
        }
    }
}

#[test]
fn broken_files_of_a_directory_have_zeros_on_request() {
    let (_root, input, files) = tree_member("d");
    let (archive, _) = archive_of(vec![input], &options("none"));
    let blocks: Vec<u64> = needed(&archive, 0, "d").into_keys().collect();
    let mut bad = archive.clone();
    for block in [blocks[1], blocks[blocks.len() / 2]] {
        bad[block as usize + 5_000] ^= 1;
    }
    let pass = pass(&bad, false, true).unwrap();
    assert!(pass.damage.file_count > 0);
    let names: BTreeSet<&String> = files.keys().collect();
    assert_eq!(pass.files.keys().collect::<BTreeSet<_>>(), names);
    for file in &pass.damage.files {
        assert!(file.is_kept);
        let (found, right) = (&pass.files[&name_of(file)], &files[&name_of(file)]);
        assert_eq!(found.len(), right.len());
        for (at, (found, right)) in found.iter().zip(right).enumerate() {
            let is_missing = file
                .missing
                .iter()
                .any(|range| range.contains(&(at as u64)));
            assert!(found == right || (is_missing && *found == 0), "byte {at}");
        }
    }
}

#[test]
fn one_file_that_is_whole_is_read_without_the_others() {
    let (_root, input, files) = tree_member("d");
    let (archive, _) = archive_of(vec![input], &options("zstd"));
    let needed = needed(&archive, 0, "d");
    let (frame, of_block) = needed.iter().nth(needed.len() / 2).unwrap();
    let mut bad = archive.clone();
    bad[*frame as usize + 3_000] ^= 1;
    let opened = Archive::open(source(&bad), &read_options(1)).unwrap();
    let mut whole = 0;
    for entry in opened.entries(0).unwrap() {
        let name = format!("d/{}", String::from_utf8(entry.path.clone()).unwrap());
        let Some(content) = files.get(&name) else {
            continue;
        };
        let mut bytes = vec![0; content.len()];
        match opened.read_at((0, &entry), 0, &mut bytes) {
            Ok(count) => {
                assert!(count == content.len() && bytes == *content, "{name}");
                whole += 1;
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Damaged);
                assert!(of_block.contains(&name), "{name}");
            }
        }
    }
    assert!(whole + of_block.len() >= files.len());
    assert_eq!(opened.damaged_places().len(), 1);
}

/// Counts the bytes read from an archive.
struct Counted {
    inner: std::sync::Arc<dyn Source>,
    bytes: AtomicU64,
}

impl Source for Counted {
    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read_at(offset, buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Takes only the member `small`.
struct OnlySmall(Recovered);

impl Targets for OnlySmall {
    fn open(&mut self, member: &MemberStart) -> Result<Target> {
        if member.name == b"small" { self.0.open(member) } else { Ok(Target::Skipped) }
    }

    fn close(&mut self, member: &Member, target: Target) -> Result<()> {
        self.0.close(member, target)
    }

    fn is_part(&self) -> bool {
        true
    }
}

#[test]
fn a_part_reads_what_it_needs_and_not_the_rest_of_the_archive() {
    let small = data::random(70_000, 1);
    let large = data::random(20 << 20, 2);
    let inputs = [("large", &large), ("small", &small), ("other", &large)];
    let inputs = inputs.map(|(name, bytes)| file(name, bytes));
    let options = CompressOptions {
        block_bytes: Some(1 << 20),
        ..options("zstd")
    };
    let (archive, _) = archive_of(inputs.into(), &options);
    for recovers in [false, true] {
        let counted = std::sync::Arc::new(Counted {
            inner: source(&archive),
            bytes: AtomicU64::new(0),
        });
        let mut targets = OnlySmall(Recovered::new());
        let (from, reading) = (counted.clone(), read_options(2));
        if recovers {
            recover(from, &mut targets, false, &reading, &Unwatched).unwrap();
        } else {
            refrain::extract(from, &mut targets, &reading, &Unwatched).unwrap();
        }
        assert_eq!(
            targets.0.files,
            Files::from([("small".into(), small.clone())])
        );
        let bytes = counted.bytes.load(Ordering::Relaxed);
        assert!(bytes < 3 << 20, "{bytes} of {} were read", archive.len());
    }
}
