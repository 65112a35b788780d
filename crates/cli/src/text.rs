//! Text for people, programs and shells: names that are safe to print, counts with their nouns,
//! digits. Printed text goes through [`printable`] or [`escaped`], JSON through [`json_text`],
//! command lines through [`shell_word`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

pub use refrain_page::{json_text, printable, printable_lines};

/// Removes the numbers of system errors, which follow their text.
pub fn without_error_numbers(text: &str) -> String {
    const BEGIN: &str = " (os error ";
    let mut parts = text.split(BEGIN);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        match part.get(digits..).and_then(|rest| rest.strip_prefix(')')) {
            Some(rest) if digits > 0 => kept.push_str(rest),
            _ => {
                kept.push_str(BEGIN);
                kept.push_str(part);
            }
        }
    }
    kept
}

/// A name of any bytes as text, which [`unescaped`] reverses: control characters and bytes that are
/// not UTF-8 become `\ooo` with three octal digits, a backslash becomes two.
pub fn escaped(name: &[u8]) -> String {
    // Most names are plain: checking their characters took a seventh of the time of `list`. The
    // fold handles many bytes at once, unlike a search that may end early.
    let is_plain = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'\\';
    if name.iter().fold(true, |all, byte| all & is_plain(byte)) {
        return String::from_utf8_lossy(name).into_owned();
    }
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => push_octal(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => text.push(c),
            }
        }
        push_octal(&mut text, chunk.invalid());
    }
    text
}

/// A name for messages: escaped, in quotation marks.
pub fn quoted(name: &[u8]) -> String {
    format!("\"{}\"", escaped(name))
}

/// A word that a POSIX shell reads as these bytes. Control characters and bytes that are not UTF-8
/// are written by the shell's own `printf`. `None` if no such word exists: the bytes contain a NUL
/// or end with a line break, which the shell removes from a command's output.
pub fn shell_word(bytes: &OsStr) -> Option<String> {
    let bytes = bytes.as_bytes();
    let text = std::str::from_utf8(bytes).ok();
    let text = text.filter(|text| !text.contains(char::is_control));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    match text {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => Some(text.to_owned()),
        Some(text) => Some(format!("'{}'", text.replace('\'', "'\\''"))),
        None if bytes.contains(&0) || bytes.ends_with(b"\n") => None,
        None => {
            let mut escaped = escaped(bytes).replace('%', "%%").replace('\'', "\\047");
            if escaped.starts_with('-') {
                // It would be an option of `printf`.
                escaped.replace_range(..1, "\\055");
            }
            Some(format!("\"$(printf '{escaped}')\""))
        }
    }
}

fn push_octal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\{byte:03o}"));
    }
}

/// Reverses [`escaped`]. A backslash that does not start such an escape stands for itself.
pub fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => (b'\\', after),
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    after @ ..,
                ],
            ) => (((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'), after),
            _ => (first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// A count with its noun in the right number: `1 block`, `2 blocks`, `3 entries`.
pub fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_word_that_was_meant() {
        let of = |bytes: &[u8]| shell_word(OsStr::from_bytes(bytes));
        assert_eq!(of(b"a/b.rfn").as_deref(), Some("a/b.rfn"));
        assert_eq!(of(b""), Some("''".into()));
        assert_eq!(of(b"it's"), Some("'it'\\''s'".into()));
        assert_eq!((of(b"a\n"), of(b"a\0b")), (None, None));
        let all: Vec<u8> = (1..=255).chain(*b"'$(touch x)'%s\\033`\"").collect();
        for bytes in [
            &all[..],
            b"~",
            b"a b",
            b"$HOME",
            b"\x1b]0;x\x07",
            b"-n \x1b",
            b"#",
            b"--a\x1b",
            b"%\x01",
        ] {
            let word = of(bytes).unwrap();
            assert!(!word.contains(char::is_control), "{word}");
            let line = format!("printf %s {word}");
            let output = std::process::Command::new("sh")
                .args(["-c", &line])
                .output();
            assert_eq!(output.unwrap().stdout, bytes, "{line}");
        }
    }

    #[test]
    fn escaped_names_are_text_for_one_line_and_keep_every_byte() {
        assert_eq!(escaped("grün".as_bytes()), "grün");
        assert_eq!(escaped(b" a/~\x7f"), " a/~\\177");
        assert_eq!(escaped(b"a\nb\xff\\c\x1b"), "a\\012b\\377\\\\c\\033");
        assert_eq!(escaped("\u{9b}".as_bytes()), "\\302\\233");
        let all: Vec<u8> = (0..=255).chain(0..=255).collect();
        for start in 0..all.len() {
            assert_eq!(unescaped(escaped(&all[start..]).as_bytes()), &all[start..]);
        }
        for name in [&b"a\\x2db"[..], b"\\", b"\\01", b"\\400", b"\\018"] {
            assert_eq!(unescaped(name), name, "no escape");
            assert_eq!(unescaped(escaped(name).as_bytes()), name);
        }
    }

    #[test]
    fn nouns_agree_with_their_count() {
        assert_eq!(counted(0, "block"), "0 blocks");
        assert_eq!(counted(1, "block"), "1 block");
        assert_eq!(counted(2, "block"), "2 blocks");
        assert_eq!(counted(1, "entry"), "1 entry");
        assert_eq!(counted(3, "entry"), "3 entries");
    }

    #[test]
    fn hexadecimal_digits_come_in_pairs() {
        assert_eq!(hex(&[0, 0xa5, 0xff]), "00a5ff");
    }
}
