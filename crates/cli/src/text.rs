//! Text for people: names that are safe to print, counts with their nouns, digits.

/// Returns `name` with every control character, which a terminal could take as a command, replaced
/// by `?`.
pub fn printable(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Like [`printable`] for a name of any bytes; invalid UTF-8 becomes U+FFFD.
pub fn printable_bytes(name: &[u8]) -> String {
    printable(&String::from_utf8_lossy(name))
}

/// Returns a count with its noun in the right number: `1 block`, `2 blocks`, `3 entries`.
pub fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// Returns bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("a\n\u{7}b\u{9b}c"), "a??b?c");
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
