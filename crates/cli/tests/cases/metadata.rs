//! Trees with every kind of file, as root and as an ordinary user: nothing is lost.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, XattrFlags};

use crate::support::{Case, REFRAIN, expect, incompressible, json, json_lines};

/// An ordinary user, for tests that run as root.
const NOBODY: u32 = 65_534;
/// A user and a group without a name on any machine.
const STRANGER: (u32, u32) = (123_456, 234_567);
/// The length of the sparse file, most of which is holes.
pub const SPARSE_BYTES: u64 = 64 << 20;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `refrain` as an ordinary user, who may write to the directory.
fn run_as_user(case: &Case, line: &str) -> Output {
    let mut command = case.command(REFRAIN, line);
    as_user(case, &mut command);
    command.output().unwrap()
}

fn as_user(case: &Case, command: &mut Command) {
    use std::os::unix::process::CommandExt;
    if is_root() {
        let everyone = Permissions::from_mode(0o777);
        fs::set_permissions(case.path(""), everyone).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
}

fn set_attribute(path: &Path, name: &str, value: &[u8]) -> bool {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).is_ok()
}

fn make_node(path: &Path, kind: FileType, device: u64) {
    let directory = File::open(path.parent().unwrap()).unwrap();
    let name = CString::new(path.file_name().unwrap().as_bytes()).unwrap();
    rustix::fs::mknodat(directory, &name, kind, Mode::from_raw_mode(0o640), device).unwrap();
}

/// Creates a directory with a file of every kind that the user may create.
pub fn create_tree(case: &Case) {
    case.write("tree/plain", b"plain");
    case.write("tree/dir/inner", &incompressible(3, 100_000));
    fs::hard_link(case.path("tree/dir/inner"), case.path("tree/dir/inner-2")).unwrap();
    fs::hard_link(case.path("tree/dir/inner"), case.path("tree/a-link")).unwrap();
    case.write("tree/copy", &incompressible(3, 100_000));
    symlink("dir/inner", case.path("tree/soft")).unwrap();
    symlink("/nowhere", case.path("tree/dangling")).unwrap();
    make_node(&case.path("tree/fifo"), FileType::Fifo, 0);
    let mut sparse = File::create(case.path("tree/sparse")).unwrap();
    sparse.set_len(SPARSE_BYTES).unwrap();
    sparse.seek(SeekFrom::Start(20 << 20)).unwrap();
    sparse.write_all(&incompressible(4, 50_000)).unwrap();
    case.write("tree/set-id", b"#!/bin/sh\n");
    set_attribute(&case.path("tree/plain"), "user.comment", b"a comment");
    set_attribute(&case.path("tree/dir"), "user.empty", b"");
    fs::create_dir(case.path("tree/sticky")).unwrap();
    if is_root() {
        let (user, group) = STRANGER;
        make_node(
            &case.path("tree/null"),
            FileType::CharacterDevice,
            rustix::fs::makedev(1, 3),
        );
        make_node(
            &case.path("tree/block"),
            FileType::BlockDevice,
            rustix::fs::makedev(7, 300),
        );
        for name in ["tree/plain", "tree/set-id", "tree/dir"] {
            chown(case.path(name), Some(user), Some(group)).unwrap();
        }
        lchown(case.path("tree/soft"), Some(user), Some(group)).unwrap();
    }
    // After the owner, which clears them.
    fs::set_permissions(case.path("tree/set-id"), Permissions::from_mode(0o6755)).unwrap();
    fs::set_permissions(case.path("tree/sticky"), Permissions::from_mode(0o1777)).unwrap();
    for (name, seconds) in [("tree/plain", 1_000_000_001), ("tree/dir", 5), ("tree", 77)] {
        let modified = UNIX_EPOCH + Duration::new(seconds, 987_654_321);
        let file = File::open(case.path(name)).unwrap();
        file.set_modified(modified).unwrap();
    }
}

