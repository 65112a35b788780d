//! Archives as directories, seen through the kernel.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::metadata::{SPARSE_BYTES, assert_same, create_tree, is_root};
use crate::support::{Case, REFRAIN, expect, incompressible, json, mixture, snapshot};

/// Whether there is a device to mount with. Otherwise the cases in this file prove nothing and say
/// so.
#[allow(clippy::print_stderr)] // A test that proves nothing must report it.
pub fn can_mount() -> bool {
    let can = Path::new("/dev/fuse").exists() && is_root();
    if !can {
        eprintln!("NOT TESTED: without /dev/fuse, or as an ordinary user, nothing can be mounted");
    }
    can
}

/// A running `refrain mount`.
pub struct Mounted {
    child: Option<Child>,
    directory: String,
}

impl Mounted {
    /// Mounts on `mnt` of the case and waits until it is ready.
    pub fn new(case: &Case, line: &str) -> Mounted {
        let directory = case.path("mnt");
        fs::create_dir_all(&directory).unwrap();
        let mut command = case.command(REFRAIN, line);
        command
            .arg("mnt")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ready = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut ready).unwrap();
        if !ready.ends_with("on mnt\n") {
            let output = child.wait_with_output().unwrap();
            panic!("{line}: not mounted: {ready:?}, {output:?}");
        }
        Mounted {
            child: Some(child),
            directory: directory.to_str().unwrap().into(),
        }
    }

    pub fn id(&self) -> Pid {
        Pid::from_child(self.child.as_ref().unwrap())
    }

    /// Waits for the end, which must be a success. Returns standard error.
    fn ended(self) -> String {
        self.ended_with(0)
    }

    /// Waits for the end. Returns standard error.
    fn ended_with(mut self, exit: i32) -> String {
        let mut child = self.child.take().unwrap();
        let mut message = String::new();
        let stderr = child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut message).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(exit), "{status}: {message}");
        message
    }

    /// Unmounts as an administrator does.
    fn unmount(self) -> String {
        self.unmount_with(0)
    }

    /// As above, for a program that ends with this exit code.
    fn unmount_with(self, exit: i32) -> String {
        unmount(&self.directory);
        self.ended_with(exit)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let lazily = ["-u", "-z", "-q", &self.directory];
            let _ = Command::new("fusermount3").args(lazily).status();
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Unmounts as an administrator does. A child that another test starts has copies of all our open
/// files until it runs its program, those in the mount among them: until then it is busy.
fn unmount(directory: &str) {
    let busy_max = Duration::from_secs(60);
    let start = Instant::now();
    loop {
        let mut command = Command::new("fusermount3");
        let output = command.args(["-u", directory]).output().unwrap();
        if output.status.success() {
            return;
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains("busy") && start.elapsed() < busy_max,
            "{text}"
        );
    }
}

fn is_mounted(case: &Case) -> bool {
    let inside = fs::metadata(case.path("mnt")).unwrap().dev();
    inside != fs::metadata(case.path("")).unwrap().dev()
}

#[test]
fn every_kind_of_file_is_seen_as_it_is() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    create_tree(&case);
    case.ok("compress -q tree");
    let mounted = Mounted::new(&case, "mount tree.rfn");
    assert_same(&case, "mnt/tree");
    let inode = |name| fs::metadata(case.path(name)).unwrap().ino();
    assert_eq!(inode("mnt/tree/a-link"), inode("mnt/tree/dir/inner"));
    assert_ne!(inode("mnt/tree/copy"), inode("mnt/tree/dir/inner"));
    let archived = |from: &str| {
        let line = format!("-C {from} --sort=name --format=gnu -S -cf - tree");
        expect(case.command("tar", &line).output().unwrap(), 0, &line).stdout
    };
    assert!(archived(".") == archived("mnt"), "tar sees a difference");
    assert_eq!(mounted.unmount(), "");
    assert!(!is_mounted(&case));
}

