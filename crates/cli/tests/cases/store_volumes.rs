//! Archives in volumes in an S3-compatible store: moto's server, also behind a proxy that loses
//! answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

use refrain_testkit::scaled;

use crate::store::Store;
use crate::support::{Case, incompressible, json_lines, mixture};

/// The names of the files that an archive needs.
fn needed(store: &Store, case: &Case) -> Vec<String> {
    let listed = store.ok(case, "list --volumes s3://bucket/backup").stdout;
    let listed = String::from_utf8(listed).unwrap();
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn a_prefix_of_a_bucket_is_an_archive() {
    let Some(store) = Store::start() else { return };
    let case = Case::new();
    for night in 0..3 {
        let mut data = mixture(3 << 20);
        data[night * 1000..night * 1000 + 10].fill(night as u8);
        case.write("disk", &data);
        let options = format!("disk --time 2026-11-2{night}T03:00:00 --host h");
        case.ok(&format!("add -q a.rfn {options}"));
        store.ok(
            &case,
            &format!("add -q s3://bucket/backup --volume 256K {options}"),
        );
    }
    for line in [
        "list --generations A",
        "list -l A",
        "info A --table",
        "cat A disk --range 1000..2012",
        "cat A disk --generation 1",
        "diff A 1 2",
    ] {
        let remote = store.ok(&case, &line.replace('A', "s3://bucket/backup"));
        let local = case.ok(&line.replace('A', "a.rfn"));
        let shown =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("s3://bucket/backup", "a.rfn");
        assert!(shown(&remote.stdout) == shown(&local.stdout), "{line}");
    }
    store.ok(&case, "test -q s3://bucket/backup/");
    store.ok(&case, "decompress -q s3://bucket/backup -o out/");
    assert!(case.read("out/disk") == case.read("disk"));
    // The bytes are those of a file.
    let names = needed(&store, &case);
    let volumes = names.iter().filter(|name| name.starts_with("data-"));
    let parts: Vec<_> = volumes
        .map(|name| store.get(&format!("/bucket/backup/{name}")))
        .collect();
    assert!(parts.len() > 2 && parts.iter().all(|part| part.len() <= 256 << 10));
    assert!(parts.concat() == case.read("a.rfn"));
    // An earlier head, and one generation less.
    let heads = store.ok(
        &case,
        "list --generations s3://bucket/backup/head-99999997-00000002",
    );
    assert_eq!(String::from_utf8_lossy(&heads.stdout).lines().count(), 2);
    store.ok(&case, "forget -q s3://bucket/backup 1");
    let listed = store.ok(&case, "list --generations --json s3://bucket/backup");
    assert_eq!(json_lines(&listed.stdout).len(), 2);
    for (line, part) in [
        ("list s3://bucket/none", "NoSuchKey"),
        ("list s3://bucket/none/", "no archive in volumes"),
        ("add s3://nowhere/x disk", "NoSuchBucket"),
        ("protect s3://bucket/backup", "archive in volumes"),
        ("add http://127.0.0.1:1/x disk", "cannot be written to"),
    ] {
        let output = store.command(&case, line).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(part),
            "{line}: {said}"
        );
    }
}

#[test]
fn large_volumes_go_in_parts_and_pipes_are_read_back() {
    let Some(store) = Store::start() else { return };
    let case = Case::new();
    let data = incompressible(5, 40 << 20);
    case.write("data", &data);
    store.ok(&case, "add -q -1 s3://bucket/backup data");
    let names = needed(&store, &case);
    assert_eq!(names.len(), 2);
    assert!(store.get(&format!("/bucket/backup/{}", names[1])).len() > 40 << 20);
    let mut command = store.command(&case, "add -q s3://bucket/backup - --name again");
    let twice = [&data[..3 << 20], &data[1 << 20..4 << 20]].concat();
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&twice).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(store.ok(&case, "cat s3://bucket/backup again").stdout == twice);
    assert!(
        store
            .ok(&case, "cat s3://bucket/backup data --generation 1")
            .stdout
            == data
    );
    let said = store
        .command(&case, "add s3://bucket/backup data --volume 1T")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("at most 167772160000 bytes"), "{said}");
}

/// Runs `slow`, which adds a pipe, and another `add` to the same archive before the pipe ends.
/// Returns how `slow` ended, and its messages.
fn overtaken(store: &Store, case: &Case, mut slow: Command) -> (Output, String) {
    let slow = slow.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut slow = slow.spawn().unwrap();
    let mut stdin = slow.stdin.take().unwrap();
    // More than the pipe holds: the archive is open when it is taken.
    stdin.write_all(&incompressible(2, 4 << 20)).unwrap();
    store.ok(case, "add -q s3://bucket/backup x");
    drop(stdin);
    let output = slow.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn the_second_of_two_adders_is_refused() {
    let Some(store) = Store::start() else { return };
    let case = Case::new();
    case.write("x", &incompressible(1, 100_000));
    store.ok(&case, "add -q s3://bucket/backup x");
    let slow = store.command(&case, "add s3://bucket/backup - --name slow");
    let (output, said) = overtaken(&store, &case, slow);
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(
        said.contains("another program added to s3://bucket/backup meanwhile"),
        "{said}"
    );
    let listed = store.ok(&case, "list --generations --json s3://bucket/backup");
    assert_eq!(json_lines(&listed.stdout).len(), 2);
    // Its volumes are gone.
    let kept = needed(&store, &case).len() + 1;
    assert_eq!(store.keys("backup/").len(), kept);
}

/// Passes requests on, and loses the answer to one of them.
struct Proxy {
    port: u16,
    /// The first lines of requests so far.
    requests: Arc<Mutex<Vec<String>>>,
    /// The number of the request whose answer is lost.
    lost: Arc<AtomicUsize>,
    /// Whether the store never hears of conditions.
    ignores_conditions: Arc<AtomicBool>,
}

impl Proxy {
    fn start(store_port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy {
            port: listener.local_addr().unwrap().port(),
            requests: Arc::default(),
            lost: Arc::new(AtomicUsize::new(usize::MAX)),
            ignores_conditions: Arc::default(),
        };
        let (requests, lost) = (proxy.requests.clone(), proxy.lost.clone());
        let ignores_conditions = proxy.ignores_conditions.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (requests, lost) = (requests.clone(), lost.clone());
                let ignored = if ignores_conditions.load(SeqCst) { "if-none-match:" } else { "-" };
                thread::spawn(move || pass_on(&client, store_port, ignored, &requests, &lost));
            }
        });
        proxy
    }
}

