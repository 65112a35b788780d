//! Sizes: `4096`, `256M`, `1G`, `1GiB`; every unit is a power of 1024.

use std::str::FromStr;

/// A number of bytes from the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The number.
    pub bytes: u64,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let mut sum: u64 = 0;
        for part in text.split('+') {
            let bytes = single(part)?;
            let next = sum.checked_add(bytes);
            sum = next.ok_or_else(|| format!("{text:?} is more than 2^64 bytes"))?;
        }
        Ok(Size { bytes: sum })
    }
}

/// A number with a unit.
fn single(text: &str) -> Result<u64, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let count: u64 = digits
        .parse()
        .map_err(|_| format!("{text:?} is not a size such as 4096, 256M or 1GiB"))?;
    let shift = unit_shift(unit).ok_or_else(|| {
        format!("{unit:?} is not a unit of size: use K, M, G or T (powers of 1024)")
    })?;
    match count.checked_mul(1 << shift) {
        Some(bytes) => Ok(bytes),
        None => Err(format!("{text:?} is more than 2^64 bytes")),
    }
}

/// The binary logarithm of a unit.
fn unit_shift(unit: &str) -> Option<u32> {
    match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("256M", 256 << 20),
            ("1g", 1 << 30),
            ("1G+512M", 3 << 29),
            ("10G+4K+1", (10 << 30) + (4 << 10) + 1),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Size { bytes }), "{text}");
        }
        assert_eq!("1GiB".parse::<Size>(), "1GB".parse::<Size>());
        assert_eq!(
            "16777215T".parse(),
            Ok(Size {
                bytes: 16_777_215 << 40
            })
        );
    }

    #[test]
    fn malformed_sizes_are_refused() {
        for text in [
            "",
            "M",
            "-1",
            "1X",
            "1.5G",
            "16777216T",
            "99999999999999999999",
            "1 G",
            "1G1",
            "1G+",
            "+1",
            "16777215T+1T",
        ] {
            assert!(text.parse::<Size>().is_err(), "{text:?}");
        }
    }
}
