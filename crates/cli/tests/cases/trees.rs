//! Directories.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::support::{Case, REFRAIN, expect, incompressible, json, json_lines, mixture, snapshot};

/// Creates a directory with one entry of every kind that needs no privileges.
fn create_tree(case: &Case) {
    case.write("tree/a.txt", b"first");
    case.write("tree/sub/deep/data.bin", &mixture(400_000));
    case.write("tree/sub.x", b"sorts between sub and sub/");
    case.write(
        &format!("tree/{}", "long-name-".repeat(20)),
        &incompressible(5, 3000),
    );
    case.write("tree/read-only", b"x");
    case.write("tree/empty-file", b"");
    fs::create_dir(case.path("tree/empty")).unwrap();
    symlink("a.txt", case.path("tree/soft")).unwrap();
    symlink("/nowhere/at/all", case.path("tree/dangling")).unwrap();
    fs::hard_link(case.path("tree/a.txt"), case.path("tree/sub/hard")).unwrap();
    fs::set_permissions(case.path("tree/read-only"), Permissions::from_mode(0o440)).unwrap();
    for (name, seconds) in [
        ("tree/a.txt", 1_000_000_001),
        ("tree/sub/deep", 5),
        ("tree", 77),
    ] {
        let modified = UNIX_EPOCH + Duration::new(seconds, 987_654_321);
        File::open(case.path(name))
            .unwrap()
            .set_modified(modified)
            .unwrap();
    }
    fs::set_permissions(case.path("tree/sub"), Permissions::from_mode(0o550)).unwrap();
}

fn same(case: &Case, other: &str) {
    assert_eq!(snapshot(&case.path("tree")), snapshot(&case.path(other)));
}

#[test]
fn a_directory_is_restored_as_it_was() {
    let case = Case::new();
    create_tree(&case);
    case.ok("compress tree");
    case.ok("decompress tree.rfn -o out");
    same(&case, "out");
    let (first, second) = ("out/a.txt", "out/sub/hard");
    let inode = |name| fs::metadata(case.path(name)).unwrap().ino();
    assert_eq!(inode(first), inode(second), "hard links stay links");
    // Without -o: below the current directory, under the member's name.
    fs::create_dir(case.path("elsewhere")).unwrap();
    fs::rename(case.path("tree.rfn"), case.path("elsewhere/backup.rfn")).unwrap();
    fs::rename(case.path("tree"), case.path("elsewhere/tree")).unwrap();
    case.ok("decompress elsewhere/backup.rfn");
    same(&case, "elsewhere/tree");
    assert!(
        case.fails("decompress elsewhere/backup.rfn", 4)
            .contains("exist")
    );
}

#[test]
fn the_archive_of_a_directory_is_deterministic_and_a_tar() {
    let case = Case::new();
    create_tree(&case);
    case.ok("compress tree -o one.rfn -T1");
    case.ok("compress tree -o two.rfn -T2");
    assert!(case.read("one.rfn") == case.read("two.rfn"));
    let tar = case.ok("decompress one.rfn -o -");
    fs::create_dir(case.path("untarred")).unwrap();
    expect(
        case.pipe("tar", "-C untarred -xpf -", &tar.stdout),
        0,
        "tar -x",
    );
    same(&case, "untarred");
}

#[test]
fn a_directory_is_restored_from_a_pipe() {
    let case = Case::new();
    create_tree(&case);
    let archive = case.ok("compress tree -o -").stdout;
    expect(
        case.pipe(REFRAIN, "decompress - -o out", &archive),
        0,
        "decompress - -o out",
    );
    same(&case, "out");
}

#[test]
fn directories_and_files_share_an_archive() {
    let case = Case::new();
    create_tree(&case);
    case.write("file", b"beside");
    case.ok("compress tree file -o both.rfn");
    case.ok("decompress both.rfn -o out");
    same(&case, "out/tree");
    assert_eq!(case.read("out/file"), b"beside");
    assert_eq!(case.ok("cat both.rfn tree/a.txt").stdout, b"first");
}

#[test]
fn an_existing_directory_is_added_to_but_not_overwritten() {
    let case = Case::new();
    create_tree(&case);
    case.ok("compress tree");
    case.write("out/other", b"stays");
    case.write("out/sub.x", b"mine");
    let message = case.fails("decompress tree.rfn -o out", 4);
    assert!(message.contains("sub.x"), "{message}");
    assert_eq!(case.read("out/sub.x"), b"mine");
    assert_eq!(case.read("out/a.txt"), b"first", "the others are restored");
    case.ok("decompress tree.rfn -o out --force");
    assert_eq!(case.read("out/sub.x"), b"sorts between sub and sub/");
    assert_eq!(case.read("out/other"), b"stays");
}

