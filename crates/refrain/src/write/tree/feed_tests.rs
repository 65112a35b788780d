use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use refrain_filesystem::{ProblemKind, WalkOptions};
use refrain_pool::Lock;

use super::*;
use crate::write::log_memory::LogMemory;
use crate::write::pipeline::context::tests::test_context;
use crate::write::tree::entry_list::{SharedEntries, ViewKind};
use crate::write::tree::known::KnownContents;
use crate::write::tree::reread::RereadLog;

/// The length of the large file in most tests: nine pieces, the last one shorter.
const LARGE_BYTES: usize = WHOLE_BYTES_MAX as usize + 300_000;

fn feed_of(root: &Path, walker: Walker) -> (DirectoryFeed, SharedEntries) {
    let log = RereadLog::new(LogMemory::new(1 << 20));
    let content = ContentWriter::new(KnownContents::new(1 << 20), log, Arc::default());
    let list = EntryList::new(0, ViewKind::Canonical, false);
    let shared = list.shared();
    let input = DirectoryInput {
        walker,
        root: FileRoot::open(root).unwrap(),
        root_path: root.to_path_buf(),
        name: PathBuf::new(),
        is_strict: true,
        window_bytes: 1 << 20,
        run_bytes_max: 1 << 20,
        code_bytes_min: 4 << 20,
        earlier: None,
    };
    (
        DirectoryFeed::new(input, content, list, Arc::new(Lock::default())),
        shared,
    )
}

fn feed(root: &Path) -> (DirectoryFeed, SharedEntries) {
    let walker = Walker::open(root, Path::new(""), WalkOptions::default()).unwrap();
    feed_of(root, walker)
}

/// Runs a feed whose jobs all complete before it is called again. Returns the content.
fn run(feed: &mut DirectoryFeed, room_bytes: u64) -> Vec<u8> {
    run_between(feed, room_bytes, |_| {})
}

/// Runs a feed, and calls `before` with the number of each job before running it.
fn run_between(
    feed: &mut DirectoryFeed,
    room_bytes: u64,
    mut before: impl FnMut(usize),
) -> Vec<u8> {
    let context = test_context();
    let (mut content, mut jobs, mut number) = (vec![], vec![], 0);
    loop {
        match feed.next(room_bytes, &context).unwrap() {
            FeedStep::Segment(segment) => content.extend(segment.bytes),
            FeedStep::Job(_, job) => jobs.push(job),
            FeedStep::Done => return content,
            FeedStep::Wait => {
                assert!(!jobs.is_empty(), "the feed waits for nothing");
                for job in jobs.drain(..) {
                    before(number);
                    number += 1;
                    job(&context);
                }
            }
        }
    }
}

fn problems(feed: &DirectoryFeed) -> Vec<Problem> {
    let problems = std::mem::take(&mut *feed.problems.lock());
    problems.into_iter().map(|(_, problem)| problem).collect()
}

/// Content of a large file that tells where each byte comes from.
fn large(seed: u8) -> Vec<u8> {
    (0..LARGE_BYTES)
        .map(|at| (at / 1000) as u8 ^ seed.wrapping_mul(31))
        .collect()
}

/// Writes a file with a modification time so long ago that any change shows.
fn write_old(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    let old = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(old).unwrap();
}

#[test]
fn known_content_makes_room_for_the_next_files() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..40 {
        fs::write(root.path().join(format!("{number}")), [7; 600_000]).unwrap();
    }
    for room_bytes in [SEGMENT_BYTES as u64, 3 << 20, u64::MAX] {
        let (mut feed, shared) = feed(root.path());
        assert_eq!(run(&mut feed, room_bytes), [7; 600_000], "{room_bytes}");
        assert_eq!(shared.take().entry_count, 41);
    }
}

#[test]
fn a_large_file_that_is_replaced_or_deleted_while_it_is_read_is_the_old_one() {
    let root = tempfile::tempdir().unwrap();
    let (path, other) = (root.path().join("big"), root.path().join("small"));
    for moment in [2, 4, 9] {
        for is_replaced in [true, false] {
            let old = large(1);
            write_old(&path, &old);
            write_old(&other, b"x");
            let (mut feed, _) = feed(root.path());
            let content = run_between(&mut feed, SEGMENT_BYTES as u64, |job| {
                if job == moment && is_replaced {
                    let new = root.path().join("new");
                    write_old(&new, &large(2));
                    fs::rename(&new, &path).unwrap();
                } else if job == moment {
                    fs::remove_file(&path).unwrap();
                }
            });
            assert!(content[..LARGE_BYTES] == old, "{moment} {is_replaced}");
            assert_eq!(content.len(), LARGE_BYTES + 1);
            assert_eq!(problems(&feed), []);
        }
    }
}

