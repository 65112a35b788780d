//! Streams of the view and of the system's tar, restored.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use refrain_entries::Timestamp;
use refrain_entries::tar::TarView;

use super::*;
use crate::walk::{FileRoot, WalkOptions, Walker};

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

/// Appends an entry, with its data, to a tar stream.
fn append(stream: &mut Vec<u8>, entry: &Entry, data: &[u8]) {
    let item = TarView::canonical().entry(entry).unwrap();
    stream.extend(item.header);
    stream.extend_from_slice(data);
    stream.resize(stream.len() + item.padding_bytes as usize, 0);
}

/// A directory as a tar stream.
fn stream(root: &Path) -> Vec<u8> {
    let mut walker = Walker::open(root, Path::new(""), WalkOptions::default()).unwrap();
    let files = FileRoot::open(root).unwrap();
    let mut bytes = Vec::new();
    for mut entry in walker.next_entries(1000).unwrap() {
        let mut data = Vec::new();
        if entry.kind == EntryKind::File {
            let file = files.open_file(&entry.path).unwrap();
            entry.data_ranges = file.data_ranges().unwrap();
            let all = 0..entry.size_bytes;
            for range in entry.data_ranges.as_deref().unwrap_or(&[all]) {
                let start = data.len();
                data.resize(start + (range.end - range.start) as usize, 0);
                let count = file.read_at(range.start, &mut data[start..]).unwrap();
                assert_eq!(count, data.len() - start);
            }
        }
        append(&mut bytes, &entry, &data);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn restore(bytes: &[u8], root: &Path, overwrite: bool, piece_bytes: usize) -> io::Result<()> {
    let mut sink = TarSink::create(root, overwrite)?;
    bytes
        .chunks(piece_bytes)
        .try_for_each(|piece| sink.write_all(piece))?;
    sink.publish()
}

/// Path, kind, link target, data.
type Forged<'a> = (&'a str, EntryKind, &'a str, &'a [u8]);

/// A tar stream of arbitrary entries with its end mark.
fn forged(entries: &[Forged]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(path, kind, link, data) in entries {
        let entry = Entry {
            path: path.into(),
            kind,
            mode: 0o6755,
            modified: Timestamp {
                seconds: 1,
                nanoseconds: 0,
            },
            size_bytes: data.len() as u64,
            link_target: kind.is_link().then(|| link.into()),
            ..Entry::default()
        };
        append(&mut bytes, &entry, data);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[test]
fn a_directory_round_trips_with_pieces_of_any_length() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("root");
    create_tree(&root);
    let bytes = stream(&root);
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
fn tar_reads_what_we_write_and_we_read_what_tar_writes() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("root");
    create_tree(&root);
    let bytes = stream(&root);
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
    let bytes = stream(&root);
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
    let mut sink = TarSink::create(&out, false).unwrap();
    // Replaces runs of zeros by counts: in names, numbers, data, padding and the end mark.
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

#[test]
fn bytes_that_belong_to_no_entry_are_told_and_the_rest_is_restored() {
    let temporary = tempfile::tempdir().unwrap();
    let mut bytes = forged(&[("x", EntryKind::File, "", b"x")]);
    bytes.truncate(1024);
    bytes.extend([7; 5 << 9]);
    bytes.extend(forged(&[("y", EntryKind::File, "", b"y")]));
    for piece_bytes in [1, 100, 100_000] {
        let out = temporary.path().join(format!("out{piece_bytes}"));
        let error = restore(&bytes, &out, false, piece_bytes).unwrap_err();
        assert!(error.to_string().starts_with("2560 bytes of"), "{error}");
        assert_eq!(fs::read(out.join("y")).unwrap(), b"y");
    }
}