#[test]
fn names_that_are_not_utf8_remain_what_they_are() {
    let case = Case::new();
    let names = [&b"n\xfe"[..], b"n\xff", "n\u{fffd}".as_bytes()].map(OsStr::from_bytes);
    case.write("tree/plain", b"plain");
    for name in names {
        let file = case.path("tree").join(name);
        fs::write(&file, name.as_bytes()).unwrap();
        let mut link = OsString::from("to-");
        link.push(name);
        symlink(name, case.path("tree").join(link)).unwrap();
    }
    case.ok("compress tree");
    for name in names {
        let mut command = case.command(REFRAIN, "cat tree.rfn");
        let output = expect(command.arg(name).output().unwrap(), 0, "cat");
        assert_eq!(output.stdout, name.as_bytes());
    }
    case.ok("decompress tree.rfn -o out");
    for name in names {
        let file = case.path("out").join(name);
        assert_eq!(fs::read(file).unwrap(), name.as_bytes());
    }
    let entries = json_lines(&case.ok("list --json tree.rfn").stdout);
    let entry = |path_bytes| {
        let mut entries = entries.iter();
        entries
            .find(|entry| entry["path_bytes"] == path_bytes)
            .unwrap()
    };
    assert_eq!(entry("6eff")["path"], "n\u{fffd}");
    assert_eq!(entry("746f2d6eff")["link_target_bytes"], "6eff");
    let count = entries
        .iter()
        .filter(|entry| entry.get("path_bytes").is_some());
    assert_eq!(count.count(), 4);
}

#[test]
fn members_whose_names_are_not_utf8_are_not_confused() {
    let case = Case::new();
    let names = [&b"m\xfe"[..], b"m\xff", "m\u{fffd}".as_bytes()].map(OsStr::from_bytes);
    for name in names {
        fs::write(case.path("").join(name), name.as_bytes()).unwrap();
        let mut directory = OsString::from("d-");
        directory.push(name);
        let directory = case.path("").join(directory);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("x"), [b"in ", name.as_bytes()].concat()).unwrap();
    }
    let mut inputs = names.map(OsString::from).to_vec();
    inputs.extend(names.map(|name| [OsStr::new("d-"), name].concat_os()));
    let mut command = case.command(REFRAIN, "compress -o all.rfn");
    expect(command.args(&inputs).output().unwrap(), 0, "compress");
    for name in names {
        let cat = |path: OsString| {
            let mut command = case.command(REFRAIN, "cat all.rfn");
            expect(command.arg(path).output().unwrap(), 0, "cat").stdout
        };
        assert_eq!(cat(name.to_owned()), name.as_bytes());
        let inside = [OsStr::new("d-"), name, OsStr::new("/x")].concat_os();
        assert_eq!(cat(inside), [b"in ", name.as_bytes()].concat());
    }
    case.ok("decompress all.rfn -o out");
    for name in names {
        let restored = fs::read(case.path("out").join(name)).unwrap();
        assert_eq!(restored, name.as_bytes());
    }
    let document = json(&case.ok("info --json all.rfn").stdout);
    let members = document["results"][0]["members"].as_array().unwrap();
    let bytes = members
        .iter()
        .filter_map(|member| member["name_bytes"].as_str());
    assert_eq!(
        bytes.collect::<Vec<_>>(),
        ["6dfe", "6dff", "642d6dfe", "642d6dff"]
    );
    let text = String::from_utf8(case.ok("info all.rfn").stdout).unwrap();
    assert!(
        text.contains("m\\376 (file)") && text.contains("d-m\\377 (directory)"),
        "{text}"
    );
}

trait ConcatOs {
    fn concat_os(&self) -> OsString;
}

impl ConcatOs for [&OsStr] {
    fn concat_os(&self) -> OsString {
        self.iter().copied().collect()
    }
}

#[test]
fn an_output_with_a_slash_holds_the_directory_by_its_name() {
    let case = Case::new();
    create_tree(&case);
    case.ok("compress -q tree");
    fs::create_dir(case.path("existing")).unwrap();
    for output in ["new/", "existing/"] {
        case.ok(&format!("decompress -q tree.rfn -o {output}"));
        same(&case, &format!("{output}tree"));
    }
    let archive = case.read("tree.rfn");
    let line = "decompress - -o piped/";
    expect(case.pipe(REFRAIN, line, &archive), 0, line);
    same(&case, "piped/tree");
}

#[test]
fn a_directory_without_a_name_needs_an_output() {
    let case = Case::new();
    case.write("x", b"y");
    assert!(case.fails("compress .", 1).contains("-o"));
    fs::create_dir(case.path("d")).unwrap();
    case.write("d/x", b"y");
    case.ok("compress d/. -o dot.rfn");
    case.ok("decompress dot.rfn -o out");
    assert!(Path::new(&case.path("out/x")).exists());
}
