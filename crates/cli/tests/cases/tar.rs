//! Compressed tar streams: returned byte for byte, and read inside.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;

use crate::support::{Case, REFRAIN, expect, incompressible, json_lines, snapshot};

/// A directory with what the formats of tar store differently.
fn create_tree(case: &Case) {
    case.write("dir/a", b"aaa");
    case.write("dir/sub/b", &incompressible(6, 70_000));
    case.write(&format!("dir/{}/c", "long-name-".repeat(9)), b"ccc");
    fs::hard_link(case.path("dir/a"), case.path("dir/hard")).unwrap();
    symlink("a", case.path("dir/soft")).unwrap();
    let mut sparse = File::create(case.path("dir/sparse")).unwrap();
    sparse.set_len(8 << 20).unwrap();
    sparse.seek(SeekFrom::Start(3 << 20)).unwrap();
    sparse.write_all(b"data in a hole").unwrap();
}

fn tar(case: &Case, line: &str) {
    expect(case.command("tar", line).output().unwrap(), 0, line);
}

#[test]
fn tars_of_every_format_are_given_back_and_read_inside() {
    let case = Case::new();
    create_tree(&case);
    for format in ["gnu", "pax", "ustar", "gnu -S", "pax -S"] {
        tar(
            &case,
            &format!("--format={format} --sort=name -cf x.tar dir"),
        );
        let bytes = case.read("x.tar");
        case.ok("compress -qf x.tar");
        assert!(
            case.ok("decompress -q x.tar.rfn -o -").stdout == bytes,
            "{format}"
        );
        assert!(case.ok("cat x.tar.rfn").stdout == bytes, "{format}");
        assert!(case.ok("cat x.tar.rfn x.tar --range 500..1500").stdout == bytes[500..1500]);
        case.ok("decompress -q x.tar.rfn -o copy.tar -f");
        assert!(case.read("copy.tar") == bytes, "{format}");
        let lines = json_lines(&case.ok("list --json x.tar.rfn").stdout);
        let kind_of = |path: &str| {
            let mut found = lines.iter().filter(|line| line["path"] == path);
            found
                .next()
                .unwrap_or_else(|| panic!("{format}: no {path} in {lines:?}"))["kind"]
                .clone()
        };
        assert_eq!(kind_of("dir/a"), "file", "{format}");
        assert_eq!(kind_of("dir/hard"), "hardlink", "{format}");
        assert_eq!(kind_of("dir/soft"), "symlink", "{format}");
        for (path, name) in [
            ("dir/a", "dir/a"),
            ("./dir/hard", "dir/a"),
            ("dir/sub/b", "dir/sub/b"),
            ("dir/sparse", "dir/sparse"),
        ] {
            let output = case.ok(&format!("cat x.tar.rfn {path}"));
            assert!(output.stdout == case.read(name), "{format}: {path}");
        }
        assert!(case.fails("cat x.tar.rfn dir/none", 1).contains("holds no"));
        // From a pipe, as tar uses it.
        let packed = expect(case.pipe(REFRAIN, "compress -q - -o -", &bytes), 0, format).stdout;
        assert!(expect(case.pipe(REFRAIN, "decompress -q -", &packed), 0, format).stdout == bytes);
    }
}

#[test]
fn a_part_of_a_tar_is_restored_as_tar_would() {
    let case = Case::new();
    create_tree(&case);
    tar(&case, "-C dir --format=pax --sort=name -cf x.tar .");
    case.ok("compress -q x.tar");
    case.ok("decompress -q x.tar.rfn sub hard -o out");
    assert_eq!(
        case.read("out/hard"),
        b"aaa",
        "the file of a hard link that was not selected"
    );
    assert!(case.read("out/sub/b") == case.read("dir/sub/b") && !case.exists("out/a"));
    let states = |root: &str, name: &str| {
        let mut states = snapshot(&case.path(root));
        states.retain(|state| state.path == name);
        states
    };
    assert_eq!(states("out", "sub"), states("dir", "sub"));
    assert_eq!(states("out", "sub/b"), states("dir", "sub/b"));
    // Into the current directory, as tar -x.
    fs::create_dir(case.path("here")).unwrap();
    fs::rename(case.path("x.tar.rfn"), case.path("here/x.tar.rfn")).unwrap();
    case.ok("decompress -q here/x.tar.rfn ./sub/b");
    assert!(case.read("sub/b") == case.read("dir/sub/b"));
    assert!(!case.exists("here/sub"));
    // All of it, as files.
    case.ok("decompress -q here/x.tar.rfn . -o all");
    let whole = |name: &str| {
        let states = snapshot(&case.path(name)).into_iter();
        states
            .filter(|state| !state.path.is_empty())
            .collect::<Vec<_>>()
    };
    assert_eq!(whole("all"), whole("dir"));
    tar(&case, "--format=pax -cf rootless.tar dir/a");
    case.ok("compress -q rootless.tar");
    case.ok("decompress -q rootless.tar.rfn . -o rootless");
    assert_eq!(case.read("rootless/dir/a"), b"aaa");
    let archive = case.read("here/x.tar.rfn");
    let line = "decompress -q - a -o piped";
    expect(case.pipe(REFRAIN, line, &archive), 0, line);
    assert_eq!(case.read("piped/a"), b"aaa");
    assert!(!case.exists("piped/sub"));
}

#[test]
fn what_only_looks_like_a_tar_is_given_back() {
    let case = Case::new();
    create_tree(&case);
    tar(&case, "-cf x.tar dir");
    let bytes = case.read("x.tar");
    let mut broken = bytes.clone();
    broken[148] ^= 1; // the checksum of the first header
    let mut late = bytes.clone();
    let middle = bytes.len() / 2;
    late[middle] ^= 0xff;
    let trailing = [&bytes[..], b"trailing text"].concat();
    // The code of `list`, which reports what is not an entry.
    for (name, exit, content) in [
        ("cut", 2, &bytes[..bytes.len() / 3]),
        ("odd", 2, &bytes[..700]),
        ("broken", 0, &broken),
        ("late", 0, &late),
        ("trailing", 2, &trailing),
        ("twice", 0, &[&bytes[..], &bytes[..]].concat()),
    ] {
        case.write(name, content);
        case.ok(&format!("compress -q {name} -o x.rfn -f"));
        assert!(
            case.ok("decompress -q x.rfn -o -").stdout == content,
            "{name}"
        );
        case.ok("test -q x.rfn");
        expect(case.run("list x.rfn"), exit, name);
    }
}
