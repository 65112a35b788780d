//! A line with a checksum, in the formats of md5sum, sha256sum and b3sum.
//!
//! ```text
//! HASH  NAME                 HASH *NAME for a file read in binary mode
//! ALGORITHM (NAME) = HASH    with --tag, the BSD format
//! ```
//!
//! If the name contains a backslash or a line end, it is escaped and the line starts with a
//! backslash.

use refrain::{DigestAlgorithm, DigestValue};

/// The default algorithm: the hash that archives store for every member.
pub const DEFAULT_ALGORITHM: DigestAlgorithm = DigestAlgorithm::Blake3;

/// The format of lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Form {
    pub is_tagged: bool,
    pub is_binary: bool,
    /// Whether lines end with a NUL byte; then names need no escapes.
    pub ends_with_zero: bool,
}

/// A line of a checksum file.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Empty, or a comment.
    Blank,
    /// Not a checksum.
    Improper,
    /// A file with its expected digest.
    Sum(Sum),
}

/// A file and its expected digest.
#[derive(Debug, PartialEq, Eq)]
pub struct Sum {
    pub algorithm: DigestAlgorithm,
    pub digest: DigestValue,
    pub name: Vec<u8>,
}

/// The name of an algorithm in tagged lines.
pub fn tag(algorithm: DigestAlgorithm) -> &'static str {
    match algorithm {
        DigestAlgorithm::Md5 => "MD5",
        DigestAlgorithm::Sha256 => "SHA256",
        DigestAlgorithm::Blake3 => "BLAKE3",
    }
}

/// Escaped bytes, and what follows the backslash for each.
const ESCAPES: [(u8, u8); 3] = [(b'\\', b'\\'), (b'\n', b'n'), (b'\r', b'r')];

/// Appends `name`, escaped.
pub fn escape(name: &[u8], line: &mut Vec<u8>) {
    for byte in name {
        match ESCAPES.iter().find(|(raw, _)| raw == byte) {
            Some((_, escaped)) => line.extend([b'\\', *escaped]),
            None => line.push(*byte),
        }
    }
}

fn unescape(name: &[u8]) -> Option<Vec<u8>> {
    let mut raw = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        raw.push(match byte {
            b'\\' => {
                let escaped = bytes.next()?;
                ESCAPES.iter().find(|(_, found)| found == escaped)?.0
            }
            other => other,
        });
    }
    Some(raw)
}

/// Appends the line for a file to `line`.
pub fn write_line(
    line: &mut Vec<u8>,
    algorithm: DigestAlgorithm,
    digest: &DigestValue,
    name: &[u8],
    form: Form,
) {
    let needs_escape = |byte: &u8| ESCAPES.iter().any(|(raw, _)| raw == byte);
    let is_escaped = !form.ends_with_zero && name.iter().any(needs_escape);
    if is_escaped {
        line.push(b'\\');
    }
    let push_name = |line: &mut Vec<u8>| {
        if is_escaped { escape(name, line) } else { line.extend(name) }
    };
    if form.is_tagged {
        line.extend(tag(algorithm).as_bytes());
        line.extend(b" (");
        push_name(line);
        line.extend(format!(") = {digest}").as_bytes());
    } else {
        line.extend(digest.to_string().as_bytes());
        line.extend(if form.is_binary { b" *" } else { b"  " });
        push_name(line);
    }
    line.push(if form.ends_with_zero { 0 } else { b'\n' });
}

/// Parses a line without its end. The algorithm is `only`, or its tag's, or follows from the number
/// of digits.
pub fn read_line(line: &[u8], only: Option<DigestAlgorithm>) -> Line {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() || line.starts_with(b"#") {
        return Line::Blank;
    }
    let text = line.trim_ascii_start();
    let (text, is_escaped) = match text.strip_prefix(b"\\") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let found = tagged(text, only).or_else(|| plain(text, only));
    let sum = found.and_then(|(algorithm, digits, name)| {
        Some(Sum {
            algorithm,
            digest: digest_of(digits, algorithm)?,
            name: if is_escaped { unescape(name)? } else { name.to_vec() },
        })
    });
    match sum {
        Some(sum) if !sum.name.is_empty() && !sum.name.contains(&0) => Line::Sum(sum),
        _ => Line::Improper,
    }
}

/// Algorithm, digits and name of a line.
type Parts<'a> = (DigestAlgorithm, &'a [u8], &'a [u8]);

fn tagged(text: &[u8], only: Option<DigestAlgorithm>) -> Option<Parts<'_>> {
    let wanted = DigestAlgorithm::ALL
        .into_iter()
        .filter(|&algorithm| only.is_none_or(|only| only == algorithm));
    for algorithm in wanted {
        let Some(rest) = text.strip_prefix(tag(algorithm).as_bytes()) else {
            continue;
        };
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let rest = rest.strip_prefix(b"(")?;
        // The name may contain a parenthesis, the digits cannot.
        let end = rest.iter().rposition(|&byte| byte == b')')?;
        let digits = rest[end + 1..].trim_ascii_start().strip_prefix(b"=")?;
        return Some((algorithm, digits.trim_ascii(), &rest[..end]));
    }
    None
}

