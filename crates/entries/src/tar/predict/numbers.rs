//! Numbers and texts of a record in the form of an earlier record.

use crate::tar::record::{
    CHECKSUM, Field, Record, checksum, field, field_mut, fill_octal, number, put_base_256,
    put_text, text,
};

/// Replaces the number in a field in the same form: the same number of digits, padding and end. A
/// number that does not fit is written in base 256.
pub(super) fn set_number(record: &mut Record, at: Field, value: i128) {
    let bytes = field(record, at);
    if number(bytes) == Some(value) {
        return;
    }
    let form = NumberForm::from_bytes(bytes);
    let target = field_mut(record, at);
    match u64::try_from(value) {
        Ok(value) if form.write(target, value) => {}
        _ => put_base_256(target, value),
    }
}

/// Sets a field to a text followed by zeros, unless it has that text.
pub(super) fn set_text(record: &mut Record, at: Field, value: &[u8]) {
    if text(record, at) != value {
        put_text(record, at, value);
    }
}

/// Computes the checksum and writes it in the form of the earlier record.
pub(super) fn set_checksum(record: &mut Record) {
    let sum = checksum(record);
    set_number(record, CHECKSUM, i128::from(sum));
}

#[derive(Debug, Clone, Copy)]
struct NumberForm {
    width: usize,
    pad: u8,
    /// Whether the field is octal, so that its end is kept.
    is_octal: bool,
}

impl NumberForm {
    fn from_bytes(bytes: &[u8]) -> NumberForm {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'7');
        let spaces = bytes.iter().take_while(|byte| **byte == b' ').count();
        let digits = (bytes.iter().skip(spaces)).take_while(|byte| is_digit(byte));
        let width = spaces + digits.count();
        if width > spaces {
            NumberForm {
                width,
                pad: if spaces > 0 { b' ' } else { b'0' },
                is_octal: true,
            }
        } else {
            NumberForm {
                width: bytes.len().saturating_sub(1),
                pad: b'0',
                is_octal: false,
            }
        }
    }

    /// Writes a number; returns whether it fits. One that is longer than the form overwrites the
    /// end, except for the last byte.
    fn write(self, target: &mut [u8], value: u64) -> bool {
        if !self.is_octal {
            target.fill(0);
        }
        let digits = (66 - value.leading_zeros() as usize) / 3;
        let width = self.width.max(digits);
        let room = (self.width).max(target.len().saturating_sub(1));
        match target.get_mut(..width).filter(|_| width <= room) {
            Some(target) => fill_octal(target, self.pad, value),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(form: &[u8], value: i128) -> Vec<u8> {
        let mut record = [0; 512];
        record[..form.len()].copy_from_slice(form);
        set_number(&mut record, (0, form.len()), value);
        record[..form.len()].to_vec()
    }

    #[test]
    fn numbers_keep_their_form() {
        assert_eq!(like(b"0000644\0", 0o755), b"0000755\0");
        assert_eq!(like(b"000644 \0", 0o755), b"000755 \0");
        assert_eq!(like(b"   644 \0", 0o55), b"    55 \0");
        assert_eq!(like(b"000644 \0", 0o1234567), b"1234567\0");
        assert_eq!(like(b"0000000\0", 0o77777777), b"\x80\0\0\0\0\xff\xff\xff");
        assert_eq!(like(b"00000000000 ", 5), b"00000000005 ");
        assert_eq!(like(b"\0\0\0\0\0\0\0\0", 8), b"0000010\0");
        assert_eq!(like(b"\0\0\0\0\0\0\0\0", 0), b"\0\0\0\0\0\0\0\0");
        assert_eq!(like(b"\x80\0\0\0\0\xff\xff\xff", 1), b"0000001\0");
        assert_eq!(like(b"0000001\0", -2), b"\xff\xff\xff\xff\xff\xff\xff\xfe");
        assert_eq!(like(b"77777777", 0o12345670), b"12345670");
    }
}
