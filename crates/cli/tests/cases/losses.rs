//! Every loss is reported: by the exit code, by a word even with `-q`, and by `"complete": false`;
//! and `--rm` keeps the source.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{Case, REFRAIN, expect, incompressible, json};

/// An input of which something cannot be delivered.
struct Lossy {
    /// The file.
    name: &'static str,
    make: fn(&Case) -> Vec<u8>,
    exit: i32,
    /// Paths inside, for tar streams that are restored as files.
    paths: &'static str,
    /// Whether `test` finds it too: a damaged tar comes back byte for byte.
    test_finds: bool,
    /// A file that must still be restored, and its content.
    whole: Option<(&'static str, &'static [u8])>,
}

impl Lossy {
    const fn new(name: &'static str, exit: i32, make: fn(&Case) -> Vec<u8>) -> Lossy {
        Lossy {
            name,
            make,
            exit,
            paths: "",
            test_finds: true,
            whole: None,
        }
    }
}

fn run(case: &Case, program: &str, line: &str) {
    let output = case.command(program, line).output();
    expect(
        output.unwrap_or_else(|error| panic!("{program}: {error}")),
        0,
        line,
    );
}

/// The output of a program that packs `x` to standard output.
fn packed(case: &Case, program: &str, line: &str) -> Vec<u8> {
    case.write("x", b"content of x");
    expect(case.command(program, line).output().unwrap(), 0, line).stdout
}

fn gzip(case: &Case) -> Vec<u8> {
    packed(case, "gzip", "-c x")
}

fn lrz(case: &Case) -> Vec<u8> {
    case.write("x", b"content of x");
    case.ok("compress -qf --format lrz x -o x.lrz");
    case.read("x.lrz")
}

/// A zip file of `aa/f` and `aa/g`, or of whatever the options select.
fn zip(case: &Case, options: &str) -> Vec<u8> {
    case.write("aa/f", b"content of f");
    case.write("aa/g", b"content of g");
    let _ = fs::remove_file(case.path("z.zip"));
    run(case, "zip", &format!("-q -0 {options} z.zip aa/f aa/g"));
    case.read("z.zip")
}

/// The headers of the first entry in the central directory.
fn directory_at(zip: &[u8]) -> usize {
    let found = zip.windows(4).position(|bytes| bytes == b"PK\x01\x02");
    found.expect("a central directory")
}

/// The mode of the first entry, whose file is a named pipe.
fn with_fifo_mode(mut zip: Vec<u8>) -> Vec<u8> {
    let at = directory_at(&zip);
    zip[at + 38..at + 42].copy_from_slice(&(0o010_600_u32 << 16).to_le_bytes());
    zip
}

/// The first entry has an unknown method.
fn with_unknown_method(mut zip: Vec<u8>) -> Vec<u8> {
    let at = directory_at(&zip);
    (zip[8], zip[at + 10]) = (200, 200);
    zip
}

/// The first entry has another name of the same length.
fn renamed(mut zip: Vec<u8>, name: &[u8; 4]) -> Vec<u8> {
    let places = zip.windows(4).enumerate();
    let places: Vec<usize> = places
        .filter(|(_, bytes)| bytes == b"aa/f")
        .map(|(at, _)| at)
        .collect();
    for at in places {
        zip[at..at + 4].copy_from_slice(name);
    }
    zip
}

/// A tar stream of `d/f1` to `d/f3` with 3000 bytes each.
fn tar(case: &Case) -> Vec<u8> {
    for number in 1..=3 {
        case.write(&format!("d/f{number}"), &[b'0' + number; 3000]);
    }
    run(
        case,
        "tar",
        "--format=ustar --blocking-factor=1 -cf x.tar d/f1 d/f2 d/f3",
    );
    case.read("x.tar")
}

/// `f3` is cut off.
fn cut(case: &Case) -> Vec<u8> {
    tar(case)[..2 * 3584 + 512 + 1000].to_vec()
}

/// The header of `f2` is damaged.
fn with_bad_header(case: &Case) -> Vec<u8> {
    let mut tar = tar(case);
    tar[3584 + 2] ^= 1;
    tar
}

/// The archive of bytes from a file, or from a pipe.
fn archive(case: &Case, bytes: &[u8], from_pipe: bool) -> Vec<u8> {
    if from_pipe {
        expect(case.pipe(REFRAIN, "compress -q", bytes), 0, "pipe").stdout
    } else {
        case.write("broken.tar", bytes);
        case.ok("compress -qf broken.tar -o broken.rfn");
        case.read("broken.rfn")
    }
}