/// Everything that is compared of a file.
#[derive(Debug, PartialEq, Eq)]
struct State {
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    device: u64,
    links: u64,
    size: u64,
    content: Vec<u8>,
    attributes: BTreeMap<String, Vec<u8>>,
}

fn states(root: &Path) -> BTreeMap<String, State> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            let inner = fs::read_dir(&path).unwrap();
            open.extend(inner.map(|entry| entry.unwrap().path()));
        }
        let content = match () {
            () if metadata.is_symlink() => fs::read_link(&path)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec(),
            () if metadata.is_file() => fs::read(&path).unwrap(),
            () => Vec::new(),
        };
        let is_directory = metadata.is_dir();
        let state = State {
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            device: metadata.rdev(),
            links: if is_directory { 0 } else { metadata.nlink() },
            size: if is_directory { 0 } else { metadata.size() },
            // Not the bytes: they would drown a failure's message.
            content: content
                .iter()
                .enumerate()
                .fold(vec![0; 8], |mut sum, (at, byte)| {
                    sum[at % 8] = u8::wrapping_mul(sum[at % 8], 31).wrapping_add(*byte);
                    sum
                }),
            attributes: attributes(&path),
        };
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        found.insert(name, state);
    }
    found
}

fn attributes(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut names = vec![0_u8; 1 << 12];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let names = names[..length]
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty());
    let pairs = names.map(|name| {
        let name = String::from_utf8_lossy(name).into_owned();
        let mut value = vec![0_u8; 1 << 12];
        let length = rustix::fs::lgetxattr(path, &*name, &mut value[..]).unwrap();
        value.truncate(length);
        (name, value)
    });
    pairs.collect()
}

pub fn assert_same(case: &Case, other: &str) {
    let (expected, found) = (states(&case.path("tree")), states(&case.path(other)));
    let names = |states: &BTreeMap<String, State>| states.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&expected), names(&found), "{other}");
    for (name, state) in &expected {
        assert_eq!(state, &found[name], "{other}/{name}");
    }
}

#[test]
fn every_kind_of_file_is_restored_as_it_was() {
    let case = Case::new();
    create_tree(&case);
    case.ok("compress -q tree");
    let archive = case.read("tree.rfn");
    assert!(
        archive.len() < 400_000,
        "{}: links, copies and holes are stored once",
        archive.len()
    );
    case.ok("decompress -q tree.rfn -o out");
    assert_same(&case, "out");
    let allocated = fs::metadata(case.path("out/sparse")).unwrap().blocks() * 512;
    assert!(
        allocated < 1 << 20,
        "{allocated} bytes on disk for a sparse file"
    );
    let inode = |name| fs::metadata(case.path(name)).unwrap().ino();
    assert_eq!(inode("out/a-link"), inode("out/dir/inner"));
    assert_ne!(inode("out/copy"), inode("out/dir/inner"));
    expect(
        case.pipe(REFRAIN, "decompress -q - -o piped", &archive),
        0,
        "from a pipe",
    );
    assert_same(&case, "piped");
    fs::create_dir(case.path("existing")).unwrap();
    case.ok("decompress -qf tree.rfn -o existing");
    assert_same(&case, "existing");
    let rsync = case
        .command("rsync", "-aHXSn --checksum --delete -i tree/ out/")
        .output();
    if let Ok(output) = rsync {
        assert_eq!(
            String::from_utf8_lossy(&expect(output, 0, "rsync").stdout),
            ""
        );
    }
}

