//! Selections, compared with a matcher that follows gitignore's manual word by word.

use proptest::prelude::*;

use super::*;

fn excluding(patterns: &[&[u8]]) -> Selection {
    let mut builder = Selection::builder();
    for pattern in patterns {
        builder.exclude(pattern);
    }
    builder.build().unwrap()
}

/// Whether a name or path matches a pattern, apart from `**`.
fn matches_text(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            matches_text(rest, text) || (!text.is_empty() && matches_text(pattern, &text[1..]))
        }
        ([b'?', rest @ ..], [_, after @ ..]) => matches_text(rest, after),
        ([b'\\', byte, rest @ ..], [first, after @ ..]) => {
            byte == first && matches_text(rest, after)
        }
        ([b'[', class @ ..], [first, after @ ..]) => {
            let (is_member, rest) = matches_class(class, *first);
            is_member && matches_text(rest, after)
        }
        ([byte, rest @ ..], [first, after @ ..]) => byte == first && matches_text(rest, after),
        _ => false,
    }
}

/// Whether a byte is in a class, and what follows the class.
fn matches_class(mut class: &[u8], byte: u8) -> (bool, &[u8]) {
    let is_negated = matches!(class[0], b'!' | b'^');
    if is_negated {
        class = &class[1..];
    }
    let mut is_member = false;
    let mut is_first = true;
    while is_first || class[0] != b']' {
        is_first = false;
        let literal = usize::from(class[0] == b'\\');
        let (start, rest) = (class[literal], &class[literal + 1..]);
        match rest {
            [b'-', b']', ..] | [] => {
                is_member |= byte == start;
                class = rest;
            }
            [b'-', b'\\', end, after @ ..] | [b'-', end, after @ ..] => {
                is_member |= (start..=*end).contains(&byte);
                class = after;
            }
            _ => {
                is_member |= byte == start;
                class = rest;
            }
        }
    }
    (is_member != is_negated, &class[1..])
}

/// Matches lists of names; `**` stands for any number of them.
fn matches_names(pattern: &[&[u8]], names: &[&[u8]]) -> bool {
    match (pattern, names) {
        ([], []) => true,
        ([b"**"], [_, ..]) => true,
        ([b"**"], []) => false,
        ([b"**", rest @ ..], _) => (0..=names.len()).any(|n| matches_names(rest, &names[n..])),
        ([name, rest @ ..], [first, after @ ..]) => {
            matches_text(name, first) && matches_names(rest, after)
        }
        _ => false,
    }
}

fn matches(pattern: &[u8], path: &[u8], is_directory: bool) -> bool {
    let (pattern, is_for_directories) = match pattern.strip_suffix(b"/") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let names: Vec<_> = path.split(|byte| *byte == b'/').collect();
    let is_match = if pattern.contains(&b'/') {
        let pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
        matches_names(
            &pattern.split(|byte| *byte == b'/').collect::<Vec<_>>(),
            &names,
        )
    } else {
        matches_text(pattern, names.last().unwrap())
    };
    is_match && (is_directory || !is_for_directories)
}

/// Whether exclude patterns exclude a path, according to gitignore's manual.
fn is_excluded(patterns: &[&[u8]], path: &[u8], is_directory: bool) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let parents = ends.map(|(end, _)| (&path[..end], true));
    let mut levels = parents.chain([(path, is_directory)]);
    levels.any(|(path, is_directory)| {
        let matching = patterns.iter().rfind(|pattern| {
            matches(
                pattern.strip_prefix(b"!").unwrap_or(pattern),
                path,
                is_directory,
            )
        });
        matching.is_some_and(|last| !last.starts_with(b"!"))
    })
}

