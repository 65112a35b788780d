//! What a newcomer tries first: patterns, names of pipes, directories as outputs, and archives
//! inside the directory that they store.

use std::fs;
use std::process::Command;

use crate::support::{Case, REFRAIN, expect};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lines(case: &Case, line: &str) -> Vec<String> {
    let output = case.ok(line);
    let listed = text(&output.stdout);
    listed.lines().map(str::to_string).collect()
}

/// A tree with files of two kinds at two depths.
fn project(case: &Case) {
    case.write("p/README.md", b"readme\n");
    case.write("p/docs/a.md", b"a\n");
    case.write("p/docs/b.md", b"b\n");
    case.write("p/docs/[x].md", b"brackets\n");
    case.write("p/docs/x.md", b"x\n");
    case.write("p/src/main.rs", b"fn main() {}\n");
    fs::hard_link(case.path("p/README.md"), case.path("p/src/link.md")).unwrap();
    case.ok("compress -q p");
}

#[test]
fn cat_takes_patterns_and_several_paths() {
    let case = Case::new();
    project(&case);
    let cat = |line: &str| text(&case.ok(line).stdout);
    assert_eq!(cat("cat p.rfn docs/?.md"), "a\nb\nx\n");
    assert_eq!(cat("cat p.rfn src/main.rs docs/a.md"), "fn main() {}\na\n");
    assert_eq!(cat("cat p.rfn *.rs README.md"), "fn main() {}\nreadme\n");
    // A file with this name wins, whatever else the pattern would match.
    assert_eq!(cat("cat p.rfn docs/[x].md"), "brackets\n");
    assert_eq!(cat("cat p.rfn src/*.md"), "readme\n", "a hard link");
    for (line, part) in [
        ("cat p.rfn *.c", "holds no \"*.c\""),
        ("cat p.rfn docs/?.md nothing", "holds no \"nothing\""),
        (
            "cat p.rfn docs/?.md --range 0..1",
            "--range applies to one file",
        ),
        (
            "cat p.rfn README.md src/main.rs --range 0..1",
            "--range applies to one file",
        ),
        ("cat p.rfn docs --range 0..1", "is a directory"),
    ] {
        let output = expect(case.run(line), 1, line);
        assert!(output.stdout.is_empty(), "{line}");
        let told = text(&output.stderr);
        assert!(told.contains(part), "{line}: {told}");
    }
    // Members that are files.
    case.ok("compress -q p/docs/a.md p/docs/b.md p/src -o m.rfn");
    assert_eq!(cat("cat m.rfn p/docs/*.md"), "a\nb\n");
    assert_eq!(cat("cat m.rfn p/src/*.rs"), "fn main() {}\n");
}

#[test]
fn compressed_tars_take_patterns_as_well() {
    let case = Case::new();
    project(&case);
    let mut tar = Command::new("tar");
    tar.arg("-czf")
        .arg(case.path("p.tar.gz"))
        .arg("-C")
        .arg(case.path(""));
    assert!(tar.arg("p").status().unwrap().success());
    let cat = |line: &str| text(&case.ok(line).stdout);
    assert_eq!(cat("cat p.tar.gz p/src/*.rs"), "fn main() {}\n");
    case.ok("decompress -q p.tar.gz *.rs -o out");
    assert!(case.exists("out/p/src/main.rs") && !case.exists("out/p/docs/a.md"));
    let told = case.fails("cat p.tar.gz *.c", 1);
    assert!(told.contains("holds no \"*.c\""), "{told}");
}

#[test]
fn parts_are_restored_by_patterns() {
    let case = Case::new();
    project(&case);
    case.ok("decompress -q p.rfn *.rs -o out");
    assert!(case.exists("out/src/main.rs") && !case.exists("out/docs"));
    case.ok("decompress -q p.rfn docs/[x].md -o exact");
    assert!(case.exists("exact/docs/[x].md") && !case.exists("exact/docs/x.md"));
    case.ok("decompress -q p.rfn docs/?.md README.md -o several");
    assert!(case.exists("several/docs/b.md") && case.exists("several/README.md"));
    assert!(!case.exists("several/src"));
    let told = case.fails("decompress p.rfn *.c -o none", 1);
    assert!(
        told.contains("holds no \"*.c\"") && !case.exists("none"),
        "{told}"
    );
}