#[test]
fn a_list_has_all_that_is_kept() {
    let case = Case::new();
    create_tree(&case);
    let has_attributes = !attributes(&case.path("tree/plain")).is_empty();
    case.ok("compress -q tree");
    let lines = json_lines(&case.ok("list --json tree.rfn").stdout);
    let entry = |path: &str| lines.iter().find(|line| line["path"] == path).unwrap();
    let sparse = entry("sparse");
    assert_eq!(sparse["sparse"], true);
    assert_eq!(sparse["size_bytes"], SPARSE_BYTES);
    assert!(sparse["stored_bytes"].as_u64().unwrap() < 1 << 20);
    assert_eq!(entry("fifo")["kind"], "fifo");
    assert_eq!(entry("set-id")["mode"], 0o6755);
    let link = entry("dir/inner");
    assert_eq!(
        (&link["kind"], &link["link_target"]),
        (&"hardlink".into(), &"a-link".into())
    );
    if has_attributes {
        assert_eq!(
            entry("plain")["attributes"],
            serde_json::json!(["user.comment"])
        );
    }
    if is_root() {
        assert_eq!(entry("null")["device"], serde_json::json!([1, 3]));
        assert_eq!(entry("block")["device"], serde_json::json!([7, 300]));
        let plain = entry("plain");
        assert_eq!(
            (&plain["uid"], &plain["gid"]),
            (&STRANGER.0.into(), &STRANGER.1.into())
        );
        assert_eq!(entry("dir/inner-2")["user"], "root");
        let long = String::from_utf8(case.ok("list -l tree.rfn").stdout).unwrap();
        assert!(long.contains("      1,3 "), "{long}");
        assert!(long.contains("-rwsr-sr-x 123456/234567 "), "{long}");
    }
}

#[test]
fn holes_and_links_are_read_back_by_cat() {
    let case = Case::new();
    create_tree(&case);
    case.ok("compress -q tree");
    let sparse = case.read("tree/sparse");
    assert!(case.ok("cat tree.rfn sparse").stdout == sparse);
    let start = (20 << 20) - 10;
    let output = case.ok(&format!(
        "cat tree.rfn sparse --range {start}..{}",
        start + 30
    ));
    assert_eq!(output.stdout, &sparse[start..start + 30]);
    for path in ["a-link", "dir/inner", "dir/inner-2", "copy"] {
        assert!(case.ok(&format!("cat tree.rfn {path}")).stdout == incompressible(3, 100_000));
    }
    for path in ["fifo", "soft"] {
        case.fails(&format!("cat tree.rfn {path}"), 1);
    }
    case.ok("cat tree.rfn dir");
    let tar = case.ok("cat tree.rfn").stdout;
    assert!(
        tar == case.ok("decompress tree.rfn -o -").stdout,
        "a directory is its tar stream"
    );
    assert_eq!(case.ok("cat tree.rfn --range 0..5000").stdout, &tar[..5000]);
    fs::create_dir(case.path("untarred")).unwrap();
    let tarred = case.pipe(
        "tar",
        "-C untarred --xattrs --xattrs-include=* -xpf -",
        &tar,
    );
    expect(tarred, 0, "tar -x");
    assert_same(&case, "untarred");
}

#[test]
fn a_user_gets_all_that_is_permitted_and_is_told_the_rest() {
    if !is_root() {
        return;
    }
    let case = Case::new();
    create_tree(&case);
    case.ok("compress -q tree");
    let line = "decompress tree.rfn -o out";
    let output = expect(run_as_user(&case, line), 0, line);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("2 device nodes") && message.contains("owner"),
        "{message}"
    );
    assert_eq!(
        message.matches("left out").count(),
        1,
        "one line: {message}"
    );
    assert!(!case.exists("out/null") && !case.exists("out/block"));
    let (expected, mut found) = (states(&case.path("tree")), states(&case.path("out")));
    assert_eq!(
        found["set-id"].mode & 0o7777,
        0o755,
        "not for another owner"
    );
    for (name, state) in &mut found {
        assert_eq!(state.owner, (NOBODY, NOBODY), "{name}");
        state.owner = expected[name].owner;
        state.mode = expected[name].mode;
    }
    for (name, state) in &found {
        assert_eq!(state, &expected[name], "{name}");
    }
    // If requested explicitly, what is not permitted is a failure.
    let line = "decompress tree.rfn -o same --same-owner";
    let message = String::from_utf8(expect(run_as_user(&case, line), 4, line).stderr).unwrap();
    assert!(
        message.contains("plain") && message.contains("incomplete"),
        "{message}"
    );
    assert_eq!(case.read("same/plain"), b"plain");
    // The superuser may do without.
    case.ok("decompress -q tree.rfn -o mine --no-same-owner");
    assert!(
        states(&case.path("mine"))
            .values()
            .all(|state| state.owner == (0, 0))
    );
}

