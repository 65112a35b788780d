//! When and for what the keys in files of OpenSSH count (`ssh-keygen(1)`, "ALLOWED SIGNERS", and
//! `sshd(8)`, "AUTHORIZED_KEYS FILE FORMAT").

use super::error::SignatureKeyError as E;
use super::sshsig::NAMESPACE;

/// When a key counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Validity {
    after: Option<i64>,
    before: Option<i64>,
    /// It may sign, but not this.
    is_for_others: bool,
}

impl Validity {
    pub(super) fn holds_at(&self, unix_seconds: i64) -> bool {
        !self.is_for_others
            && self.after.is_none_or(|after| unix_seconds >= after)
            && self.before.is_none_or(|before| unix_seconds <= before)
    }

    /// The options of a line of `authorized_keys`, most of which are about logins.
    pub(super) fn of_login(options: &str) -> Result<Validity, E> {
        Validity::parse(options, true)
    }

    /// The options of a line of allowed signers.
    pub(super) fn of_signer(options: &str) -> Result<Validity, E> {
        Validity::parse(options, false)
    }

    fn parse(options: &str, ignores_others: bool) -> Result<Validity, E> {
        let mut validity = Validity::default();
        let unsupported = |option: &str| E::Option(option.to_owned());
        for option in pieces(options, |c| c == ',').ok_or(E::Damaged)? {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = value.trim_matches('"');
            let time = || {
                unix_seconds(value)
                    .ok_or_else(|| unsupported(option))
                    .map(Some)
            };
            match name.to_ascii_lowercase().as_str() {
                "namespaces" => validity.is_for_others = !lists(value, NAMESPACE),
                "valid-after" => validity.after = time()?,
                "valid-before" | "expiry-time" => validity.before = time()?,
                // The key signs other keys.
                "cert-authority" => return Err(unsupported(option)),
                _ if ignores_others => {}
                _ => return Err(unsupported(option)),
            }
        }
        Ok(validity)
    }
}

/// What separators divide, except in quotation marks. `None` if one is missing.
pub(super) fn pieces(text: &str, is_separator: impl Fn(char) -> bool) -> Option<Vec<&str>> {
    let mut is_quoted = false;
    let pieces = text.split(|c: char| {
        is_quoted ^= c == '"';
        !is_quoted && is_separator(c)
    });
    let pieces: Vec<_> = pieces.filter(|piece| !piece.is_empty()).collect();
    (!is_quoted).then_some(pieces)
}

/// Whether a list of patterns has one for `name`, and none with `!` that excludes it.
fn lists(patterns: &str, name: &str) -> bool {
    let mut is_listed = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(pattern.as_bytes(), name.as_bytes()) => return false,
            Some(_) => {}
            None => is_listed |= matches(pattern.as_bytes(), name.as_bytes()),
        }
    }
    is_listed
}

/// Whether a pattern with `*` and `?` matches.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', pattern)), _) => {
            (0..=name.len()).any(|at| matches(pattern, name.split_at(at).1))
        }
        (Some((&wanted, pattern)), Some((&found, name))) => {
            (wanted == b'?' || wanted == found) && matches(pattern, name)
        }
        _ => false,
    }
}

/// The time `YYYYMMDD[HHMM[SS]]`, taken as UTC with or without a `Z`: the bytes layer knows no time
/// zone.
fn unix_seconds(text: &str) -> Option<i64> {
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let is_time = matches!(digits.len(), 8 | 12 | 14) && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_time {
        return None;
    }
    let number = |from: usize, to: usize| digits.get(from..to).unwrap_or("0").parse::<i64>();
    let (year, month, day) = (number(0, 4).ok()?, number(4, 6).ok()?, number(6, 8).ok()?);
    let (hour, minute, second) = (
        number(8, 10).ok()?,
        number(10, 12).ok()?,
        number(12, 14).ok()?,
    );
    let is_valid = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    let days = days_since_1970(year, month, day);
    is_valid.then_some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days of the Gregorian calendar, counted from March so that leap days come last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        for (text, seconds) in [
            ("19700101", Some(0)),
            ("20000301Z", Some(951_868_800)),
            ("202402291230", Some(1_709_209_800)),
            ("20240229123001Z", Some(1_709_209_801)),
            ("20241301", None),
            ("2024-1-1", None),
            ("2024010", None),
            ("", None),
        ] {
            assert_eq!(unix_seconds(text), seconds, "{text}");
        }
    }

    #[test]
    fn options_limit_when_and_for_what_a_key_counts() {
        let holds = |options| Validity::of_signer(options).map(|v| v.holds_at(1_000_000_000));
        for (options, expected) in [
            ("namespaces=\"refrain\"", Ok(true)),
            ("namespaces=\"git,re*\"", Ok(true)),
            ("namespaces=\"*,!refrain\"", Ok(false)),
            ("namespaces=\"git\"", Ok(false)),
            ("valid-after=\"20010101\"", Ok(true)),
            ("valid-before=\"20010101Z\"", Ok(false)),
            ("valid-before=\"20200101\",namespaces=\"refrai?\"", Ok(true)),
            ("cert-authority", Err(E::Option("cert-authority".into()))),
            ("colour=\"red\"", Err(E::Option("colour=\"red\"".into()))),
            (
                "valid-after=\"soon\"",
                Err(E::Option("valid-after=\"soon\"".into())),
            ),
            ("valid-after=\"2001", Err(E::Damaged)),
        ] {
            assert_eq!(holds(options), expected, "{options}");
        }
        let login = Validity::of_login("no-pty,expiry-time=\"20010101\"");
        assert_eq!(login.map(|login| login.holds_at(0)), Ok(true));
    }
}
