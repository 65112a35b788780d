//! `lrztar` and `lrzuntar`: operands, options, and what is restored.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::{Command, Output};

use crate::support::{Case, expect};

/// Returns a case with links of all programs in `bin` and a directory `t`.
fn case() -> Case {
    let case = Case::new();
    case.ok("generate lrzip-links bin");
    case.write("t/a", b"first");
    case.write("t/s/b", b"second");
    case
}

/// Runs a command line in the directory `directory` of the case.
fn run_in(case: &Case, directory: &str, line: &str, exit: i32) -> Output {
    let (program, words) = line.split_once(' ').unwrap_or((line, ""));
    let mut command = case.command(case.path("bin").join(program), words);
    command
        .current_dir(case.path(directory))
        .env("LRZIP", "NOCONFIG");
    expect(command.output().unwrap(), exit, line)
}

fn run(case: &Case, line: &str, exit: i32) -> String {
    let output = run_in(case, "", line, exit);
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The paths in an archive, as `tar` lists them.
fn paths_in(case: &Case, archive: &str) -> Vec<String> {
    let stream = run_in(case, "", &format!("lrzcat -Q {archive}"), 0).stdout;
    let listed = expect(case.pipe("tar", "-tf -", &stream), 0, "tar");
    let text = String::from_utf8(listed.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn operands_may_be_files_and_directories_of_any_path() {
    let case = case();
    run(&case, "lrztar -Q -n t/s", 0);
    assert_eq!(paths_in(&case, "s.tar.lrz"), ["t/s/", "t/s/b"]);
    run(&case, "lrztar -Q -n t/a", 0);
    assert_eq!(paths_in(&case, "a.tar.lrz"), ["t/a"]);
    run_in(&case, "t", "lrztar -Q -n a", 0);
    assert_eq!(paths_in(&case, "t/a.tar.lrz"), ["a"]);
    fs::remove_file(case.path("t/a.tar.lrz")).unwrap();
    run_in(&case, "t/s", "lrztar -Q -n -O ../.. .", 0);
    assert_eq!(paths_in(&case, "..tar.lrz"), ["./", "b"]);
    run_in(&case, "t/s", "lrztar -Q -n -O ../.. ..", 0);
    assert_eq!(paths_in(&case, "...tar.lrz"), ["./", "a", "s/", "s/b"]);
    let absolute = case.path("t/s");
    run(&case, &format!("lrztar -Q -n -f {}", absolute.display()), 0);
    let shortened = absolute.strip_prefix("/").unwrap().display().to_string();
    assert_eq!(paths_in(&case, "s.tar.lrz")[0], format!("{shortened}/"));
    let text = run(&case, "lrztar -Q nothing", 1);
    assert!(text.contains("nothing: No such file"), "{text}");
    assert!(!case.exists("nothing.tar.lrz"));
    fs::create_dir(case.path("out")).unwrap();
    run(&case, "lrzuntar -Q -O out ..tar.lrz", 0);
    run(&case, "lrzuntar -Q -O out a.tar.lrz", 0);
    assert_eq!(case.read("out/b"), b"second");
    assert_eq!(case.read("out/t/a"), b"first");
}

#[test]
fn the_suffix_follows_a_dot() {
    let case = case();
    run(&case, "lrztar -Q -n -S foo t", 0);
    assert!(case.exists("t.tar.foo"));
    run(&case, "lrztar -Q -n -S .bar t", 0);
    assert!(case.exists("t.tar.bar"), "{:?}", case.names());
}

#[test]
fn a_password_and_tests_and_information_work_as_in_lrzip() {
    let case = case();
    run(&case, "lrztar -Q -n -e secret t", 0);
    let text = run(&case, "lrztar -i t.tar.lrz", 0);
    assert!(text.contains("Encrypted lrzip archive"), "{text}");
    assert!(run(&case, "lrztar -t -e secret t.tar.lrz", 0).contains("[OK]"));
    assert!(run(&case, "lrzuntar -t --encrypt=wrong t.tar.lrz", 1).contains("wrong"));
    fs::create_dir(case.path("out")).unwrap();
    run(&case, "lrzuntar -Q -O out -e secret t.tar.lrz", 0);
    assert_eq!(case.read("out/t/s/b"), b"second");
    assert!(!case.exists("secret.tar.lrz"));
}

#[test]
fn an_existing_entry_is_named_and_kept() {
    let case = case();
    run(&case, "lrztar -Q -n t", 0);
    case.write("t/a", b"newer");
    fs::remove_file(case.path("t/s/b")).unwrap();
    let text = run(&case, "lrzuntar -Q t.tar.lrz", 1);
    assert!(text.contains("t/a"), "{text}");
    assert_eq!(case.read("t/a"), b"newer");
    assert_eq!(case.read("t/s/b"), b"second", "the others are restored");
    run(&case, "lrzuntar -Q -f t.tar.lrz", 0);
    assert_eq!(case.read("t/a"), b"first");
}

/// As `tar` does for root, which lrzuntar runs. An ordinary user gets files of his own without
/// these bits.
#[test]
fn root_restores_owners_and_special_mode_bits() {
    let case = case();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        chown(case.path("t/a"), Some(1234), Some(2345)).unwrap();
        chown(case.path("t/s"), Some(3), Some(4)).unwrap();
    }
    let set_mode = |name: &str, mode| {
        fs::set_permissions(case.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode("t/a", 0o6755);
    set_mode("t/s", 0o3770);
    fs::create_dir(case.path("out")).unwrap();
    // Both implementations of the archiver.
    let mut archives = vec!["lrztar -Q -n t"];
    if Command::new("lrztar").arg("-h").output().is_ok() {
        archives.push("tar");
    }
    for archiver in archives {
        match archiver {
            "tar" => {
                let mut command = case.command("lrztar", "-q -f t");
                expect(
                    command.env("LRZIP", "NOCONFIG").output().unwrap(),
                    0,
                    "lrztar",
                );
            }
            line => drop(run(&case, line, 0)),
        }
        run(&case, "lrzuntar -Q -f -O out t.tar.lrz", 0);
        for name in ["t/a", "t/s", "t/s/b"] {
            let state = |path| {
                let found = fs::metadata(case.path(path)).unwrap();
                (found.uid(), found.gid(), found.mode())
            };
            let restored = format!("out/{name}");
            if is_root {
                assert_eq!(state(&restored), state(name), "{name} of {archiver}");
            }
        }
        fs::remove_dir_all(case.path("out/t")).unwrap();
    }
}