#[test]
fn patterns_mean_what_the_manual_of_gitignore_says() {
    // Pattern, path, whether the path is a directory, whether it is excluded.
    let cases: [(&[u8], &[u8], bool, bool); 40] = [
        (b"*.o", b"a.o", false, true),
        (b"*.o", b"x/y/a.o", false, true),
        (b"*.o", b"a.o/x", false, true),
        (b"*.o", b"a.ob", false, false),
        (b"/a", b"a", false, true),
        (b"/a", b"x/a", false, false),
        (b"a/b", b"a/b/c", false, true),
        (b"a/b", b"x/a/b", false, false),
        (b"a/*", b"a/b", true, true),
        (b"a/*", b"a", true, false),
        (b"a/*.c", b"a/b/x.c", false, false),
        (b"b/", b"x/b", true, true),
        (b"b/", b"x/b", false, false),
        (b"b/", b"x/b/c", false, true),
        (b"**/b", b"b", false, true),
        (b"**/b/c", b"a/b/c", false, true),
        (b"a/**", b"a", true, false),
        (b"a/**", b"a/b/c", false, true),
        (b"a/**/z", b"a/z", false, true),
        (b"a/**/z", b"a/b/c/z", false, true),
        (b"a/**/z", b"az", false, false),
        (b"a?c", b"abc", false, true),
        (b"a?c", b"a/c", false, false),
        (b"[!a]b", b"ab", false, false),
        (b"[^a]b", b"cb", false, true),
        (b"[a-c]", b"b", false, true),
        (b"[]-]", b"]", false, true),
        (b"[\\]a]", b"]", false, true),
        (b"[\\^!]", b"^", false, true),
        (b"[[:digit:]]x", b"7x", false, true),
        (b"[+--]", b"-", false, true),
        (b"[!\\]]", b"]", false, false),
        (b"\\!a", b"!a", false, true),
        (b"#a", b"#a", false, true),
        (b"\\*", b"*", false, true),
        (b"\\*", b"a", false, false),
        (b"{a,b}", b"a", false, false),
        (b"{a,b}", b"{a,b}", false, true),
        (b"a\xff*", b"x/a\xff\xfe", false, true),
        (b"a\xff", b"a\xfe", false, false),
    ];
    for (pattern, path, is_directory, is_excluded) in cases {
        let decision = excluding(&[pattern]).decide(path, is_directory);
        let shown = (
            String::from_utf8_lossy(pattern),
            String::from_utf8_lossy(path),
        );
        assert_eq!(decision == Decision::Exclude, is_excluded, "{shown:?}");
    }
}

#[test]
fn a_byte_that_is_no_utf_8_is_not_the_character_that_stands_for_it() {
    let character = "\u{FFEFF}"; // stands for 0xff
    let selection = excluding(&[b"\xff", b"\xfe?x"]);
    assert_eq!(selection.decide(b"\xff", false), Decision::Exclude);
    assert_eq!(
        selection.decide(character.as_bytes(), false),
        Decision::Include
    );
    assert_eq!(selection.decide(b"\xfeyx", false), Decision::Exclude);
    let pattern = [b"\xff", character.as_bytes()].concat();
    let selection = excluding(&[&pattern]);
    assert_eq!(selection.decide(&pattern, false), Decision::Exclude);
    assert_eq!(selection.decide(b"\xff\xff", false), Decision::Include);
}

#[test]
fn the_last_match_decides_but_not_below_an_excluded_directory() {
    let selection = excluding(&[b"*.log", b"!keep.log", b"/tmp", b"!/tmp/x"]);
    assert_eq!(selection.decide(b"a.log", false), Decision::Exclude);
    assert_eq!(selection.decide(b"d/keep.log", false), Decision::Include);
    assert_eq!(selection.decide(b"tmp/x", false), Decision::Exclude);
    let selection = excluding(&[b"/*", b"!/foo", b"/foo/*", b"!/foo/bar"]);
    assert_eq!(selection.decide(b"other", false), Decision::Exclude);
    assert_eq!(selection.decide(b"foo/baz", false), Decision::Exclude);
    assert_eq!(selection.decide(b"foo/bar/x", false), Decision::Include);
}

#[test]
fn files_of_patterns_have_comments_blank_lines_and_spaces() {
    let text = b"\xef\xbb\xbf# comment\n\n  \n*.o  \r\nends\\ \n!k.o\n\\#x";
    let lines = pattern::lines(text);
    let expected: [&[u8]; 4] = [b"*.o", b"ends\\ ", b"!k.o", b"\\#x"];
    assert_eq!(lines, expected);
    let mut builder = Selection::builder();
    let selection = builder.exclude_lines(text).build().unwrap();
    assert_eq!(selection.decide(b"ends ", false), Decision::Exclude);
    assert_eq!(selection.decide(b"#x", false), Decision::Exclude);
    assert_eq!(selection.decide(b"k.o", false), Decision::Include);
}

#[test]
fn paths_and_include_patterns_select_what_they_name_and_what_is_below() {
    let mut builder = Selection::builder();
    builder
        .path(b"./a/b/")
        .path(b"x*")
        .include(b"*.c")
        .include(b"/docs/**/img/");
    builder.exclude(b"/a/b/no").include(b"!not.c");
    let selection = builder.build().unwrap();
    use Decision::{Descend, Exclude, Include};
    let cases: [(&[u8], bool, Decision); 16] = [
        (b".", true, Descend),
        (b"", true, Descend),
        (b"a", true, Descend),
        (b"a", false, Exclude),
        (b"a/b", true, Include),
        (b"a/b", false, Include),
        (b"./a//b/c", false, Include),
        (b"a/bc", false, Exclude),
        (b"a/b/no/x", false, Exclude),
        (b"x*", false, Include),
        (b"xy", false, Exclude),
        (b"e/f/g.c", false, Include),
        (b"e/f/not.c", false, Exclude),
        (b"g.c/below", false, Include),
        (b"docs/x/img", true, Include),
        (b"docs/x/img", false, Exclude),
    ];
    for (path, is_directory, decision) in cases {
        let shown = String::from_utf8_lossy(path);
        assert_eq!(selection.decide(path, is_directory), decision, "{shown}");
    }
}

