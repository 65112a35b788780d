//! Files of other formats, created by their own programs: read by every verb.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use crate::support::{Case, REFRAIN, expect, incompressible, json, json_lines};

/// A program, its suffix, and the suffix of its tar streams. `.ci/run` installs all of them.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("gzip -k", "gz", "tgz"),
    ("xz -k -T2 --block-size=65536", "xz", "txz"),
    ("zstd -q", "zst", "tzst"),
    ("bzip2 -k", "bz2", "tbz2"),
    ("lz4 -q", "lz4", "tlz4"),
];

fn pack(case: &Case, program: &str, name: &str, suffix: &str) -> String {
    let packed = format!("{name}.{suffix}");
    // lz4 writes to standard output if that is not a terminal, unless the output is named.
    let line = match program {
        "lz4 -q" => format!("-q -f {name} {packed}"),
        _ => {
            let (_, options) = program.split_once(' ').unwrap();
            format!("{options} -f {name}")
        }
    };
    let (binary, _) = program.split_once(' ').unwrap();
    expect(case.command(binary, &line).output().unwrap(), 0, program);
    packed
}

fn create_tree(case: &Case) {
    case.write("dir/a", &incompressible(1, 70_000));
    case.write("dir/sub/b", b"bbb");
    fs::hard_link(case.path("dir/a"), case.path("dir/hard")).unwrap();
    symlink("a", case.path("dir/soft")).unwrap();
}

fn tar(case: &Case, line: &str) {
    expect(case.command("tar", line).output().unwrap(), 0, line);
}

#[test]
fn files_are_decompressed_beside_themselves_and_checked() {
    for (program, suffix, _) in PROGRAMS {
        let case = Case::new();
        let content = [incompressible(2, 200_000), vec![b'x'; 300_000]].concat();
        case.write("x", &content);
        let packed = pack(&case, program, "x", suffix);
        fs::remove_file(case.path("x")).unwrap();

        case.ok(&format!("test {packed}"));
        case.ok(&format!("decompress -q {packed}"));
        assert!(case.read("x") == content, "{program}");
        assert!(case.exists(&packed), "the source is kept");
        let times = |name: &str| fs::metadata(case.path(name)).unwrap().mtime();
        assert_eq!(times("x"), times(&packed));
        let told = case.fails(&format!("decompress {packed}"), 6);
        assert!(told.contains("already exists"), "{told}");
        case.ok(&format!("decompress -q --rm -o y {packed}"));
        assert!(!case.exists(&packed) && case.read("y") == content);
    }
}

#[test]
fn joined_files_from_a_pipe_are_one() {
    for (program, suffix, _) in PROGRAMS {
        let case = Case::new();
        case.write("x", &incompressible(3, 100_000));
        let packed = case.read(&pack(&case, program, "x", suffix));
        let twice = [&packed[..], &packed].concat();
        let content = [case.read("x"), case.read("x")].concat();
        let output = expect(case.pipe(REFRAIN, "decompress -q -", &twice), 0, program);
        assert!(output.stdout == content, "{program}");
        let rfn = case.program_link("rfn");
        let output = expect(case.pipe(&rfn, "-dc", &twice), 0, program);
        assert!(output.stdout == content, "{program}");
        expect(case.pipe(REFRAIN, "test -", &twice), 0, program);
    }
}