#[test]
fn files_that_are_read_one_after_the_other_are_there_before() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    for directory in 0..20_u64 {
        fs::create_dir_all(case.path(&format!("tree/{directory:02}/inner"))).unwrap();
        for file in 0..30_u64 {
            // Of all lengths up to many pages, the empty one included, and seldom too long.
            let length = (file * file * 211 + directory * 7) * if file == 29 { 2 } else { 1 };
            let content = incompressible(directory * 100 + file, length as usize);
            case.write(&format!("tree/{directory:02}/inner/{file:02}"), &content);
        }
    }
    case.ok("compress -q tree");
    let _mounted = Mounted::new(&case, "mount tree.rfn --http unix:s");
    // Several programs at once, which meet in the same files.
    let names = |path: &Path| {
        let found = fs::read_dir(path).unwrap();
        found.map(|entry| entry.unwrap().path()).collect()
    };
    let read_all = || {
        let directories: BTreeSet<PathBuf> = names(&case.path("mnt/tree"));
        for directory in directories {
            let files: BTreeSet<PathBuf> = names(&directory.join("inner"));
            for file in files {
                let path = file.strip_prefix(case.path("mnt")).unwrap();
                let original = fs::read(case.path("").join(path)).unwrap();
                assert!(fs::read(&file).unwrap() == original, "{path:?}");
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(read_all);
        }
    });
    let statistics = json(&case.ok("top unix:s --once --json").stdout);
    let operations = statistics["operations"].as_array().unwrap();
    let calls = |name: &str| {
        let found = operations.iter().find(|row| row["operation"] == name);
        found.unwrap()["calls"].as_u64().unwrap()
    };
    assert!(calls("fuse_store") > 100, "{statistics}");
    assert!(calls("fuse_read") < 500, "{statistics}");
}

#[test]
fn holes_can_be_sought() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    create_tree(&case);
    case.ok("compress -q tree");
    let _mounted = Mounted::new(&case, "mount tree.rfn");
    let map = |name: &str| {
        let file = File::open(case.path(name)).unwrap();
        let (mut map, mut at) = (vec![], 0);
        while let Ok(data) = seek(&file, SeekFrom::Data(at)) {
            at = seek(&file, SeekFrom::Hole(data)).unwrap();
            map.push((data, at));
        }
        map
    };
    let expected = map("tree/sparse");
    assert!(!expected.is_empty() && expected[0].0 > 0, "{expected:?}");
    assert_eq!(map("mnt/tree/sparse"), expected);
    assert_eq!(map("mnt/tree/plain"), [(0, 5)]);
    let space = fs::metadata(case.path("mnt/tree/sparse")).unwrap();
    assert_eq!(space.size(), SPARSE_BYTES);
    assert!(space.blocks() * 512 < 1 << 20, "{}", space.blocks());
}

#[test]
fn a_tar_stream_is_seen_as_its_files() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    create_tree(&case);
    let line = "--format=pax --xattrs --xattrs-include=* -S -cf t.tar ./tree";
    expect(case.command("tar", line).output().unwrap(), 0, line);
    // The later of two files with one name wins.
    fs::write(case.path("tree/plain"), b"newer").unwrap();
    let line = "--format=pax --xattrs --xattrs-include=* -rf t.tar ./tree/plain";
    expect(case.command("tar", line).output().unwrap(), 0, line);
    case.ok("compress -q t.tar");
    let mounted = Mounted::new(&case, "mount t.tar.rfn");
    assert_same(&case, "mnt/t.tar/tree");
    assert_eq!(mounted.unmount(), "");
}

#[test]
fn members_are_seen_under_their_names() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    case.write("image", &mixture(400_000));
    case.write("docs/b/c", b"deep");
    case.write("docs/empty", b"");
    case.ok("compress -q image docs -o both.rfn");
    let _mounted = Mounted::new(&case, "mount both.rfn");
    assert_eq!(
        snapshot(&case.path("mnt/docs")),
        snapshot(&case.path("docs"))
    );
    assert!(case.read("mnt/image") == case.read("image"));
    let file = File::open(case.path("mnt/image")).unwrap();
    let mut part = [0; 1000];
    file.read_exact_at(&mut part, 123_456).unwrap();
    assert_eq!(part, case.read("image")[123_456..124_456]);
    assert_eq!(file.read_at(&mut part, 1 << 40).unwrap(), 0);
    let names = fs::read_dir(case.path("mnt")).unwrap();
    let mut names: Vec<_> = names.map(|each| each.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["docs", "image"]);
}

