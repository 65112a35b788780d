//! What errors say, and their exit codes.

use std::process::Stdio;

use crate::support::{Case, REFRAIN, expect, incompressible, mixture};

#[test]
fn other_formats_are_named() {
    let case = Case::new();
    case.write("text", b"some text to compress\n");
    case.write("empty", b"");
    case.write("tar/text", b"text");
    let made = |program: &str, line: &str, output: &str| {
        let file = std::fs::File::create(case.path(output)).unwrap();
        let status = case
            .command(program, line)
            .stdout(file)
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    for (program, line, name) in [
        ("gzip", "-c text", "gzip"),
        ("xz", "-c text", "xz"),
        ("zstd", "-q -c text", "zstd"),
        ("bzip2", "-c text", "bzip2"),
        ("tar", "-cf - tar", "tar"),
    ] {
        if !made(program, line, "other") {
            continue;
        }
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
        "compress x -o directory",
        "info directory",
        "decompress -f x.rfn -o /dev/full",
    ] {
        let output = case.run(line);
        assert!(!output.status.success(), "{line}");
        let message = String::from_utf8(output.stderr).unwrap();
        for name in ["cut.rfn", "missing", "directory", "/dev/full"] {
            assert!(message.matches(name).count() < 2, "{line}: {message}");
        }
        assert!(
            !message.contains("refrain: No such file"),
            "{line}: {message}"
        );
    }
}

/// A tar header of an entry with one byte of content.
fn tar_entry(name: &[u8]) -> Vec<u8> {
    let mut header = vec![0_u8; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(b"00000000001");
    header[136..147].copy_from_slice(b"00000000000");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(feature = "lrzip")]
#[test]
fn path_traversal_is_refused_with_the_code_for_damaged_archives() {
    let case = Case::new();
    for name in [&b"../evil"[..], b"/evil", b"a/../../evil"] {
        let mut tar = tar_entry(name);
        tar.extend([b'x'; 1]);
        tar.resize(1024 + 1024, 0);
        case.write("evil.tar", &tar);
        case.ok("compress -q --format lrz evil.tar -f");
        let untar = case.path("bin-lrzuntar");
        let _ = std::fs::remove_file(&untar);
        std::os::unix::fs::symlink(REFRAIN, &untar).unwrap();
        let _ = std::fs::remove_dir_all(case.path("out"));
        assert!(!case.exists("evil") && !case.path("../evil").exists());
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
