//! Nothing leaves its place: members that try, where members go, who may read them, and restores
//! that end early.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
#[cfg(feature = "lrzip")]
use std::path::Path;

use crate::support::{Case, REFRAIN, expect, incompressible, snapshot};

/// An archive of the tree `d` with links that lead out of it, and of members that go through them:
/// a tree, a file, and one that is harmless.
fn hostile(case: &Case) {
    fs::create_dir_all(case.path("first/d")).unwrap();
    for (name, target) in [("l", "../../victim"), ("c", "../../victim/canary")] {
        symlink(target, case.path("first/d").join(name)).unwrap();
    }
    case.write("tree/d/l/evil", b"evil");
    case.write("tree/harmless", b"harmless");
    case.write("file/d/c", b"evil");
    case.write("file/harmless", b"harmless");
    let archive = |directory: &str, line: &str| {
        let mut command = case.command(REFRAIN, line);
        command.current_dir(case.path(directory));
        expect(command.output().unwrap(), 0, line);
        case.read(&format!("{directory}/x.rfn"))
    };
    let tree = archive("first", "compress -q d -o x.rfn");
    let through_tree = archive("tree", "compress -q d/l harmless -o x.rfn");
    let through_file = archive("file", "compress -q d/c harmless -o x.rfn");
    case.write("tree.rfn", &[&tree[..], &through_tree].concat());
    case.write("file.rfn", &[&tree[..], &through_file].concat());
}

#[test]
fn no_member_goes_through_a_link_of_an_earlier_one() {
    let case = Case::new();
    hostile(&case);
    case.write("victim/canary", b"canary");
    let before = snapshot(&case.path("victim"));
    for archive in ["tree.rfn", "file.rfn"] {
        let bytes = case.read(archive);
        for options in ["-o out/", "-f -o out/", "-o out", "-f -o out"] {
            let _ = fs::remove_dir_all(case.path("out"));
            let line = format!("decompress -q {archive} {options}");
            let exit = case.run(&line).status.code();
            // The name of a link is in use.
            let is_replaced = archive == "file.rfn" && options.starts_with("-f");
            assert!(exit != Some(0) || is_replaced, "{line}");
            assert_eq!(snapshot(&case.path("victim")), before, "{line}");
            let _ = fs::remove_dir_all(case.path("out"));
            let line = format!("decompress -q - {options}");
            let exit = case.pipe(REFRAIN, &line, &bytes).status.code();
            assert!(exit != Some(0) || is_replaced, "{line}");
            assert_eq!(snapshot(&case.path("victim")), before, "{line}");
        }
    }
    let told = case.fails("decompress -q -f tree.rfn -o again/", 2);
    assert!(told.contains("symbolic link"), "{told}");
}

#[test]
fn links_of_an_earlier_archive_of_the_same_run_are_not_followed() {
    let case = Case::new();
    case.write("victim/canary", b"canary");
    case.write("work/x", b"evil");
    case.ok("compress -q work/x");
    fs::remove_file(case.path("work/x")).unwrap();
    fs::create_dir(case.path("links")).unwrap();
    symlink("../victim/canary", case.path("links/x")).unwrap();
    expect(
        case.command("tar", "-cf work/links.tar -C links x")
            .output()
            .unwrap(),
        0,
        "tar",
    );
    case.ok("compress -q work/links.tar");
    for line in ["decompress -q links.tar.rfn .", "decompress -q -f x.rfn"] {
        let mut command = case.command(REFRAIN, line);
        command.current_dir(case.path("work"));
        expect(command.output().unwrap(), 0, line);
    }
    assert_eq!(case.read("victim/canary"), b"canary");
    assert_eq!(case.read("work/x"), b"evil");
    assert!(!case.path("work/x").is_symlink());
}