#[test]
fn nothing_can_be_changed_and_what_is_missing_is_missing() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    case.write("docs/a", b"text");
    case.ok("compress -q docs");
    let _mounted = Mounted::new(&case, "mount docs.rfn");
    let inside = |name: &str| case.path("mnt/docs").join(name);
    for _ in 0..2 {
        for missing in ["b", "a-", ".hidden", &"x".repeat(255)] {
            let error = fs::metadata(inside(missing)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{missing}");
        }
        let error = fs::metadata(inside("a/b")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
    }
    let changes = [
        fs::write(inside("a"), b"new"),
        fs::write(inside("new"), b"new"),
        fs::remove_file(inside("a")),
        fs::create_dir(inside("d")),
        fs::rename(inside("a"), inside("b")),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert_eq!(
            change.unwrap_err().kind(),
            ErrorKind::ReadOnlyFilesystem,
            "{number}"
        );
    }
    assert_eq!(case.read("mnt/docs/a"), b"text");
}

#[test]
fn owners_can_be_replaced() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    create_tree(&case);
    case.ok("compress -q tree");
    let _mounted = Mounted::new(&case, "mount tree.rfn --owner 1234:4321 --allow-other");
    for name in ["mnt/tree", "mnt/tree/plain", "mnt/tree/dir/inner"] {
        let found = fs::metadata(case.path(name)).unwrap();
        assert_eq!((found.uid(), found.gid()), (1234, 4321), "{name}");
    }
}

#[test]
fn others_are_let_in_only_where_that_is_asked_for_and_permitted() {
    use std::os::unix::process::CommandExt;
    if !can_mount() {
        return;
    }
    let case = Case::new();
    for name in ["docs/open", "docs/closed", "docs/listed"] {
        case.write(name, b"text");
    }
    let set_mode = |name: &str, mode| {
        fs::set_permissions(case.path(name), Permissions::from_mode(mode)).unwrap();
    };
    set_mode("", 0o755);
    set_mode("docs/closed", 0o600);
    // Its mask is read-write, but the group has no permission.
    let acl = ["-m", "g::-,u:1:rw", "docs/listed"];
    let has_acl = case.command("setfacl", "").args(acl).status().is_ok();
    case.ok("compress -q docs");
    let can_read = |name: &str, group| {
        let mut command = case.command("cat", &format!("mnt/docs/{name}"));
        command.uid(65_534).gid(group).stderr(Stdio::null());
        command.output().unwrap().stdout == b"text"
    };
    let mounted = Mounted::new(&case, "mount docs.rfn");
    assert!(!can_read("open", 65_534));
    assert_eq!(mounted.unmount(), "");
    let mounted = Mounted::new(&case, "mount docs.rfn --allow-other");
    assert!(can_read("open", 65_534));
    assert!(!can_read("closed", 65_534));
    if has_acl {
        assert!(
            !can_read("listed", 0),
            "the mask is not the group's permission"
        );
    }
    assert_eq!(mounted.unmount(), "");
}

#[test]
fn one_directory_of_an_archive_can_be_mounted_itself() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    create_tree(&case);
    case.ok("compress -q tree");
    let names = |directory: &str| {
        let listed = fs::read_dir(case.path(directory)).unwrap();
        let names = listed.map(|entry| entry.unwrap().file_name());
        names.collect::<BTreeSet<_>>()
    };
    for (line, from) in [
        ("mount tree.rfn --root tree", "tree"),
        ("mount tree.rfn --root=tree/dir/", "tree/dir"),
    ] {
        let mounted = Mounted::new(&case, line);
        assert_eq!(names("mnt"), names(from));
        let of = |path: &str| {
            let found = fs::metadata(case.path(path)).unwrap();
            (found.mode(), found.uid(), found.mtime())
        };
        assert_eq!(of("mnt"), of(from));
        let inner = if from == "tree" { "dir/inner" } else { "inner" };
        let read = |directory: &str| case.read(&format!("{directory}/{inner}"));
        assert_eq!(read("mnt"), read(from));
        assert_eq!(mounted.unmount(), "");
    }
    let text = case.fails("mount tree.rfn mnt --root tree/absent", 1);
    assert!(text.contains("the archive has no"), "{text}");
    case.fails("mount tree.rfn mnt --root tree/dir/inner", 1);
}

