//! What errors say, and their exit codes.

use refrain::storage::MemorySink;
use refrain::{CompressOptions, Content, MemberInput, Unwatched};

use crate::support::{Case, REFRAIN, expect, incompressible, json, mixture};

#[test]
fn formats_that_are_not_read_are_named() {
    let case = Case::new();
    case.write("empty", b"");
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    for (first, name) in [
        (&b"7z\xbc\xaf\x27\x1c\0\x04"[..], "7z"),
        (b"Rar!\x1a\x07\x01\0", "rar"),
        (b"\x1f\x9d\x90some text", "compress (.Z)"),
        (&tar, "tar"),
    ] {
        case.write("other", first);
        let expected = format!("refrain: other: not a Refrain archive: this is {name}\n");
        for verb in ["test", "decompress", "info", "list", "cat"] {
            assert_eq!(case.fails(&format!("{verb} other"), 2), expected, "{verb}");
        }
        let output = expect(case.pipe(REFRAIN, "test", &case.read("other")), 2, name);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(&format!("this is {name}")), "{message}");
    }
    let message = case.fails("info empty", 2);
    assert_eq!(
        message,
        "refrain: empty: empty file, not a Refrain archive\n"
    );
}

#[test]
fn no_message_names_a_file_twice() {
    let case = Case::new();
    case.write("x", &mixture(100_000));
    case.ok("compress -q x");
    let archive = case.read("x.rfn");
    case.write("cut.rfn", &archive[..archive.len() / 2]);
    std::fs::create_dir(case.path("directory")).unwrap();
    for line in [
        "test cut.rfn",
        "info cut.rfn",
        "cat missing.rfn",
        "compress missing",
        "decompress x.rfn -o missing/deep/x",
        "map x.rfn -o directory",
        "info directory",
        "decompress -f x.rfn -o /dev/full",
    ] {
        let output = case.run(line);
        assert!(!output.status.success(), "{line}");
        let message = String::from_utf8(output.stderr).unwrap();
        for name in ["cut.rfn: ", "missing: ", "directory: ", "/dev/full: "] {
            assert!(message.matches(name).count() < 2, "{line}: {message}");
        }
        assert!(
            !message.contains("refrain: No such file"),
            "{line}: {message}"
        );
    }
}

/// An archive of members with names that the command line would never give them.
fn archive_of(names: &[&str]) -> Vec<u8> {
    let member = |name: &&str| MemberInput {
        name: (*name).into(),
        mode: None,
        modified: None,
        content: Content::Stream(Box::new(&b"content"[..])),
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    let members = names.iter().map(member).collect();
    refrain::compress(members, &mut sink, &CompressOptions::default(), &Unwatched).unwrap();
    output.published().unwrap()
}

#[test]
fn path_traversal_is_refused_with_the_code_for_damaged_archives() {
    let case = Case::new();
    std::fs::create_dir(case.path("inside")).unwrap();
    for name in ["../evil", "/evil", "a/../../evil"] {
        let archive = archive_of(&[name, "harmless"]);
        case.write("inside/bad.rfn", &archive);
        for line in [
            "decompress -f inside/bad.rfn -o inside/out/",
            "decompress -f inside/bad.rfn -o inside/out",
        ] {
            let message = case.fails(line, 2);
            assert!(message.contains("refused: member name"), "{message}");
        }
        let line = "decompress -f - -o inside/out/";
        let output = expect(case.pipe(REFRAIN, line, &archive), 2, line);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("refused: member name"), "{message}");
        assert_eq!(case.names(), ["inside"]);
        assert!(!std::path::Path::new("/evil").exists());
    }
}