fn with(mut bytes: Vec<u8>, more: &[u8]) -> Vec<u8> {
    bytes.extend_from_slice(more);
    bytes
}

const F1: Option<(&str, &[u8])> = Some(("out/d/f1", &[b'1'; 3000]));

const TAR: Lossy = Lossy {
    name: "",
    make: tar,
    exit: 2,
    paths: ".",
    test_finds: false,
    whole: F1,
};

fn inputs() -> Vec<Lossy> {
    let two_zips = |case: &Case| {
        let first = zip(case, "");
        [first, zip(case, "")].concat()
    };
    let mut all = vec![
        Lossy::new("garbage.gz", 2, |case| with(gzip(case), b"garbage")),
        Lossy::new("zeros.gz", 2, |case| {
            let more = gzip(case);
            with(with(gzip(case), &[0; 512]), &more)
        }),
        Lossy::new("garbage.xz", 2, |case| {
            with(packed(case, "xz", "-c x"), b"garbage!")
        }),
        Lossy::new("garbage.bz2", 2, |case| {
            with(packed(case, "bzip2", "-c x"), b"garbage!")
        }),
        Lossy::new("garbage.zst", 2, |case| {
            with(packed(case, "zstd", "-qc x"), b"garbage!")
        }),
        Lossy::new("garbage.rfn", 2, |case| {
            case.write("x", b"content of x");
            case.ok("compress -qf x");
            with(case.read("x.rfn"), b"garbage!")
        }),
        Lossy::new("encrypted.zip", 3, |case| zip(case, "-P secret")),
        Lossy::new("two.zip", 2, two_zips),
        Lossy::new("behind.zip", 2, |case| with(zip(case, ""), b"garbage")),
        Lossy {
            whole: Some(("out/aa/g", b"content of g")),
            ..Lossy::new("method.zip", 3, |case| with_unknown_method(zip(case, "")))
        },
        Lossy {
            test_finds: false,
            whole: Some(("out/aa/g", b"content of g")),
            ..Lossy::new("above.zip", 2, |case| renamed(zip(case, ""), b"../f"))
        },
        Lossy {
            test_finds: false,
            whole: Some(("out/aa/g", b"content of g")),
            ..Lossy::new("root.zip", 2, |case| renamed(zip(case, ""), b"/a/f"))
        },
        Lossy {
            name: "cut.tar.rfn",
            make: |case| archive(case, &cut(case), false),
            ..TAR
        },
        Lossy {
            name: "cut-pipe.tar.rfn",
            make: |case| archive(case, &cut(case), true),
            ..TAR
        },
        Lossy {
            name: "header.tar.rfn",
            make: |case| archive(case, &with_bad_header(case), false),
            whole: Some(("out/d/f3", &[b'3'; 3000])),
            ..TAR
        },
        Lossy {
            name: "behind.tar.rfn",
            make: |case| archive(case, &with(tar(case), &[7; 512]), false),
            ..TAR
        },
        Lossy {
            name: "cut.tar.gz",
            make: |case| {
                case.write("x", b"");
                let bytes = cut(case);
                expect(case.pipe("gzip", "-c", &bytes), 0, "gzip").stdout
            },
            ..TAR
        },
        Lossy {
            name: "header.tar.gz",
            make: |case| {
                let bytes = with_bad_header(case);
                expect(case.pipe("gzip", "-c", &bytes), 0, "gzip").stdout
            },
            whole: Some(("out/d/f3", &[b'3'; 3000])),
            ..TAR
        },
    ];
    if cfg!(feature = "lrzip") {
        all.push(Lossy::new("two.lrz", 2, |case| {
            let more = lrz(case);
            with(lrz(case), &more)
        }));
    }
    all
}

#[test]
fn whatever_a_reader_loses_is_said_everywhere() {
    for lossy in inputs() {
        let case = Case::new();
        let name = lossy.name;
        let bytes = (lossy.make)(&case);
        case.write(name, &bytes);
        let _ = fs::remove_file(case.path("x"));
        if lossy.test_finds {
            let told = case.fails(&format!("test -q {name}"), lossy.exit);
            assert!(!told.is_empty(), "{name}: test says nothing");
            let output = case.run(&format!("test --json {name}"));
            assert_eq!(
                json(&output.stdout)["results"][0]["complete"],
                false,
                "{name}"
            );
        } else if !lossy.paths.is_empty() {
            let told = case.fails(&format!("list -q {name}"), lossy.exit);
            assert!(!told.is_empty(), "{name}: list says nothing");
        }
        // With a part, --rm is refused.
        let rm = if lossy.paths.is_empty() { "--rm" } else { "" };
        let line = format!("decompress -q {rm} --json {name} {} -o out", lossy.paths);
        let output = expect(case.run(&line), lossy.exit, &line);
        assert!(!output.stderr.is_empty(), "{name}: nothing is said");
        let document = json(&output.stdout);
        assert_eq!(document["results"][0]["complete"], false, "{name}");
        assert_eq!(case.read(name), bytes, "{name} is kept");
        if let Some((path, content)) = lossy.whole {
            assert_eq!(
                case.read(path),
                content,
                "{name}: what is whole is restored"
            );
        }
    }
}

