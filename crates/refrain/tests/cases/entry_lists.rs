//! Forward passes find entry lists that contradict themselves, the content or their member's end,
//! and do not suspect valid lists.

use std::io::Cursor;

use crate::common::{extracted, extracted_from_pipe, read_options, source};
use refrain::directory::{RestoreOptions, TreeRestore};
use refrain::{Archive, Entry, EntryKind, Error, ErrorKind, Result, Unwatched};
use refrain_format::{MemberEnd, MemberKind};
use refrain_testkit::{EntryListMember, decode_by_index, decode_sequentially, sample_list, scaled};

const CONTENT: &[u8] = b"the data of all files of the list";

fn entry(kind: EntryKind, path: &str) -> Entry {
    Entry {
        path: path.into(),
        kind,
        ..Entry::default()
    }
}

fn file(path: &str) -> Entry {
    Entry {
        size_bytes: 10,
        ..entry(EntryKind::File, path)
    }
}

fn directory(path: &str) -> Entry {
    entry(EntryKind::Directory, path)
}

fn link(path: &str, target: &str) -> Entry {
    Entry {
        link_target: Some(target.into()),
        ..entry(EntryKind::Hardlink, path)
    }
}

fn member<const N: usize>(kind: MemberKind, frames: [Vec<Entry>; N]) -> EntryListMember {
    EntryListMember {
        kind,
        frames: frames.into(),
        content: CONTENT.to_vec(),
    }
}

fn tree<const N: usize>(frames: [Vec<Entry>; N]) -> EntryListMember {
    member(MemberKind::Tree, frames)
}

fn tar<const N: usize>(frames: [Vec<Entry>; N]) -> EntryListMember {
    member(MemberKind::Tar, frames)
}

/// Verifies an archive from a file and from a pipe, which must judge alike.
fn verified(archive: &[u8], what: &str) -> Result<()> {
    let options = read_options(2);
    let from_file = refrain::verify(source(archive), &options, &Unwatched);
    let stream = Box::new(Cursor::new(archive.to_vec()));
    let from_pipe = refrain::verify(stream, &options, &Unwatched);
    let message = |result: &Result<_>| result.as_ref().err().map(Error::to_string);
    assert_eq!(message(&from_file), message(&from_pipe), "{what}");
    from_file.map(drop)
}

#[track_caller]
fn assert_valid(member: &EntryListMember, what: &str) {
    let archive = member.archive(|_| {});
    verified(&archive, what).unwrap_or_else(|error| panic!("{what}: {error}"));
    let read = decode_sequentially(&archive);
    let read = read.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(read[0].entries, member.entries(), "{what}");
    let read = decode_by_index(&archive);
    assert!(
        read.is_ok_and(|read| read[0].entries == member.entries()),
        "{what}"
    );
}

/// The archive is refused as damaged, with the member and a message with this text, by the engine
/// and by the reference decoders.
#[track_caller]
fn assert_found(
    member: &EntryListMember,
    change: impl FnOnce(&mut MemberEnd),
    text: &str,
    what: &str,
) {
    let archive = member.archive(change);
    let error = verified(&archive, what).expect_err(what);
    assert_eq!(error.kind, ErrorKind::Damaged, "{what}: {error}");
    assert_eq!(error.location.file.as_deref(), Some("listed"), "{what}");
    let message = error.to_string();
    assert!(message.contains(text), "{what}: {message}");
    for decoded in [decode_sequentially(&archive), decode_by_index(&archive)] {
        let message = decoded.expect_err(what);
        assert!(message.contains(text), "{what}: {message}");
    }
}

#[track_caller]
fn assert_contradicts(member: &EntryListMember, text: &str, what: &str) {
    assert_found(member, |_| {}, text, what);
}

#[test]
fn valid_lists_are_not_suspected() {
    for seed in 0..u64::from(scaled(150)) {
        for kind in [MemberKind::Tree, MemberKind::Tar] {
            let member = sample_list(kind, seed);
            let what = format!("{kind:?} {seed}");
            assert_valid(&member, &what);
            let archive = member.archive(|_| {});
            let view = extracted(&archive, &read_options(2)).unwrap();
            assert_eq!(
                view,
                extracted_from_pipe(&archive, &read_options(2)).unwrap()
            );
        }
    }
    assert_valid(&tree([]), "no entries");
    assert_valid(
        &tree([vec![file("a/b/c")], vec![file("a/d")]]),
        "no parents",
    );
    let rooted = tree([
        vec![directory("."), file("!")],
        vec![directory("a"), file("a/b")],
    ]);
    assert_valid(&rooted, "a root without a name");
    let links = tree([
        vec![
            file("a"),
            directory("d"),
            link("d/x", "a"),
            link("d/y", "d/.hidden/é"),
        ],
        vec![link("z", "a")],
    ]);
    let hidden = Entry {
        link_target: Some(b"anywhere".to_vec()),
        ..entry(EntryKind::Symlink, "d/.hidden/é")
    };
    let mut with_hidden = links.clone();
    with_hidden.frames[0].insert(2, hidden);
    assert_valid(&with_hidden, "links to a file and to a symbolic link");
    assert_contradicts(
        &links,
        "entry 3 of its member breaks",
        "one of them is missing",
    );
}

