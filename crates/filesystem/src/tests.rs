//! Reader and sink together, and compared with the system's tar.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use refrain_storage::Sink;

use crate::reader::TreeReader;
use crate::sink::TreeSink;
use crate::walk::{Problem, ProblemKind};
use refrain_entries::{Entry, EntryKind, TarHeader, Timestamp};

fn create_tree(root: &Path) {
    fs::create_dir_all(root.join("sub/empty")).unwrap();
    fs::write(root.join("a"), b"first").unwrap();
    fs::write(root.join("sub.x"), vec![7; 511]).unwrap();
    fs::write(root.join("sub/exact"), vec![8; 1024]).unwrap();
    fs::write(root.join("sub").join("n".repeat(200)), b"long").unwrap();
    fs::write(root.join("empty"), b"").unwrap();
    symlink("t".repeat(150), root.join("soft")).unwrap();
    fs::hard_link(root.join("a"), root.join("sub/hard")).unwrap();
    let fifo = root.join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let mut holes = File::create(root.join("holes")).unwrap();
    holes.write_all(b"start").unwrap();
    holes.set_len(600_000).unwrap();
    fs::set_permissions(root.join("a"), Permissions::from_mode(0o601)).unwrap();
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 5);
    File::open(root.join("a"))
        .unwrap()
        .set_modified(time)
        .unwrap();
    File::open(root.join("sub"))
        .unwrap()
        .set_modified(time)
        .unwrap();
    File::open(root).unwrap().set_modified(time).unwrap();
}

/// Path, mode with kind, time and content of everything below `root`.
fn snapshot(root: &Path) -> Vec<(String, u32, i64, i64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let kind = metadata.file_type();
        let mut content = Vec::new();
        if kind.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if kind.is_file() {
            content = fs::read(&path).unwrap();
        } else if kind.is_symlink() {
            content = fs::read_link(&path)
                .unwrap()
                .to_string_lossy()
                .into_owned()
                .into_bytes();
        }
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        found.push((
            name,
            metadata.mode(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            content,
        ));
    }
    found.sort();
    found
}

fn stream(root: &Path) -> (Vec<u8>, TreeReader) {
    let mut reader = TreeReader::open(root).unwrap();
    reader.observe_problems(Box::new(|problem| panic!("{problem:?}")));
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    (bytes, reader)
}

fn restore(bytes: &[u8], root: &Path, overwrite: bool, piece_bytes: usize) -> io::Result<()> {
    let mut sink = TreeSink::create(root, overwrite)?;
    bytes
        .chunks(piece_bytes)
        .try_for_each(|piece| sink.write_all(piece))?;
    sink.publish()
}

fn path_text(entry: &Entry) -> &str {
    std::str::from_utf8(&entry.path).unwrap()
}

/// Path, kind, link target, data.
type Forged<'a> = (&'a str, EntryKind, &'a str, &'a [u8]);

/// A tar stream of arbitrary entries with its end mark.
fn forged(entries: &[Forged]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, kind, link, data) in entries {
        let header = TarHeader {
            path: path.as_bytes().to_vec(),
            kind: *kind,
            mode: 0o6755,
            uid: 0,
            gid: 0,
            size_bytes: data.len() as u64,
            modified: Timestamp {
                seconds: 1,
                nanoseconds: 0,
            },
            link: link.as_bytes().to_vec(),
            device: (0, 0),
        };
        bytes.extend(header.encode());
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[test]
fn a_directory_round_trips_with_pieces_of_any_length() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("root");
    create_tree(&root);
    let (bytes, _) = stream(&root);
    for piece_bytes in [1, 100, 512, 4096, 100_000, usize::MAX] {
        let out = temporary.path().join(format!("out{piece_bytes}"));
        restore(&bytes, &out, false, piece_bytes).unwrap();
        assert_eq!(snapshot(&root), snapshot(&out), "pieces of {piece_bytes}");
        assert!(
            fs::symlink_metadata(out.join("fifo"))
                .unwrap()
                .file_type()
                .is_fifo()
        );
        let inode = |name: &str| fs::metadata(out.join(name)).unwrap().ino();
        assert_eq!(inode("a"), inode("sub/hard"));
    }
    let holes = fs::metadata(temporary.path().join("out4096/holes")).unwrap();
    assert!(holes.blocks() * 512 < 100_000, "{} blocks", holes.blocks());
}

