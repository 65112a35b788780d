//! `rfn`: the options of gzip, xz and zstd.

use std::fs;

use crate::support::{Case, expect, incompressible, mixture, snapshot};

#[test]
fn rfn_compresses_and_decompresses_in_place() {
    let case = Case::new();
    let data = mixture(200_000);
    case.write("x", &data);
    let rfn = case.program_link("rfn");
    let run = |line: &str, exit| expect(case.command(&rfn, line).output().unwrap(), exit, line);
    run("-k x", 0);
    assert!(case.exists("x"));
    run("x", 6);
    run("-9f --rm x", 0);
    assert!(!case.exists("x"));
    run("-t x.rfn", 0);
    let list = String::from_utf8(run("-l x.rfn", 0).stdout).unwrap();
    assert!(
        list.contains(&data.len().to_string()) && list.contains("x.rfn"),
        "{list}"
    );
    assert!(run("-dc x.rfn", 0).stdout == data);
    run("-d x.rfn", 0);
    assert!(case.read("x") == data);
    run("-d x.rfn", 6);
    run("-df --rm x.rfn", 0);
    assert!(!case.exists("x.rfn"));
    // The message is about the content, not about the suffix.
    run("-d x", 2);
    run("-T2 -1q x -o y.rfn", 0);
    run("--no-such-flag", 1);
    run("y.rfn", 1);
}

#[test]
fn rfn_is_a_filter_without_arguments() {
    let case = Case::new();
    let data = mixture(100_000);
    let rfn = case.program_link("rfn");
    let output = expect(case.pipe(&rfn, "", &data), 0, "rfn");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.is_empty(), "a filter prints nothing: {message}");
    let packed = output.stdout;
    let talks = expect(case.pipe(&rfn, "-v", &data), 0, "rfn -v").stderr;
    assert!(!talks.is_empty());
    for line in ["-d", "-dc", "-d -", "--decompress --stdout"] {
        assert!(expect(case.pipe(&rfn, line, &packed), 0, line).stdout == data);
    }
    assert!(
        expect(
            case.pipe(case.program_link("unrfn"), "", &packed),
            0,
            "unrfn"
        )
        .stdout
            == data
    );
    case.write("y.rfn", &packed);
    let cat = expect(
        case.command(case.program_link("rfncat"), "y.rfn")
            .output()
            .unwrap(),
        0,
        "rfncat",
    );
    assert!(cat.stdout == data);
}

#[test]
fn tar_uses_rfn() {
    let case = Case::new();
    case.write("dir/a", &mixture(100_000));
    case.write("dir/b/c", b"c");
    let bin = case.program_link("rfn").parent().unwrap().to_path_buf();
    let tar = |line: &str| {
        let path = format!(
            "{}:{}",
            bin.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let output = case
            .command("tar", line)
            .env("PATH", path)
            .output()
            .unwrap();
        expect(output, 0, line)
    };
    tar("-I rfn -cf x.tar.rfn dir");
    fs::create_dir(case.path("out")).unwrap();
    tar("-I rfn -C out -xf x.tar.rfn");
    // GNU tar stores whole seconds only.
    let whole_seconds = |name: &str| {
        let mut found = snapshot(&case.path(name));
        found.iter_mut().for_each(|entry| entry.nanoseconds = 0);
        found
    };
    assert_eq!(whole_seconds("dir"), whole_seconds("out/dir"));
    let names = String::from_utf8(tar("-I rfn -tf x.tar.rfn").stdout).unwrap();
    assert!(names.contains("dir/b/c"), "{names}");
}

#[test]
fn other_input_is_copied_to_standard_output_with_force() {
    let case = Case::new();
    let rfn = case.program_link("rfn");
    let plain = b"plain text, longer than any magic\n";
    case.write("plain", plain);
    case.write("packed", &incompressible(1, 5000));
    case.ok("compress -q packed");
    let both = expect(
        case.command(&rfn, "-dcf plain packed.rfn")
            .output()
            .unwrap(),
        0,
        "files",
    );
    assert!(both.stdout == [&plain[..], &incompressible(1, 5000)].concat());
    assert!(expect(case.pipe(&rfn, "-dcf", plain), 0, "a pipe").stdout == plain);
    let archive = case.read("packed.rfn");
    assert!(
        expect(case.pipe(&rfn, "-dcf", &archive), 0, "an archive").stdout
            == incompressible(1, 5000)
    );
    expect(case.pipe(&rfn, "-dc", plain), 2, "not forced");
}

#[test]
fn levels_of_two_digits_are_refused() {
    let case = Case::new();
    case.write("x", b"data");
    let rfn = case.program_link("rfn");
    for line in ["-10 x", "-19 x", "-k11 x", "x -9 -22"] {
        let output = expect(case.command(&rfn, line).output().unwrap(), 1, line);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("there is no level"), "{message}");
        assert!(!case.exists("x.rfn"), "{line}");
    }
}

#[test]
fn background_and_profile_work_as_with_refrain() {
    let case = Case::new();
    case.write("x", &mixture(1 << 20));
    let rfn = case.program_link("rfn");
    let line = "--background --profile x";
    let output = expect(case.command(&rfn, line).output().unwrap(), 0, line);
    let profile = String::from_utf8(output.stderr).unwrap();
    assert!(profile.contains("whole program "), "{profile}");
    case.ok("test -q x.rfn");
}
