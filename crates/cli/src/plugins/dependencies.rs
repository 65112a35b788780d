//! What a library was made of: the rules for `make` that compilers write.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The prerequisites of all rules. Compilers put a backslash before spaces and `#`, two dollars for
/// one, and a backslash at the end of a line that goes on.
pub fn prerequisites(rules: &[u8]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for rule in joined(rules) {
        let words = words_of(&rule);
        let is_target = |word: &Vec<u8>| word.ends_with(b":");
        let after = words
            .iter()
            .position(is_target)
            .map_or(words.len(), |at| at + 1);
        for word in words.into_iter().skip(after) {
            let path = PathBuf::from(OsString::from_vec(word));
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// The lines, with those that go on joined; comments are left out.
fn joined(rules: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut goes_on = false;
    for line in rules.split(|&byte| byte == b'\n') {
        let (text, continues) = match line.strip_suffix(b"\\") {
            Some(text) => (text, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => {
                last.push(b' ');
                last.extend_from_slice(text);
            }
            None if text.starts_with(b"#") => {}
            None => lines.push(text.to_vec()),
        }
        goes_on = continues;
    }
    lines
}

fn words_of(rule: &[u8]) -> Vec<Vec<u8>> {
    let mut words = vec![Vec::new()];
    let mut bytes = rule.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let next = bytes.peek().copied();
        let word = words.len() - 1;
        match (byte, next) {
            (b'\\', Some(escaped @ (b' ' | b'#'))) | (b'$', Some(escaped @ b'$')) => {
                words[word].push(escaped);
                bytes.next();
            }
            (b' ' | b'\t' | b'\r', _) => words.push(Vec::new()),
            (byte, _) => words[word].push(byte),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_rules_of_cc_and_rustc() {
        let cc = b"# made\nlib.so: a.c \\\n /usr/include/x.h my\\ header.h a$$b.h\n\nx.h:\n";
        let found = prerequisites(cc);
        let names: Vec<_> = found.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(names, ["a.c", "/usr/include/x.h", "my header.h", "a$b.h"]);
        let rustc = b"out.d: a.rs b.rs\n\nout.so: a.rs b.rs\n\na.rs:\nb.rs:\n";
        assert_eq!(prerequisites(rustc).len(), 2);
        assert!(prerequisites(b"").is_empty());
    }
}
