//! `--check`: what was written is read back from the disk, before anything depends on it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::lying_disk::{self, LIE_OFFSET};
use crate::mount::can_mount;
use crate::support::{Case, REFRAIN, incompressible, json, mixture};

/// The value `read_back` of the only result of a line with `--json`.
fn read_back(case: &Case, line: &str) -> serde_json::Value {
    let document = json(&case.ok(line).stdout);
    document["results"][0]["read_back"].clone()
}

#[test]
fn what_was_written_is_read_back_before_sources_are_removed() {
    let case = Case::new();
    let bytes = mixture(300_000);
    case.write("x", &bytes);
    case.write("tree/a", &bytes[..5000]);
    case.write("tree/b", b"");
    let is_memory = refrain_storage::is_in_memory(case.path(""));
    let expected = |files: u64, found: &serde_json::Value| {
        assert_eq!(found["files"], files, "{found}");
        assert_eq!(
            found["from_memory"],
            if is_memory { files } else { 0 },
            "{found}"
        );
    };
    expected(1, &read_back(&case, "compress --check --rm --json x"));
    assert!(!case.exists("x"));
    expected(1, &read_back(&case, "protect --check --json x.rfn"));
    expected(
        1,
        &read_back(&case, "repair --check --json x.rfn -o healed.rfn"),
    );
    expected(1, &read_back(&case, "decompress --check --rm --json x.rfn"));
    assert_eq!(case.read("x"), bytes);
    case.ok("compress tree");
    expected(
        2,
        &read_back(&case, "decompress --check --json tree.rfn -o out"),
    );
    assert_eq!(
        read_back(&case, "compress --json x -o y.rfn"),
        serde_json::Value::Null
    );
    let output = case.ok("decompress --check y.rfn -o y");
    let text = String::from_utf8(output.stderr).unwrap();
    let place = if is_memory { "read back from memory" } else { "read back from the disk" };
    assert!(text.trim_end().ends_with(place), "{text}");
}

#[test]
fn memory_is_named_where_there_is_no_disk() {
    let case = Case::new();
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
    case.write("x", &mixture(5000));
    let path = memory.path().join("x.rfn");
    let output = case.ok(&format!("compress --check x -o {}", path.display()));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("not with the disk: its file system keeps files in memory"),
        "{text}"
    );
    assert!(path.exists());
}

#[test]
fn what_cannot_be_read_back_is_refused() {
    let case = Case::new();
    case.write("x", b"x");
    let text = case.fails("compress --check x -o /dev/null", 6);
    assert!(text.contains("neither a file nor a block device"), "{text}");
    let text = case.fails("compress --check x -o /dev/stderr", 1);
    assert!(text.contains("leave out --check"), "{text}");
}

/// A case with a disk that lies, at `disk`.
struct Liar {
    case: Case,
    _disk: fuser::BackgroundSession,
}

impl Liar {
    fn new() -> Option<Liar> {
        if !can_mount() {
            return None;
        }
        let case = Case::new();
        case.write("x", &incompressible(1, 200_000));
        fs::create_dir(case.path("disk")).unwrap();
        let _disk = lying_disk::mount(&case.path("disk"));
        Some(Liar { case, _disk })
    }

    /// Runs a line that has to fail because of the disk.
    fn finds(&self, line: &str, exit: i32) {
        let text = self.case.fails(line, exit);
        let range = text.split(' ').find_map(|word| word.split_once(".."));
        let (start, end) = range.unwrap_or_else(|| panic!("{line}: {text}"));
        let range = start.parse::<usize>().unwrap()..end.parse::<usize>().unwrap();
        assert!(range.contains(&LIE_OFFSET), "{line}: {text}");
        assert!(
            text.contains("were read back from the disk other than"),
            "{line}: {text}"
        );
    }
}

#[test]
fn a_disk_that_lies_is_found_out_and_nothing_is_lost() {
    let Some(liar) = Liar::new() else { return };
    let case = &liar.case;
    // The cache hides it from those who do not look past it.
    case.ok("compress x -o disk/unchecked.rfn");
    case.ok("test disk/unchecked.rfn");
    liar.finds("compress --check --rm x -o disk/x.rfn", 6);
    assert!(case.exists("x") && !case.exists("disk/x.rfn"));
    case.ok("compress x");
    liar.finds("decompress --check --rm x.rfn -o disk/x", 6);
    assert!(case.exists("x.rfn") && !case.exists("disk/x"));
    liar.finds("protect --check x.rfn -o disk/x.rfn", 6);
    case.ok("protect x.rfn -o recovering.rfn");
    liar.finds("repair --check recovering.rfn -o disk/x.rfn", 6);
    assert!(!case.exists("disk/x.rfn"));
}

#[test]
fn restored_files_that_a_disk_lies_about_are_named_and_removed() {
    let Some(liar) = Liar::new() else { return };
    let case = &liar.case;
    case.write("tree/long", &incompressible(2, LIE_OFFSET + 1));
    case.write("tree/short", &incompressible(3, LIE_OFFSET));
    case.ok("compress tree");
    for place in ["disk/new", "disk/present"] {
        if place == "disk/present" {
            fs::create_dir(case.path(place)).unwrap();
        }
        liar.finds(&format!("decompress --check --rm tree.rfn -o {place}"), 4);
        assert!(case.exists("tree.rfn"));
        assert!(case.exists(&format!("{place}/short")) && !case.exists(&format!("{place}/long")));
    }
}

#[cfg(feature = "lrzip")]
#[test]
fn the_lrzip_command_checks_what_it_writes() {
    let Some(liar) = Liar::new() else { return };
    let case = &liar.case;
    symlink(REFRAIN, case.path("lrzip")).unwrap();
    let run = |line: &str| {
        let output = case.command(case.path("lrzip"), line).output().unwrap();
        let text = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat())
            .into_owned();
        (output.status.code(), text)
    };
    assert_eq!(run("-n x").0, Some(0));
    let (code, text) = run("-dc -D x.lrz -o disk/x");
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("MD5 CHECK FAILED.") && text.contains("were read back"),
        "{text}"
    );
    assert!(case.exists("x.lrz") && !case.exists("disk/x"));
    let (code, text) = run("-dcK x.lrz -o disk/kept");
    assert_eq!(code, Some(1), "{text}");
    assert!(case.exists("disk/kept"));
    let (code, text) = run("-nc -D x -o disk/x.lrz");
    assert_eq!(code, Some(1), "{text}");
    assert!(case.exists("x") && !case.exists("disk/x.lrz"));
    let (code, text) = run("-dc x.lrz -o y");
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("MD5 integrity of written file matches archive"),
        "{text}"
    );
    assert_eq!(
        fs::read(Path::new(&case.path("y"))).unwrap(),
        case.read("x")
    );
}
