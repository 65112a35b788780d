//! Reading sources: sizes that are not true, and files that change while they are read.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use crate::support::{Case, REFRAIN, expect, incompressible, json};

/// A file that states the size 0.
const VERSION: &str = "/proc/version";

#[test]
fn a_file_that_states_no_size_is_stored_by_every_handler() {
    let case = Case::new();
    case.write("other", b"other");
    let version = fs::read(VERSION).unwrap();
    let with_stdin = |line: &str| {
        let mut command = case.command(REFRAIN, line);
        let output = command.stdin(File::open(VERSION).unwrap()).output();
        expect(output.unwrap(), 0, line)
    };
    case.ok(&format!("compress {VERSION} -o operand.rfn"));
    with_stdin("compress - -o stdin.rfn");
    case.ok(&format!("compress {VERSION} other -o two.rfn"));
    case.ok(&format!(
        "compress --format lrz --back-end none {VERSION} -o lrz.lrz"
    ));
    let rfn = case
        .command(case.program_link("rfn"), &format!("-c {VERSION}"))
        .output();
    case.write("rfn.rfn", &expect(rfn.unwrap(), 0, "rfn").stdout);
    let lrzip = case.program_link("lrzip");
    let lrzip = case
        .command(lrzip, &format!("-q -n -o lrzip.lrz {VERSION}"))
        .output();
    expect(lrzip.unwrap(), 0, "lrzip");
    for archive in [
        "operand.rfn",
        "stdin.rfn",
        "two.rfn proc/version",
        "lrz.lrz",
        "rfn.rfn",
        "lrzip.lrz",
    ] {
        let read = case.ok(&format!("cat {archive}")).stdout;
        assert!(
            read == version,
            "{archive}: {} of {} bytes",
            read.len(),
            version.len()
        );
    }
    let list = case.write("list", b"version\n");
    let line = format!("compress --files-from {} /proc -o list.rfn", list.display());
    case.ok(&line);
    assert!(case.ok("cat list.rfn version").stdout == version);
    // One thing has one size.
    let tested = case.ok("test --json operand.rfn").stdout;
    let shown = case.ok("info --json operand.rfn").stdout;
    for shown in [tested, shown] {
        let text = String::from_utf8(shown).unwrap();
        let size = format!("\"content_bytes\": {}", version.len());
        assert!(
            text.replace("\":", "\": ")
                .replace(":  ", ": ")
                .contains(&size),
            "{text}"
        );
    }
}

/// The name of a change, the exit code of a run during which it happens, and the change.
type Change<'a> = (&'a str, i32, &'a dyn Fn(&Path));

/// Compresses standard input, which is the file `big`, and a pipe. `change` is called when the file
/// is open and before the pipe's writer has come.
fn while_read(case: &Case, change: impl FnOnce(&Path)) -> Output {
    let path = case.path("big");
    let old = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(old).unwrap();
    let made = Command::new("mkfifo").arg(case.path("pipe")).status();
    assert!(made.unwrap().success());
    let mut command = case.command(REFRAIN, "compress - pipe --json -o - -f");
    command.stdin(File::open(&path).unwrap());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Inputs are opened in their order, and this returns when the pipe is open.
    let mut pipe = File::create(case.path("pipe")).unwrap();
    change(&path);
    pipe.write_all(b"pipe").unwrap();
    drop(pipe);
    child.wait_with_output().unwrap()
}