#[test]
fn a_killed_server_leaves_its_directory_free() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    case.write("tree/file", b"content");
    case.ok("compress -q tree");
    for line in ["mount tree.rfn", "mount tree.rfn --allow-other"] {
        let mounted = Mounted::new(&case, line);
        // The kernel has what was read in its cache, and the mount is in use.
        let in_use = File::open(case.path("mnt/tree/file")).unwrap();
        assert_eq!(case.read("mnt/tree/file"), b"content");
        // What ends a whole service or terminal is not for the process that frees the directory.
        let watcher = watcher(&mounted);
        assert!(soon(|| ignores(watcher, Signal::TERM)));
        kill_process(watcher, Signal::TERM).unwrap();
        kill_process(mounted.id(), Signal::KILL).unwrap();
        let is_free = || fs::metadata(case.path("mnt")).is_ok() && !is_mounted(&case);
        assert!(soon(is_free), "{line}: the mount is still there");
        drop(in_use);
    }
}

/// The process that frees the directory of a killed server: its only child.
fn watcher(mounted: &Mounted) -> Pid {
    let id = mounted.id().as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    Pid::from_raw(children.trim().parse().unwrap()).unwrap()
}

/// Whether a process ignores a signal.
fn ignores(process: Pid, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    ignored >> (signal.as_raw() - 1) & 1 == 1
}

/// Whether a condition comes true within seconds.
fn soon(condition: impl Fn() -> bool) -> bool {
    (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        condition()
    })
}

/// The pages of a file that can be read, compared with what they should be.
fn readable_pages(path: &Path, expected: &[u8]) -> Vec<bool> {
    const PAGE_BYTES: usize = 4096;
    let file = File::open(path).unwrap();
    let read = |(number, page): (usize, &[u8])| {
        let mut buffer = vec![0; page.len()];
        match file.read_exact_at(&mut buffer, (number * PAGE_BYTES) as u64) {
            Ok(()) => {
                assert!(buffer == page, "page {number} is wrong");
                true
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(5), "page {number}: {error}");
                false
            }
        }
    };
    expected.chunks(PAGE_BYTES).enumerate().map(read).collect()
}

#[test]
fn damage_is_an_error_of_its_range_alone() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    let content = incompressible(5, 2_000_000);
    case.write("docs/large", &content);
    case.write("docs/other", b"unharmed");
    case.ok("compress -q --for serve docs");
    let mut archive = case.read("docs.rfn");
    let middle = archive.len() / 2;
    archive[middle] ^= 1;
    case.write("docs.rfn", &archive);
    let mounted = Mounted::new(&case, "mount docs.rfn");
    for _ in 0..2 {
        let pages = readable_pages(&case.path("mnt/docs/large"), &content);
        let lost = pages.iter().filter(|is_readable| !**is_readable).count();
        let first = pages.iter().position(|is_readable| !is_readable);
        let last = pages.iter().rposition(|is_readable| !is_readable);
        let span = last.unwrap() - first.unwrap() + 1;
        assert_eq!(lost, span, "one range");
        // A block has 128 KiB, and the kernel asks for whole pages.
        assert!((1..=33).contains(&lost), "{lost} pages of {}", pages.len());
    }
    assert_eq!(case.read("mnt/docs/other"), b"unharmed");
    // A read of all of it ends at the damage.
    let mut all = vec![];
    let read = File::open(case.path("mnt/docs/large"))
        .unwrap()
        .read_to_end(&mut all);
    assert_eq!(read.unwrap_err().raw_os_error(), Some(5));
    assert!(content.starts_with(&all));
    // Losses while serving decide the exit code, and are summed up.
    let message = mounted.unmount_with(2);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    let begin = "refrain: docs.rfn: docs/large: cannot be read between ";
    assert!(lines[0].starts_with(begin), "{message}");
    assert!(
        lines[0].contains("block ") && lines[0].contains("damaged"),
        "{message}"
    );
    assert!(
        lines[1].starts_with("refrain: docs.rfn: block "),
        "{message}"
    );
    assert!(lines[1].contains(" damaged (bytes "), "{message}");
}