#[test]
fn a_named_directory_is_restored_under_its_name() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("root");
    create_tree(&root);
    let mut bytes = Vec::new();
    let mut reader = TreeReader::open_named(&root, Path::new("deep/name")).unwrap();
    reader.read_to_end(&mut bytes).unwrap();
    let out = temporary.path().join("out");
    restore(&bytes, &out, false, 4096).unwrap();
    assert_eq!(snapshot(&root), snapshot(&out.join("deep/name")));
    let entries = reader.take_entries();
    assert_eq!(entries[0].path, b"deep/name");
    assert!(
        entries
            .iter()
            .all(|entry| entry.path.starts_with(b"deep/name"))
    );
}

#[test]
fn listed_paths_come_without_the_directories_above_them() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/c"), "content").unwrap();
    fs::write(root.join("d"), "other").unwrap();
    let paths_of = |paths: &[&str]| {
        let paths = paths.iter().map(Into::into).collect();
        let mut reader = TreeReader::open_paths(root, Path::new("name"), paths);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        let entries = reader.take_entries();
        entries
            .iter()
            .map(path_text)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(paths_of(&["d"]), ["name/d"]);
    assert_eq!(paths_of(&["a/b/c"]), ["name/a/b/c"]);
    assert_eq!(
        paths_of(&["d", "a/b"]),
        ["name/a/b", "name/a/b/c", "name/d"]
    );
    assert!(paths_of(&["missing"]).is_empty());
}

#[test]
fn small_reads_give_the_same_stream() {
    let temporary = tempfile::tempdir().unwrap();
    create_tree(temporary.path());
    let (whole, _) = stream(temporary.path());
    let mut reader = TreeReader::open(temporary.path()).unwrap();
    let mut pieces = Vec::new();
    let mut buffer = [0; 77];
    loop {
        match reader.read(&mut buffer).unwrap() {
            0 => break,
            read => pieces.extend_from_slice(&buffer[..read]),
        }
    }
    assert!(pieces == whole);
}

#[test]
fn entries_have_the_offsets_of_their_data() {
    let temporary = tempfile::tempdir().unwrap();
    create_tree(temporary.path());
    let (bytes, mut reader) = stream(temporary.path());
    let entries = reader.take_entries();
    let paths: Vec<_> = entries.iter().map(path_text).collect();
    let long = format!("sub/{}", "n".repeat(200));
    let expected = [
        ".",
        "a",
        "empty",
        "fifo",
        "holes",
        "soft",
        "sub",
        "sub/empty",
        "sub/exact",
        "sub/hard",
        &long,
        "sub.x",
    ];
    assert_eq!(
        paths, expected,
        "names in byte order, a directory before its contents"
    );
    for entry in &entries {
        let start = usize::try_from(entry.content_offset).unwrap();
        let length = usize::try_from(entry.size_bytes).unwrap();
        if entry.kind == EntryKind::File {
            let data = fs::read(temporary.path().join(path_text(entry))).unwrap();
            assert!(bytes[start..start + length] == data, "{}", path_text(entry));
        }
    }
}

#[test]
fn tar_reads_what_we_write_and_we_read_what_tar_writes() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("root");
    create_tree(&root);
    let (bytes, _) = stream(&root);
    let out = temporary.path().join("by-tar");
    fs::create_dir(&out).unwrap();
    let mut command = Command::new("tar");
    command
        .args(["--warning=no-timestamp", "-xpf", "-", "-C"])
        .arg(&out)
        .stdin(Stdio::piped());
    let mut tar = command.spawn().unwrap();
    tar.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert!(tar.wait().unwrap().success());
    assert_eq!(snapshot(&root), snapshot(&out));

    for format in ["pax", "gnu", "ustar"] {
        let mut command = Command::new("tar");
        command
            .args(["--format", format, "-cf", "-", "-C"])
            .arg(&root)
            .arg(".");
        let output = command.stderr(Stdio::null()).output().unwrap();
        let out = temporary.path().join(format);
        restore(&output.stdout, &out, false, 1000).unwrap();
        let times = |(name, mode, seconds, nanoseconds, content): (_, _, _, _, Vec<u8>)| {
            // Only pax stores fractions of a second.
            (
                name,
                mode,
                seconds,
                if format == "pax" { nanoseconds } else { 0 },
                content,
            )
        };
        let (before, after) = (snapshot(&root), snapshot(&out));
        // ustar cannot store the long name and the long target; tar skips them.
        let fits = |entry: &(String, u32, i64, i64, Vec<u8>)| {
            format != "ustar" || (entry.0.len() < 100 && entry.0 != "soft")
        };
        let before: Vec<_> = before.into_iter().filter(fits).map(times).collect();
        let after: Vec<_> = after.into_iter().filter(fits).map(times).collect();
        assert_eq!(before, after, "{format}");
    }
}

