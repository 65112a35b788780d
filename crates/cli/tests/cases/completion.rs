//! What bash completes with the generated scripts.

use std::process::Command;

use crate::support::{Case, expect};

/// What bash offers for the last of these words.
fn offered(case: &Case, words: &[&str]) -> Vec<String> {
    let script = r#"
        source "complete/$1.bash"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        "_$1_words" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).args(words);
    let path = format!("{}:{}", case.path("bin").display(), env!("PATH"));
    command.current_dir(case.path("")).env("PATH", path);
    let output = expect(command.output().unwrap(), 0, "bash");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_string)
        .collect()
}

#[test]
fn verbs_come_first_and_values_and_paths_are_known() {
    let case = Case::new();
    case.program_link("refrain");
    case.ok("generate completions complete");
    case.write("p/docs/a file.md", b"a");
    case.write("p/docs/b.md", b"b");
    case.write("p/main.rs", b"fn main() {}");
    case.ok("compress -q p");
    let verbs = offered(&case, &["refrain", ""]);
    assert_eq!(verbs[0], "compress", "{verbs:?}");
    assert!(verbs.contains(&"ls".to_string()), "{verbs:?}");
    assert!(verbs.iter().all(|verb| !verb.starts_with('-')), "{verbs:?}");
    assert_eq!(offered(&case, &["refrain", "decom"]), ["decompress"]);
    // Files are left to the shell: nothing is offered instead of them.
    assert!(offered(&case, &["refrain", "compress", ""]).is_empty());
    assert!(offered(&case, &["refrain", "compress", "-v", ""]).is_empty());
    assert!(offered(&case, &["refrain", "cat", ""]).is_empty());
    assert!(offered(&case, &["rfn", ""]).is_empty());
    let flags = offered(&case, &["refrain", "compress", "--ex"]);
    assert!(flags.contains(&"--exclude-from".to_string()), "{flags:?}");
    let codecs = offered(&case, &["refrain", "compress", "--codec", ""]);
    assert!(codecs.contains(&"zstd".to_string()) && codecs.contains(&"bwt".to_string()));
    let levels = offered(&case, &["refrain", "compress", "--level", ""]);
    assert_eq!(levels, ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    for verb in ["cat", "list", "decompress", "x"] {
        let inside = |typed: &str| offered(&case, &["refrain", verb, "p.rfn", typed]);
        assert_eq!(inside(""), [".", "docs", "docs/", "main.rs"]);
        assert_eq!(inside("docs/"), ["docs/a file.md", "docs/b.md"]);
        assert_eq!(inside("docs/a"), ["docs/a file.md"]);
    }
    // A codec level that is not among the values is still accepted.
    case.ok("compress -q -f --codec zstd:19 p");
    let refused = case.fails("compress -q -f --level 10 p", 1);
    assert!(refused.contains("1..=9"), "{refused}");
}