#[test]
fn members_are_not_written_through_symbolic_links() {
    let case = Case::new();
    std::fs::create_dir_all(case.path("out")).unwrap();
    std::fs::create_dir(case.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", case.path("out/sub")).unwrap();
    case.write("x.rfn", &archive_of(&["sub/x", "y"]));
    let message = case.fails("decompress x.rfn -o out", 2);
    assert!(message.contains("symbolic link"), "{message}");
    assert!(!case.exists("elsewhere/x"));
}

#[test]
fn counts_agree_with_their_nouns() {
    let case = Case::new();
    case.write("x", b"short");
    case.ok("compress -q x");
    let text = String::from_utf8(case.ok("info -v x.rfn").stdout).unwrap();
    assert!(
        text.contains("1 block,") && !text.contains("1 blocks"),
        "{text}"
    );
}

#[test]
fn wrong_options_are_found_before_any_file_is_opened() {
    let case = Case::new();
    for line in [
        "compress missing --memory 1M",
        "compress missing --block-size 1",
        "compress missing --format lrz --reach 1G",
        "compress missing --window 1G",
    ] {
        let message = String::from_utf8(case.run(line).stderr).unwrap();
        assert!(!message.contains("missing"), "{line}: {message}");
    }
}

#[test]
fn a_budget_that_is_too_small_is_named_with_its_option() {
    let case = Case::new();
    case.write("x", &incompressible(1, 1000));
    let message = case.fails("compress --memory 1M x", 5);
    assert!(
        message.contains("MiB") && message.contains("--memory"),
        "{message}"
    );
}
#[test]
fn limits_for_forged_archives_name_their_options() {
    let case = Case::new();
    case.write("tree/a", &incompressible(3, 100_000));
    case.write("x", &incompressible(3, 100_000));
    case.ok("compress -q x");
    case.ok("compress -q tree");
    let message = |line: &str| {
        let message = case.fails(line, 5);
        assert!(
            message.contains("the content limit is 99999: raise the content limit")
                && message.contains("(option --content-max)"),
            "{line}: {message}"
        );
    };
    for archive in ["x.rfn", "tree.rfn"] {
        for verb in ["test", "decompress -o out", "decompress -o -", "cat"] {
            message(&format!("{verb} --content-max 99999 {archive}"));
        }
    }
    message("cat --content-max 99999 tree.rfn a");
    let archive = case.read("x.rfn");
    let line = "decompress --content-max 99999";
    let piped = expect(case.pipe(REFRAIN, line, &archive), 5, line);
    assert!(piped.stdout.is_empty(), "nothing is delivered");
    assert!(!case.exists("out"));
    case.ok("test --content-max 100000 x.rfn tree.rfn");
    // A part is no more than its length.
    case.ok("cat --content-max 10 x.rfn --range 50000..50010");
    case.ok("decompress --content-max 200000 --work-max 1 -o out tree.rfn");
}

#[test]
fn one_thing_has_one_size() {
    let case = Case::new();
    case.write("d/a", &mixture(100_000));
    case.write("d/b", b"short");
    let size = |line: &str| {
        let result = &json(&case.ok(line).stdout)["results"][0];
        result["content_bytes"].as_u64().unwrap()
    };
    let compressed = size("compress --json d");
    for line in [
        "test --json d.rfn",
        "info --json d.rfn",
        "decompress --json d.rfn -o out",
    ] {
        assert_eq!(size(line), compressed, "{line}");
    }
    let piped = expect(
        case.pipe(REFRAIN, "test --json -", &case.read("d.rfn")),
        0,
        "a pipe",
    );
    assert_eq!(
        json(&piped.stdout)["results"][0]["content_bytes"],
        compressed
    );
}

#[test]
fn a_test_names_the_files_that_are_affected() {
    let case = Case::new();
    for number in 0..20 {
        case.write(&format!("d/f{number:02}"), &incompressible(number, 100_000));
    }
    case.write("other", &incompressible(99, 100_000));
    case.ok("compress -q d -o one.rfn");
    case.ok("compress -q d other -o several.rfn");
    for (archive, prefix, files) in [("one", "", 20), ("several", "d/", 21)] {
        let name = format!("{archive}.rfn");
        let mut bytes = case.read(&name);
        // In the first file that is not at the edge of a page of 64 KiB.
        bytes[1_000_000] ^= 1;
        case.write(&name, &bytes);
        let tested = case.fails(&format!("test {name}"), 2);
        let restored = case.fails(&format!("decompress {name} -o out-{archive}"), 2);
        let named = |told: &str| {
            let lines = told.lines().filter(|line| line.contains(" are missing"));
            let names = lines.filter_map(|line| line.split(": ").nth(1));
            names.map(str::to_string).collect::<Vec<_>>()
        };
        let names = named(&tested);
        assert!(!names.is_empty() && names.len() < 3, "{tested}");
        assert!(names[0].starts_with(&format!("{prefix}f")), "{tested}");
        assert_eq!(named(&restored).len(), names.len(), "{restored}");
        let count = format!("{} of {files} files affected", names.len());
        let last = tested.lines().last().unwrap();
        assert!(
            last.contains("block 0 damaged (bytes ") && last.contains(&count),
            "{last}"
        );
        assert!(restored.contains(&count), "{restored}");
        let whole = format!("{} of {files} files restored", files - names.len());
        assert!(restored.contains(&whole), "{restored}");
        // Nothing was written.
        assert!(!case.exists("d.rfn") && !case.exists("out"));
    }
}

#[test]
fn what_is_left_out_is_counted_and_named() {
    let case = Case::new();
    case.write("a", b"a");
    let told = case.fails("compress a missing -o x.rfn", 4);
    assert!(told.contains("1 of 2 files stored"), "{told}");
    assert!(
        told.contains("missing: cannot be opened: No such file"),
        "{told}"
    );
    let told = case.fails("compress one two -o y.rfn", 6);
    for name in ["one", "two"] {
        assert!(
            told.contains(&format!("cannot open {name}: No such file")),
            "{told}"
        );
    }
    assert!(!case.exists("y.rfn"));
    let told = case.fails("test missing.rfn", 6);
    assert!(told.contains("missing.rfn: No such file"), "{told}");
}

/// A tar stream with a file of an unknown kind.
fn tar_with_an_unknown_kind(case: &Case, name: &str) {
    case.write("entry", b"content");
    let line = format!("-cf {name} entry");
    expect(case.command("tar", &line).output().unwrap(), 0, &line);
    let mut tar = case.read(name);
    tar[156] = b'Z';
    tar[148..156].fill(b' ');
    let sum: u32 = tar[..512].iter().map(|&byte| u32::from(byte)).sum();
    tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    case.write(name, &tar);
}

#[test]
fn entries_of_several_members_are_named_with_their_member() {
    let case = Case::new();
    tar_with_an_unknown_kind(&case, "a.tar");
    tar_with_an_unknown_kind(&case, "b.tar");
    case.ok("compress -q a.tar");
    case.ok("compress -q a.tar b.tar -o two.rfn");
    let told = |line: &str| String::from_utf8(case.ok(line).stderr).unwrap();
    let one = told("decompress a.tar.rfn entry -o one");
    assert!(one.contains("refrain: entry: of an unknown kind"), "{one}");
    let two = told("decompress two.rfn a.tar b.tar/entry -o two/");
    for name in ["a.tar", "b.tar"] {
        let line = format!("refrain: {name}/entry: of an unknown kind");
        assert!(two.contains(&line), "{two}");
    }
}
