//! Tests of [`super`].

#![allow(clippy::single_range_in_vec_init)]

use std::fs;
use std::path::Path;

use refrain_format::{AnchorsPlace, BlockHeader, SplitPayload, TreeLayer, member_hash};
use refrain_storage::{FileSource, GrowingFile, MemorySource, Sink, Source};
use refrain_testkit::data::random;

use super::*;
use crate::read::native::layered_content::LayeredContent;
use crate::read::range_set::RangeSet;
use crate::read::tree::content::TreeContent;
use crate::{
    AddTo, CompressOptions, Content, DirectoryContent, GenerationLabel, Level, MemberInput,
    Unwatched, add, verify,
};

fn night(path: &Path, content: Vec<u8>) {
    add_to(path, Content::Source(Arc::new(MemorySource::new(content))));
}

fn add_to(path: &Path, content: Content) {
    let members = vec![MemberInput {
        name: b"x".to_vec(),
        mode: None,
        modified: None,
        content,
    }];
    let options = CompressOptions {
        level: Level(1),
        threads: 1,
        block_bytes: Some(1 << 16),
        ..CompressOptions::default()
    };
    let label = GenerationLabel::default();
    if path.exists() {
        let to = &mut GrowingFile::open(path).unwrap();
        add(
            members,
            AddTo::File(to, &ReadOptions::default()),
            None,
            &options,
            label,
            &Unwatched,
        )
        .unwrap();
        return;
    }
    let mut sink = MemorySink::new();
    let output = sink.output();
    let to = AddTo::Copy(None, &mut sink);
    add(members, to, None, &options, label, &Unwatched).unwrap();
    sink.publish().ok();
    fs::write(path, output.published().unwrap()).unwrap();
}

#[test]
fn a_record_that_gives_away_what_is_needed_is_found_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    night(&path, random(200_000, 1));
    night(&path, random(200_000, 2));
    let mut file = GrowingFile::open(&path).unwrap();
    let earlier = Earlier::of(file.source().unwrap()).unwrap();
    let archive = earlier.open(64 << 20, 1).unwrap();
    let growth = archive.growth().unwrap();
    let mut frames = vec![];
    archive
        .for_each_indexed_block(&mut |block| {
            frames.push(block.frame_offset..block.frame_offset + block.frame_bytes);
            Ok(())
        })
        .unwrap();
    let end = growth.base.end.archive_bytes;
    let growing = Growing::of(file.source().unwrap(), &ReadOptions::default()).unwrap();
    let forged = record(growth, &GoneFrames::new(frames), &growing).unwrap();
    file.append_behind(end).unwrap();
    file.write_all(&forged).unwrap();
    file.publish().unwrap();
    let source: Arc<dyn Source> = Arc::new(FileSource::open(&path).unwrap());
    let options = ReadOptions::default();
    let error = verify(source.clone(), &options, &Unwatched).unwrap_err();
    assert!(error.is_given_back(), "{error}");
    let planned = Compaction::plan(&mut file, &options, &Unwatched);
    assert!(planned.map(|_| ()).unwrap_err().is_given_back());
    // All of the data is there, and is not read.
    let archive = crate::Archive::open(source, &options).unwrap();
    let error = archive.read_at(0, 0, &mut [0; 100]).unwrap_err();
    assert!(error.is_given_back(), "{error}");
}

fn opened(path: &Path) -> (Arc<IndexedArchive>, Catalog) {
    let source: Arc<dyn Source> = Arc::new(FileSource::open(path).unwrap());
    let archive = Earlier::of(source).unwrap().open(64 << 20, 1).unwrap();
    let catalog = archive.growth().unwrap().catalog;
    (Arc::new(archive), catalog)
}

fn uses(archive: &Arc<IndexedArchive>, catalog: &Catalog, memory_bytes: u64) -> Vec<u64> {
    let kept = &catalog.generations;
    let live = archive.live_store(kept, memory_bytes, &Unwatched).unwrap();
    assert_eq!(live.is_exact, memory_bytes > 10_000);
    let mut uses = vec![];
    let each = &mut |_: &IndexBlock, bytes| {
        uses.push(bytes);
        Ok(())
    };
    archive.for_each_block_use(&live, each).unwrap();
    uses
}

#[test]
fn with_little_memory_more_stays_and_nothing_less() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let mut image = random(1_500_000, 1);
    night(&path, image.clone());
    for at in 0..40_usize {
        image[at * 30_000..][..300].copy_from_slice(&random(300, 100 + at as u64));
    }
    night(&path, [random(300_000, 2), image].concat());
    let (archive, mut catalog) = opened(&path);
    catalog.generations.remove(0);
    let exact = uses(&archive, &catalog, 1 << 20);
    let coarse = uses(&archive, &catalog, 256);
    assert!(
        exact.iter().any(|&bytes| bytes > 0 && bytes < 1 << 16),
        "{exact:?}"
    );
    assert_ne!(exact, coarse);
    assert!(
        exact
            .iter()
            .zip(&coarse)
            .all(|(exact, coarse)| exact <= coarse)
    );
}

