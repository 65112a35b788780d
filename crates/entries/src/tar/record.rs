//! One record of a tar header: its fields, numbers and checksum.

/// The unit of tar: a header is one record, data is padded to whole records.
pub const RECORD_BYTES: usize = 512;

pub(crate) type Record = [u8; RECORD_BYTES];

/// The number of zero bytes after data of `size_bytes`, up to the next record.
#[must_use]
pub fn padding_bytes(size_bytes: u64) -> u64 {
    let record = RECORD_BYTES as u64;
    (record - size_bytes % record) % record
}

/// The largest number that eleven octal digits hold (size, time).
pub(crate) const OCTAL_11_MAX: u64 = (1 << 33) - 1;
/// The largest number that seven octal digits hold (owner, group, device numbers).
pub(crate) const OCTAL_7_MAX: u64 = (1 << 21) - 1;

/// A field of the header: `(offset, length)`, each following the one before it.
pub(crate) type Field = (usize, usize);
const fn field_after(field: Field, length: usize) -> Field {
    (field.0 + field.1, length)
}
pub(crate) const NAME: Field = (0, 100);
pub(crate) const MODE: Field = field_after(NAME, 8);
pub(crate) const UID: Field = field_after(MODE, 8);
pub(crate) const GID: Field = field_after(UID, 8);
pub(crate) const SIZE: Field = field_after(GID, 12);
pub(crate) const MTIME: Field = field_after(SIZE, 12);
pub(crate) const CHECKSUM: Field = field_after(MTIME, 8);
pub(crate) const TYPE: Field = field_after(CHECKSUM, 1);
pub(crate) const LINK: Field = field_after(TYPE, 100);
pub(crate) const MAGIC: Field = field_after(LINK, 8);
pub(crate) const USER: Field = field_after(MAGIC, 32);
pub(crate) const GROUP: Field = field_after(USER, 32);
pub(crate) const DEVICE_MAJOR: Field = field_after(GROUP, 8);
pub(crate) const DEVICE_MINOR: Field = field_after(DEVICE_MAJOR, 8);
pub(crate) const PREFIX: Field = field_after(DEVICE_MINOR, 155);
const _: () = assert!(PREFIX.0 + PREFIX.1 + 12 == RECORD_BYTES);

/// The magic and version of POSIX tar.
pub(crate) const USTAR: &[u8; 8] = b"ustar\x0000";
/// The magic of POSIX tar without its version, which some writers leave out.
pub(crate) const USTAR_MAGIC: &[u8; 6] = b"ustar\0";

pub(crate) fn field(record: &Record, field: Field) -> &[u8] {
    record.get(field.0..field.0 + field.1).unwrap_or_default()
}

pub(crate) fn field_mut(record: &mut Record, field: Field) -> &mut [u8] {
    record
        .get_mut(field.0..field.0 + field.1)
        .unwrap_or_default()
}

pub(crate) fn text(record: &Record, at: Field) -> &[u8] {
    until_nul(field(record, at))
}

pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default()
}

/// Fills a field with text, cut to its length, and zeros.
pub(crate) fn put_text(record: &mut Record, at: Field, value: &[u8]) {
    let target = field_mut(record, at);
    let length = value.len().min(target.len());
    let (head, tail) = target.split_at_mut(length);
    head.copy_from_slice(value.get(..length).unwrap_or_default());
    tail.fill(0);
}

/// Writes octal digits that fill the field up to its closing NUL. The caller ensures that the value
/// fits; a larger one loses its upper digits.
pub(crate) fn put_octal(record: &mut Record, at: Field, value: u64) {
    if let Some((nul, digits)) = field_mut(record, at).split_last_mut() {
        *nul = 0;
        fill_octal(digits, b'0', value);
    }
}

/// Writes `value` as octal digits at the end of `target`, with `pad` before them. Returns whether
/// all digits fit.
pub(crate) fn fill_octal(target: &mut [u8], pad: u8, value: u64) -> bool {
    let mut rest = value;
    let mut is_first = true;
    for digit in target.iter_mut().rev() {
        *digit = if rest == 0 && !is_first { pad } else { b'0' | (rest & 7) as u8 };
        rest >>= 3;
        is_first = false;
    }
    rest == 0
}

/// Writes the checksum in POSIX tar's usual form.
pub(crate) fn put_checksum(record: &mut Record) {
    let sum = checksum(record);
    put_text(record, CHECKSUM, b"000000\0 ");
    if let Some(digits) = field_mut(record, CHECKSUM).get_mut(..6) {
        fill_octal(digits, b'0', sum);
    }
}

/// The sum of all bytes, with spaces in place of the checksum field.
pub(crate) fn checksum(record: &Record) -> u64 {
    let own: u64 = (field(record, CHECKSUM).iter().map(|b| u64::from(*b))).sum();
    sum(record) - own + 8 * u64::from(b' ')
}

/// The sum of all bytes, four pairs at once.
fn sum(record: &Record) -> u64 {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    // 64 words add at most 64 × 2 × 255 to each quarter, which fits.
    let quarters: u64 = (record.as_chunks::<8>().0.iter())
        .map(|word| u64::from_le_bytes(*word))
        .map(|word| (word & EVEN) + (word >> 8 & EVEN))
        .sum();
    (0..4)
        .map(|quarter| quarters >> (16 * quarter) & 0xffff)
        .sum()
}