#[test]
fn owners_are_restored_by_name_unless_numbers_are_asked_for() {
    let has_daemon =
        fs::read_to_string("/etc/passwd").is_ok_and(|text| text.contains("\ndaemon:x:1:"));
    if !is_root() || !has_daemon {
        return;
    }
    let case = Case::new();
    case.write("dir/file", b"content");
    let tar = case.command(
        "tar",
        "--owner=daemon:4242 --group=nosuchgroup:4343 -cf x.tar dir",
    );
    let mut tar = tar;
    expect(tar.output().unwrap(), 0, "tar");
    case.ok("compress -q x.tar");
    let owner = |options: &str, place: &str| {
        case.ok(&format!(
            "decompress -q x.tar.rfn dir/file -o {place} {options}"
        ));
        let found = fs::metadata(case.path(&format!("{place}/dir/file"))).unwrap();
        (found.uid(), found.gid())
    };
    assert_eq!(owner("", "by-name"), (1, 4343));
    assert_eq!(owner("--numeric-owner", "by-number"), (4242, 4343));
    assert_eq!(owner("--no-same-owner", "none"), (0, 0));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_stored() {
    let case = Case::new();
    case.write("tree/good", b"good");
    case.write("tree/secret", b"secret");
    case.write("tree/closed/inside", b"inside");
    case.write("tree/open/inside", b"inside");
    let _socket = UnixListener::bind(case.path("tree/socket")).unwrap();
    for name in ["tree/secret", "tree/closed"] {
        fs::set_permissions(case.path(name), Permissions::from_mode(0o0)).unwrap();
    }
    let line = "compress tree -o x.rfn";
    let output = expect(run_as_user(&case, line), 4, line);
    let message = String::from_utf8(output.stderr).unwrap();
    for text in [
        "tree/secret: ",
        "tree/closed: ",
        "tree: incomplete: 2 files left out or changed: 2 unreadable",
    ] {
        assert!(message.contains(text), "{text}: {message}");
    }
    assert!(message.contains("tree/socket: "), "{message}");
    case.ok("test -q x.rfn");
    assert_eq!(case.ok("cat x.rfn good").stdout, b"good");
    assert_eq!(case.ok("cat x.rfn open/inside").stdout, b"inside");
    case.fails("cat x.rfn secret", 1);
    let line = "compress tree -o json.rfn --json";
    let document = json(&expect(run_as_user(&case, line), 4, line).stdout);
    let result = &document["results"][0];
    assert_eq!(
        (&document["exit"], &result["complete"]),
        (&4.into(), &false.into())
    );
    let problems = result["problems"].as_array().unwrap();
    let kinds: Vec<_> = problems
        .iter()
        .map(|problem| {
            (
                problem["path"].as_str().unwrap(),
                problem["kind"].as_str().unwrap(),
            )
        })
        .collect();
    assert!(kinds.contains(&("tree/secret", "unreadable")), "{kinds:?}");
    assert!(kinds.contains(&("tree/socket", "skipped")), "{kinds:?}");
    // Strictly.
    let line = "compress tree -o strict.rfn --strict";
    let message = String::from_utf8(expect(run_as_user(&case, line), 6, line).stderr).unwrap();
    assert!(
        message.contains("closed") || message.contains("secret"),
        "{message}"
    );
    assert!(!case.exists("strict.rfn"));
    // A socket alone is not a failure.
    fs::remove_file(case.path("tree/secret")).unwrap();
    fs::set_permissions(case.path("tree/closed"), Permissions::from_mode(0o755)).unwrap();
    expect(
        run_as_user(&case, "compress tree -o all.rfn"),
        0,
        "a socket",
    );
}

#[test]
fn sources_of_an_incomplete_archive_are_not_removed() {
    let case = Case::new();
    case.write("tree/secret", b"secret");
    case.write("file", b"file");
    fs::set_permissions(case.path("tree/secret"), Permissions::from_mode(0o0)).unwrap();
    let line = "compress tree file -o x.rfn --rm";
    let output = expect(run_as_user(&case, line), 4, line);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("not removed"), "{message}");
    assert!(case.exists("file") && case.exists("tree/secret"));
    fs::remove_file(case.path("tree/secret")).unwrap();
    expect(
        run_as_user(&case, "compress tree file -o y.rfn --rm"),
        0,
        "complete",
    );
    assert!(!case.exists("file") && case.exists("tree"));
}