#[test]
fn no_entry_is_created_outside_the_root() {
    use EntryKind::{Directory, File as Regular, Hardlink, Symlink};
    let escapes: [&[Forged]; 9] = [
        &[("../evil", Regular, "", b"x")],
        &[("/tmp/refrain-evil", Regular, "", b"x")],
        &[("a/../../evil", Regular, "", b"x")],
        &[
            ("link", Symlink, "..", b""),
            ("link/evil", Regular, "", b"x"),
        ],
        &[
            ("link", Symlink, "..", b""),
            ("link/evil", Directory, "", b""),
        ],
        &[
            ("link", Symlink, "../victim", b""),
            ("link", Regular, "", b"x"),
        ],
        &[("hard", Hardlink, "../victim", b"")],
        &[
            ("link", Symlink, "..", b""),
            ("hard", Hardlink, "link/victim", b""),
        ],
        &[("..", Directory, "", b"")],
    ];
    for entries in escapes {
        for (exists, overwrite) in [(false, false), (true, false), (true, true)] {
            let temporary = tempfile::tempdir().unwrap();
            fs::write(temporary.path().join("victim"), b"precious").unwrap();
            let out = temporary.path().join("out");
            if exists {
                fs::create_dir(&out).unwrap();
            }
            let result = restore(&forged(entries), &out, overwrite, 512);
            // The link itself is restored, and a later file may replace it.
            let replaces_link = entries.get(1).is_some_and(|entry| entry.0 == "link");
            assert_eq!(result.is_ok(), replaces_link, "{entries:?}");
            assert_eq!(
                fs::read(temporary.path().join("victim")).unwrap(),
                b"precious"
            );
            assert_eq!(
                fs::metadata(temporary.path().join("victim"))
                    .unwrap()
                    .nlink(),
                1
            );
            assert!(!temporary.path().join("evil").exists(), "{entries:?}");
            assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 2);
            let rest: Vec<_> = fs::read_dir(&out).unwrap().collect();
            let has_link = entries.iter().any(|entry| entry.0 == "link");
            assert_eq!(
                rest.len(),
                usize::from(has_link),
                "{entries:?} left {rest:?}"
            );
        }
    }
}

#[test]
fn a_truncated_stream_restores_what_is_whole_before_the_cut() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("root");
    create_tree(&root);
    let (bytes, _) = stream(&root);
    let files = |root: &Path| -> BTreeMap<PathBuf, Vec<u8>> {
        let is_file = |mode: u32| mode & 0o170_000 == 0o100_000;
        let found = snapshot(root).into_iter();
        let files = found.filter(|&(_, mode, ..)| is_file(mode));
        files
            .map(|(name, .., content)| (PathBuf::from(name), content))
            .collect()
    };
    let (new, old) = (temporary.path().join("new"), temporary.path().join("old"));
    let whole = files(&root);
    let mut most = 0;
    for length in (0..bytes.len() - 1024).step_by(7331) {
        for target in [&new, &old] {
            let _ = fs::remove_dir_all(target);
            if target == &old {
                fs::create_dir(target).unwrap();
            }
            let restored = restore(&bytes[..length], target, false, 4000);
            assert!(restored.is_err(), "{length}");
            if target.exists() {
                let found = files(target);
                most = most.max(found.len());
                assert!(
                    found
                        .iter()
                        .all(|(path, content)| whole.get(path) == Some(content)),
                    "{length}: {:?}",
                    found.keys()
                );
            }
        }
    }
    assert!(most > 2, "{most} files before the last cut");
    fs::remove_dir_all(&old).unwrap();
    fs::create_dir(&old).unwrap();
    let _ = fs::remove_dir_all(&new);
    fs::write(old.join("sub.x"), b"mine").unwrap();
    assert_eq!(
        restore(&bytes, &old, false, 4000).unwrap_err().kind(),
        io::ErrorKind::AlreadyExists
    );
    assert_eq!(fs::read(old.join("sub.x")).unwrap(), b"mine");
    assert_eq!(fs::read(old.join("sub/exact")).unwrap(), [8; 1024]);
    restore(&bytes, &old, true, 4000).unwrap();
    assert_eq!(snapshot(&root), snapshot(&old));
    restore(&bytes, &old, true, 4000).unwrap();
    fs::write(&new, b"a file").unwrap();
    assert!(restore(&bytes, &new, true, 4000).is_err());
}

