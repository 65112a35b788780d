//! Numbers in options and configuration files, parsed like C's `strtol`.

/// The number at the beginning of a text (0 without one), and the rest.
pub fn leading_number(text: &str) -> (i64, &str) {
    let text = text.trim_start();
    let sign = text.len() - text.trim_start_matches(['+', '-']).len();
    let digits = text[sign..]
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len() - sign);
    let (number, rest) = text.split_at(sign + digits);
    (number.parse().unwrap_or(0), rest)
}
