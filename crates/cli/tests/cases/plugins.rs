//! Codecs in shared libraries.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::support::{Case, incompressible, mixture};

const SOURCE: &str = include_str!("../../../plugin/tests/sources/runs.c");

/// Every byte fifty times.
fn content() -> Vec<u8> {
    (0..300_000_u32).map(|at| (at / 50) as u8).collect()
}

/// Bytes fifty times as well, without repeats: of blocks so large others decode parts.
fn varied() -> Vec<u8> {
    let bytes = incompressible(5, 20_000).into_iter();
    bytes.flat_map(|byte| [byte; 50]).collect()
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
            told.contains("codec 65024 is that of the plug-in 'runs': load it with --plugin FILE"),
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
    let wanted = "its number 65024 is that of the plug-in 'runs', which is loaded";
    assert!(told.contains(wanted), "{told}");
    let told = case.fails("test a.rfn --plugin file", 1);
    assert!(told.contains("file: cannot be loaded"), "{told}");
    assert!(!told.contains("/refrain-plugin-"), "{told}");
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
    case.fails("plugin make absent.c", 6);
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
    // Its name is none for a crate.
    case.write("keep.v2.rs", &case.read("keep.rs"));
    case.ok("plugin make keep.v2.rs");
    case.ok("plugin check keep.v2.so");
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
fn what_is_decoded_wrongly_is_not_delivered() {
    let case = case();
    case.write("file", &varied());
    case.ok("compress -q --plugin runs.c --codec runs file -o a.rfn");
    case.ok("cat a.rfn --range 1000..1100 --plugin runs.c");
    for lie in [
        "decodes_less",
        "decodes_more",
        "decodes_and_fails",
        "decodes_wrong",
    ] {
        let source = format!("#define DECODE {lie}\n{SOURCE}");
        case.write("lie.c", source.as_bytes());
        // What is wanted of the block may be right.
        let mut command = case.command(
            env!("CARGO_BIN_EXE_refrain"),
            "cat a.rfn --range 1000..1100 --plugin lie.c",
        );
        let read = command.output().unwrap();
        let told = String::from_utf8_lossy(&read.stderr);
        assert_eq!(read.status.code(), Some(2), "{lie}: {told}");
        assert!(read.stdout.is_empty(), "{lie}");
        let told = case.fails("test a.rfn --plugin lie.so", 2);
        assert!(told.contains("1 of 1 file affected"), "{lie}: {told}");
    }
}

#[test]
fn an_archive_with_decoders_still_needs_the_plugin() {
    let case = case();
    let compress = "compress --plugin runs.c --codec runs file -o a.rfn";
    let told = |line: &str| String::from_utf8(case.ok(line).stderr).unwrap();
    let wanted = "no decoder for codec 65024, which is that of the plug-in 'runs'";
    let said = told(&format!("{compress} --carry-decoders"));
    assert!(said.contains(wanted), "{said}");
    let info = String::from_utf8(case.ok("info a.rfn").stdout).unwrap();
    assert!(info.contains("codec 65024 by plug-in runs"), "{info}");
    let read = case.ok("cat a.rfn --decoders carried --plugin runs.so");
    assert!(read.stdout == content());
    let error = case.fails("cat a.rfn --decoders carried", 3);
    assert!(error.contains("load it with --plugin FILE"), "{error}");
    assert!(!told(&format!("{compress} -f")).contains(wanted));
}

#[test]
fn it_is_told_why_a_plugin_is_not_used() {
    let case = case();
    let compress = "compress --plugin runs.c --codec runs file -f -o a.rfn";
    let told = |line: &str| String::from_utf8(case.ok(line).stderr).unwrap();
    let source = format!("#define MEMORY (1ull << 40)\n{SOURCE}");
    case.write("runs.c", source.as_bytes());
    let said = told(compress);
    let wanted = "block 0 does without codec runs, which states that it needs more memory";
    assert!(said.contains(wanted), "{said}");
    // That nothing repeats is no fault of it.
    let source = format!("/* good */\n{SOURCE}");
    case.write("runs.c", source.as_bytes());
    case.write("file", &mixture(100_000));
    let said = told(compress);
    assert!(!said.contains("does without"), "{said}");
}

#[test]
fn a_folder_for_temporary_files_that_is_absent_is_named() {
    let case = case();
    case.ok("plugin make runs.c");
    let program = env!("CARGO_BIN_EXE_refrain");
    let mut command = case.command(program, "plugin check runs.so");
    let output = command.env("TMPDIR", "/nonexistent").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let wanted = "a copy of runs.so to the folder for temporary files (TMPDIR), /nonexistent";
    assert!(told.contains(wanted), "{told}");
    assert!(!told.contains("/refrain-plugin-"), "{told}");
    assert_eq!(output.status.code(), Some(6), "{told}");
}

#[test]
fn a_service_tries_again_what_changed_and_tells_each_time() {
    let case = case();
    case.write("file", &varied());
    case.ok("compress -q --plugin runs.c --codec runs file --block-size 64K -o a.rfn");
    let service = Service::start(&case, "serve a.rfn --http unix:door --plugin runs.c");
    assert!(service.wait_for("ready at"));
    let write = |text: String| case.write("runs.c", text.as_bytes());
    let loaded = "the plug-in 'runs' changed and was loaded again";
    for round in 0..2 {
        write(format!("{SOURCE}\n/* {round} */\n"));
        assert!(service.wait_for(loaded), "{round}");
    }
    write("no source".to_owned());
    assert!(service.wait_for("cc does not compile it"));
    let more = service.lines_for(Duration::from_millis(1700));
    assert!(more.is_empty(), "{more:?}");
    // What a wrong version decodes is not delivered, and does not stay.
    write(format!("#define DECODE decodes_wrong\n{SOURCE}"));
    assert!(service.wait_for(loaded));
    let content = varied();
    let wanted = &content[100_000..100_100];
    let holds = |answer: &[u8]| answer.windows(100).any(|bytes| bytes == wanted);
    for _ in 0..5 {
        let answer = get(&case, 100_000);
        let text = String::from_utf8_lossy(&answer);
        assert!(answer.len() < 1000 && !holds(&answer), "{text}");
    }
    write(SOURCE.to_owned());
    assert!(service.wait_for(loaded));
    assert!(holds(&get(&case, 100_000)));
    // One that is absent is told once.
    fs::remove_file(case.path("runs.c")).unwrap();
    assert!(service.wait_for("stays as it was"));
    let more = service.lines_for(Duration::from_millis(1700));
    assert!(more.is_empty(), "{more:?}");
}

/// The answer to a request for 100 bytes of the file, on a connection of its own.
fn get(case: &Case, from: usize) -> Vec<u8> {
    let mut client = UnixStream::connect(case.path("door")).unwrap();
    let to = from + 99;
    write!(
        client,
        "GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\nRange: bytes={from}-{to}\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    // An answer that cannot go on may end the connection in any way.
    let _ = client.read_to_end(&mut answer);
    answer
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
    let line = format!("serve a.rfn --http unix:door --plugin {source_name}");
    let service = Service::start(case, &line);
    assert!(service.wait_for("ready at"));
    // One connection throughout.
    let mut client = UnixStream::connect(case.path("door")).unwrap();
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
    assert!(service.wait_for(&text));
    get(150_000);
    case.write(&source_name, b"no source");
    assert!(service.wait_for(&format!("the plug-in '{name}' stays as it was")));
    get(250_000);
}

/// A service and the lines that it writes. Ends with the test.
struct Service {
    child: Child,
    lines: Receiver<String>,
}

impl Service {
    fn start(case: &Case, line: &str) -> Service {
        let mut command = case.command(env!("CARGO_BIN_EXE_refrain"), line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        let outputs: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for output in outputs {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        Service { child, lines }
    }

    /// Whether a line with this text comes within a minute.
    fn wait_for(&self, text: &str) -> bool {
        self.until(Duration::from_secs(60))
            .any(|line| line.contains(text))
    }

    /// The lines that come from now on.
    fn lines_for(&self, time: Duration) -> Vec<String> {
        self.until(time).collect()
    }

    fn until(&self, time: Duration) -> impl Iterator<Item = String> + '_ {
        let until = Instant::now() + time;
        let left = move || until.saturating_duration_since(Instant::now());
        std::iter::from_fn(move || self.lines.recv_timeout(left()).ok())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
