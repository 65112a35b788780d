//! Codecs in shared libraries.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::Case;

const SOURCE: &str = include_str!("../../../plugin/tests/sources/runs.c");

/// Every byte fifty times.
fn content() -> Vec<u8> {
    (0..300_000_u32).map(|at| (at / 50) as u8).collect()
}

fn case() -> Case {
    let case = Case::new();
    case.write("runs.c", SOURCE.as_bytes());
    case.write("file", &content());
    case
}

#[test]
fn an_archive_names_the_plugin_that_it_needs() {
    let case = case();
    let told = case.fails("compress file --codec runs", 1);
    assert!(told.contains("there is no codec 'runs'"), "{told}");
    case.ok("plugin make runs.c");
    case.ok("plugin check runs.so");
    case.ok("compress -q --plugin runs.so --codec runs:3 file -o a.rfn");
    case.ok("test -q a.rfn --plugin=runs.so");
    let read = case.ok("cat a.rfn --plugin runs.so").stdout;
    assert!(read == content());
    case.ok("decompress -q a.rfn -o copy --plugin runs.c");
    assert!(case.read("copy") == content());
    // From a pipe, and without any of it.
    let piped = case.pipe(
        env!("CARGO_BIN_EXE_refrain"),
        "test -q",
        &case.read("a.rfn"),
    );
    let told = String::from_utf8_lossy(&piped.stderr).into_owned();
    assert_eq!(piped.status.code(), Some(3), "{told}");
    for told in [
        told,
        case.fails("test a.rfn", 3),
        case.fails("cat a.rfn", 3),
    ] {
        assert!(
            told.contains("codec 65024 is that of the plug-in 'runs': load it"),
            "{told}"
        );
    }
    // Another one with its number.
    case.write(
        "other.c",
        SOURCE.replace("\"runs\"", "\"other\"").as_bytes(),
    );
    let told = case.fails("test a.rfn --plugin other.c", 3);
    assert!(
        told.contains("'runs', and the one with this number is 'other'"),
        "{told}"
    );
    let told = case.fails("test a.rfn --plugin runs.so --plugin other.so", 1);
    assert!(told.contains("is another codec's"), "{told}");
    let told = case.fails("test a.rfn --plugin file", 1);
    assert!(told.contains("cannot be loaded"), "{told}");
    // What is added is named as well.
    case.ok("add -q b.rfn file");
    case.ok("merge -q --plugin runs.so a.rfn b.rfn -o merged.rfn");
    case.ok("test -q --plugin runs.so merged.rfn");
}

#[test]
fn a_plugin_is_made_again_only_if_something_changed() {
    let case = case();
    write_source(&case, "part.h", b"#define PART 1\n");
    write_source(
        &case,
        "runs.c",
        format!("#include \"part.h\"\n{SOURCE}").as_bytes(),
    );
    let made = |line: &str| String::from_utf8(case.ok(line).stderr).unwrap();
    assert!(made("plugin make runs.c").contains("runs.so: made"));
    assert!(made("plugin make runs.c").contains("as new as what it is made of"));
    write_source(&case, "part.h", b"#define PART 2\n");
    assert!(made("plugin make runs.c").contains("runs.so: made"));
    assert!(made("plugin make runs.c").contains("as new"));
    fs::remove_file(case.path("part.h")).unwrap();
    let before = case.read("runs.so");
    let told = case.fails("plugin make runs.c", 1);
    assert!(told.contains("cc does not compile it"), "{told}");
    assert!(case.read("runs.so") == before);
    let names: Vec<_> = case
        .names()
        .into_iter()
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(names.is_empty(), "{names:?}");
    assert!(
        case.fails("plugin make file", 1)
            .contains("must be .c or .rs")
    );
    let header = case.ok("plugin header").stdout;
    assert!(header.starts_with(b"/* A codec or a filter for Refrain"));
}