#[test]
fn tar_streams_may_have_any_paths_and_links() {
    let raw = Entry {
        size_bytes: 5,
        ..entry(EntryKind::Raw, "")
    };
    let member = tar([
        vec![
            file("./b/../c"),
            link("/a", "nowhere"),
            file("a"),
            file("a"),
        ],
        vec![file("a/b"), raw.clone(), raw],
    ]);
    assert_valid(&member, "tar");
}

#[test]
fn the_length_of_the_tar_stream_is_compared() {
    for kind in [MemberKind::Tree, MemberKind::Tar] {
        for seed in 0..20 {
            let member = sample_list(kind, seed);
            for change in [1, 512, 1 << 40] {
                let what = format!("{kind:?} {seed} {change}");
                let text = "bytes of a member as a tar stream is";
                assert_found(&member, |end| end.view_bytes ^= change, text, &what);
            }
        }
    }
}

#[test]
fn the_order_of_paths_is_compared_within_and_across_frames() {
    let order = "the paths of a tree ascend strictly";
    let once = "a path occurs once in a tree";
    for (text, frames) in [
        (
            order,
            [vec![file("a"), file("c"), file("b")], vec![file("d")]],
        ),
        (order, [vec![file("a")], vec![file("b"), directory(".")]]),
        (once, [vec![file("a"), file("a")], vec![file("b")]]),
        (
            once,
            [vec![file("a"), file("b")], vec![file("b"), file("c")]],
        ),
        (
            once,
            [vec![directory("a"), file("b")], vec![directory("b")]],
        ),
    ] {
        let what = format!("{frames:?}");
        assert_contradicts(&tree(frames.clone()), text, &what);
        let marked = |end: &mut MemberEnd| end.entries_are_sorted = true;
        assert_found(&tree(frames), marked, text, &what);
    }
}

#[test]
fn frames_of_trees_may_interleave() {
    for frames in [
        [vec![file("a"), file("c")], vec![file("b")]],
        [vec![file("b")], vec![file("a")]],
        [vec![directory("a"), file("a-b")], vec![file("a/b")]],
    ] {
        let what = format!("{frames:?}");
        let member = tree(frames);
        assert_valid(&member, &what);
        let archive = member.archive(|_| {});
        let opened = Archive::open(source(&archive), &read_options(2)).unwrap();
        assert_eq!(opened.entries(0).unwrap(), member.entries(), "{what}");
        let scanned = Archive::open_by_scan(source(&archive), &read_options(2)).unwrap();
        assert_eq!(scanned.entries(0).unwrap(), member.entries(), "{what}");
        let view = extracted(&archive, &read_options(2)).unwrap();
        assert_eq!(
            view,
            extracted_from_pipe(&archive, &read_options(2)).unwrap()
        );
        let text = "mark of sorted entries is 1, expected 0";
        // No writer puts what the first paths tell into an archive.
        if member.frames[0][0].path < member.frames[1][0].path {
            assert_found(&member, |end| end.entries_are_sorted = true, text, &what);
        }
    }
    let text = "only a directory has entries below it";
    let below = [vec![file("a"), file("a-b")], vec![file("a/b")]];
    assert_contradicts(&tree(below), text, "across frames");
}

#[test]
fn the_mark_of_sorted_entries_is_exact() {
    let text = "mark of sorted entries is 0, expected 1";
    let sorted = [vec![file("a"), file("b")], vec![file("c")]];
    for member in [tree(sorted.clone()), tar(sorted)] {
        assert_found(
            &member,
            |end| end.entries_are_sorted = false,
            text,
            "sorted",
        );
    }
    let text = "entry 2 of its member breaks a rule: the paths of sorted entries ascend strictly";
    for unsorted in [
        [vec![file("a"), file("c")], vec![file("b")]],
        [vec![file("a"), file("b")], vec![file("b")]],
        [vec![file("b"), file("c"), file("a")], vec![file("d")]],
    ] {
        let member = tar(unsorted);
        assert_valid(&member, "unsorted");
        assert_found(
            &member,
            |end| end.entries_are_sorted = true,
            text,
            "unsorted",
        );
    }
}

#[test]
fn only_directories_have_entries_below_them() {
    let text = "only a directory has entries below it";
    let above = [file("a"), link("a", "A"), entry(EntryKind::Fifo, "a")];
    for above in above {
        let frames = [vec![file("A"), above.clone(), file("a/b")], vec![file("c")]];
        assert_contradicts(&tree(frames), text, "within a frame");
        let frames = [vec![file("A"), above], vec![file("a/b/c"), file("c")]];
        assert_contradicts(&tree(frames), text, "across frames");
    }
    assert_contradicts(&tree([vec![file("."), file("b")]]), text, "the root");
    assert_valid(&tree([vec![file("a"), file("ab/c")]]), "a longer name");
}

