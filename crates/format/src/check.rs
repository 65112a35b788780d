//! Checks of single values, shared by all frames. `what` names the value in the error.

use crate::error::{FormatError, Result};
use crate::limits::ADDRESS_BYTES_MAX;
use refrain_entries::Timestamp;
use refrain_protect::checksum64;

pub(crate) fn check_limit(what: &'static str, value: u64, limit: u64) -> Result<()> {
    if value > limit {
        return Err(FormatError::OverLimit { what, value, limit });
    }
    Ok(())
}

pub(crate) fn check_own_limit(what: &'static str, value: u64, setting: u64) -> Result<()> {
    if value > setting {
        Err(FormatError::OverSetting {
            what,
            value,
            setting,
        })
    } else {
        Ok(())
    }
}

/// Returns `start + length` if it is inside the address space.
pub(crate) fn check_range(what: &'static str, start: u64, length: u64) -> Result<u64> {
    let end = start.saturating_add(length);
    check_limit(what, end, ADDRESS_BYTES_MAX)?;
    Ok(end)
}

pub(crate) fn check_positive(what: &'static str, value: u64) -> Result<()> {
    match value {
        0 => Err(FormatError::Value {
            what,
            value,
            rule: "at least 1",
        }),
        _ => Ok(()),
    }
}

pub(crate) fn check_equal(what: &'static str, found: u64, expected: u64) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(FormatError::Mismatch {
            what,
            found,
            expected,
        })
    }
}

pub(crate) fn check_at_most(what: &'static str, value: u64, most: u64) -> Result<()> {
    if value <= most {
        Ok(())
    } else {
        Err(FormatError::Mismatch {
            what,
            found: value,
            expected: most,
        })
    }
}

/// Checks that a text is not too long and has no zero byte, which no system accepts in a name.
pub(crate) fn check_text(what: &'static str, text: &[u8], bytes_max: usize) -> Result<()> {
    check_limit(what, text.len() as u64, bytes_max as u64)?;
    if !text.contains(&0) {
        return Ok(());
    }
    let at = text.iter().position(|&byte| byte == 0);
    Err(FormatError::Value {
        what,
        value: at.unwrap_or_default() as u64,
        rule: "free of zero bytes (the value is the position of the first)",
    })
}

/// Compares decoded data with the length and checksum that the frame states.
pub(crate) fn check_raw(
    what: &'static str,
    raw: &[u8],
    raw_bytes: u64,
    raw_checksum: u64,
) -> Result<()> {
    check_raw_length(raw, raw_bytes)?;
    check_checksum(what, checksum64(raw), raw_checksum)
}

pub(crate) fn check_raw_length(raw: &[u8], raw_bytes: u64) -> Result<()> {
    if raw.len() as u64 == raw_bytes {
        Ok(())
    } else {
        Err(FormatError::Mismatch {
            what: "length in bytes of decoded data",
            found: raw.len() as u64,
            expected: raw_bytes,
        })
    }
}

pub(crate) fn check_checksum(what: &'static str, found: u64, expected: u64) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(FormatError::Checksum {
            what,
            found,
            expected,
        })
    }
}

pub(crate) fn check_timestamp(time: Timestamp) -> Result<Timestamp> {
    if time.is_valid() {
        Ok(time)
    } else {
        Err(FormatError::Value {
            what: "nanoseconds of a time",
            value: u64::from(time.nanoseconds),
            rule: "below 1,000,000,000",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_inside_the_address_space() {
        assert_eq!(check_range("x", 5, 6), Ok(11));
        assert!(check_range("x", ADDRESS_BYTES_MAX, 1).is_err());
        assert!(check_range("x", u64::MAX, u64::MAX).is_err());
    }
}