/// Writes a file, and waits until what is written later has a later time: the kernel dates files by
/// ticks of some milliseconds.
fn write_source(case: &Case, name: &str, bytes: &[u8]) {
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let written = modified(&case.write(name, bytes));
    while modified(&case.write("later", b"")) <= written {
        std::thread::yield_now();
    }
    fs::remove_file(case.path("later")).unwrap();
}

#[test]
fn a_plugin_in_rust_is_made() {
    let case = case();
    write_source(&case, "tables.rs", b"pub const NUMBER: u32 = 65025;\n");
    write_source(
        &case,
        "keep.rs",
        include_bytes!("../../../plugin/tests/sources/keep.rs"),
    );
    case.ok("plugin make keep.rs -o keeps.so");
    let told = String::from_utf8(case.ok("plugin check keeps.so").stderr).unwrap();
    assert!(told.contains("codec 65025 'keep'"), "{told}");
    let again = String::from_utf8(case.ok("plugin make keep.rs -o keeps.so").stderr).unwrap();
    assert!(again.contains("as new"), "{again}");
    write_source(&case, "tables.rs", b"pub const NUMBER: u32 = 65026;\n");
    case.ok("plugin make keep.rs -o keeps.so");
    let told = String::from_utf8(case.ok("plugin check keeps.so").stderr).unwrap();
    assert!(told.contains("codec 65026 'keep'"), "{told}");
}

#[test]
fn what_lies_costs_no_data() {
    let case = case();
    case.write(
        "lie.c",
        format!("#define ENCODE short_length\n{SOURCE}").as_bytes(),
    );
    case.ok("plugin make lie.c");
    let told = case.fails("plugin check lie.so", 1);
    assert!(told.contains("it does not decode its own data"), "{told}");
    case.ok("compress -q --plugin lie.so --codec runs file -o a.rfn");
    // By another codec: the plug-in is not needed.
    assert!(case.ok("cat a.rfn").stdout == content());
}

#[test]
fn a_service_loads_what_changed_without_dropping_a_client() {
    let case = case();
    case.ok("compress -q --plugin runs.c --codec runs file --block-size 64K -o a.rfn");
    reads_while_the_plugin_changes(&case, "runs", SOURCE, &content());
}

/// Reads `a.rfn` through a service while the plug-in with this name and source changes.
pub fn reads_while_the_plugin_changes(case: &Case, name: &str, source: &str, content: &[u8]) {
    let source_name = format!("{name}.c");
    let mut command = case.command(
        env!("CARGO_BIN_EXE_refrain"),
        &format!("serve a.rfn --http unix:door --plugin {source_name}"),
    );
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut service = Service(command.spawn().unwrap());
    let (sender, receiver) = std::sync::mpsc::channel();
    let outputs: [Box<dyn Read + Send>; 2] = [
        Box::new(service.0.stdout.take().unwrap()),
        Box::new(service.0.stderr.take().unwrap()),
    ];
    for output in outputs {
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
    }
    let wait_for = |text: &str| {
        let until = Instant::now() + Duration::from_secs(60);
        while let Ok(line) = receiver.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            if line.contains(text) {
                return true;
            }
        }
        false
    };
    assert!(wait_for("ready at"));
    // One connection throughout.
    let mut client = std::os::unix::net::UnixStream::connect(case.path("door")).unwrap();
    let mut get = |from: usize| {
        let to = from + 99;
        write!(
            client,
            "GET /file HTTP/1.1\r\nHost: a\r\nRange: bytes={from}-{to}\r\n\r\n"
        )
        .unwrap();
        let mut found = Vec::new();
        while !found.ends_with(&content[from..=to]) {
            let mut some = [0; 4096];
            let count = client.read(&mut some).unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&found));
            found.extend_from_slice(&some[..count]);
        }
    };
    get(1000);
    case.write(
        &source_name,
        format!("{source}\n/* changed */\n").as_bytes(),
    );
    let text = format!("the plug-in '{name}' changed and was loaded again");
    assert!(wait_for(&text));
    get(150_000);
    case.write(&source_name, b"no source");
    assert!(wait_for(&format!("the plug-in '{name}' stays as it was")));
    get(250_000);
}

/// Ends with the test.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
