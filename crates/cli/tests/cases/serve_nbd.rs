//! `refrain serve --nbd` and `refrain boot`, with the clients that people use: libnbd and QEMU.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Case, REFRAIN, expect, incompressible};

/// A running service; killed at the end if it has not ended.
struct Service(Child);

impl Service {
    /// Starts a service and waits until it is ready.
    fn start(case: &Case, line: &str) -> Service {
        let mut command = case.command(REFRAIN, line);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut ready).unwrap();
        assert!(ready.contains("ready at nbd unix:"), "{ready}");
        std::thread::spawn(move || output.read_to_end(&mut vec![]));
        Service(child)
    }

    /// Asks it to end, and waits for its exit code.
    fn end(mut self) -> Option<i32> {
        let process = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap().code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn client(case: &Case, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(case.path("."));
    let output = output
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    expect(output, 0, program)
}

/// A disk image with holes: sparse here, runs of zeros in the archive.
fn image() -> Vec<u8> {
    let mut image = incompressible(3, 700_000);
    image.resize(5 << 20, 0);
    image.extend_from_slice(&vec![b'x'; 100_000]);
    image.extend(incompressible(4, 300_000));
    image.resize(8 << 20, 0);
    image
}

const DISK: &str = "nbd+unix:///disk.img?socket=s";

#[test]
fn clients_see_the_image_its_holes_and_every_export() {
    let case = Case::new();
    case.write("disk.img", &image());
    case.write("tree/deep/other.img", &image()[..1 << 20]);
    case.ok("compress --for serve disk.img tree -o a.rfn");
    let service = Service::start(&case, "serve a.rfn --nbd unix:s");
    let list = client(
        &case,
        "nbdinfo",
        &["--list", "--no-content", "nbd+unix:///?socket=s"],
    );
    let list = String::from_utf8(list.stdout).unwrap();
    assert_eq!(list.matches("export=").count(), 1, "{list}");
    assert!(list.contains("export=\"disk.img\""), "{list}");
    let map = client(&case, "nbdinfo", &["--map", DISK]).stdout;
    let map = String::from_utf8(map).unwrap();
    assert!(
        map.lines().any(|line| line.ends_with("3  hole,zero")),
        "{map}"
    );
    client(
        &case,
        "qemu-img",
        &["compare", "-f", "raw", DISK, "-F", "raw", "disk.img"],
    );
    let inside = "nbd+unix:///tree/deep/other.img?socket=s";
    client(&case, "nbdcopy", &[inside, "copy.img"]);
    assert!(case.read("copy.img") == image()[..1 << 20]);
    client(&case, "nbdcopy", &["--connections=4", DISK, "sparse.img"]);
    assert!(case.read("sparse.img") == image());
    // Writers are told that they may not write, and nothing changes.
    let write = ["-f", "raw", "-c", "write 0 4096", DISK];
    let output = Command::new("qemu-io")
        .args(write)
        .current_dir(case.path("."))
        .output();
    let output = output.unwrap();
    assert!(!output.status.success(), "{output:?}");
    client(
        &case,
        "qemu-io",
        &["-r", "-f", "raw", "-c", "read -P 120 5242880 100000", DISK],
    );
    assert_eq!(service.end(), Some(0));
    assert!(!case.exists("s"), "the socket is removed");
}

/// Takes the export with an empty name, over a Unix socket.
fn take_export(case: &Case) -> UnixStream {
    let mut stream = UnixStream::connect(case.path("s")).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    let taken = b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0";
    stream.write_all(taken).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

/// Reads the first kilobyte, and more of the request only after a while.
fn read_slowly(mut to_server: impl Write, mut from_server: impl Read) -> Vec<u8> {
    let mut request = [0; 28];
    request[..4].copy_from_slice(&0x2560_9513_u32.to_be_bytes());
    request[24..].copy_from_slice(&1024_u32.to_be_bytes());
    to_server.write_all(&request[..5]).unwrap();
    to_server.flush().unwrap();
    std::thread::sleep(Duration::from_millis(250));
    to_server.write_all(&request[5..]).unwrap();
    to_server.flush().unwrap();
    let mut reply = [0; 16 + 1024];
    from_server.read_exact(&mut reply).unwrap();
    reply[16..].to_vec()
}

/// Waits until no thread of the service works for a client.
fn wait_for_silence(service: &Service) {
    let tasks = format!("/proc/{}/task", service.0.id());
    let is_of_client = |task: &fs::DirEntry| {
        // It may have ended.
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "client")
    };
    let threads = || {
        let tasks = fs::read_dir(&tasks).unwrap();
        tasks.flatten().filter(is_of_client).count()
    };
    let start = Instant::now();
    while threads() > 0 {
        let left = threads();
        assert!(start.elapsed() < Duration::from_secs(30), "{left} threads");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn silent_clients_hold_no_thread_and_are_answered_when_they_speak() {
    let case = Case::new();
    case.write("disk.img", &image());
    case.ok("compress --for serve disk.img -o a.rfn");
    let service = Service::start(
        &case,
        "serve a.rfn --nbd unix:s --http unix:h --clients 101",
    );
    let silent: Vec<UnixStream> = (0..100).map(|_| take_export(&case)).collect();
    let mut browser = UnixStream::connect(case.path("h")).unwrap();
    wait_for_silence(&service);
    for stream in [&silent[0], &silent[99], &silent[0]] {
        assert!(read_slowly(stream, stream) == image()[..1024]);
    }
    for _ in 0..2 {
        let request = b"GET /disk.img HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-9\r\n\r\n";
        browser.write_all(request).unwrap();
        let mut reply = vec![];
        while !reply.ends_with(&image()[..10]) {
            let mut byte = [0];
            browser.read_exact(&mut byte).unwrap();
            reply.push(byte[0]);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    drop(silent);
    assert_eq!(service.end(), Some(0));
    assert_eq!(
        browser.read(&mut [0]).unwrap(),
        0,
        "the connection has ended"
    );
}

#[test]
fn a_service_checks_its_archive_in_the_background() {
    let case = Case::new();
    case.write("disk.img", &image());
    case.ok("compress --for serve disk.img -o a.rfn");
    let service = Service::start(&case, "serve a.rfn --nbd unix:s --http unix:h --scrub");
    let start = Instant::now();
    loop {
        let mut stream = UnixStream::connect(case.path("h")).unwrap();
        let request = b"GET /.refrain/metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut metrics = String::new();
        stream.read_to_string(&mut metrics).unwrap();
        assert!(
            metrics.contains("\nrefrain_scrub_damaged_frames 0\n"),
            "{metrics}"
        );
        if metrics.contains("\nrefrain_scrub_rounds_total 1\n") {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{metrics}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_service_goes_behind_and_ends_when_it_is_idle() {
    let case = Case::new();
    case.write("disk.img", &image());
    case.ok("compress disk.img -o a.rfn");
    let ready = case
        .ok("serve a.rfn --nbd unix:s --daemon --idle-exit 1s")
        .stdout;
    let ready = String::from_utf8(ready).unwrap();
    assert!(ready.contains("ready at nbd unix:s"), "{ready}");
    let process = ready
        .split("process ")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    let command = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap();
    assert!(command.contains("--idle-exit"), "{command}");
    assert!(
        ready
            .trim_end()
            .ends_with(&format!("`kill {process}` ends it")),
        "{ready}"
    );
    client(
        &case,
        "qemu-img",
        &["compare", "-f", "raw", DISK, "-F", "raw", "disk.img"],
    );
    for _ in 0..1000 {
        if !case.exists("s") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the service is still there");
}

#[test]
fn addresses_that_cannot_be_had_are_refused() {
    let case = Case::new();
    case.write("disk.img", b"image");
    case.ok("compress disk.img -o a.rfn");
    let text = case.fails("serve a.rfn", 1);
    assert!(text.contains("--nbd"), "{text}");
    case.fails("serve a.rfn --nbd nowhere", 1);
    let text = case.fails("serve a.rfn --nbd unix:s --client-latency 2=10.0.0.0/33", 1);
    assert!(text.contains("names no address"), "{text}");
    case.fails("serve a.rfn --nbd unix:missing/s", 6);
    case.fails("serve disk.img --nbd unix:s", 2);
    case.fails("serve absent.rfn --nbd unix:s", 6);
    case.fails("serve absent.rfn --nbd unix:s --daemon", 6);
    let service = Service::start(&case, "serve a.rfn --nbd unix:s");
    let text = case.fails("serve a.rfn --nbd unix:s", 6);
    assert!(text.contains("unix:s"), "{text}");
    drop(service);
}

/// Makes `key.pem` and the certificate `pki/ca-cert.pem` for localhost, which stands for itself.
pub fn make_certificate(case: &Case) {
    let new = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=DNS:localhost";
    let arguments: Vec<&str> = new.split(' ').collect();
    fs::create_dir(case.path("pki")).unwrap();
    let files = ["-keyout", "key.pem", "-out", "pki/ca-cert.pem"];
    client(case, "openssl", &[&arguments[..], &files[..]].concat());
}

#[test]
fn clients_need_tls_where_it_is_asked_for() {
    let case = Case::new();
    case.write("disk.img", &image());
    case.ok("compress disk.img -o a.rfn");
    make_certificate(&case);
    let line = "serve a.rfn --nbd unix:s --tls-certificate pki/ca-cert.pem --tls-key key.pem";
    let service = Service::start(&case, line);
    let plain = Command::new("nbdinfo")
        .arg(DISK)
        .current_dir(case.path("."))
        .output();
    let plain = plain.unwrap();
    assert!(!plain.status.success(), "{plain:?}");
    let pki = case.path("pki");
    let secure = format!(
        "nbds+unix:///disk.img?socket=s&tls-certificates={}",
        pki.display()
    );
    client(&case, "nbdcopy", &[&secure, "copy.img"]);
    assert!(case.read("copy.img") == image());
    assert_eq!(service.end(), Some(0));
    let wrong = "serve a.rfn --nbd unix:s --tls-certificate key.pem --tls-key key.pem";
    assert!(case.fails(wrong, 1).contains("key.pem"));
}

/// A program that uses its disks like QEMU: it finds the socket in its arguments and reads.
fn pretended_qemu(case: &Case, commands: &str) -> String {
    let path = case.write("qemu", format!("#!/bin/sh -e\n{commands}\n").as_bytes());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

const FIND_SOCKET: &str =
    "socket=$(printf '%s\\n' \"$@\" | sed -n 's/.*server.path=\\([^,]*\\).*/\\1/p' | head -1)";

#[test]
fn what_a_guest_reads_is_recorded_and_read_ahead() {
    let case = Case::new();
    case.write("disk.img", &image());
    case.ok("compress --for serve disk.img -o a.rfn");
    let read = "qemu-io -r -f raw -c 'read 7340032 4096' -c 'read 0 65536' \"nbd+unix:///?socket=$socket\"";
    let qemu = pretended_qemu(&case, &format!("{FIND_SOCKET}\n{read} > /dev/null"));
    case.ok(&format!(
        "boot a.rfn --qemu {qemu} --record disk.img.trace --overlay o.qcow2"
    ));
    let trace = String::from_utf8(case.read("disk.img.trace")).unwrap();
    let lines: Vec<&str> = trace.lines().collect();
    assert_eq!(lines[..2], ["refrain trace 1", "size 8388608"]);
    assert!(
        lines.contains(&"7340032 65536") && lines.contains(&"0 65536"),
        "{trace}"
    );
    assert!(case.exists("o.qcow2"), "the overlay is kept");
    let info = client(&case, "qemu-img", &["info", "-U", "o.qcow2"]).stdout;
    assert!(String::from_utf8(info).unwrap().contains("8 MiB"));
    // In the archive it is found by its name.
    case.ok("compress disk.img.trace -o t.rfn");
    let both = [case.read("a.rfn"), case.read("t.rfn")].concat();
    case.write("both.rfn", &both);
    case.ok(&format!("boot both.rfn --qemu {qemu}"));
    case.write(
        "wrong.trace",
        b"refrain trace 1\nsize 8388608\n0 99999999\n",
    );
    let text = case.fails(&format!("boot a.rfn --qemu {qemu} --replay wrong.trace"), 2);
    assert!(text.contains("line 3 of the trace"), "{text}");
}

#[test]
fn boot_prints_its_commands_and_tells_how_the_guest_ended() {
    let case = Case::new();
    case.write("disk.img", &image());
    case.ok("compress disk.img -o a.rfn");
    let printed = case.ok("boot a.rfn --print -- -nographic").stdout;
    let printed = String::from_utf8(printed).unwrap();
    let starts = [
        "mkdir -m 700",
        "refrain serve",
        "qemu-img create",
        "qemu-system-",
        "rm -r ",
    ];
    assert_eq!(printed.lines().count(), starts.len());
    for (line, start) in printed.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    assert!(printed.lines().nth(3).unwrap().ends_with("-nographic"));
    let qemu = pretended_qemu(&case, "exit 3");
    let text = case.fails(&format!("boot a.rfn --qemu {qemu}"), 6);
    assert!(text.contains("ended with code 3"), "{text}");
    case.fails("boot a.rfn --qemu ./no-such-program", 6);
    case.fails("boot a.rfn missing.img", 1);
    // An image of another format stays one.
    client(
        &case,
        "qemu-img",
        &["convert", "-O", "qcow2", "disk.img", "disk.qcow2"],
    );
    case.ok("compress disk.qcow2 -o q.rfn");
    let printed = case.ok("boot q.rfn --print").stdout;
    let printed = String::from_utf8(printed).unwrap();
    assert!(
        printed.contains(r#""driver":"qcow2","file":"image","node-name":"base""#),
        "{printed}"
    );
    let raw = case.ok("boot q.rfn --image-format raw --print").stdout;
    assert!(
        String::from_utf8(raw)
            .unwrap()
            .contains(r#""driver":"raw","file":"image""#)
    );
}

#[test]
fn an_overlay_lies_on_the_image_that_it_was_made_for_and_on_no_other() {
    let case = Case::new();
    let original = image();
    case.write("disk.img", &original);
    case.ok("compress disk.img -o a.rfn");
    let mut other = original.clone();
    other[5_000_000] ^= 1;
    case.write("disk.img", &other);
    case.ok("compress disk.img -o b.rfn");
    let qemu = pretended_qemu(&case, "exit 0");
    let boot = |archive: &str| format!("boot {archive} --overlay o.qcow2 --qemu {qemu}");
    case.ok(&boot("a.rfn"));
    // A guest writes, and QEMU writes the header anew.
    let base = r#"json:{"driver":"raw","file":{"driver":"null-co","size":8388608}}"#;
    let rebase = ["rebase", "-u", "-b", base, "-F", "raw", "o.qcow2"];
    client(&case, "qemu-img", &rebase);
    let write = ["-f", "qcow2", "-c", "write -P 7 0 65536", "o.qcow2"];
    client(&case, "qemu-io", &write);
    let text = case.fails(&boot("b.rfn"), 2);
    assert!(
        text.contains("o.qcow2: this overlay lies on another image"),
        "{text}"
    );
    case.fails(&format!("{} --print", boot("b.rfn")), 2);
    case.fails(&format!("{} --image-format qcow2", boot("a.rfn")), 2);
    // The same image in another archive is the same.
    case.ok("compress -1 disk.img -o b1.rfn");
    case.fails(&boot("b1.rfn"), 2);
    case.write("disk.img", &original);
    case.ok("compress -1 disk.img -o a1.rfn");
    assert_eq!(case.ok(&boot("a1.rfn")).stderr, b"");
    // Whoever else made an overlay has recorded nothing.
    client(
        &case,
        "qemu-img",
        &["create", "-q", "-f", "qcow2", "o.qcow2", "8M"],
    );
    let said = String::from_utf8(case.ok(&boot("a.rfn")).stderr).unwrap();
    assert!(
        said.contains("nothing tells whether this overlay"),
        "{said}"
    );
    case.write("o.qcow2", b"a text");
    assert!(case.fails(&boot("a.rfn"), 2).contains("not an overlay"));
}

#[test]
fn a_killed_boot_takes_its_guest_and_its_overlay_with_it() {
    let case = Case::new();
    case.write("disk.img", &image());
    case.ok("compress disk.img -o a.rfn");
    fs::create_dir(case.path("space")).unwrap();
    let qemu = pretended_qemu(&case, "echo $$ > new\nmv new pid\nexec sleep 1000");
    for option in ["--temporary space", "--overlay kept.qcow2"] {
        let line = format!("boot a.rfn --qemu {qemu} {option}");
        let mut boot = case.command(REFRAIN, &line).spawn().unwrap();
        wait_until(|| case.exists("pid"));
        let guest = String::from_utf8(case.read("pid")).unwrap();
        boot.kill().unwrap();
        boot.wait().unwrap();
        let state = format!("/proc/{}/stat", guest.trim());
        wait_until(|| fs::read_to_string(&state).map_or(true, |stat| stat.contains(") Z ")));
        assert_eq!(fs::read_dir(case.path("space")).unwrap().count(), 0);
        fs::remove_file(case.path("pid")).unwrap();
    }
    assert!(case.exists("kept.qcow2"));
    case.fails(&format!("boot a.rfn --qemu {qemu} --temporary none"), 1);
}

/// Waits until a condition comes true, which must be within seconds.
fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("it does not come true");
}

/// Runs what `boot --print` has printed.
fn run_printed(case: &Case, printed: &[u8]) {
    case.write("commands", printed);
    let bin = Path::new(REFRAIN).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command
        .args(["-e", "commands"])
        .current_dir(case.path("."))
        .env("PATH", path);
    expect(command.output().unwrap(), 0, "the printed commands");
}

#[test]
fn a_shell_runs_the_printed_commands_whatever_the_names_are() {
    let case = Case::new();
    let qemu = pretended_qemu(
        &case,
        &format!(
            "{FIND_SOCKET}\nqemu-io -r -f raw -c 'read 0 512' \"nbd+unix:///?socket=$socket\"> read.txt"
        ),
    );
    // An image, an archive and an overlay whose names are options, expansions and commands to
    // terminals.
    let hostile = "-a,b:c&d%e=f '$(touch no)`touch no`\x1b]0;t\x07\u{9b}1m\n.img";
    case.write(hostile, &image());
    let printed = |words: &[&str]| {
        let mut command = case.command(REFRAIN, "boot --print");
        command.args(["--qemu", &qemu]).args(words);
        expect(command.output().unwrap(), 0, "boot --print").stdout
    };
    let mut command = case.command(REFRAIN, "compress -q");
    command.args(["--", &format!("./{hostile}")]);
    expect(command.output().unwrap(), 0, "compress");
    let archive = format!("./{hostile}.rfn");
    let overlay = format!("{hostile}.qcow2");
    let text = printed(&[&format!("--overlay={overlay}"), &archive]);
    let text = String::from_utf8(text).unwrap();
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n'),
        "{text:?}"
    );
    run_printed(&case, text.as_bytes());
    assert!(case.read("read.txt").starts_with(b"read 512/512"));
    assert!(case.exists(&overlay) && !case.exists("no"));
}

#[test]
fn an_image_opens_no_file_of_the_host() {
    let case = Case::new();
    case.write("secret", &vec![b's'; 1 << 20]);
    let secret = case.path("secret");
    let secret = secret.to_str().unwrap();
    let data = format!("data_file={},data_file_raw=on", case.path("data").display());
    client(
        &case,
        "qemu-img",
        &["create", "-q", "-f", "vmdk", "base.vmdk", "1M"],
    );
    let cases: [&[&str]; 5] = [
        &["-f", "qcow2", "-b", secret, "-F", "raw", "i0"],
        &[
            "-f",
            "qcow2",
            "-u",
            "-b",
            "json:{\"driver\":\"raw\"}",
            "-F",
            "raw",
            "i1",
            "1M",
        ],
        &["-f", "qcow2", "-o", &data, "i2", "1M"],
        &["-f", "vmdk", "-b", "base.vmdk", "-F", "vmdk", "i3"],
        &["-f", "vmdk", "-o", "subformat=monolithicSparse", "i4", "1M"],
    ];
    let qemu = pretended_qemu(&case, "touch started");
    for (number, words) in cases.iter().enumerate() {
        let mut all = vec!["create", "-q"];
        all.extend_from_slice(words);
        client(&case, "qemu-img", &all);
        case.ok(&format!("compress i{number} -o a{number}.rfn"));
        let line = format!("boot a{number}.rfn --qemu {qemu}");
        if number == 4 {
            case.ok(&line);
            assert!(case.exists("started"), "it names no other file");
            continue;
        }
        let text = case.fails(&line, 2);
        assert!(text.contains("image names"), "{text}");
        assert!(
            case.fails(&format!("{line} --print"), 2)
                .contains("image names")
        );
        assert!(!case.exists("started"), "{number}");
    }
}

/// A kernel for a guest, as `.ci/run` unpacks it: `vmlinuz`, the modules for its disk, `busybox`.
#[allow(
    clippy::print_stderr,
    reason = "it must be seen that nothing was tested"
)]
fn kernel() -> Option<std::path::PathBuf> {
    let path = std::env::var_os("REFRAIN_TEST_KERNEL").map(std::path::PathBuf::from);
    if path.is_none() {
        eprintln!("REFRAIN_TEST_KERNEL is not set: NO GUEST WAS BOOTED");
    }
    path
}

/// Appends a file to an archive of cpio's format "newc", which kernels take as their first disk.
fn add_to_cpio(cpio: &mut Vec<u8>, name: &str, mode: u32, data: &[u8]) {
    let fields = [
        0,
        mode,
        0,
        0,
        1,
        0,
        data.len() as u32,
        0,
        0,
        0,
        0,
        name.len() as u32 + 1,
        0,
    ];
    cpio.extend_from_slice(b"070701");
    for field in fields {
        cpio.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    for part in [format!("{name}\0").as_bytes(), data] {
        cpio.extend_from_slice(part);
        cpio.resize(cpio.len().next_multiple_of(4), 0);
    }
}

const GUEST: &str = "#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs d /dev
for m in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do
  $b insmod /$m.ko
done
while ! [ -b /dev/vda ]; do :; done
$b echo written-by-the-guest | $b dd of=/dev/vda bs=512 seek=16000 conv=notrunc 2>/dev/null
echo DISK-HAS $($b dd if=/dev/vda bs=1M count=7 2>/dev/null | $b sha256sum)
$b poweroff -f
";

#[test]
fn a_guest_boots_and_reads_the_disk_as_it_is() {
    let Some(kernel) = kernel() else {
        return;
    };
    let case = Case::new();
    let image = image();
    case.write("disk.img", &image);
    case.ok("compress --for serve disk.img -o a.rfn");
    let mut cpio = vec![];
    for directory in ["bin", "dev"] {
        add_to_cpio(&mut cpio, directory, 0o40755, b"");
    }
    let busybox = fs::read(kernel.join("busybox")).unwrap();
    add_to_cpio(&mut cpio, "bin/busybox", 0o100_755, &busybox);
    add_to_cpio(&mut cpio, "init", 0o100_755, GUEST.as_bytes());
    for module in fs::read_dir(kernel.join("modules")).unwrap() {
        let path = module.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        add_to_cpio(&mut cpio, name, 0o100_644, &fs::read(&path).unwrap());
    }
    add_to_cpio(&mut cpio, "TRAILER!!!", 0, b"");
    case.write("first-disk", &cpio);
    let line = "boot a.rfn --overlay kept.qcow2 --record trace -- -accel tcg -cpu qemu64 -nographic \
                -no-reboot -nic none -initrd first-disk -kernel";
    let mut command = case.command(REFRAIN, line);
    command.arg(kernel.join("vmlinuz"));
    command.args(["-append", "console=ttyS0 quiet panic=-1"]);
    let output = expect(command.output().unwrap(), 0, "boot");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = sha256(&image[..7 << 20]);
    assert!(text.contains(&format!("DISK-HAS {expected}")), "{text}");
    assert!(case.read("trace").len() > 50);
    assert!(is_kept(&case.path("kept.qcow2")));
    case.ok("test a.rfn");
}

fn sha256(bytes: &[u8]) -> String {
    let case = Case::new();
    case.write("bytes", bytes);
    let output = case.ok("hash --sha256 bytes").stdout;
    String::from_utf8(output).unwrap()[..64].to_owned()
}

/// Whether the overlay has what the guest wrote.
fn is_kept(overlay: &Path) -> bool {
    let bytes = fs::read(overlay).unwrap();
    bytes
        .windows(20)
        .any(|part| part == b"written-by-the-guest")
}
