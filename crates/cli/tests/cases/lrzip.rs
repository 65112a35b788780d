//! lrzip archives: those in `golden/lrzip`, and new ones if `lrzip` is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_testkit::scaled;

use crate::support::{Case, REFRAIN, expect, incompressible, mixture};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/lrzip")
        .join(name)
}

/// Returns a case with the archive `name` as `x.tar.lrz`, and its content.
fn case_with(name: &str) -> (Case, Vec<u8>) {
    let case = Case::new();
    case.write("x.tar.lrz", &fs::read(golden(name)).unwrap());
    (case, fs::read(golden("plain56k.bin")).unwrap())
}

#[test]
fn decompresses_from_file_and_pipe_and_as_rfn() {
    let (case, content) = case_with("v06-lzma.lrz");
    let archive = case.path("x.tar.lrz");
    fs::set_permissions(&archive, fs::Permissions::from_mode(0o755)).unwrap();
    case.ok("decompress -q x.tar.lrz");
    assert!(case.read("x.tar") == content);
    let mode = fs::metadata(case.path("x.tar"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755, "execute bits are restored");
    let modified = |path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(modified(case.path("x.tar")), modified(archive));
    case.fails("decompress -q x.tar.lrz", 6);
    let archive = case.read("x.tar.lrz");
    assert!(expect(case.pipe(REFRAIN, "decompress", &archive), 0, "pipe").stdout == content);
    expect(case.pipe(REFRAIN, "test", &archive), 0, "pipe");
    case.ok("test x.tar.lrz");
    let rfn = case.program_link("rfn");
    let output = case.command(rfn, "-dc x.tar.lrz").output().unwrap();
    assert!(output.stdout == content);
}

#[test]
fn lists_archives_and_reads_ranges() {
    let (case, content) = case_with("v06-zpaq.lrz");
    let text = String::from_utf8(case.ok("info -v x.tar.lrz").stdout).unwrap();
    for part in [
        "lrzip 0.6",
        "1 chunk\n",
        "56000 bytes",
        "zpaq: 1 block,",
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
fn cat_of_a_damaged_archive_does_not_succeed_silently() {
    let (case, content) = case_with("v06-none.lrz");
    let notice = "the range cannot be compared with the digest";
    for whole in ["cat x.tar.lrz", "cat --range ..56000 x.tar.lrz"] {
        let output = case.ok(whole);
        assert!(output.stdout == content && output.stderr.is_empty());
    }
    let mut archive = case.read("x.tar.lrz");
    let at = archive
        .windows(100)
        .position(|window| window == &content[300..400])
        .unwrap();
    archive[at] ^= 1;
    case.write("x.tar.lrz", &archive);
    for whole in ["cat x.tar.lrz", "cat --range 0.. x.tar.lrz"] {
        let message = case.fails(whole, 2);
        assert!(message.contains("does not match its MD5"), "{message}");
    }
    let part = case.ok("cat --range 200..1000 x.tar.lrz");
    assert_eq!(part.stdout.len(), 800);
    let message = String::from_utf8(part.stderr).unwrap();
    assert!(message.contains(notice), "{message}");
    let quiet = case.ok("cat -q --range 200..1000 x.tar.lrz");
    assert!(quiet.stderr.is_empty());
    assert!(case.ok("cat --range 7..7 x.tar.lrz").stderr.is_empty());
}

#[test]
fn reads_passwords_from_a_file() {
    let (case, content) = case_with("v071-aead-pw_secret.lrz");
    case.write("right", b"secret\n");
    case.write("wrong", b"guess\n");
    let message = case.fails("test --password-file wrong x.tar.lrz", 1);
    assert!(message.contains("the password is wrong"), "{message}");
    let message = case.fails("test --password-file none x.tar.lrz", 6);
    assert!(message.contains("none"), "{message}");
    case.ok("decompress -q --password-file right x.tar.lrz");
    assert!(case.read("x.tar") == content);
    assert!(case.ok("cat --password-file right x.tar.lrz").stdout == content);
}

#[test]
fn damaged_archives_leave_no_output() {
    let (case, _) = case_with("v06-lzma.lrz");
    let good = case.read("x.tar.lrz");
    for length in [5, 100, good.len() / 2, good.len() - 1] {
        case.write("bad.lrz", &good[..length]);
        case.fails("decompress -q bad.lrz", 2);
        assert!(!case.exists("bad"), "first {length} bytes");
    }
    // One bit of the digest at the end: the content is complete but not verified.
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    case.write("bad.lrz", &bad);
    let message = case.fails("decompress -q bad.lrz", 2);
    assert!(message.contains("MD5"), "{message}");
    assert!(!case.exists("bad"));
    // Bytes after the archive are not part of the result.
    case.write("more.lrz", &[&good[..], b"more"].concat());
    let text = case.fails("test more.lrz", 2);
    assert!(text.contains("4 bytes follow"), "{text}");
}

/// Whether lrzip is installed. CI must have it.
#[allow(clippy::print_stderr)] // A test that compares nothing must report it.
pub fn has_lrzip() -> bool {
    let has_lrzip = Command::new("lrzip").arg("-V").output().is_ok();
    if !has_lrzip {
        assert!(std::env::var_os("CI").is_none(), "CI without lrzip");
        eprintln!("lrzip is not installed: not compared");
    }
    has_lrzip
}

/// The installed lrzip yields to everything else by default, so that on busy machines it takes ten
/// times as long.
const NOT_NICE: &str = "-N 0";

/// Returns the command `lrzip` with these arguments, without a configuration file.
pub fn lrzip(case: &Case, line: &str) -> Command {
    let mut command = case.command("lrzip", &format!("{NOT_NICE} {line}"));
    command.env("LRZIP", "NOCONFIG");
    command
}

/// The installed lrzip tests and decompresses archives of Refrain: each back end, from file and
/// pipe, for several kinds of content.
#[test]
fn lrzip_reads_archives_of_refrain() {
    if !has_lrzip() {
        return;
    }
    let case = Case::new();
    let contents = [
        Vec::new(),
        b"x".to_vec(),
        mixture(100),
        vec![0; 1_500_000],
        incompressible(1, 600_000),
        mixture(1_000_000),
    ];
    for content in &contents {
        case.write("x", content);
        for back_end in ["none", "lzo", "gzip", "bzip2", "lzma", "zpaq"] {
            let level = if back_end == "zpaq" { 1 } else { 7 };
            let line = format!("compress -q -f --format lrz --back-end {back_end} --level {level}");
            let what = format!("{back_end}, {} bytes", content.len());
            case.ok(&format!("{line} -o y.lrz x"));
            expect(lrzip(&case, "-q -t y.lrz").output().unwrap(), 0, &what);
            expect(
                lrzip(&case, "-q -d -f -o y y.lrz").output().unwrap(),
                0,
                &what,
            );
            assert!(case.read("y") == *content, "{what}");
            case.ok("decompress -q -f -o y y.lrz");
            assert!(case.read("y") == *content, "{what}, by refrain");
            let piped = expect(case.pipe(REFRAIN, &line, content), 0, &what).stdout;
            let output = expect(
                case.pipe("lrzip", &format!("{NOT_NICE} -q -d"), &piped),
                0,
                &what,
            )
            .stdout;
            assert!(output == *content, "{what}, piped");
        }
    }
}

/// Several chunks, and encryption.
#[test]
fn lrzip_reads_chunked_and_encrypted_archives_of_refrain() {
    if !has_lrzip() {
        return;
    }
    let case = Case::new();
    let content = mixture(17_500_000);
    case.write("x", &content);
    case.write("right", b"secret\n");
    case.write("wrong", b"guess\n");
    let line = "compress -q -f --format lrz --back-end lzo --window 16M";
    case.ok(&format!("{line} -o y.lrz x"));
    expect(
        lrzip(&case, "-q -d -f -o y y.lrz").output().unwrap(),
        0,
        line,
    );
    assert!(case.read("y") == content);
    let piped = expect(case.pipe(REFRAIN, line, &content), 0, line).stdout;
    let output = expect(
        case.pipe("lrzip", &format!("{NOT_NICE} -q -d"), &piped),
        0,
        line,
    )
    .stdout;
    assert!(output == content, "chunks, piped");

    // Each derives keys four times, which takes a second and more.
    let all = [("--window 16M", content), ("", mixture(300_000))];
    for (window, content) in all.into_iter().take(scaled(1) as usize) {
        case.write("x", &content);
        let line = format!(
            "compress -f --format lrz --back-end gzip {window} --encrypt=cbc --password-file right -o y.lrz x"
        );
        let output = case.ok(&line);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("WEAK"), "{message}");
        let rounds = rounds_of(&case.read("y.lrz"));
        assert!(
            rounds >= 170 << 16,
            "lrzip's number of November 2026: {rounds}"
        );
        expect(
            lrzip(&case, "-q --encrypt=secret -d -f -o y y.lrz")
                .output()
                .unwrap(),
            0,
            &line,
        );
        assert!(case.read("y") == content, "{window}");
        case.fails("test --password-file wrong y.lrz", 1);
        case.ok("test -q --password-file right y.lrz");
    }
}

/// The rounds of the key derivation that the salt of an archive states.
fn rounds_of(archive: &[u8]) -> u64 {
    u64::from(archive[7]) << archive[6]
}

#[test]
fn unsupported_options_are_refused() {
    let case = Case::new();
    case.write("x", b"content");
    case.write("y", b"content");
    for (line, part) in [
        ("--format lrz --back-end zstd x", "no back end 'zstd'"),
        (
            "--format lrz --codec zstd x",
            "--codec cannot be used with --format lrz",
        ),
        (
            "--format lrz --for serve x",
            "--for cannot be used with --format lrz",
        ),
        ("--format rfn --window 16M x", "--window needs --format lrz"),
        ("--format lrz -o a.lrz x y", "holds one file"),
    ] {
        let message = case.fails(&format!("compress -q {line}"), 1);
        assert!(message.contains(part), "{line}: {message}");
    }
    for output in ["x.lrz", "x.rfn", "a.lrz"] {
        assert!(!case.exists(output), "{output}");
    }
    case.ok("compress -q --format lrz x");
    case.fails("compress -q --format lrz x", 6);
    case.fails("compress -q --format lrz x.lrz", 1);
    fs::create_dir(case.path("d")).unwrap();
    case.write("d/one", b"first");
    case.ok("compress -q --format lrz d");
    let tar = case.ok("cat d.tar.lrz").stdout;
    assert!(tar.windows(5).any(|part| part == b"first") && tar.len().is_multiple_of(512));
}

/// Archives of the installed lrzip, with each back end: decompressed, tested, read in part, and
/// from pipes.
#[test]
fn reads_archives_of_the_installed_lrzip() {
    if !has_lrzip() {
        return;
    }
    let case = Case::new();
    let content = mixture(1_200_000);
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
        expect(lrzip(&case, &line).output().unwrap(), 0, &line);
        let info = String::from_utf8(case.ok("info -v y.lrz").stdout).unwrap();
        assert!(
            info.contains(&format!("{back_end}: ")),
            "{back_end} in {info}"
        );
        case.ok("decompress -q -f y.lrz");
        assert!(case.read("y") == content, "{line}");
        case.ok("test y.lrz");
        let range = case.ok("cat --range 1000000..1100000 y.lrz y").stdout;
        assert!(range == content[1_000_000..1_100_000], "{line}");
        // Through pipes: an archive of a file, and one that lrzip writes to a pipe.
        let archive = case.read("y.lrz");
        let output = expect(case.pipe(REFRAIN, "decompress", &archive), 0, options).stdout;
        assert!(output == content, "lrzip {options} through a pipe");
        let piped = case.pipe("lrzip", &format!("{NOT_NICE} {options} -q"), &content);
        let piped = expect(piped, 0, options).stdout;
        let output = expect(case.pipe(REFRAIN, "decompress", &piped), 0, options).stdout;
        assert!(output == content, "lrzip {options} in a pipe");
    }
}

/// An archive that Refrain writes now states about `lrzips` rounds: the salts of both hold eight
/// bits of the number, which grow by one within days.
fn expect_equal_rounds(case: &Case, lrzips: u64) {
    case.ok("compress -q --format lrz --encrypt=cbc --password-file right -o z.lrz x");
    let refrains = rounds_of(&case.read("z.lrz"));
    assert!(
        refrains.abs_diff(lrzips) <= lrzips / 100,
        "{refrains}, lrzip {lrzips}"
    );
}

/// Encrypted archives of the installed lrzip. Each key derivation takes about a second.
#[test]
fn reads_encrypted_archives_of_the_installed_lrzip() {
    if !has_lrzip() {
        return;
    }
    let case = Case::new();
    let content = mixture(300_000);
    case.write("x", &content);
    case.write("right", b"open sesame\n");
    case.write("wrong", b"open barley\n");
    // Each derives two keys, which takes a second and more.
    let all = ["", "-n", "-l", "-g", "-b", "-z -L1"];
    for options in all.into_iter().take(scaled(2) as usize) {
        let mut lrzip = lrzip(&case, options);
        lrzip.args(["--encrypt=open sesame", "-q", "-f", "-o", "y.lrz", "x"]);
        expect(lrzip.output().unwrap(), 0, options);
        if options.is_empty() {
            expect_equal_rounds(&case, rounds_of(&case.read("y.lrz")));
        }
        case.ok("decompress -q -f --password-file right y.lrz");
        assert!(case.read("y") == content, "lrzip {options}, encrypted");
    }
    case.ok("test --password-file right y.lrz");
    let message = case.fails("test --password-file wrong y.lrz", 1);
    assert!(message.contains("the password is wrong"), "{message}");
}