#[test]
fn damaged_and_cut_files_leave_nothing() {
    for (program, suffix, _) in PROGRAMS {
        let case = Case::new();
        case.write("x", &incompressible(4, 300_000));
        let packed = pack(&case, program, "x", suffix);
        let whole = case.read(&packed);
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 0x10;
        for bytes in [
            &whole[..whole.len() - 5],
            &whole[..whole.len() / 3],
            &changed,
        ] {
            fs::write(case.path(&packed), bytes).unwrap();
            let told = case.fails(&format!("decompress -q {packed} -o y"), 2);
            assert!(told.contains("at archive offset"), "{program}: {told}");
            assert!(!case.exists("y"), "{program}");
            case.fails(&format!("test {packed}"), 2);
            case.fails(&format!("compress -q --unpack {packed} -o z.rfn"), 2);
            assert!(!case.exists("z.rfn"), "{program}");
        }
        assert_eq!(case.names().len(), 2, "{:?}", case.names());
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let case = Case::new();
    let content = [
        incompressible(7, 900_000),
        vec![0; 700_000],
        incompressible(8, 900_000),
    ];
    case.write("x", &content.concat());
    let line = "-1 -k x";
    expect(case.command("bzip2", line).output().unwrap(), 0, line);
    let line = "-k -T2 --block-size=200000 x";
    expect(case.command("xz", line).output().unwrap(), 0, line);
    for packed in ["x.bz2", "x.xz"] {
        let whole = case.read(packed);
        // Whole, changed far from the beginning, and truncated.
        let mut changed = whole.clone();
        changed[whole.len() * 3 / 4] ^= 0x10;
        let cut = whole[..whole.len() * 3 / 4].to_vec();
        for (bytes, exit, is_prefix) in [(whole, 0, true), (changed, 2, false), (cut, 2, true)] {
            fs::write(case.path(packed), &bytes).unwrap();
            let run = |threads: u32| {
                let line = format!("decompress -q {packed} -o - --threads {threads}");
                expect(case.run(&line), exit, &line)
            };
            let (one, four) = (run(1), run(4));
            // A block is written before its checksum is compared.
            let is_start = content.concat().starts_with(&four.stdout);
            let bytes = four.stdout.len();
            assert!(
                is_start || !is_prefix,
                "{packed}, exit {exit}: {bytes} bytes"
            );
            assert!(one.stdout.len().abs_diff(four.stdout.len()) <= 1 << 20);
            // The last bytes before an error may still have been in a buffer.
            assert!(one.stdout == four.stdout || exit != 0, "{packed}");
            assert!(one.stderr == four.stderr || packed == "x.xz", "{packed}");
        }
    }
    // Runs of zeros are holes of the output.
    fs::remove_file(case.path("x.bz2")).unwrap();
    let line = "-1 -k x";
    expect(case.command("bzip2", line).output().unwrap(), 0, line);
    case.ok("decompress -q x.bz2 -o y");
    assert!(case.read("y") == content.concat());
    let blocks = |name: &str| fs::metadata(case.path(name)).unwrap().blocks();
    assert!(blocks("y") < blocks("x"), "{} {}", blocks("y"), blocks("x"));
}

/// Incompressible data is stored, so a changed byte is found only by the checksum, which comes
/// later.
#[test]
fn a_range_is_compared_with_the_checksum_that_covers_it() {
    for (program, suffix, _) in PROGRAMS {
        let case = Case::new();
        let content = incompressible(8, 300_000);
        case.write("x", &content);
        let packed = pack(&case, program, "x", suffix);
        let line = format!("cat {packed} --range 10..100000");
        assert!(case.ok(&line).stdout == content[10..100_000], "{program}");
        let mut bytes = case.read(&packed);
        let at = bytes.len() / 6;
        bytes[at] ^= 1;
        case.write(&packed, &bytes);
        let message = case.fails(&line, 2);
        assert!(!message.is_empty(), "{program}");
    }
}

#[test]
fn ranges_and_names_of_the_content() {
    for (program, suffix, _) in PROGRAMS {
        let case = Case::new();
        let content = incompressible(5, 700_000);
        case.write("x", &content);
        let packed = pack(&case, program, "x", suffix);
        assert!(case.ok(&format!("cat {packed}")).stdout == content);
        assert!(case.ok(&format!("cat {packed} x")).stdout == content);
        for (range, expected) in [
            ("500..1500", &content[500..1500]),
            ("600000..", &content[600_000..]),
            ("..10", &content[..10]),
            ("700000..", &[]),
        ] {
            let output = case.ok(&format!("cat {packed} --range {range}"));
            assert!(output.stdout == expected, "{program}, {range}");
        }
        let told = case.fails(&format!("cat {packed} --range 5..800000"), 1);
        assert!(told.contains("the content has 700000 bytes"), "{told}");
        let told = case.fails(&format!("cat {packed} X"), 1);
        assert!(told.contains("did you mean \"x\"?"), "{told}");
        assert_eq!(case.ok(&format!("list {packed}")).stdout, b"x\n");
        let lines = json_lines(&case.ok(&format!("list --json {packed}")).stdout);
        assert_eq!(lines[0]["size_bytes"], 700_000, "{lines:?}");
    }
}

#[test]
fn compressed_tars_are_read_inside() {
    for (program, suffix, short) in PROGRAMS {
        let case = Case::new();
        create_tree(&case);
        tar(&case, "--sort=name -cf x.tar dir");
        let packed = pack(&case, program, "x.tar", suffix);
        let stream = case.read("x.tar");
        fs::remove_file(case.path("x.tar")).unwrap();

        let listed = case.ok(&format!("list {packed}")).stdout;
        assert_eq!(
            listed,
            b"dir\ndir/a\ndir/hard\ndir/soft\ndir/sub\ndir/sub/b\n"
        );
        assert_eq!(case.ok(&format!("cat {packed} dir/sub/b")).stdout, b"bbb");
        let hard = case
            .ok(&format!("cat {packed} ./dir/hard --range 100..200"))
            .stdout;
        assert!(hard == case.read("dir/a")[100..200], "{program}");
        assert!(case.ok(&format!("cat {packed}")).stdout == stream);
        case.fails(&format!("cat {packed} dir/soft"), 1);
        let told = case.fails(&format!("cat {packed} dir"), 3);
        assert!(told.contains("files do not have"), "{told}");

        let matched = case.ok(&format!("cat {packed} dir/s*/*")).stdout;
        assert_eq!(matched, b"bbb", "{program}");
        let told = case.fails(&format!("cat {packed} dir/sub/B"), 1);
        assert!(told.contains("did you mean \"dir/sub/b\""), "{told}");

        // A part is restored beside, the whole is the tar.
        fs::create_dir(case.path("out")).unwrap();
        case.ok(&format!("decompress -q {packed} dir/sub dir/hard -o out"));
        assert_eq!(case.read("out/dir/sub/b"), b"bbb");
        assert!(case.read("out/dir/hard") == case.read("dir/a"), "{program}");
        assert!(!case.exists("out/dir/soft"));
        case.fails(&format!("decompress -q {packed} nothing -o out"), 1);
        let told = case.fails(&format!("decompress -q {packed} dir/a nothing -o part"), 1);
        assert!(told.contains("holds no \"nothing\""), "{told}");
        assert!(case.read("part/dir/a") == case.read("dir/a"), "{program}");
        fs::rename(case.path(&packed), case.path(&format!("x.{short}"))).unwrap();
        case.ok(&format!("decompress -q x.{short}"));
        assert!(case.read("x.tar") == stream, "{program}");
    }
}

#[test]
fn the_content_is_compressed_with_unpack() {
    for (program, suffix, short) in PROGRAMS {
        let case = Case::new();
        create_tree(&case);
        tar(&case, "--sort=name -cf x.tar dir");
        let packed = pack(&case, program, "x.tar", suffix);
        case.ok("compress -q x.tar -o plain.rfn");
        let stream = case.read("x.tar");
        fs::remove_file(case.path("x.tar")).unwrap();

        case.ok(&format!("compress -q --unpack {packed}"));
        assert!(case.exists("x.tar.rfn"), "{:?}", case.names());
        let listed = case.ok("list --json x.tar.rfn").stdout;
        let plain = case.ok("list --json plain.rfn").stdout;
        let of = |lines: &[u8]| {
            let lines = json_lines(lines).into_iter();
            lines
                .map(|line| (line["member"].clone(), line["path"].clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&listed), of(&plain), "{program}");
        case.ok("decompress -q x.tar.rfn");
        assert!(case.read("x.tar") == stream, "{program}");

        // From a pipe, and several at once; uncompressed input is taken as it is.
        let bytes = case.read(&packed);
        let output = expect(
            case.pipe(REFRAIN, "compress -q --unpack -o -", &bytes),
            0,
            program,
        );
        case.write("p.rfn", &output.stdout);
        assert!(case.ok("cat p.rfn").stdout == stream, "{program}");
        fs::rename(case.path(&packed), case.path(&format!("y.{short}"))).unwrap();
        case.ok(&format!("compress -q --unpack y.{short} dir/a -o both.rfn"));
        assert!(case.ok("cat both.rfn y.tar").stdout == stream, "{program}");
        assert!(case.ok("cat both.rfn dir/a").stdout == case.read("dir/a"));
    }
}

#[test]
fn limits_hold() {
    let case = Case::new();
    case.write("x", &vec![0; 3 << 20]);
    for (program, suffix, _) in PROGRAMS {
        let packed = pack(&case, program, "x", suffix);
        for verb in ["test", "cat", "decompress -q -o y"] {
            let (verb, rest) = verb.split_once(' ').unwrap_or((verb, ""));
            let told = case.fails(&format!("{verb} {rest} {packed} --content-max 2M"), 5);
            assert!(told.contains("--content-max"), "{program} {verb}: {told}");
            assert!(!case.exists("y"));
        }
        case.ok(&format!("test {packed} --content-max 3145728"));
    }
    let wide = expect(
        case.pipe("zstd", "-q -c --long=27", &case.read("x")),
        0,
        "zstd",
    );
    case.write("wide.zst", &wide.stdout);
    case.ok("test wide.zst");
    let told = case.fails("test wide.zst --memory 64M", 5);
    assert!(
        told.contains("window of 128 MiB") && told.contains("--memory"),
        "{told}"
    );
}

#[test]
fn what_follows_gzip_data_is_remarked() {
    let case = Case::new();
    case.write("x", b"content");
    let packed = pack(&case, "gzip -k", "x", "gz");
    case.write("g.gz", &[&case.read(&packed)[..], b"garbage"].concat());
    let told = case.fails("decompress g.gz", 2);
    assert!(told.contains("was ignored"), "{told}");
    assert_eq!(case.read("g"), b"content");
    // Without a suffix there is no name for the output.
    fs::rename(case.path("g.gz"), case.path("nameless")).unwrap();
    let told = case.fails("decompress nameless", 1);
    assert!(told.contains("-o"), "{told}");
    case.fails("decompress -q nameless -o named", 2);
    assert_eq!(case.read("named"), b"content");
}

#[test]
fn info_says_what_is_stated_and_what_is_unknown() {
    let case = Case::new();
    case.write("x", &incompressible(6, 200_000));
    for (program, suffix, _) in PROGRAMS {
        let packed = pack(&case, program, "x", suffix);
        let text = case.ok(&format!("info {packed}")).stdout;
        let text = String::from_utf8(text).unwrap();
        let document = json(&case.ok(&format!("info --json {packed}")).stdout);
        let found = &document["results"][0];
        let name = program.split(' ').next().unwrap();
        assert_eq!(found["foreign"]["format"], name, "{document}");
        assert_eq!(
            found["archive_bytes"],
            case.read(&packed).len(),
            "{document}"
        );
        assert!(text.contains(&format!("format         {name}")), "{text}");
        match name {
            "xz" => {
                assert_eq!(found["content_bytes"], 200_000, "{document}");
                assert_eq!(found["foreign"]["blocks"], 4, "{document}");
                assert!(text.contains("CRC-64"), "{text}");
            }
            "zstd" => assert_eq!(found["content_bytes"], 200_000, "{document}"),
            "gzip" => {
                assert!(found["content_bytes"].is_null(), "{document}");
                assert_eq!(found["foreign"]["last_member_bytes"], 200_000);
                assert_eq!(found["foreign"]["name"], "x");
                assert!(text.contains("not stated"), "{text}");
            }
            _ => assert!(found["content_bytes"].is_null(), "{document}"),
        }
        let rfn = case.program_link(&format!("{name}/rfn"));
        let output = case.command(rfn, &format!("-l {packed}")).output().unwrap();
        let table = String::from_utf8(expect(output, 0, "rfn -l").stdout).unwrap();
        assert!(table.lines().nth(1).unwrap().ends_with(&packed), "{table}");
    }
}

fn python(case: &Case, program: &str) {
    let mut command = case.command("python3", "-c");
    expect(command.arg(program).output().unwrap(), 0, program);
}

#[test]
fn zip_files_are_read_like_directories() {
    let case = Case::new();
    create_tree(&case);
    case.write("dir/large", &b"compressible ".repeat(100_000));
    expect(
        case.command("zip", "-q -r -y x.zip dir").output().unwrap(),
        0,
        "zip",
    );
    let listed = String::from_utf8(case.ok("list x.zip").stdout).unwrap();
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    let expected = [
        "dir",
        "dir/a",
        "dir/hard",
        "dir/large",
        "dir/soft",
        "dir/sub",
        "dir/sub/b",
    ];
    assert_eq!(listed, expected);
    let long = String::from_utf8(case.ok("list -l x.zip dir/soft").stdout).unwrap();
    assert!(long.contains("dir/soft -> a"), "{long}");
    assert_eq!(case.ok("cat x.zip dir/sub/b").stdout, b"bbb");
    let range = case.ok("cat x.zip ./dir/large --range 13..39").stdout;
    assert_eq!(range, b"compressible compressible ");
    case.ok("test x.zip");
    // An entry may have the name of the file.
    let line = "-q -j sub.zip dir/sub/b";
    expect(case.command("zip", line).output().unwrap(), 0, line);
    fs::rename(case.path("sub.zip"), case.path("b.zip")).unwrap();
    assert_eq!(case.ok("cat b.zip b").stdout, b"bbb");

    case.ok("decompress -q x.zip");
    assert!(case.read("x/dir/a") == case.read("dir/a"));
    assert!(case.read("x/dir/large") == case.read("dir/large"));
    assert_eq!(
        fs::read_link(case.path("x/dir/soft")).unwrap().to_str(),
        Some("a")
    );
    let state = |name: &str| {
        let found = fs::metadata(case.path(name)).unwrap();
        (found.mode(), found.mtime())
    };
    assert_eq!(state("x/dir/a"), state("dir/a"));
    case.ok("decompress -q x.zip dir/sub -o part");
    assert_eq!(case.read("part/dir/sub/b"), b"bbb");
    assert!(!case.exists("part/dir/a"));

    let document = json(&case.ok("info --json x.zip").stdout);
    let found = &document["results"][0];
    assert_eq!(found["foreign"]["entries"], 7, "{document}");
    assert_eq!(
        found["content_bytes"],
        70_000 * 2 + 3 + 1_300_000,
        "{document}"
    );
    let text = String::from_utf8(case.ok("info x.zip").stdout).unwrap();
    assert!(text.contains("deflate 3 files, stored 1 file"), "{text}");

    // Only from a file, only to files.
    case.fails("cat x.zip", 1);
    case.fails("cat x.zip dir", 3);
    case.fails("map x.zip", 3);
    case.fails("decompress x.zip -o -", 1);
    let bytes = case.read("x.zip");
    expect(case.pipe(REFRAIN, "test -", &bytes), 1, "from a pipe");
    case.fails("compress --unpack x.zip", 1);
}

#[test]
fn damaged_and_hostile_zip_files_do_no_harm() {
    let case = Case::new();
    case.write("f", &b"some content ".repeat(1000));
    python(
        &case,
        r#"
import zipfile
with zipfile.ZipFile("evil.zip", "w") as z:
    z.writestr("../outside", "x")
    z.writestr("/absolute", "x")
    z.writestr("good", "good")
with zipfile.ZipFile("methods.zip", "w") as z:
    z.write("f", "stored", zipfile.ZIP_STORED)
    z.write("f", "deflated", zipfile.ZIP_DEFLATED)
    z.write("f", "bzip2", zipfile.ZIP_BZIP2)
with zipfile.ZipFile("lzma.zip", "w") as z:
    z.write("f", "f", zipfile.ZIP_LZMA)
with zipfile.ZipFile("zip64.zip", "w") as z:
    with z.open("f", "w", force_zip64=True) as f:
        f.write(b"some content " * 1000)
with zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for i in range(20):
        z.writestr(str(i), bytes(1 << 20))
"#,
    );
    let told = case.fails("decompress -q evil.zip -o evil", 2);
    assert!(told.contains("outside"), "{told}");
    assert_eq!(case.read("evil/good"), b"good");
    assert!(!case.exists("outside"));

    case.ok("decompress -q methods.zip -o methods");
    for method in ["stored", "deflated", "bzip2"] {
        assert!(
            case.read(&format!("methods/{method}")) == case.read("f"),
            "{method}"
        );
    }
    assert!(case.ok("cat zip64.zip f").stdout == case.read("f"));
    let told = case.fails("test lzma.zip", 3);
    assert!(told.contains("not supported"), "{told}");
    let told = case.fails("decompress -q bomb.zip --content-max 3M", 5);
    assert!(told.contains("--content-max"), "{told}");
    assert!(!case.exists("bomb"));
    case.fails("test bomb.zip --content-max 3M", 5);

    expect(
        case.command("zip", "-q -P secret e.zip f")
            .output()
            .unwrap(),
        0,
        "zip -P",
    );
    let told = case.fails("test e.zip", 3);
    assert!(told.contains("encrypted"), "{told}");
    assert_eq!(case.ok("list e.zip").stdout, b"f\n");

    let whole = case.read("methods.zip");
    for (name, bytes) in [
        ("cut", whole[..whole.len() - 30].to_vec()),
        ("changed", {
            let mut changed = whole.clone();
            changed[500] ^= 1;
            changed
        }),
    ] {
        case.write(&format!("{name}.zip"), &bytes);
        let told = case.fails(&format!("decompress -q {name}.zip"), 2);
        assert!(told.contains("archive offset"), "{told}");
        // One damaged entry costs that entry.
        assert_eq!(case.exists(name), name == "changed");
        assert!(!case.exists("changed/stored"));
        case.fails(&format!("test {name}.zip"), 2);
    }
}