#[test]
fn directories_that_can_hold_nothing_wanted_are_not_entered() {
    let mut builder = Selection::builder();
    builder
        .include(b"/src/*/x")
        .include(b"/docs/a")
        .path(b"home/me\xff");
    let selection = builder.build().unwrap();
    let decisions: Vec<_> = [
        &b"src"[..],
        b"src/a",
        b"docs",
        b"docs/b",
        b"home",
        b"home/you",
        b"z",
    ]
    .map(|path| selection.decide(path, true) == Decision::Descend)
    .into();
    assert_eq!(decisions, [true, true, true, false, true, false, false]);
    assert!(
        Selection::builder()
            .include_lines(b"# none\n")
            .build()
            .unwrap()
            .decide(b"a", false)
            == Decision::Exclude
    );
    assert!(Selection::default().is_everything());
    assert_eq!(
        Selection::builder()
            .path(b".")
            .build()
            .unwrap()
            .decide(b"a", false),
        Decision::Include
    );
}

#[test]
fn patterns_without_meaning_are_errors_that_name_them() {
    let cases: [(&[u8], &str); 12] = [
        (b"", "pattern \"\" is empty"),
        (b"!", "pattern \"!\" is empty"),
        (b"/", "pattern \"/\" is empty"),
        (b"a[b", "pattern \"a[b\": a '[' has no ']'"),
        (b"[a-", "pattern \"[a-\": a '[' has no ']'"),
        (
            b"[z-a]",
            "pattern \"[z-a]\": a range inside '[...]' ends before it starts",
        ),
        (
            b"[[:x:]]",
            "pattern \"[[:x:]]\": a class '[:...:]' has no known name",
        ),
        (b"a\\", "pattern \"a\\\\\": it ends with '\\'"),
        (b"a//b", "pattern \"a//b\": a name between two '/' is empty"),
        (
            b"./a",
            "pattern \"./a\": no path contains '.' or '..'; '/' is the root",
        ),
        (
            b"../a",
            "pattern \"../a\": no path contains '.' or '..'; '/' is the root",
        ),
        (
            b"[\xff]",
            "pattern \"[\u{fffd}]\": only UTF-8 is allowed inside '[...]'",
        ),
    ];
    for (pattern, text) in cases {
        let error = Selection::builder().exclude(pattern).build().unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}

/// A name in a pattern: literals, wildcards and classes.
fn pattern_name() -> impl Strategy<Value = String> {
    const ATOMS: [&str; 14] = [
        "a", "b", "]", "-", "*", "?", "\\*", "{", "[ab]", "[!a]", "[]b]", "[a\\]-]", "[--a]",
        "[\\^-b]",
    ];
    let atom = prop::sample::select(&ATOMS[..]);
    let name = prop::collection::vec(atom, 1..4).prop_map(|atoms| atoms.concat());
    prop_oneof![6 => name, 1 => Just("**".to_string())]
}

fn pattern_text() -> impl Strategy<Value = String> {
    let names = prop::collection::vec(pattern_name(), 1..4);
    let marks = (
        prop::bool::weighted(0.2),
        any::<bool>(),
        prop::bool::weighted(0.2),
    );
    (names, marks).prop_map(|(names, (takes_back, is_anchored, is_directory))| {
        let mark = |is_set, mark| if is_set { mark } else { "" };
        let path = names.join("/").replace("**/**", "**");
        let start = mark(takes_back, "!").to_string() + mark(is_anchored, "/");
        start + &path + mark(is_directory, "/")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn decisions_are_those_of_the_reference(
        patterns in prop::collection::vec(pattern_text(), 1..4),
        path in "[ab\\]^{*-]{1,2}(/[ab\\]^{*-]{1,2}){0,3}",
        is_directory in any::<bool>(),
    ) {
        let patterns: Vec<_> = patterns.iter().map(String::as_bytes).collect();
        let decision = excluding(&patterns).decide(path.as_bytes(), is_directory);
        let is_excluded = is_excluded(&patterns, path.as_bytes(), is_directory);
        prop_assert_eq!(decision == Decision::Exclude, is_excluded);
    }
}