#[test]
fn a_large_file_that_shrinks_is_cut_and_named_once() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("big");
    for (new_bytes, room_bytes) in [(5 << 20, 1 << 20), (10, 1 << 20), (3_000_001, u64::MAX)] {
        let old = large(1);
        write_old(&path, &old);
        let (mut feed, shared) = feed(root.path());
        let content = run_between(&mut feed, room_bytes, |job| {
            if job == 4 {
                let file = File::options().write(true).open(&path).unwrap();
                file.set_len(new_bytes).unwrap();
            }
        });
        assert!(content.len() >= new_bytes as usize && content.len() < LARGE_BYTES);
        assert!(content == old[..content.len()], "nothing is made up");
        let found = problems(&feed);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&found[0].path[..], found[0].kind),
            (&b"big"[..], ProblemKind::Changed)
        );
        let view_bytes = shared.take().view_bytes;
        assert!(view_bytes > content.len() as u64 && view_bytes < LARGE_BYTES as u64);
    }
}

#[test]
fn a_large_file_that_grows_or_is_overwritten_is_named_once() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("big");
    for is_appended in [true, false] {
        let old = large(1);
        write_old(&path, &old);
        let (mut feed, _) = feed(root.path());
        let content = run_between(&mut feed, SEGMENT_BYTES as u64, |job| {
            if job == 5 {
                let mut options = File::options();
                let file = options.write(true).append(is_appended).open(&path);
                file.unwrap().write_all(&[9; 1000]).unwrap();
            }
        });
        assert_eq!(content.len(), LARGE_BYTES);
        assert_eq!(problems(&feed).len(), 1, "{is_appended}");
    }
}

#[test]
fn files_that_state_no_size_are_read_to_their_end() {
    let paths = vec![b"version".to_vec(), b"filesystems".to_vec()];
    let options = WalkOptions::default();
    let walker = Walker::for_paths(Path::new("/proc"), Path::new(""), paths, options).unwrap();
    let (mut feed, _) = feed_of(Path::new("/proc"), walker);
    let content = run(&mut feed, u64::MAX);
    let [version, systems] =
        ["/proc/version", "/proc/filesystems"].map(|path| fs::read(path).unwrap());
    assert!(
        content == [&version[..], &systems].concat()
            || content == [&systems[..], &version].concat()
    );
    assert_eq!(problems(&feed), []);
}

/// Changes a file in one of several ways. Returns its content afterwards.
fn mutate(path: &Path, kind: u64, at: u64) -> Option<Vec<u8>> {
    let open = || File::options().write(true).open(path).ok();
    // No holes: they are not content.
    let at = at.min(fs::metadata(path).map_or(0, |found| found.len()));
    match kind {
        0 => open()?.set_len(at).unwrap(),
        1 => open()?.write_all_at(b"changed", at).unwrap(),
        2 => fs::remove_file(path).ok()?,
        3 => {
            let new = path.with_extension("new");
            write_old(&new, &large(at as u8));
            fs::rename(&new, path).unwrap();
        }
        _ => {
            let link = path.with_extension("link");
            let _ = fs::hard_link(path, link);
        }
    }
    fs::read(path).ok()
}

#[test]
fn what_is_stored_was_there_or_is_named() {
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut named = 0;
    for round in 0..40 {
        // The file is the only one walked.
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        let length = match round % 4 {
            0 => 100_000,
            _ => LARGE_BYTES,
        };
        let mut versions = vec![large(1)[..length].to_vec()];
        write_old(&path, &versions[0]);
        let options = WalkOptions::default();
        let listed = vec![b"file".to_vec()];
        let walker = Walker::for_paths(root.path(), Path::new(""), listed, options).unwrap();
        let (mut feed, _) = feed_of(root.path(), walker);
        feed.is_strict = false;
        let content = run_between(&mut feed, SEGMENT_BYTES as u64 * (1 + random(3)), |_| {
            if random(6) == 0 {
                versions.extend(mutate(&path, random(5), random(length as u64 + 1000)));
            }
        });
        let found = problems(&feed);
        let was_there = versions.contains(&content);
        assert!(was_there || !found.is_empty(), "round {round}");
        assert!(found.len() <= 1, "round {round}: {found:?}");
        named += found.len();
    }
    assert!((1..40).contains(&named), "{named}");
}