/// The sum as old programs computed it, with signed bytes.
fn signed_checksum(record: &Record) -> i64 {
    let high = record.iter().filter(|byte| **byte >= 0x80).count() as i64;
    let own = (field(record, CHECKSUM).iter()).filter(|byte| **byte >= 0x80);
    i64::try_from(checksum(record)).unwrap_or(0) - 256 * (high - own.count() as i64)
}

/// Whether the record states its checksum, computed in either way.
pub(crate) fn has_valid_checksum(record: &Record) -> bool {
    let Some(stored) = number(field(record, CHECKSUM)) else {
        return false;
    };
    stored == i128::from(checksum(record)) || stored == i128::from(signed_checksum(record))
}

/// Parses octal digits between spaces and NULs, or GNU's base 256 if the first bit is set. `None`
/// if it is neither, or out of the range of 64 bits.
pub(crate) fn number(bytes: &[u8]) -> Option<i128> {
    match bytes.first() {
        Some(0x80..) => base_256(bytes),
        _ => octal(bytes).map(i128::from),
    }
}

pub(crate) fn unsigned(bytes: &[u8]) -> Option<u64> {
    number(bytes).and_then(|value| u64::try_from(value).ok())
}

/// Parses octal digits after spaces; spaces and NULs may follow.
pub(crate) fn octal(bytes: &[u8]) -> Option<u64> {
    let mut rest = bytes.iter();
    let mut next = rest.next();
    while next == Some(&b' ') {
        next = rest.next();
    }
    let mut value = 0_u64;
    while let Some(digit @ b'0'..=b'7') = next {
        if value >> 61 != 0 {
            return None;
        }
        value = value << 3 | u64::from(digit - b'0');
        next = rest.next();
    }
    let is_filler = |byte: &u8| matches!(byte, b' ' | 0);
    (next.is_none_or(is_filler) && rest.all(is_filler)).then_some(value)
}

/// Parses a big-endian two's complement number. The top bit of the first byte marks this form; the
/// bit below it is the sign.
pub(crate) fn base_256(bytes: &[u8]) -> Option<i128> {
    let (first, rest) = bytes.split_first()?;
    // The sign bit is the second one: shift it to the top and back.
    let start = i128::from((*first << 1) as i8 >> 1);
    let value = rest.iter().try_fold(start, |value, byte| {
        value.checked_mul(256)?.checked_add(i128::from(*byte))
    })?;
    (value >= i128::from(i64::MIN) && value <= i128::from(u64::MAX)).then_some(value)
}

/// Writes a number in base 256. Fields have at least eight bytes; the bits that mark the form
/// overwrite bits of numbers that are too large.
pub(crate) fn put_base_256(target: &mut [u8], value: i128) {
    let mut rest = value;
    for byte in target.iter_mut().rev() {
        *byte = (rest & 0xff) as u8;
        rest >>= 8;
    }
    if let Some(first) = target.first_mut() {
        *first |= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_base_256() {
        assert_eq!(octal(b"0000644\0"), Some(0o644));
        assert_eq!(octal(b"   644 \0"), Some(0o644));
        assert_eq!(octal(b"\0\0\0\0"), Some(0));
        assert_eq!(octal(b"64x"), None);
        assert_eq!(octal(b"64 4"), None);
        assert_eq!(octal(&[b'7'; 30]), None);
        assert_eq!(number(&[0x80, 0, 1, 0]), Some(256));
        assert_eq!(number(&[0xff, 0xff, 0xff, 0xfe]), Some(-2));
        assert_eq!(number(&[0x80 | 1; 12]), None);
        assert_eq!(unsigned(&[0xff; 12]), None);
    }

    #[test]
    fn base_256_round_trips() {
        for value in [0, 1, 255, 1 << 40, -1, -256, -(1 << 40)] {
            let mut field = [0; 12];
            put_base_256(&mut field, value);
            assert_eq!(number(&field), Some(value), "{field:?}");
        }
        let mut field = [0; 12];
        put_base_256(&mut field, i128::from(u64::MAX));
        assert_eq!(unsigned(&field), Some(u64::MAX));
    }

    #[test]
    fn checksums_are_accepted_signed_and_unsigned() {
        let mut record = [0; RECORD_BYTES];
        put_text(&mut record, NAME, b"caf\xe9");
        put_checksum(&mut record);
        assert!(has_valid_checksum(&record));
        let signed = checksum(&record) - 256;
        let digits = field_mut(&mut record, CHECKSUM).get_mut(..6).unwrap();
        fill_octal(digits, b'0', signed);
        assert!(has_valid_checksum(&record));
        record[0] ^= 1;
        assert!(!has_valid_checksum(&record));
    }

    #[test]
    fn sums_are_those_of_single_bytes() {
        let naive = |record: &Record| record.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        let mut record = [0xff; RECORD_BYTES];
        assert_eq!(sum(&record), naive(&record));
        for (at, byte) in record.iter_mut().enumerate() {
            *byte = (at * at * 7 % 251) as u8;
        }
        assert_eq!(sum(&record), naive(&record));
    }

    #[test]
    fn octal_digits_are_padded_and_overflow_is_told() {
        let mut target = [0; 4];
        assert!(fill_octal(&mut target, b' ', 0o17));
        assert_eq!(&target, b"  17");
        assert!(fill_octal(&mut target, b' ', 0));
        assert_eq!(&target, b"   0");
        assert!(!fill_octal(&mut target, b'0', 0o12345));
    }
}