#[test]
fn directories_go_below_the_current_directory_and_files_beside_their_archive() {
    let case = Case::new();
    case.write("live/proj/main.c", b"v1");
    case.write("live/one", b"one");
    fs::create_dir(case.path("there")).unwrap();
    let at = |directory: &str, line: &str| {
        let mut command = case.command(REFRAIN, line);
        command.current_dir(case.path(directory));
        let output = expect(command.output().unwrap(), 0, line);
        String::from_utf8(output.stderr).unwrap()
    };
    at("live", "compress -q proj");
    at("live", "compress -q one");
    at("live", "compress -q proj one -o both.rfn");
    case.write("live/proj/main.c", b"v2");
    case.write("live/one", b"newer");
    let told = at("there", "decompress -f ../live/proj.rfn");
    assert!(told.lines().next().unwrap().contains("in proj/"), "{told}");
    assert_eq!(case.read("there/proj/main.c"), b"v1");
    let told = at("there", "decompress -f ../live/both.rfn -o deep/er/");
    assert!(told.contains("in deep/er/"), "{told}");
    assert_eq!(case.read("there/deep/er/proj/main.c"), b"v1");
    let told = at("there", "decompress -f ../live/both.rfn");
    assert!(told.contains("in ./"), "{told}");
    assert_eq!(case.read("there/one"), b"one");
    at("there", "decompress -q ../live/proj.rfn main.c -o part/");
    assert_eq!(case.read("there/part/proj/main.c"), b"v1");
    at("there", "decompress -q ../live/proj.rfn -o root");
    assert_eq!(case.read("there/root/main.c"), b"v1");
    // Nothing beside the archive was touched, except for a single file.
    assert_eq!(case.read("live/proj/main.c"), b"v2");
    assert_eq!(case.read("live/one"), b"newer");
    let told = at("there", "decompress -f ../live/one.rfn");
    assert!(told.contains("as ../live/one"), "{told}");
    assert_eq!(case.read("live/one"), b"one");
}

#[test]
fn an_archive_is_as_closed_as_its_most_closed_source() {
    let case = Case::new();
    let write = |name: &str, mode| {
        let path = case.write(name, b"x");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (name, mode) in [
        ("open", 0o666),
        ("group", 0o640),
        ("closed", 0o600),
        ("d/x", 0o644),
    ] {
        write(name, mode);
    }
    write("d/y", 0o600);
    let mode = |name: &str| fs::metadata(case.path(name)).unwrap().permissions().mode() & 0o777;
    // As the umask of this process leaves it.
    let usual = mode(&case.write("usual", b"").to_string_lossy());
    let archive = |sources: &str| {
        let line = format!("compress -q -f {sources} -o x.rfn");
        case.ok(&line);
        let found = mode("x.rfn");
        fs::remove_file(case.path("x.rfn")).unwrap();
        found
    };
    assert_eq!(archive("open group"), usual & 0o640);
    assert_eq!(archive("open closed"), 0o600);
    for (directory, expected) in [
        (0o755, usual & 0o644),
        (0o750, usual & 0o640),
        (0o711, 0o600),
        (0o700, 0o600),
    ] {
        fs::set_permissions(case.path("d"), fs::Permissions::from_mode(directory)).unwrap();
        assert_eq!(archive("d"), expected & 0o666, "{directory:o}");
        assert_eq!(archive("d closed"), 0o600);
    }
}

/// Damage near the end of an archive is found when most files were written.
#[test]
fn damage_with_force_leaves_every_file_that_existed() {
    let case = Case::new();
    for number in 0..40_u64 {
        case.write(&format!("new/{number}"), &incompressible(number, 20_000));
        if number % 2 == 0 {
            case.write(&format!("old/{number}"), b"old");
        }
    }
    case.write("old/other", b"other");
    case.ok("compress -q --block-size 64K new");
    let mut archive = case.read("new.rfn");
    let at = archive.len() * 9 / 10;
    archive[at] ^= 0x55;
    case.write("new.rfn", &archive);
    let line = "decompress -q -f new.rfn -o old";
    assert_ne!(case.run(line).status.code(), Some(0));
    for number in (0..40_u64).step_by(2) {
        let found = case.read(&format!("old/{number}"));
        assert!(
            found == b"old" || found == incompressible(number, 20_000),
            "{number}"
        );
    }
    assert_eq!(case.read("old/other"), b"other");
    let hidden = fs::read_dir(case.path("old")).unwrap();
    let hidden = hidden.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(hidden.filter(|name| name.starts_with('.')).count(), 0);
}

#[cfg(all(feature = "lrzip", target_os = "linux"))]
#[test]
fn a_password_leaves_the_arguments() {
    use std::io::Read;
    use std::process::Stdio;
    let case = Case::new();
    // Standard input never ends, so the process is waiting for it when it is examined.
    let mut command = case.command(case.program_link("lrzip"), "-q --encrypt=secret -o out.lrz");
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let path = format!("/proc/{}/cmdline", child.id());
    let mut found = Vec::new();
    for _ in 0..2000 {
        found = fs::read(&path).unwrap_or_default();
        if found.windows(6).any(|bytes| bytes == b"xxxxxx") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(child.stdin.take());
    child.wait().unwrap();
    let mut told = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    let text = String::from_utf8_lossy(&found).into_owned();
    assert!(
        text.contains("--encrypt=xxxxxx") && !text.contains("secret"),
        "{text:?} {told}"
    );
    assert!(Path::new(&case.path("out.lrz")).exists(), "{told}");
}