fn plain(text: &[u8], only: Option<DigestAlgorithm>) -> Option<Parts<'_>> {
    let count = text
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let (digits, rest) = text.split_at(count);
    let preferred = [DEFAULT_ALGORITHM].into_iter().chain(DigestAlgorithm::ALL);
    let algorithm = only.or_else(|| {
        preferred
            .into_iter()
            .find(|one| one.digest_bytes() * 2 == count)
    })?;
    let [b' ' | b'\t', name @ ..] = rest else {
        return None;
    };
    // A second space or an asterisk belongs to the format, unless nothing follows it; old programs
    // wrote one space only.
    let name = match name {
        [b' ' | b'*', name @ ..] if !name.is_empty() => name,
        name => name,
    };
    Some((algorithm, digits, name))
}

fn digest_of(digits: &[u8], algorithm: DigestAlgorithm) -> Option<DigestValue> {
    if digits.len() != algorithm.digest_bytes() * 2 {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let bytes: Option<Vec<u8>> = digits
        .chunks(2)
        .map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?))
        .collect();
    DigestValue::new(&bytes?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "00112233445566778899aabbccddeeff";

    fn md5() -> DigestValue {
        digest_of(DIGITS.as_bytes(), DigestAlgorithm::Md5).unwrap()
    }

    #[test]
    fn written_lines_parse_back() {
        let names: [&[u8]; 9] = [
            b"a",
            b"a b",
            b" a",
            b"*a",
            b"back\\slash",
            b"new\nline",
            b"cr\rx",
            b"(x) = y",
            b"\xff\xfe",
        ];
        for name in names {
            for (is_tagged, is_binary) in [(false, false), (false, true), (true, false)] {
                let form = Form {
                    is_tagged,
                    is_binary,
                    ..Form::default()
                };
                for algorithm in DigestAlgorithm::ALL {
                    let digest = DigestValue::new(&vec![0xa5; algorithm.digest_bytes()]).unwrap();
                    let mut line = Vec::new();
                    write_line(&mut line, algorithm, &digest, name, form);
                    assert_eq!(line.pop(), Some(b'\n'));
                    assert!(!line.contains(&b'\n'));
                    let sum = Sum {
                        algorithm,
                        digest,
                        name: name.to_vec(),
                    };
                    assert_eq!(read_line(&line, Some(algorithm)), Line::Sum(sum));
                }
            }
        }
    }

    #[test]
    fn lines_of_other_programs_parse() {
        let upper = DIGITS.to_uppercase();
        for line in [
            format!("{DIGITS}  name"),
            format!("{DIGITS} *name"),
            format!("{DIGITS} name"),
            format!("{DIGITS}\tname"),
            format!("  {DIGITS}  name"),
            format!("{upper}  name\r"),
            format!("MD5 (name) = {DIGITS}"),
            format!("MD5(name)= {DIGITS}"),
            format!("\\{DIGITS}  name"),
        ] {
            let sum = Sum {
                algorithm: DigestAlgorithm::Md5,
                digest: md5(),
                name: b"name".to_vec(),
            };
            assert_eq!(read_line(line.as_bytes(), None), Line::Sum(sum), "{line:?}");
        }
        let only_space = read_line(format!("{DIGITS}  ").as_bytes(), None);
        assert!(matches!(only_space, Line::Sum(sum) if sum.name == b" "));
    }

    #[test]
    fn the_number_of_digits_selects_the_algorithm_unless_one_is_given() {
        let line = format!("{DIGITS}{DIGITS}  name");
        for (only, expected) in [
            (None, Some(DigestAlgorithm::Blake3)),
            (Some(DigestAlgorithm::Sha256), Some(DigestAlgorithm::Sha256)),
            (Some(DigestAlgorithm::Md5), None),
        ] {
            let found = match read_line(line.as_bytes(), only) {
                Line::Sum(sum) => Some(sum.algorithm),
                _ => None,
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn malformed_lines_are_rejected() {
        assert_eq!(read_line(b"", None), Line::Blank);
        assert_eq!(read_line(b"# text", None), Line::Blank);
        for line in [
            "text".to_string(),
            DIGITS.to_string(),
            format!("{DIGITS} "),
            format!("{DIGITS}0  name"),
            format!("x{DIGITS}  name"),
            format!("\\{DIGITS}  na\\me"),
            format!("\\{DIGITS}  name\\"),
            format!("{DIGITS}  na\0me"),
            format!("MD5 (name) = {DIGITS}00"),
            format!("MD5 (name {DIGITS}"),
            format!("SHA256 (name) = {DIGITS}"),
            format!("MD5 () = {DIGITS}"),
        ] {
            assert_eq!(read_line(line.as_bytes(), None), Line::Improper, "{line:?}");
        }
        let other = format!("SHA256 (name) = {DIGITS}{DIGITS}");
        assert_eq!(
            read_line(other.as_bytes(), Some(DigestAlgorithm::Md5)),
            Line::Improper
        );
    }
}