#[test]
fn a_layered_tree_needs_what_its_view_has() {
    let directory = tempfile::tempdir().unwrap();
    let (path, tree) = (
        directory.path().join("a.rfn"),
        directory.path().join("tree"),
    );
    fs::create_dir(&tree).unwrap();
    for number in 0..60 {
        fs::write(tree.join(format!("f{number}")), random(5000, number)).unwrap();
    }
    // Younger files could change again unseen.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    for night in 0..4_u64 {
        if night > 0 {
            fs::write(tree.join("f1"), random(5000, 100 + night)).unwrap();
            fs::write(tree.join(format!("f{}", 10 + night)), b"now short").unwrap();
            fs::remove_file(tree.join(format!("f{}", 20 + night))).unwrap();
            fs::remove_file(tree.join(format!("f{}", 9 + night))).unwrap();
        }
        add_to(&path, Content::directory(DirectoryContent::all(&tree)));
    }
    let (archive, catalog) = opened(&path);
    let member = archive.member_with_id(3).unwrap().unwrap();
    assert_eq!(
        member.start.layers.as_ref().map(|below| below.layers.len()),
        Some(3)
    );
    let own = TreeLayer {
        member_id: 3,
        hash: member_hash(&member.start, &member.end),
    };
    let layers: Vec<_> = [own]
        .into_iter()
        .chain(member.start.layers.unwrap().layers)
        .collect();
    let view = LayeredContent::of_layers(&archive, &layers).unwrap();
    let mut naive = RangeSet::within(1 << 20);
    let own_start = member.start.content_start;
    naive.add(own_start..own_start + member.end.content_bytes);
    for part in 0..view.entry_frames().unwrap() {
        for (entry, _) in view.part(part).unwrap() {
            naive.add(entry.content_range());
        }
    }
    let last = &catalog.generations[3..];
    let mut content = RangeSet::within(1 << 20);
    let is_exact = archive.add_content_of_all(last, &mut content, 1 << 20, &Unwatched);
    assert!(is_exact.unwrap());
    let naive = naive.into_ranges();
    assert_eq!(content.into_ranges(), naive);
    let mut more = RangeSet::within(1 << 20);
    let is_exact = archive.add_content_of_all(last, &mut more, 0, &Unwatched);
    assert!(!is_exact.unwrap());
    let bytes = |ranges: &[Range<u64>]| ranges.iter().map(|one| one.end - one.start).sum();
    let (some, all): (u64, u64) = (bytes(&naive.0), bytes(&more.into_ranges().0));
    assert!(some + 10_000 < all, "{some} {all}");
}

#[test]
fn holes_leave_headers_and_heads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    night(&path, random(300_000, 1));
    night(&path, random(300_000, 2));
    let (archive, _) = opened(&path);
    let bytes = fs::read(&path).unwrap();
    let file: Arc<dyn Source> = Arc::new(MemorySource::new(bytes.clone()));
    let growing = Growing::of(file, &ReadOptions::default()).unwrap();
    let mut blocks = vec![];
    archive
        .for_each_indexed_block(&mut |block| {
            blocks.push(*block);
            Ok(())
        })
        .unwrap();
    assert!(blocks.len() >= 8, "{}", blocks.len());
    for block in blocks {
        let hole = hole_of(&growing, &block).unwrap();
        let frame = block.frame_offset..block.frame_offset + block.frame_bytes;
        assert!(
            hole.start > frame.start && hole.end <= frame.end,
            "{hole:?} {frame:?}"
        );
        let mut punched = bytes[frame.start as usize..frame.end as usize].to_vec();
        let inside = |at: u64| (at - frame.start) as usize;
        punched[inside(hole.start)..inside(hole.end)].fill(0);
        let payload = SplitPayload::new(&punched[FRAME_HEADER_BYTES..]).unwrap();
        let (head, _) = BlockHeader::parse_head(&payload).unwrap();
        assert_eq!(head.store_start, block.store_start);
        // No whole block of the file more.
        let data_start = frame.end - payload.data.len() as u64;
        assert_eq!(hole, whole_blocks(&(data_start..frame.end)));
        let elsewhere = refrain_format::IndexBlock {
            frame_offset: block.frame_offset + 1,
            ..block
        };
        assert!(hole_of(&growing, &elsewhere).is_err());
    }
}

#[test]
fn the_largest_runs_come_first_if_not_all_fit() {
    let anchors = (0..2_084_000).map(|number| AnchorsPlace {
        frame_offset: number << 30,
        frame_bytes: 1 << 29,
        zero_bits: 5,
        anchor_count: 1 << 30,
    });
    let catalog = Catalog {
        anchors: anchors.collect(),
        gone: GoneFrames::new([100..200]),
        ..Catalog::default()
    };
    let dead: Vec<_> = (1..20_000_u64)
        .map(|at| at * 1000..at * 1000 + at / 100 + 1)
        .collect();
    let gone = gone_with(&catalog, dead.clone()).unwrap();
    assert!(gone.contains(100), "what was gone stays gone");
    let count = gone.runs().len() - 1;
    assert!((1..dead.len()).contains(&count), "{count}");
    assert!(gone.contains(19_999_000) && !gone.contains(1000));
    let all = gone_with(&Catalog::default(), dead.clone()).unwrap();
    assert_eq!(all.runs().len(), dead.len());
}