#[test]
fn a_file_that_changed_while_it_was_read_is_named_and_not_removed() {
    let case = Case::new();
    case.write("file", b"before");
    make_node(&case.path("pipe"), FileType::Fifo, 0);
    let line = "compress pipe file -o x.rfn --rm";
    let mut command = case.command(REFRAIN, line);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Opening waits for the reader, who knows the file's size by then.
    let mut pipe = File::options().write(true).open(case.path("pipe")).unwrap();
    case.write("file", b"longer than before");
    pipe.write_all(b"through the pipe").unwrap();
    drop(pipe);
    let output = expect(child.wait_with_output().unwrap(), 4, line);
    let message = String::from_utf8(output.stderr).unwrap();
    // It changed before it was opened, or after that.
    let is_named = |line: &str| line.contains("file: ") && line.contains("while it was read");
    assert!(message.lines().any(is_named), "{message}");
    assert!(message.contains("not removed"), "{message}");
    assert_eq!(case.read("file"), b"longer than before");
    case.ok("test -q x.rfn");
    assert_eq!(case.ok("cat x.rfn pipe").stdout, b"through the pipe");
}

#[test]
fn an_entry_that_cannot_be_restored_does_not_stop_the_others() {
    let case = Case::new();
    for name in ["a", "b", "c"] {
        case.write(&format!("tree/{name}"), name.as_bytes());
    }
    case.ok("compress -q tree");
    case.write("out/b", b"mine");
    let message = case.fails("decompress tree.rfn -o out", 4);
    assert!(
        message.contains("out/b: ") && message.contains("exists"),
        "{message}"
    );
    assert!(message.contains("1 file exists and was kept"), "{message}");
    assert_eq!(case.read("out/b"), b"mine");
    assert_eq!(
        (case.read("out/a"), case.read("out/c")),
        (b"a".to_vec(), b"c".to_vec())
    );
}

#[test]
fn a_killed_run_leaves_nothing_that_the_next_one_does_not_remove() {
    let case = Case::new();
    for number in 0..400 {
        // Bytes that a codec has to encode, which takes bzip2 seconds.
        let bytes = incompressible(number, 200_000).into_iter();
        let letters: Vec<u8> = bytes.map(|byte| b'@' + byte % 32).collect();
        case.write(&format!("tree/{number}"), &letters);
    }
    case.ok("compress -1q tree");
    let kill_early = |line: &str| {
        let mut command = case.command(REFRAIN, line);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Some runs are killed before they create anything, some while they write.
        for delay in [20, 60, 100, 150] {
            let mut child = command.spawn().unwrap();
            std::thread::sleep(Duration::from_millis(delay));
            child.kill().unwrap();
            child.wait().unwrap();
        }
    };
    kill_early("compress -q --codec bzip2 tree -o again.rfn");
    assert_eq!(
        case.names(),
        ["tree", "tree.rfn"],
        "a killed compression leaves nothing"
    );
    kill_early("decompress -q tree.rfn -o out");
    fs::remove_dir_all(case.path("out")).ok();
    case.ok("decompress -q tree.rfn -o out");
    assert_eq!(case.names(), ["out", "tree", "tree.rfn"]);
    assert_same(&case, "out");
}