#[test]
fn standard_input_that_changes_is_named_and_what_replaces_it_is_not_read() {
    const LENGTH: usize = 3_000_000;
    let content = incompressible(3, LENGTH);
    let truncate = |path: &Path| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(1_000_000).unwrap();
    };
    let append = |path: &Path| {
        let file = File::options().append(true).open(path);
        file.unwrap().write_all(b"more").unwrap();
    };
    // The modification time is set back.
    let overwrite = |path: &Path| {
        let mut file = File::options().write(true).open(path).unwrap();
        file.seek(SeekFrom::End(-100_000)).unwrap();
        file.write_all(&[9; 100_000]).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000))
            .unwrap();
    };
    let replace = |path: &Path| {
        let new = path.with_extension("new");
        fs::write(&new, vec![5; LENGTH]).unwrap();
        fs::rename(&new, path).unwrap();
    };
    let delete = |path: &Path| fs::remove_file(path).unwrap();
    let changes: [Change<'_>; 5] = [
        ("truncate", 4, &truncate),
        ("append", 4, &append),
        ("overwrite", 4, &overwrite),
        ("replace", 0, &replace),
        ("delete", 0, &delete),
    ];
    for (what, exit, change) in changes {
        let case = Case::new();
        case.write("big", &content);
        let output = expect(while_read(&case, change), exit, what);
        let report = json(&output.stderr);
        let result = &report["results"][0];
        assert_eq!(result["complete"], exit == 0, "{what}: {report}");
        let problems = result["problems"].as_array().unwrap();
        assert_eq!(problems.len(), usize::from(exit == 4), "{what}: {report}");
        case.write("archive", &output.stdout);
        let read = case.ok("cat archive stdin").stdout;
        if exit == 0 {
            assert!(read == content, "{what}");
        }
        // Its size may be found out before or after the change.
        if what == "append" {
            assert!(
                content.starts_with(&read) || read.starts_with(&content),
                "{what}"
            );
        }
        // The kernel clears the rest of the page in which a file is cut, also under a read.
        if what == "truncate" {
            let pairs = || read.iter().zip(&content);
            assert!((1_000_000..=LENGTH).contains(&read.len()), "{what}");
            assert!(read[..1_000_000] == content[..1_000_000], "{what}");
            assert!(
                pairs().all(|(byte, original)| byte == original || *byte == 0),
                "{what}"
            );
        }
        assert_eq!(case.ok("cat archive pipe").stdout, b"pipe");
    }
}

#[test]
fn an_operand_that_cannot_be_opened_is_named_and_the_others_are_stored() {
    let case = Case::new();
    case.write("a", b"a");
    case.write("b", b"b");
    let message = case.fails("compress a missing b -o out.rfn", 4);
    assert_eq!(message.matches("missing").count(), 1, "{message}");
    assert_eq!(case.ok("cat out.rfn a").stdout, b"a");
    assert_eq!(case.ok("cat out.rfn b").stdout, b"b");
    let output = expect(case.run("compress --json a missing -o json.rfn"), 4, "json");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("\"vanished\""), "{text}");
    // Nothing is removed if anything is missing.
    case.fails("compress --rm a missing -o rm.rfn", 4);
    assert!(case.exists("a"));
    case.fails("compress missing gone -o none.rfn", 6);
    assert!(!case.exists("none.rfn"));
}

#[test]
fn entries_beyond_the_limits_are_named_and_the_others_are_stored() {
    let case = Case::new();
    case.write("d/a", b"a");
    // Beyond 2^61 bytes: some file systems hold such files if they are holes.
    let huge = File::create(case.path("d/huge")).unwrap();
    if huge.set_len(1 << 62).is_err() {
        return;
    }
    let message = case.fails("compress d -o d.rfn", 4);
    assert_eq!(message.matches("d/huge").count(), 1, "{message}");
    assert_eq!(case.ok("cat d.rfn a").stdout, b"a");
}

#[test]
fn the_holes_of_an_operand_come_back() {
    let case = Case::new();
    let mut file = File::create(case.path("disk")).unwrap();
    for (offset, bytes) in [
        (5_000_000, incompressible(1, 10_000)),
        (90_000_000, vec![7; 3]),
    ] {
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.write_all(&bytes).unwrap();
    }
    file.set_len(100_000_000).unwrap();
    case.ok("compress disk");
    case.ok("decompress disk.rfn -o back");
    let mut files = ["disk", "back"].map(|name| File::open(case.path(name)).unwrap());
    let mut pieces = [vec![0; 1 << 20], vec![0; 1 << 20]];
    for start in [0, 4_500_000, 89_000_000, 98_951_424] {
        for (file, piece) in files.iter_mut().zip(&mut pieces) {
            file.seek(SeekFrom::Start(start)).unwrap();
            file.read_exact(piece).unwrap();
        }
        assert!(pieces[0] == pieces[1], "{start}");
    }
    assert_eq!(files[1].metadata().unwrap().len(), 100_000_000);
}
