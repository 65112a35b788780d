//! Pax records: `LENGTH KEY=VALUE\n`, where LENGTH counts the whole record in decimal.

use crate::entry::Timestamp;

const NANOSECONDS: i128 = Timestamp::NANOSECONDS_END as i128;

pub(crate) fn push_pax(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while rest + decimal_digits(length) != length {
        length += 1;
    }
    push_decimal(records, length as u64);
    records.push(b' ');
    records.extend_from_slice(key);
    records.push(b'=');
    records.extend_from_slice(value);
    records.push(b'\n');
}

fn push_decimal(text: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut rest = number;
    let mut count = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
        if rest == 0 {
            break;
        }
    }
    text.extend_from_slice(digits.get(digits.len() - count..).unwrap_or_default());
}

fn decimal_digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Splits the first record off `records`: key, value and the rest. `None` if it is malformed.
pub(crate) fn split_pax(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    // Lengths have few digits; a record without a space near its start is malformed.
    let head = records.get(..records.len().min(21))?;
    let space = head.iter().position(|byte| *byte == b' ')?;
    let length = usize::try_from(decimal(records.get(..space)?)?).ok()?;
    let body = (records.get(space.checked_add(1)?..length)?).strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    Some((
        body.get(..equals)?,
        body.get(equals + 1..)?,
        records.get(length..)?,
    ))
}

pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| match digit {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// Seconds with a fraction. Before 1970 the fraction has the sign of the whole: -1 s plus
/// 750,000,000 ns is -0.25.
pub(crate) fn pax_time(time: Timestamp) -> Vec<u8> {
    let mut text = Vec::with_capacity(32);
    let (mut seconds, mut fraction) = (time.seconds.unsigned_abs(), time.nanoseconds);
    if time.seconds < 0 {
        text.push(b'-');
        if fraction != 0 {
            seconds -= 1;
            fraction = Timestamp::NANOSECONDS_END.saturating_sub(fraction);
        }
    }
    push_decimal(&mut text, seconds);
    if fraction != 0 {
        text.push(b'.');
        // Nine digits, preceded by a 1.
        let start = text.len();
        push_decimal(&mut text, u64::from(fraction) + 1_000_000_000);
        text.remove(start);
        let end = text.iter().rposition(|digit| *digit != b'0');
        text.truncate(end.map_or(0, |end| end + 1));
    }
    text
}

/// Parses seconds with a fraction, of which nine digits count.
pub(crate) fn parse_pax_time(value: &[u8]) -> Option<Timestamp> {
    let (is_negative, value) = match value.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let point = value.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = value.split_at(point.unwrap_or(value.len()));
    let fraction = fraction.get(1..).unwrap_or(b"0");
    let counted = fraction.get(..fraction.len().min(9))?;
    let scale = 10_u64.pow(9 - u32::try_from(counted.len()).ok()?);
    let magnitude = i128::from(decimal(whole)?) * NANOSECONDS
        + i128::from(decimal(counted)?.checked_mul(scale)?);
    let nanoseconds = if is_negative { -magnitude } else { magnitude };
    Some(Timestamp {
        seconds: i64::try_from(nanoseconds.div_euclid(NANOSECONDS)).ok()?,
        nanoseconds: u32::try_from(nanoseconds.rem_euclid(NANOSECONDS)).ok()?,
    })
}

/// The name of an extended attribute as part of a key, where `=` would end the key.
pub(crate) fn escape_attribute_name(name: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'%' => escaped.extend_from_slice(b"%25"),
            b'=' => escaped.extend_from_slice(b"%3D"),
            _ => escaped.push(*byte),
        }
    }
    escaped
}

/// Reverses [`escape_attribute_name`]; other uses of `%` stay unchanged.
pub(crate) fn unescape_attribute_name(name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(b"%25") {
            plain.push(b'%');
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix(b"%3D") {
            plain.push(b'=');
            rest = tail;
        } else {
            plain.push(*first);
            rest = after;
        }
    }
    plain
}