/// Passes one request on, on a connection of its own. What of its head is signed stays the same.
fn pass_on(
    client: &TcpStream,
    store_port: u16,
    ignored: &str,
    requests: &Mutex<Vec<String>>,
    lost: &AtomicUsize,
) -> Option<()> {
    let mut reader = BufReader::new(client);
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .ok()
            .filter(|count| *count > 0)?;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if !lower.starts_with(ignored) {
            head.push(line.clone());
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let number = {
        let mut requests = requests.lock().ok()?;
        requests.push(head[0].trim_end().to_owned());
        requests.len() - 1
    };
    head.insert(1, "Connection: close\r\n".to_owned());
    let mut store = TcpStream::connect(("127.0.0.1", store_port)).ok()?;
    store.write_all(head.concat().as_bytes()).ok()?;
    store.write_all(&body).ok()?;
    let mut answer = Vec::new();
    store.read_to_end(&mut answer).ok()?;
    let mut client = client;
    if lost.load(SeqCst) != number {
        client.write_all(&answer).ok()?;
    }
    client.shutdown(Shutdown::Both).ok()
}

/// The answer to each request is lost once: the store did what it was asked to, and is asked again.
#[test]
fn answers_that_are_lost_change_nothing() {
    let Some(store) = Store::start() else { return };
    let case = Case::new();
    let proxy = Proxy::start(store.port());
    let run = |line: &str| {
        let mut command = store.command(&case, line);
        command.env(
            "AWS_ENDPOINT_URL_S3",
            format!("http://127.0.0.1:{}", proxy.port),
        );
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {said}");
    };
    let count = || proxy.requests.lock().unwrap().len();
    let mut generations = 0;
    // An addition in parts takes two seconds; all of its answers are lost nightly.
    let step_of_large = if scaled(1) > 1 { 1 } else { 4 };
    for (archive, length, step) in [
        ("s3://bucket/small", 50_000, 1),
        ("s3://bucket/large", 17 << 20, step_of_large),
    ] {
        let add = |night: usize| {
            case.write("file", &incompressible(night as u64, length));
            run(&format!("add -q -1 {archive} file --name n{night}"));
        };
        add(0);
        let first = count();
        add(1);
        let requests = count() - first;
        for (night, number) in (2..).zip((0..requests).step_by(step)) {
            proxy.lost.store(count() + number, SeqCst);
            add(night);
        }
        let added = requests.div_ceil(step) + 2;
        generations += added;
        proxy.lost.store(usize::MAX, SeqCst);
        let listed = store.ok(&case, &format!("list --generations --json {archive}"));
        assert_eq!(json_lines(&listed.stdout).len(), added, "{archive}");
        store.ok(&case, &format!("test -q {archive}"));
    }
    assert!(generations > 10, "{generations}");
    // No upload in parts was left behind.
    let answer = String::from_utf8_lossy(&store.get("/bucket?uploads=")).into_owned();
    assert!(!answer.contains("<UploadId>"), "{answer}");
    let posts = proxy.requests.lock().unwrap().clone();
    assert!(
        posts
            .iter()
            .any(|line| line.starts_with("POST") && line.contains("uploadId="))
    );
}

/// A store that ignores conditions of uploads.
#[test]
fn a_store_that_ignores_conditions_is_told() {
    let Some(store) = Store::start() else { return };
    let case = Case::new();
    case.write("x", &incompressible(1, 100_000));
    let proxy = Proxy::start(store.port());
    proxy.ignores_conditions.store(true, SeqCst);
    let add = |line: &str, endpoint: u16| {
        let mut command = store.command(&case, line);
        command.env(
            "AWS_ENDPOINT_URL_S3",
            format!("http://127.0.0.1:{endpoint}"),
        );
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {said}");
        said.contains("the store ignores conditions of uploads")
    };
    for _ in 0..3 {
        assert!(add("add s3://bucket/backup x", proxy.port));
    }
    assert!(!add("add s3://bucket/backup x", store.port()));
    let listed = store.ok(&case, "list --generations --json s3://bucket/backup");
    assert_eq!(json_lines(&listed.stdout).len(), 4);
    // A head that is there is not overwritten even so.
    let mut slow = store.command(&case, "add s3://bucket/backup - --name slow");
    slow.env(
        "AWS_ENDPOINT_URL_S3",
        format!("http://127.0.0.1:{}", proxy.port),
    );
    let (_, said) = overtaken(&store, &case, slow);
    assert!(said.contains("another program added"), "{said}");
}
