//! `refrain serve` with several archives: names, bad ones among them, and SIGHUP.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Case, REFRAIN, incompressible};

/// How long the service may take to say what it has done.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running service with the sockets `n` (NBD) and `h` (HTTP), and the lines that it prints.
/// Killed at the end if it has not ended.
struct Service {
    child: Child,
    ready: String,
    lines: Receiver<String>,
}

impl Service {
    fn start(case: &Case, operands: &[&OsStr], line: &str) -> Service {
        let mut command = case.command(REFRAIN, "serve");
        command.args(operands).args(line.split_whitespace());
        command.args(["--nbd", "unix:n", "--http", "unix:h"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        output.read_line(&mut ready).unwrap();
        let (sender, lines) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in errors.lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        Service {
            child,
            ready,
            lines,
        }
    }

    fn of(case: &Case, words: &str) -> Service {
        let words: Vec<&OsStr> = words.split_whitespace().map(OsStr::new).collect();
        Service::start(case, &words, "")
    }

    /// Asks it to read everything again. Returns the lines that it prints.
    fn read_again(&self) -> Vec<String> {
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
        let mut told = vec![];
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            if line.contains("read again: ") || line.contains("opened anew") {
                return told;
            }
            told.push(line);
        }
    }

    /// Asks it to end. Returns the exit code and the lines that were not read.
    fn end(mut self) -> (Option<i32>, Vec<String>) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let code = self.child.wait().unwrap().code();
        let lines = std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok());
        (code, lines.collect())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The status, and the body.
fn get(case: &Case, path: &str) -> (String, Vec<u8>) {
    let output = Command::new("curl")
        .args([
            "-sS",
            "--max-time",
            "30",
            "--path-as-is",
            "-w",
            "\n%{http_code}",
        ])
        .args(["--unix-socket", "h", "-H", "Accept: application/json"])
        .arg(format!("http://localhost/{path}"))
        .current_dir(case.path("."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{path}: {output:?}");
    let end = output.stdout.iter().rposition(|&byte| byte == b'\n');
    let (body, status) = output.stdout.split_at(end.unwrap());
    (
        String::from_utf8(status[1..].to_vec()).unwrap(),
        body.to_vec(),
    )
}

fn body(case: &Case, path: &str) -> Vec<u8> {
    let (status, body) = get(case, path);
    assert_eq!(status, "200", "{path}: {}", String::from_utf8_lossy(&body));
    body
}

/// The names in the list of archives.
fn names(case: &Case) -> Vec<String> {
    let list: serde_json::Value = serde_json::from_slice(&body(case, "")).unwrap();
    let rows = list["entries"].as_array().unwrap().iter();
    rows.map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

fn exports(case: &Case) -> Vec<String> {
    let output = Command::new("nbdinfo")
        .args(["--list", "--no-content", "--json", "nbd+unix:///?socket=n"])
        .current_dir(case.path("."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = list["exports"].as_array().unwrap().iter();
    rows.map(|row| row["export-name"].as_str().unwrap().to_owned())
        .collect()
}

/// Copies an export. Returns whether that succeeds.
fn copies(case: &Case, export: &str) -> bool {
    let uri = format!("nbd+unix:///{export}?socket=n");
    let mut command = Command::new("nbdcopy");
    command.args([&uri, "copy"]).current_dir(case.path("."));
    command.output().unwrap().status.success()
}

/// Archives `disks/one.rfn` with the disk image `one.img`, and `disks/tree.rfn`.
fn prepare(case: &Case) -> Vec<u8> {
    let image = incompressible(1, 3 << 20);
    case.write("one.img", &image);
    case.write("project/sub/file", b"content of file\n");
    std::os::unix::fs::symlink("sub/file", case.path("project/link")).unwrap();
    fs::create_dir(case.path("disks")).unwrap();
    case.ok("compress one.img -o disks/one.rfn");
    case.ok("compress project -o disks/tree.rfn");
    image
}

/// Puts an archive of these bytes, a member `name`, in place of another.
fn replace(case: &Case, name: &str, bytes: &[u8], at: &str) {
    case.write(name, bytes);
    case.ok(&format!("compress {name} -o new.tmp --force"));
    fs::rename(case.path("new.tmp"), case.path(at)).unwrap();
}

#[test]
fn a_directory_is_served_with_every_archive_under_its_name() {
    let case = Case::new();
    let image = prepare(&case);
    case.write("disks/notes.txt", b"not an archive\n");
    case.write(
        "disks/page.gz",
        b"\x1f\x8b\x08\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0",
    );
    case.write("disks/deeper/x", b"");
    case.write("disks/.hidden.rfn", b"partly written");
    // Recognized by content: the name says something else.
    fs::copy(case.path("disks/one.rfn"), case.path("disks/backup.txt")).unwrap();
    let service = Service::of(&case, "disks");
    assert!(
        service
            .ready
            .starts_with("3 archives: ready at nbd unix:n, http unix:h")
    );
    assert_eq!(names(&case), ["backup.txt", "one", "tree"]);
    assert!(body(&case, "one/one.img") == image);
    assert_eq!(body(&case, "tree/project/sub/file"), b"content of file\n");
    assert_eq!(
        body(&case, "tree/project.tar"),
        case.ok("cat disks/tree.rfn project").stdout
    );
    let frames = String::from_utf8(body(&case, "one/.refrain/frames?count=1")).unwrap();
    assert!(frames.contains("\"/one/.refrain/frames/8-"), "{frames}");
    for (path, status, text) in [
        ("one", "301", "see /one/"),
        ("tree/project/link", "302", "see /tree/project/sub/file"),
        ("tree/project", "301", "see /tree/project/"),
        ("tree/../one/one.img", "400", ".."),
        ("two/one.img", "404", "no archive"),
        ("one.img", "404", "no archive"),
        (".refrain/frames", "404", "/NAME/.refrain/frames"),
    ] {
        let (found, body) = get(&case, path);
        let body = String::from_utf8_lossy(&body);
        assert!(
            found == status && body.contains(text),
            "{path}: {found} {body}"
        );
    }
    assert_eq!(exports(&case), ["backup.txt/one.img", "one/one.img"]);
    assert!(copies(&case, "one/one.img") && case.read("copy") == image);
    assert!(copies(&case, "tree/project/sub/file"));
    assert!(case.read("copy") == b"content of file\n");
    assert!(!copies(&case, "") && !copies(&case, "one") && !copies(&case, "one.img"));
    let metrics = String::from_utf8(body(&case, "metrics")).unwrap();
    for line in [
        "refrain_archive_calls_total{archive=\"backup.txt\"} 0\n",
        "refrain_archive_open{archive=\"one\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    let bytes = metrics
        .lines()
        .find(|line| line.starts_with("refrain_archive_bytes_total{archive=\"one\"}"));
    let bytes: u64 = bytes.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap();
    assert!(
        bytes >= 2 * image.len() as u64,
        "over HTTP and NBD: {bytes}"
    );
    let table = String::from_utf8(case.ok("top unix:h --once").stdout).unwrap();
    assert!(
        table.contains("  one\n") && !table.contains("  backup.txt\n"),
        "{table}"
    );
    let (code, lines) = service.end();
    assert_eq!(code, Some(0), "{lines:?}");
    assert_eq!(lines, ["refrain: disks: 2 files are left out: no archives"]);
}

#[test]
fn bad_archives_are_named_and_the_others_served() {
    let case = Case::new();
    prepare(&case);
    let bytes = case.read("disks/one.rfn");
    case.write("disks/cut.rfn", &bytes[..bytes.len() / 2]);
    case.write("disks/empty.rfn", b"");
    case.write("disks/garbage.rfn", &incompressible(9, 5000));
    let service = Service::of(&case, "disks missing.rfn tree2=disks/tree.rfn one.img");
    assert!(
        service.ready.starts_with("2 archives: "),
        "{}",
        service.ready
    );
    assert_eq!(names(&case), ["one", "tree2"], "a file has one name");
    assert!(copies(&case, "one/one.img"));
    let (code, lines) = service.end();
    assert_eq!(code, Some(2));
    for name in [
        "disks/cut.rfn",
        "disks/empty.rfn",
        "disks/garbage.rfn",
        "missing.rfn",
        "one.img",
    ] {
        let of_name = lines.iter().filter(|line| line.contains(name));
        assert_eq!(of_name.count(), 1, "{name}: {lines:?}");
    }
    // Nothing is left, and nothing can come.
    let told = case.fails("serve missing.rfn one.img --nbd unix:n", 6);
    assert!(
        told.contains("missing.rfn: ") && told.contains("one.img: "),
        "{told}"
    );
    fs::create_dir(case.path("empty")).unwrap();
    let service = Service::of(&case, "empty");
    assert!(
        service.ready.starts_with("0 archives: "),
        "{}",
        service.ready
    );
    assert!(names(&case).is_empty() && exports(&case).is_empty());
    assert_eq!(service.end(), (Some(0), vec![]));
}

#[test]
fn archives_of_one_name_are_refused_until_they_get_others() {
    let case = Case::new();
    prepare(&case);
    fs::create_dir(case.path("more")).unwrap();
    fs::copy(case.path("disks/one.rfn"), case.path("more/one.rfn")).unwrap();
    let told = case.fails("serve disks more/one.rfn --nbd unix:n", 1);
    assert!(
        told.contains("more/one.rfn: would be called \"one\", as disks/one.rfn: NAME=ARCHIVE"),
        "{told}"
    );
    let told = case.fails("serve disks x=more --nbd unix:n", 1);
    assert!(told.contains("leave \"x\"= out"), "{told}");
    let told = case.fails("serve disks --scan --nbd unix:n", 1);
    assert!(told.contains("--scan concerns a single archive"), "{told}");
    let service = Service::of(&case, "disks second=more/one.rfn");
    assert_eq!(names(&case), ["one", "second", "tree"]);
    assert_eq!(exports(&case), ["one/one.img", "second/one.img"]);
    assert_eq!(service.end(), (Some(0), vec![]));
    // One archive with a name is below that; its only file is the default.
    let service = Service::of(&case, "x=more/one.rfn");
    assert!(copies(&case, "") && copies(&case, "x/one.img") && !copies(&case, "one.img"));
    assert_eq!(service.end(), (Some(0), vec![]));
}

#[test]
fn names_are_data() {
    let case = Case::new();
    prepare(&case);
    let odd = OsStr::from_bytes(b"disks/a\x1b[31m\n'\"%2F?#\xff.rfn");
    fs::rename(case.path("disks/tree.rfn"), case.path(".").join(odd)).unwrap();
    // Called `..`, which no URL can reach.
    fs::copy(case.path("disks/one.rfn"), case.path("disks/...rfn")).unwrap();
    let service = Service::start(&case, &[OsStr::new("./disks/one.rfn"), odd], "");
    let path = "a%1B%5B31m%0A%27%22%252F%3F%23%FF";
    assert_eq!(
        body(&case, &format!("{path}/project/sub/file")),
        b"content of file\n"
    );
    let (status, _) = get(&case, path);
    assert_eq!(status, "301");
    assert!(copies(&case, &format!("{path}/project/sub/file")));
    let page = body(&case, "");
    assert!(!page.contains(&0x1b), "{}", String::from_utf8_lossy(&page));
    let metrics = String::from_utf8(body(&case, "metrics")).unwrap();
    assert!(metrics.contains("\\n'\\\"%2F?#"), "{metrics}");
    assert_eq!(service.end().0, Some(0));
    let service = Service::of(&case, "disks");
    assert!(service.ready.starts_with("2 archives"), "{}", service.ready);
    let (code, lines) = service.end();
    assert!(
        code == Some(0) && lines.is_empty(),
        "a name with a dot is hidden: {lines:?}"
    );
}

/// Takes an export, and reads 4 KiB of it on demand.
struct Reader(UnixStream);

impl Reader {
    fn take(case: &Case, export: &str) -> Reader {
        let mut stream = UnixStream::connect(case.path("n")).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        let mut taken = b"\0\0\0\x03IHAVEOPT\0\0\0\x01".to_vec();
        taken.extend_from_slice(&(export.len() as u32).to_be_bytes());
        taken.extend_from_slice(export.as_bytes());
        stream.write_all(&taken).unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Reader(stream)
    }

    fn read(&mut self, offset: u64) -> Vec<u8> {
        let mut request = [0; 28];
        request[..4].copy_from_slice(&0x2560_9513_u32.to_be_bytes());
        request[16..24].copy_from_slice(&offset.to_be_bytes());
        request[24..].copy_from_slice(&4096_u32.to_be_bytes());
        self.0.write_all(&request).unwrap();
        let mut reply = vec![0; 16 + 4096];
        self.0.read_exact(&mut reply).unwrap();
        assert_eq!(reply[4..8], [0; 4], "no error");
        reply.split_off(16)
    }
}

#[test]
fn sighup_reads_directories_again_and_readers_keep_what_they_opened() {
    let case = Case::new();
    let image = prepare(&case);
    let service = Service::of(&case, "disks");
    let mut reader = Reader::take(&case, "one/one.img");
    assert!(reader.read(0) == image[..4096]);
    // Under load: a client that never waits while everything changes.
    let (stop, stopped) = channel::<()>();
    let mut busy = Reader::take(&case, "one/one.img");
    let expected = image.clone();
    let load = std::thread::spawn(move || {
        let mut reads = 0_u64;
        while stopped.try_recv().is_err() {
            let offset = reads * 4096 % (3 << 20);
            let at = offset as usize;
            assert!(busy.read(offset) == expected[at..at + 4096]);
            reads += 1;
        }
        reads
    });
    let changed = incompressible(2, 100_000);
    replace(&case, "one.img", &changed, "disks/one.rfn");
    replace(&case, "two.img", b"two", "disks/two.rfn");
    fs::remove_file(case.path("disks/tree.rfn")).unwrap();
    // Nothing changes by itself.
    assert_eq!(names(&case), ["one", "tree"]);
    assert!(body(&case, "one/one.img") == image);
    assert_eq!(body(&case, "tree/project/sub/file"), b"content of file\n");
    assert_eq!(service.read_again(), [""; 0]);
    assert_eq!(names(&case), ["one", "two"]);
    assert!(body(&case, "one/one.img") == changed);
    assert_eq!(body(&case, "two/two.img"), b"two");
    assert_eq!(get(&case, "tree/project/sub/file").0, "404");
    assert!(
        reader.read(1 << 20) == image[1 << 20..][..4096],
        "what it had opened"
    );
    assert!(copies(&case, "one/one.img") && case.read("copy") == changed);
    // A file that cannot be opened does not replace the one before, which nobody has opened now.
    fs::write(case.path("half.tmp"), &case.read("disks/two.rfn")[..30]).unwrap();
    fs::rename(case.path("half.tmp"), case.path("disks/two.rfn")).unwrap();
    let told = service.read_again();
    assert!(
        told.len() == 1 && told[0].starts_with("refrain: disks/two.rfn: "),
        "{told:?}"
    );
    assert_eq!(body(&case, "two/two.img"), b"two");
    // Nor does a directory that cannot be listed.
    fs::rename(case.path("disks"), case.path("away")).unwrap();
    let told = service.read_again();
    assert!(
        told.len() == 1 && told[0].starts_with("refrain: cannot list disks: "),
        "{told:?}"
    );
    assert_eq!(names(&case), ["one", "two"]);
    assert!(body(&case, "one/one.img") == changed);
    stop.send(()).unwrap();
    assert!(load.join().unwrap() > 10);
    drop(reader);
    assert_eq!(service.end().0, Some(0));
}

#[test]
fn sighup_opens_the_only_archive_anew_if_it_has_changed() {
    let case = Case::new();
    let image = prepare(&case);
    let service = Service::of(&case, "disks/one.rfn");
    assert!(
        service.ready.starts_with("disks/one.rfn: ready"),
        "{}",
        service.ready
    );
    let mut reader = Reader::take(&case, "");
    assert!(body(&case, "one.img") == image);
    replace(&case, "other.img", b"other", "disks/one.rfn");
    assert!(body(&case, "one.img") == image);
    service.read_again();
    assert_eq!(body(&case, "other.img"), b"other");
    assert_eq!(get(&case, "one.img").0, "404");
    assert!(copies(&case, "") && case.read("copy") == b"other");
    assert!(reader.read(4096) == image[4096..8192]);
    assert_eq!(service.end().0, Some(0));
}

#[cfg(feature = "lrzip")]
#[test]
fn encrypted_archives_need_the_password_of_an_option() {
    let case = Case::new();
    prepare(&case);
    case.write("pw", b"secret\n");
    case.write("plain", b"content of an encrypted archive");
    let lrzip = case.program_link("lrzip");
    let made = case
        .command(lrzip, "-q --encrypt=secret plain -o disks/locked.lrz")
        .output();
    let made = made.unwrap();
    assert!(made.status.success(), "{made:?}");
    let service = Service::of(&case, "disks");
    assert_eq!(names(&case), ["one", "tree"]);
    let (code, lines) = service.end();
    assert!(code != Some(0) && lines.len() == 1, "{code:?} {lines:?}");
    assert!(
        lines[0].starts_with("refrain: disks/locked.lrz: "),
        "{lines:?}"
    );
    let service = Service::start(&case, &[OsStr::new("disks")], "--password-file pw");
    assert_eq!(names(&case), ["locked", "one", "tree"]);
    assert_eq!(
        body(&case, "locked/locked"),
        b"content of an encrypted archive"
    );
    assert_eq!(service.end(), (Some(0), vec![]));
}