/// Base 64 without padding, as libarchive writes it.
pub(crate) fn encode_base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=group.len() {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(DIGITS.get(value as usize).copied().unwrap_or(b'='));
        }
    }
    text
}

/// Reverses [`encode_base64`], with or without padding. `None` if the text is not base 64.
pub(crate) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let end = text
        .iter()
        .rposition(|byte| *byte != b'=')
        .map_or(0, |at| at + 1);
    let mut bytes = Vec::with_capacity(end / 4 * 3 + 2);
    for group in text.get(..end)?.chunks(4) {
        let mut bits = 0_u32;
        for digit in group {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - group.len());
        let whole = match group.len() {
            1 => return None,
            length => length - 1,
        };
        bytes.extend_from_slice(bits.to_be_bytes().get(1..=whole)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_round_trips() {
        assert_eq!(encode_base64(b"of one"), b"b2Ygb25l");
        assert_eq!(encode_base64(b"22"), b"MjI");
        assert_eq!(decode_base64(b"MjI="), Some(b"22".to_vec()));
        for length in 0..20 {
            let bytes: Vec<u8> = (0..length).map(|at| at * 13 + 5).collect();
            assert_eq!(decode_base64(&encode_base64(&bytes)), Some(bytes));
        }
        assert_eq!(decode_base64(b"MjIxx"), None);
        assert_eq!(decode_base64(b"M*"), None);
    }

    #[test]
    fn pax_lengths_include_their_own_digits() {
        // The value lengths around which the number of digits of the length changes.
        for value_length in (0..120).chain(980..1010) {
            let mut records = Vec::new();
            push_pax(&mut records, b"path", &vec![b'v'; value_length]);
            let (key, value, rest) = split_pax(&records).unwrap();
            assert_eq!(
                (key, value.len(), rest.len()),
                (&b"path"[..], value_length, 0)
            );
        }
    }

    #[test]
    fn malformed_records_are_refused() {
        for records in [
            &b"9 a=b\n"[..],
            b"6 a=bc",
            b"6 abcd\n",
            b"x a=b\n",
            b" a=b\n",
            b"",
            b"99999999999999999999999999 a=b\n",
            b"1 a=b\n",
        ] {
            assert_eq!(split_pax(records), None, "{records:?}");
        }
        assert_eq!(split_pax(b"6 a=b\nrest").unwrap().2, b"rest");
    }

    #[test]
    fn pax_times_round_trip() {
        for seconds in [0, 1, -1, -2, 1_700_000_000, i64::MIN, i64::MAX] {
            for nanoseconds in [0, 1, 250_000_000, 999_999_999] {
                let time = Timestamp {
                    seconds,
                    nanoseconds,
                };
                let text = pax_time(time);
                assert_eq!(parse_pax_time(&text), Some(time), "{}", text.escape_ascii());
            }
        }
        let time = |seconds, nanoseconds| Timestamp {
            seconds,
            nanoseconds,
        };
        for (value, text) in [
            (time(-1, 750_000_000), "-0.25"),
            (time(-2, 0), "-2"),
            (time(0, 0), "0"),
            (time(10, 10), "10.00000001"),
            (time(i64::MIN, 1), "-9223372036854775807.999999999"),
        ] {
            assert_eq!(pax_time(value), text.as_bytes());
        }
        assert_eq!(parse_pax_time(b"1.x"), None);
        assert_eq!(parse_pax_time(b""), None);
        assert_eq!(parse_pax_time(b"7.1234567899"), Some(time(7, 123_456_789)));
    }

    #[test]
    fn attribute_names_round_trip_through_keys() {
        for name in [
            &b"user.a"[..],
            b"user.a=b",
            b"user.100%",
            b"%3D",
            b"%2",
            b"",
        ] {
            let escaped = escape_attribute_name(name);
            assert!(!escaped.contains(&b'='));
            assert_eq!(unescape_attribute_name(&escaped), name);
        }
    }
}