#[test]
fn a_directory_goes_to_standard_output_as_a_tar_stream() {
    let case = Case::new();
    project(&case);
    let listed = |archive: &[u8]| {
        let output = expect(case.pipe("tar", "-t", archive), 0, "tar -t");
        let mut names: Vec<String> = text(&output.stdout).lines().map(str::to_string).collect();
        names.sort();
        names
    };
    let docs = [
        "docs/",
        "docs/[x].md",
        "docs/a.md",
        "docs/b.md",
        "docs/x.md",
    ];
    for line in [
        "cat p.rfn docs",
        "cat p.rfn docs/",
        "decompress -q p.rfn docs -o -",
    ] {
        assert_eq!(listed(&case.ok(line).stdout), docs, "{line}");
    }
    let part = case.ok("decompress -q p.rfn *.rs -o -").stdout;
    assert_eq!(listed(&part), ["src/main.rs"]);
    // A hard link whose file is not in the part has the content itself.
    let part = case.ok("cat p.rfn src").stdout;
    let output = case.pipe("tar", "-xO src/link.md", &part);
    assert_eq!(expect(output, 0, "tar -xO").stdout, b"readme\n");
    // A stream cannot yield a part of itself before it is read.
    let archive = case.read("p.rfn");
    let refused = case.pipe(REFRAIN, "decompress - -- docs", &archive);
    assert!(expect(refused, 1, "a part of a pipe").stdout.is_empty());
}

#[test]
fn archives_go_below_a_directory() {
    let case = Case::new();
    project(&case);
    case.write("file", b"content");
    case.ok("compress -q file -o new/");
    assert!(case.exists("new/file.rfn") && !case.exists("new/file"));
    case.ok("compress -q file p -o several/");
    assert!(case.exists("several/file.rfn") && case.exists("several/p.rfn"));
    fs::create_dir(case.path("existing")).unwrap();
    case.ok("compress -q p/docs/a.md -o existing");
    assert!(case.exists("existing/a.md.rfn"));
    let told = case.fails("compress file p/../file -o twice/", 1);
    assert!(told.contains("a second archive would be"), "{told}");
    assert!(!case.exists("twice"));
    let output = expect(
        case.pipe(REFRAIN, "compress -q - -o piped/", b"x"),
        0,
        "a pipe",
    );
    assert!(output.stdout.is_empty() && case.exists("piped/stdin.rfn"));
    // Several archives cannot become one file.
    let told = case.fails("decompress several/file.rfn existing/a.md.rfn -o one", 1);
    assert!(told.contains("-o one/") && !case.exists("one"), "{told}");
    case.ok("decompress -q several/file.rfn existing/a.md.rfn -o one/");
    assert!(case.exists("one/file") && case.exists("one/a.md"));
}

#[test]
fn members_have_the_names_that_are_given() {
    let case = Case::new();
    case.write("a", b"first");
    case.write("b", b"second");
    case.ok("compress -q a b --name one --name two/deep -o x.rfn");
    assert_eq!(lines(&case, "list x.rfn"), ["one", "two/deep"]);
    let output = case.pipe(REFRAIN, "compress -q - --name log -o -", b"text");
    case.write("stdin.rfn", &output.stdout);
    assert_eq!(lines(&case, "list stdin.rfn"), ["log"]);
    case.ok("compress -q a --name other");
    assert_eq!(lines(&case, "list a.rfn"), ["other"]);
    let told = case.fails("compress a ./a -o y.rfn", 1);
    assert!(told.contains("--name"), "{told}");
}

#[test]
fn pipes_of_the_shell_are_members_called_stdin() {
    let case = Case::new();
    let bash = |script: &str| {
        let mut command = Command::new("bash");
        command
            .args(["-c", script, REFRAIN])
            .current_dir(case.path(""));
        expect(command.output().unwrap(), 0, script)
    };
    bash("\"$0\" compress -q <(echo a) <(echo b) -o x.rfn");
    assert_eq!(lines(&case, "list x.rfn"), ["stdin", "stdin-2"]);
    assert_eq!(case.ok("cat x.rfn stdin-2").stdout, b"b\n");
    bash("\"$0\" compress -q <(echo a) <(echo b) --name dump-a --name dump-b -o y.rfn");
    assert_eq!(lines(&case, "list y.rfn"), ["dump-a", "dump-b"]);
    bash("\"$0\" compress -q <(echo a) -o z.rfn");
    assert_eq!(lines(&case, "list z.rfn"), ["stdin"]);
}

/// A directory with a file, an earlier archive, and a hard link to the archive in a subdirectory.
fn directory_with_an_archive(case: &Case, archive: &str) {
    case.write("d/file", b"content");
    case.write("d/sub/other", b"content too");
    case.write(&format!("d/{archive}"), b"an earlier version");
    let _ = fs::remove_file(case.path("d/sub/link"));
    fs::hard_link(case.path(&format!("d/{archive}")), case.path("d/sub/link")).unwrap();
}