#[test]
fn hard_links_lead_to_entries_before_them() {
    let text = "breaks a rule: a hard link of a tree leads to an earlier entry";
    let found = |frames: [Vec<Entry>; 2], link: u64| {
        let text = format!("entry {link} of its member {text}");
        let what = format!("{frames:?}");
        assert_contradicts(&tree(frames), &text, &what);
    };
    let (first, second) = (vec![file("a"), directory("b")], vec![file("y")]);
    for target in ["nothing", "b", "c", "d", "e", "./a", ""] {
        let links = vec![link("c", target), file("d"), link("e", "a")];
        found([[first.clone(), links.clone()].concat(), second.clone()], 2);
        found([first.clone(), [links, second.clone()].concat()], 2);
    }
    // A link to a link.
    let links = vec![link("c", "a"), link("d", "c")];
    found([[first.clone(), links.clone()].concat(), second.clone()], 3);
    found(
        [
            [first, vec![links[0].clone()]].concat(),
            vec![links[1].clone()],
        ],
        3,
    );
}

#[test]
fn paths_of_trees_have_the_normal_form() {
    let text = "no component of a path in a tree is empty, `.` or `..`";
    for path in [
        "/", "/a", "a//b", "a/", "./a", "a/.", "a/./b", "..", "../a", "a/..", "a/../b",
    ] {
        assert_contradicts(&tree([vec![file(path)]]), text, path);
        assert_valid(&tar([vec![file(path)]]), path);
    }
    for path in ["...", "a/...", ".a", "a./..b", "\\", "a\\..\\b", "\n", " "] {
        assert_valid(&tree([vec![file(path)]]), path);
    }
}

#[test]
fn trees_have_nothing_of_tar_streams() {
    let text = "only tar streams have raw bytes and header recipes";
    assert_contradicts(&tree([vec![entry(EntryKind::Raw, "")]]), text, "raw");
    let recorded = Entry {
        header_recipe: vec![1],
        ..file("a")
    };
    assert_contradicts(&tree([vec![recorded.clone()]]), text, "recipe");
    assert_valid(&tar([vec![recorded.clone()]]), "recipe");
    let malformed = Entry {
        header_recipe: vec![4, 99],
        ..recorded
    };
    let text = "its recipe gives a tar header";
    assert_contradicts(&tar([vec![malformed]]), text, "malformed recipe");
}

#[test]
fn data_is_inside_the_content() {
    let text = "entry 1 of its member breaks a rule: its data is inside the content";
    let length = CONTENT.len() as u64;
    let outside = [
        (0, length + 1),
        (length, 1),
        (length - 4, 5),
        (length + 1, 0),
        (1 << 60, 9),
    ];
    for (content_offset, size_bytes) in outside {
        let far = Entry {
            content_offset,
            size_bytes,
            ..file("b")
        };
        let frames = [vec![file("a"), far], vec![file("c")]];
        assert_contradicts(&tree(frames.clone()), text, "tree");
        assert_contradicts(&tar(frames), text, "tar");
    }
}

/// Reading by the index compares the hash of the entries wherever all of them are read.
#[test]
fn the_hash_of_the_entries_is_compared_by_the_index_too() {
    let member = tree([vec![directory("."), file("a")], vec![file("b")]]);
    let forge = |end: &mut MemberEnd| end.entries_hash = Some([7; 32]);
    let (valid, forged) = (member.archive(|_| {}), member.archive(forge));
    let out = tempfile::tempdir().unwrap();
    let restored = |archive: &[u8], name: &str| {
        let target = out.path().join(name);
        let restore = TreeRestore::create(&target, RestoreOptions::default()).unwrap();
        let opened = Archive::open(source(archive), &read_options(2))?;
        opened.restore_tree(0, &restore, None, &Unwatched)?;
        assert_eq!(restore.finish()?.problem_count, 0);
        assert_eq!(std::fs::read(target.join("b")).unwrap(), &CONTENT[..10]);
        Ok::<_, Error>(())
    };
    restored(&valid, "valid").unwrap();
    let open = |archive: &[u8]| Archive::open(source(archive), &read_options(2)).unwrap();
    let mut sink = refrain::storage::MemorySink::new();
    open(&valid).write_member(0, &mut sink, &Unwatched).unwrap();
    assert_eq!(open(&valid).entries(0).unwrap().len(), 3);
    let errors = [
        restored(&forged, "forged").unwrap_err(),
        open(&forged)
            .write_member(0, &mut sink, &Unwatched)
            .unwrap_err(),
        open(&forged).entries(0).unwrap_err(),
        extracted(&forged, &read_options(2)).unwrap_err(),
        verified(&forged, "forged").unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind, ErrorKind::Damaged);
        let message = error.to_string();
        assert!(
            message.contains("the entries do not match their hash"),
            "{message}"
        );
    }
    assert!(!out.path().join("forged").exists());
}