#[test]
fn zeros_can_be_pushed_as_a_count() {
    let temporary = tempfile::tempdir().unwrap();
    let bytes = forged(&[
        ("x", EntryKind::File, "", &[0; 2000]),
        ("y", EntryKind::File, "", b"y"),
    ]);
    let out = temporary.path().join("out");
    let mut sink = TreeSink::create(&out, false).unwrap();
    // Each run of zeros as a count: in names, numbers, data, padding and the end mark.
    for run in bytes.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
        match run[0] {
            0 => sink.write_zeros(run.len() as u64).unwrap(),
            _ => sink.write_all(run).unwrap(),
        }
    }
    sink.publish().unwrap();
    assert_eq!(fs::read(out.join("x")).unwrap(), [0; 2000]);
    assert_eq!(fs::read(out.join("y")).unwrap(), b"y");
}

/// A reader whose problems are collected.
fn observed(root: &Path) -> (TreeReader, Arc<Mutex<Vec<Problem>>>) {
    let problems = Arc::new(Mutex::new(Vec::new()));
    let mut reader = TreeReader::open(root).unwrap();
    let seen = problems.clone();
    reader.observe_problems(Box::new(move |problem| seen.lock().unwrap().push(problem)));
    (reader, problems)
}

#[test]
fn files_that_change_do_not_break_the_stream() {
    const LENGTH: u64 = 3_000_000;
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("log");
    for new_length in [10, 2 * LENGTH] {
        fs::write(&path, vec![1; LENGTH as usize]).unwrap();
        let (mut reader, problems) = observed(temporary.path());
        let mut bytes = Vec::new();
        // Past the headers of the root and into those of the file, which is open now with a fixed
        // size.
        while reader.entry_count() < 2 {
            let mut piece = [0; 512];
            let read = reader.read(&mut piece).unwrap();
            bytes.extend_from_slice(&piece[..read]);
        }
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(new_length)
            .unwrap();
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() % 512, 0);
        let problems = problems.lock().unwrap();
        assert_eq!(problems.len(), 1, "{new_length}: {problems:?}");
        assert_eq!(
            (&problems[0].path[..], problems[0].kind),
            (&b"log"[..], ProblemKind::Changed)
        );
        let entry = reader.take_entries().pop().unwrap();
        assert_eq!(entry.size_bytes, LENGTH);
    }
}

#[test]
fn a_file_that_is_replaced_or_deleted_while_it_is_read_is_whole() {
    let temporary = tempfile::tempdir().unwrap();
    let (path, other) = (temporary.path().join("d/big"), temporary.path().join("new"));
    fs::create_dir(temporary.path().join("d")).unwrap();
    for is_replaced in [false, true] {
        fs::write(&path, vec![1; 3_000_000]).unwrap();
        fs::write(&other, vec![2; 3_000_000]).unwrap();
        let (mut reader, problems) = observed(&temporary.path().join("d"));
        let mut bytes = vec![0; 1_000_000];
        reader.read_exact(&mut bytes).unwrap();
        if is_replaced {
            fs::rename(&other, &path).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        reader.read_to_end(&mut bytes).unwrap();
        let entry = reader.take_entries().pop().unwrap();
        let start = usize::try_from(entry.content_offset).unwrap();
        assert!(
            bytes[start..start + 3_000_000]
                .iter()
                .all(|&byte| byte == 1)
        );
        assert_eq!(*problems.lock().unwrap(), []);
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_follows() {
    let temporary = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(temporary.path().join(name), name).unwrap();
    }
    let (mut reader, problems) = observed(temporary.path());
    // The root is listed already.
    fs::remove_file(temporary.path().join("b")).unwrap();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    let entries = reader.take_entries();
    let paths: Vec<_> = entries.iter().map(path_text).collect();
    assert_eq!(paths, [".", "a", "c"]);
    let problems = problems.lock().unwrap();
    assert_eq!(problems.len(), 1);
    assert_eq!(
        (&problems[0].path[..], problems[0].kind),
        (&b"b"[..], ProblemKind::Vanished)
    );
}

#[test]
fn files_that_state_no_size_are_in_the_stream_with_their_content() {
    let version = fs::read("/proc/version").unwrap();
    let mut reader =
        TreeReader::open_paths(Path::new("/proc"), Path::new(""), vec!["version".into()]);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    let entry = reader.take_entries().pop().unwrap();
    assert_eq!(entry.size_bytes, version.len() as u64);
    let start = usize::try_from(entry.content_offset).unwrap();
    assert!(bytes[start..start + version.len()] == version);
}
