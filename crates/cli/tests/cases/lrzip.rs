//! Archives of lrzip: the fixtures in `golden/lrzip`, and, where `lrzip` is installed, fresh ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Case, REFRAIN, expect, mixture};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/lrzip")
        .join(name)
}

/// The archive `name` as `x.tar.lrz`, and its content.
fn case_with(name: &str) -> (Case, Vec<u8>) {
    let case = Case::new();
    case.write("x.tar.lrz", &fs::read(golden(name)).unwrap());
    (case, fs::read(golden("plain56k.bin")).unwrap())
}

#[test]
fn decompressed_by_file_and_pipe_and_as_rfn() {
    let (case, content) = case_with("v06-lzma.lrz");
    let archive = case.path("x.tar.lrz");
    fs::set_permissions(&archive, fs::Permissions::from_mode(0o755)).unwrap();
    case.ok("decompress -q x.tar.lrz");
    assert!(case.read("x.tar") == content);
    let mode = fs::metadata(case.path("x.tar"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755, "execute bits survive");
    let modified = |path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(modified(case.path("x.tar")), modified(archive));
    case.fails("decompress -q x.tar.lrz", 4);
    let archive = case.read("x.tar.lrz");
    assert!(expect(case.pipe(REFRAIN, "decompress", &archive), 0, "pipe").stdout == content);
    expect(case.pipe(REFRAIN, "test", &archive), 0, "pipe");
    case.ok("test x.tar.lrz");
    let rfn = case.face("rfn");
    let output = case.command(rfn, "-dc x.tar.lrz").output().unwrap();
    assert!(output.stdout == content);
}

#[test]
fn told_and_read_in_part() {
    let (case, content) = case_with("v06-zpaq.lrz");
    let text = String::from_utf8(case.ok("info x.tar.lrz").stdout).unwrap();
    for part in [
        "lrzip 0.6, 1 chunks",
        "56000 bytes",
        "zpaq: 1 blocks",
        "x.tar (file)",
        "md5 ",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&case.ok("info --json x.tar.lrz").stdout).unwrap();
    let info = &json["results"][0];
    assert_eq!(info["lrzip"]["version"], "0.6");
    assert_eq!(info["members"][0]["blake3"], serde_json::Value::Null);
    assert_eq!(case.ok("list x.tar.lrz").stdout, b"x.tar\n");
    let part = case.ok("cat --range 1000..2000 x.tar.lrz x.tar").stdout;
    assert!(part == content[1000..2000]);
}

#[test]
fn passwords_come_from_a_file() {
    let (case, content) = case_with("v071-aead-pw_secret.lrz");
    case.write("right", b"secret\n");
    case.write("wrong", b"guess\n");
    let message = case.fails("test --password-file wrong x.tar.lrz", 1);
    assert!(message.contains("the password is wrong"), "{message}");
    let message = case.fails("test --password-file none x.tar.lrz", 4);
    assert!(message.contains("none"), "{message}");
    case.ok("decompress -q --password-file right x.tar.lrz");
    assert!(case.read("x.tar") == content);
    assert!(case.ok("cat --password-file right x.tar.lrz").stdout == content);
}

#[test]
fn what_is_damaged_leaves_nothing() {
    let (case, _) = case_with("v06-lzma.lrz");
    let good = case.read("x.tar.lrz");
    for length in [5, 100, good.len() / 2, good.len() - 1] {
        case.write("bad.lrz", &good[..length]);
        case.fails("decompress -q bad.lrz", 2);
        assert!(!case.exists("bad"), "first {length} bytes");
    }
    // Of the digest at the end one bit: all of the content is there, but it is not known to be right.
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    case.write("bad.lrz", &bad);
    let message = case.fails("decompress -q bad.lrz", 2);
    assert!(message.contains("MD5"), "{message}");
    assert!(!case.exists("bad"));
    // What follows the archive is told.
    case.write("more.lrz", &[&good[..], b"more"].concat());
    let output = case.ok("test more.lrz");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("4 bytes follow"), "{text}");
}

/// `lrzip` with a line of arguments, untouched by the user's settings; `None` where it is not installed. CI has to have it.
fn installed_lrzip(case: &Case, line: &str) -> Option<Command> {
    if Command::new("lrzip").arg("-V").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI without lrzip");
        // A test has no other way to say that it did not look.
        #[allow(clippy::print_stderr)]
        {
            eprintln!("lrzip is not installed: what it writes was not read");
        }
        return None;
    }
    let mut command = case.command("lrzip", line);
    command.env("LRZIP", "NOCONFIG");
    Some(command)
}

/// Archives that the installed lrzip writes now, with each back end, by file, as a test, from its start and by pipe.
#[test]
fn what_lrzip_writes_here() {
    let case = Case::new();
    let content = mixture(3_000_000);
    case.write("x", &content);
    for (options, back_end) in [
        ("-n", "none"),
        ("-l", "lzo"),
        ("-g", "gzip"),
        ("-b", "bzip2"),
        ("", "lzma"),
        ("-z -L1", "zpaq"),
        ("-L9", "lzma"),
        ("-L1 -p1", "lzma"),
    ] {
        let line = format!("{options} -q -f -o y.lrz x");
        let Some(mut lrzip) = installed_lrzip(&case, &line) else {
            return;
        };
        expect(lrzip.output().unwrap(), 0, &line);
        let info = String::from_utf8(case.ok("info y.lrz").stdout).unwrap();
        assert!(
            info.contains(&format!("{back_end}: ")),
            "{back_end} in {info}"
        );
        case.ok("decompress -q -f y.lrz");
        assert!(case.read("y") == content, "{line}");
        case.ok("test y.lrz");
        let range = case.ok("cat --range 1000000..1100000 y.lrz y").stdout;
        assert!(range == content[1_000_000..1_100_000], "{line}");
        // By pipes at both ends, what a file holds and what lrzip writes to a pipe.
        let archive = case.read("y.lrz");
        let opened = expect(case.pipe(REFRAIN, "decompress", &archive), 0, options).stdout;
        assert!(opened == content, "lrzip {options} through a pipe");
        let piped = case.pipe("lrzip", &format!("{options} -q"), &content);
        let piped = expect(piped, 0, options).stdout;
        let opened = expect(case.pipe(REFRAIN, "decompress", &piped), 0, options).stdout;
        assert!(opened == content, "lrzip {options} in a pipe");
    }
}

/// The same with its encryption, which makes a key of a second's work each time.
#[test]
fn what_lrzip_encrypts_here() {
    let case = Case::new();
    let content = mixture(300_000);
    case.write("x", &content);
    case.write("right", b"open sesame\n");
    case.write("wrong", b"open barley\n");
    for options in ["-n", "-l", "-g", "-b", "", "-z -L1"] {
        let Some(mut lrzip) = installed_lrzip(&case, options) else {
            return;
        };
        lrzip.args(["--encrypt=open sesame", "-q", "-f", "-o", "y.lrz", "x"]);
        expect(lrzip.output().unwrap(), 0, options);
        case.ok("decompress -q -f --password-file right y.lrz");
        assert!(case.read("y") == content, "lrzip {options}, encrypted");
    }
    case.ok("test --password-file right y.lrz");
    let message = case.fails("test --password-file wrong y.lrz", 1);
    assert!(message.contains("the password is wrong"), "{message}");
}