#[test]
fn of_a_cut_archive_what_stands_before_the_cut_is_seen() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    let mut files = vec![];
    for number in 0..40 {
        let content = incompressible(number, 1 << 20);
        case.write(&format!("docs/f{number:02}"), &content);
        files.push(content);
    }
    case.ok("compress -q -1 docs");
    let archive = case.read("docs.rfn");
    case.write("cut.rfn", &archive[..archive.len() * 3 / 4]);
    let mounted = Mounted::new(&case, "mount cut.rfn");
    let (mut whole, mut seen) = (0, 0);
    for (number, content) in files.iter().enumerate() {
        let path = case.path(&format!("mnt/docs/f{number:02}"));
        if !path.exists() {
            continue;
        }
        seen += 1;
        let pages = readable_pages(&path, content);
        whole += usize::from(pages.iter().all(|is_readable| *is_readable));
    }
    let message = mounted.unmount_with(2);
    assert!((15..=30).contains(&whole), "{whole} of {seen}: {message}");
    assert!(
        message.contains("cut.rfn: archive is cut off at "),
        "{message}"
    );
}

#[test]
fn signals_unmount() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    case.write("docs/a", b"text");
    case.ok("compress -q docs");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mounted = Mounted::new(&case, "mount docs.rfn");
        assert_eq!(case.read("mnt/docs/a"), b"text");
        assert!(is_mounted(&case));
        kill_process(mounted.id(), signal).unwrap();
        assert_eq!(mounted.ended(), "");
        assert!(!is_mounted(&case));
    }
}

#[test]
fn a_mount_point_that_cannot_be_used_is_explained() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    case.write("docs/a", b"text");
    case.write("file", b"text");
    case.ok("compress -q docs");
    let message = case.fails("mount docs.rfn missing", 1);
    assert!(message.contains("missing does not exist"), "{message}");
    let message = case.fails("mount docs.rfn file", 1);
    assert!(message.contains("file is not a directory"), "{message}");
    fs::create_dir(case.path("empty")).unwrap();
    let message = case.fails("mount file empty", 2);
    assert!(message.contains("file: "), "{message}");
    let message = case.fails("mount absent.rfn empty", 6);
    assert!(message.contains("absent.rfn"), "{message}");
    let mut mounted = Mounted::new(&case, "mount docs.rfn");
    let message = case.fails("mount docs.rfn mnt", 1);
    assert!(message.contains("already mounted on mnt"), "{message}");
    // What a killed server leaves behind, if the process that frees the directory is killed too.
    kill_process(watcher(&mounted), Signal::KILL).unwrap();
    let child = mounted.child.as_mut().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let state = rustix::fs::statfs(case.path("mnt"));
    assert_eq!(state.unwrap_err(), Errno::NOTCONN);
    let message = case.fails("mount docs.rfn mnt", 1);
    assert!(
        message.contains("`fusermount3 -u mnt` frees it"),
        "{message}"
    );
}

#[test]
fn what_is_read_of_a_directory_can_be_watched() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    let content = mixture(300_000);
    case.write("tree/file", &content);
    case.ok("compress -q tree");
    let mounted = Mounted::new(&case, "mount tree.rfn --http unix:s");
    assert!(case.read("mnt/tree/file") == content);
    let statistics = json(&case.ok("top unix:s --once --json").stdout);
    let operations = statistics["operations"].as_array().unwrap();
    let read = operations
        .iter()
        .find(|row| row["operation"] == "fuse_read");
    assert!(
        read.unwrap()["bytes"].as_u64().unwrap() >= 300_000,
        "{statistics}"
    );
    assert_eq!(mounted.unmount(), "");
    assert!(!case.exists("s"), "the socket is removed");
    case.fails("mount tree.rfn mnt --http unix:missing/s", 6);
}

#[test]
fn the_program_goes_behind_when_the_directory_can_be_used() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    case.write("tree/file", b"content");
    case.ok("compress -q tree");
    fs::create_dir(case.path("mnt")).unwrap();
    case.ok("mount tree.rfn mnt --daemon");
    assert_eq!(case.read("mnt/tree/file"), b"content");
    unmount(case.path("mnt").to_str().unwrap());
    assert!(!is_mounted(&case));
    case.fails("mount absent.rfn mnt --daemon", 6);
}