#[test]
fn data_of_a_pipe_in_a_zip_file_are_a_file() {
    let case = Case::new();
    case.write("p.zip", &with_fifo_mode(zip(&case, "")));
    case.ok("decompress -q --rm p.zip -o out");
    assert_eq!(case.read("out/aa/f"), b"content of f");
    assert!(!case.exists("p.zip"));
}

#[test]
fn a_tar_that_is_cut_off_comes_back_and_its_whole_files_are_read() {
    let case = Case::new();
    let bytes = cut(&case);
    case.write("c.rfn", &archive(&case, &bytes, false));
    assert!(case.ok("cat c.rfn").stdout == bytes);
    assert_eq!(case.ok("cat c.rfn d/f1").stdout, [b'1'; 3000]);
    let output = expect(case.run("cat c.rfn d/f3"), 2, "cat");
    assert_eq!(output.stdout, [b'3'; 1000]);
    case.ok("decompress -q --rm c.rfn -o back.tar");
    assert!(case.read("back.tar") == bytes && !case.exists("c.rfn"));
}

/// As GNU tar does, names both.
#[test]
fn entries_of_unknown_kinds_are_named_and_parts_of_other_volumes_lost() {
    let case = Case::new();
    // The type of the first entry, and the checksum, in which it counts.
    let with_type = |mut tar: Vec<u8>, flag: u8| {
        tar[156] = flag;
        tar[148..156].fill(b' ');
        let sum: u32 = tar[..512].iter().map(|byte| u32::from(*byte)).sum();
        tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar
    };
    let unknown = archive(&case, &with_type(tar(&case), b'Z'), true);
    case.write("unknown.tar.rfn", &unknown);
    let told = String::from_utf8(case.ok("decompress unknown.tar.rfn . -o unknown").stderr);
    assert!(told.unwrap().contains("d/f1: of an unknown kind"));
    assert_eq!(case.read("unknown/d/f1"), [b'1'; 3000]);
    let rest = archive(&case, &with_type(tar(&case), b'M'), true);
    case.write("rest.tar.rfn", &rest);
    case.fails("decompress -q rest.tar.rfn . -o rest", 2);
    assert!(!case.exists("rest/d/f1") && case.exists("rest/d/f2"));
}

#[cfg(feature = "lrzip")]
#[test]
fn lrzuntar_keeps_what_is_before_a_cut_and_says_what_is_behind_the_end() {
    let case = Case::new();
    let lrzuntar = case.program_link("lrzuntar");
    let run = |bytes: &[u8]| {
        case.write("broken.tar", bytes);
        case.ok("compress -qf --format lrz broken.tar -o b.tar.lrz");
        fs::remove_dir_all(case.path("d")).unwrap();
        let mut command = case.command(&lrzuntar, "-D -q b.tar.lrz");
        let output = command.env("LRZIP", "NOCONFIG").output().unwrap();
        assert!(!expect(output, 1, "lrzuntar").stderr.is_empty());
        assert_eq!(case.read("d/f1"), [b'1'; 3000]);
        assert!(case.exists("b.tar.lrz"), "the source is kept");
    };
    run(&cut(&case));
    assert!(!case.exists("d/f3"), "what is not whole is left out");
    run(&with(tar(&case), &[7; 512]));
    assert!(case.exists("d/f3"));
}