#[test]
fn an_archive_does_not_hold_itself() {
    let case = Case::new();
    directory_with_an_archive(&case, "in.rfn");
    std::os::unix::fs::symlink("d", case.path("alias")).unwrap();
    for line in [
        "compress . -f -o in.rfn",
        "compress . -f -o ../alias/in.rfn",
        "compress ../d -f -o ./in.rfn",
    ] {
        let mut command = case.command(REFRAIN, line);
        let output = expect(
            command.current_dir(case.path("d")).output().unwrap(),
            0,
            line,
        );
        let told = text(&output.stderr);
        let names = lines(&case, "list d/in.rfn");
        // The first run replaces the file, and thus where the hard link leads.
        let is_first = line.ends_with(" in.rfn");
        let expected = if is_first {
            vec![".", "file", "sub", "sub/other"]
        } else {
            vec![".", "file", "sub", "sub/link", "sub/other"]
        };
        assert_eq!(names, expected, "{line}");
        let count = told.matches("it is the output of this run").count();
        assert_eq!(count, if is_first { 2 } else { 1 }, "{line}: {told}");
    }
    // By the shell, too.
    let mut command = Command::new("bash");
    command.args(["-c", "\"$0\" compress -q . -o - > out.rfn", REFRAIN]);
    expect(
        command.current_dir(case.path("d")).output().unwrap(),
        0,
        "redirected",
    );
    let names = lines(&case, "list d/out.rfn");
    assert!(!names.contains(&"out.rfn".to_string()), "{names:?}");
}

#[test]
#[cfg(feature = "lrzip")]
fn an_archive_of_lrzip_does_not_hold_itself() {
    let case = Case::new();
    directory_with_an_archive(&case, "in.lrz");
    let mut command = case.command(REFRAIN, "compress --format lrz . -f -o in.lrz");
    let output = expect(
        command.current_dir(case.path("d")).output().unwrap(),
        0,
        "lrz",
    );
    assert!(text(&output.stderr).contains("it is the output of this run"));
    let tar = case.ok("decompress -q d/in.lrz -o -").stdout;
    let names = text(&expect(case.pipe("tar", "-t", &tar), 0, "tar").stdout);
    assert!(
        !names.contains("in.lrz") && names.contains("sub/other"),
        "{names}"
    );
    // lrztar, whose archive of the directory lies in it.
    directory_with_an_archive(&case, "e.lrz");
    let lrztar = case.program_link("lrztar");
    let mut command = case.command(lrztar, "-f -q -o e.lrz .");
    expect(
        command.current_dir(case.path("d")).output().unwrap(),
        0,
        "lrztar",
    );
    let tar = case.ok("decompress -q d/e.lrz -o -").stdout;
    let names = text(&expect(case.pipe("tar", "-t", &tar), 0, "tar").stdout);
    assert!(
        !names.contains("e.lrz") && names.contains("sub/other"),
        "{names}"
    );
}

#[test]
fn a_trace_is_not_in_the_archive_that_it_is_about() {
    let case = Case::new();
    case.write("d/file", b"content");
    case.write("d/trace.json", b"an earlier one");
    let mut command = case.command(REFRAIN, "compress . --trace trace.json -o ../x.rfn");
    expect(
        command.current_dir(case.path("d")).output().unwrap(),
        0,
        "trace",
    );
    assert_eq!(lines(&case, "list x.rfn"), [".", "file"]);
}

/// What a run with `-v` names on standard error, sorted, without its summary.
fn named(case: &Case, line: &str) -> Vec<String> {
    let told = text(&case.ok(line).stderr);
    let mut names: Vec<String> = told.lines().map(str::to_string).collect();
    assert!(names.pop().unwrap().contains(" -> "), "{line}: {told}");
    names.sort();
    names
}

#[test]
fn files_are_named_when_they_are_done() {
    let case = Case::new();
    case.write("d/a", b"a\n");
    case.write("d/sub/b\u{1b}", b"b\n");
    std::os::unix::fs::symlink("a", case.path("d/link")).unwrap();
    fs::hard_link(case.path("d/a"), case.path("d/second")).unwrap();
    case.write("file", b"content");
    let names = ["d/a", "d/link", "d/second", "d/sub/b\\033", "file"];
    assert_eq!(named(&case, "compress -v d file -o x.rfn"), names);
    assert_eq!(named(&case, "test -v x.rfn"), names);
    let below = names.map(|name| format!("out/{name}"));
    assert_eq!(named(&case, "decompress -v x.rfn -o out/"), below);
    // An archive of one member names it as well.
    assert_eq!(named(&case, "compress -v file -o y.rfn"), ["file"]);
    assert_eq!(named(&case, "test -v y.rfn"), ["file"]);
    assert_eq!(named(&case, "decompress -v y.rfn -o copy"), ["copy"]);
    // The entries of a tar stream.
    let tar = expect(
        case.command("tar", "-cf d.tar d").output().unwrap(),
        0,
        "tar",
    );
    assert!(tar.stdout.is_empty());
    let entries = [
        "d.tar/d/a",
        "d.tar/d/link",
        "d.tar/d/second",
        "d.tar/d/sub/b\\033",
    ];
    assert_eq!(named(&case, "compress -v d.tar"), entries);
    assert_eq!(named(&case, "test -v d.tar.rfn"), entries);
    let quiet = case.ok("test -q x.rfn");
    assert!(quiet.stderr.is_empty());
    let json = case.ok("compress -v --json -f d -o z.rfn");
    assert!(json.stderr.is_empty(), "{json:?}");
}
