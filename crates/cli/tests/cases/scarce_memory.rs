//! The system refuses memory that the budget allows (`ulimit -v`): runs take longer, write lrzip
//! archives of lighter blocks, or end with a message. They are never killed, and leave no wrong or
//! partial output.

use std::fs;
use std::process::Output;

use crate::inherited::shell;
use crate::support::{Case, expect, mixture};

/// What a run does under a limit of addresses: its exit code and messages.
fn limited(case: &Case, limit_mib: u64, line: &str) -> (i32, String) {
    let (output, stderr) = limited_output(case, limit_mib, line);
    (output.status.code().unwrap_or_default(), stderr)
}

fn limited_output(case: &Case, limit_mib: u64, line: &str) -> (Output, String) {
    let output = shell(case, &format!("ulimit -v {};", limit_mib << 10), line);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code();
    let code = code.unwrap_or_else(|| panic!("{limit_mib}: {line}: {:?}: {stderr}", output.status));
    assert!(code == 0 || !stderr.is_empty(), "{limit_mib}: {line}");
    (output, stderr)
}

#[test]
fn output_is_right_or_absent_whatever_the_limit() {
    let case = Case::new();
    let content = mixture(3 << 20);
    case.write("f", &content);
    case.ok("compress -q -M 512M f -o f.rfn");
    let archive = case.read("f.rfn");
    let mut succeeded = 0;
    for limit_mib in [88, 160, 224, 320, 448] {
        for (line, expected) in [
            ("compress -q -M 512M f -o out", &archive),
            ("decompress -q f.rfn -o out", &content),
        ] {
            let (code, stderr) = limited(&case, limit_mib, line);
            assert!(
                matches!(code, 0 | 5 | 6),
                "{limit_mib}: {line}: {code}: {stderr}"
            );
            assert_eq!(
                case.exists("out"),
                code == 0,
                "{limit_mib}: {line}: {stderr}"
            );
            if code == 0 {
                assert!(
                    case.read("out") == *expected,
                    "{limit_mib}: {line}: other bytes"
                );
                fs::remove_file(case.path("out")).unwrap();
                succeeded += 1;
            }
        }
        let output = limited_output(&case, limit_mib, "cat f.rfn").0;
        let is_complete = output.status.code() == Some(0);
        assert!(
            content.starts_with(&output.stdout),
            "{limit_mib}: cat: other bytes"
        );
        assert_eq!(
            output.stdout.len() == content.len(),
            is_complete,
            "{limit_mib}: cat"
        );
        for line in ["test -q f.rfn", "list f.rfn"] {
            let (code, stderr) = limited(&case, limit_mib, line);
            assert!(
                matches!(code, 0 | 5 | 6),
                "{limit_mib}: {line}: {code}: {stderr}"
            );
        }
    }
    assert!(succeeded > 0, "no limit is large enough");
}

/// The tables of ZPAQ take 204 MB at level 9 and 112 at level 7, whatever the length of the block.
#[cfg(feature = "lrzip")]
#[test]
fn lrzip_archives_get_lighter_blocks_where_memory_is_refused() {
    let case = Case::new();
    let content = mixture(40_000);
    case.write("f", &content);
    let line = "compress -M 448M -T1 --format lrz --back-end zpaq -9 f -f -o f.lrz";
    let mut lighter = 0;
    // The program itself takes some of it.
    for limit_mib in (128..=256).step_by(64) {
        let (code, stderr) = limited(&case, limit_mib, line);
        assert!(matches!(code, 0 | 5), "{limit_mib}: {code}: {stderr}");
        if code == 0 {
            lighter += u32::from(stderr.contains("lower level"));
            assert!(case.ok("cat f.lrz").stdout == content, "{limit_mib}");
            if crate::lrzip::has_lrzip() {
                let output = crate::lrzip::lrzip(&case, "-q -d -f -o back f.lrz").output();
                expect(output.unwrap(), 0, "lrzip");
                assert!(case.read("back") == content, "{limit_mib}");
            }
        }
    }
    assert!(lighter > 0, "under no limit was a lighter model taken");
}