/// Only a newly created regular file counts as a copy.
#[test]
fn sources_whose_copy_is_no_regular_file_are_kept() {
    let case = Case::new();
    case.write("x", &incompressible(1, 1000));
    std::os::unix::fs::symlink("/dev/null", case.path("null")).unwrap();
    case.ok("compress -q x");
    // Standard output, by any name, is refused at once.
    for (output, exit) in [
        ("/dev/null", 0),
        ("null", 0),
        ("/dev/stderr", 0),
        ("-", 1),
        ("/dev/stdout", 1),
        ("/proc/self/fd/1", 1),
    ] {
        for line in ["compress -q --rm x", "decompress -q --rm x.rfn"] {
            expect(case.run(&format!("{line} -o {output}")), exit, output);
        }
        assert!(case.exists("x") && case.exists("x.rfn"), "{output}");
    }
    let fifo = Command::new("mkfifo").arg(case.path("pipe")).status();
    assert!(fifo.unwrap().success());
    let mut reader = case.command("cat", "pipe");
    let reader = reader.stdout(Stdio::piped()).spawn().unwrap();
    case.ok("compress -q --rm x -o pipe");
    let read = reader.wait_with_output().unwrap().stdout;
    assert!(read == case.read("x.rfn") && case.exists("x"));
    // With a part, the rest would be lost.
    case.write("d/a", b"a");
    case.write("d/b", b"b");
    case.ok("compress -q d");
    case.fails("decompress -q --rm d.rfn a -o part", 1);
    assert!(case.exists("d.rfn"));
    case.ok("decompress -q --rm d.rfn -o whole");
    assert!(!case.exists("d.rfn"));
}

#[cfg(feature = "lrzip")]
#[test]
fn lrzip_deletes_what_is_in_a_regular_file_only() {
    let case = Case::new();
    let lrzip = case.program_link("lrzip");
    case.write("x", &incompressible(2, 1000));
    let run = |line: &str, exit| {
        let mut command = case.command(&lrzip, line);
        expect(
            command.env("LRZIP", "NOCONFIG").output().unwrap(),
            exit,
            line,
        );
    };
    run("-q -D -f -o /dev/null x", 0);
    assert!(case.exists("x"));
    run("-q -D x", 0);
    assert!(!case.exists("x"));
    run("-q -d -D -f -o /dev/null x.lrz", 0);
    assert!(case.exists("x.lrz"));
    let whole = case.read("x.lrz");
    case.write("more.lrz", &with(whole, b"more"));
    run("-q -d -D more.lrz", 1);
    assert!(case.exists("more.lrz"));
    run("-q -d -D x.lrz", 0);
    assert!(!case.exists("x.lrz"));
}

/// A descriptor is written in place, under any name.
#[test]
fn an_open_descriptor_is_written_and_not_replaced() {
    let case = Case::new();
    case.write("x", b"content");
    case.ok("compress -q x");
    let archive = case.read("x.rfn");
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        for (line, written) in [
            (format!("compress -q x -o {name}"), archive.clone()),
            (
                format!("decompress -q x.rfn -o {name}"),
                b"content".to_vec(),
            ),
        ] {
            let script = format!("echo before; {REFRAIN} {line}; echo after");
            let all = fs::File::create(case.path("all")).unwrap();
            let mut shell = Command::new("sh");
            shell.current_dir(case.path(".")).args(["-c", &script]);
            assert!(shell.stdout(all).status().unwrap().success());
            let expected = [b"before\n", &written[..], b"after\n"].concat();
            assert!(case.read("all") == expected, "{line}");
        }
    }
    let script = format!("exec 3>>all; {REFRAIN} decompress -q x.rfn -o /dev/fd/3; echo end >&3");
    case.write("all", b"before\n");
    let mut shell = Command::new("sh");
    shell.current_dir(case.path(".")).args(["-c", &script]);
    assert!(shell.status().unwrap().success());
    assert_eq!(case.read("all"), b"before\ncontentend\n");
}

#[test]
fn an_unknown_format_is_named_with_what_is_read() {
    let case = Case::new();
    case.write("garb", b"this is no archive of any kind");
    let told = case.fails("test garb", 2);
    let expected = "refrain: garb: unknown format (reads rfn, lrz, gz, xz, zst, bz2, lz4, zip)\n";
    assert_eq!(told, expected);
}

/// Joined archives may have members of one name: none replaces the other, not even by `--force`.
#[test]
fn members_of_one_name_are_not_restored_over_each_other() {
    let case = Case::new();
    case.write("x", b"first");
    case.ok("compress -q x -o one.rfn");
    case.write("x", b"second");
    case.ok("compress -q x -o two.rfn");
    let joined = [case.read("one.rfn"), case.read("two.rfn")].concat();
    case.write("joined.rfn", &joined);
    for force in ["", "--force "] {
        let text = case.fails(&format!("decompress {force}joined.rfn -o file/"), 1);
        assert!(text.contains("two members have this name"), "{text}");
        let line = format!("decompress {force}- -o pipe/");
        let output = case.pipe(REFRAIN, &line, &joined);
        let output = expect(output, 1, &line);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("two members have this name"), "{text}");
    }
    assert_eq!(case.read("file/x"), b"first");
    let contents = case.pipe(case.program_link("rfn"), "-dc", &joined);
    assert_eq!(expect(contents, 0, "rfn -dc").stdout, b"firstsecond");
}
