//! Byte ranges: `A..B`, `A..`, `..B`.

use std::fmt;
use std::str::FromStr;

use super::size::Size;

/// A range of content bytes, excluding the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// The byte after the last; `None` is the end of the content.
    pub end: Option<u64>,
}

impl ByteRange {
    /// Everything.
    pub const ALL: ByteRange = ByteRange {
        start: 0,
        end: None,
    };

    /// The range within something `length_bytes` long; `None` if the range exceeds it. A range may
    /// end, or be empty, at the very end.
    pub fn within(self, length_bytes: u64) -> Option<std::ops::Range<u64>> {
        let end = self.end.unwrap_or(length_bytes);
        (self.start <= end && end <= length_bytes).then_some(self.start..end)
    }
}

impl ByteRange {
    /// `START+LENGTH`.
    fn from_length(start: &str, length: &str) -> Result<ByteRange, String> {
        let (start, length) = (start.parse::<Size>()?.bytes, length.parse::<Size>()?.bytes);
        match start.checked_add(length) {
            Some(end) => Ok(ByteRange {
                start,
                end: Some(end),
            }),
            None => Err(format!("{start}+{length} exceeds 2^64 bytes")),
        }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.start > 0 {
            write!(f, "{}", self.start)?;
        }
        f.write_str("..")?;
        self.end.map_or(Ok(()), |end| write!(f, "{end}"))
    }
}

impl FromStr for ByteRange {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteRange, String> {
        let (start, end) = match (text.split_once(".."), text.split_once('+')) {
            (Some(bounds), _) => bounds,
            (None, Some((start, length))) => return ByteRange::from_length(start, length),
            (None, None) => {
                return Err(format!(
                    "{text:?} is not a range: write A..B, A.., ..B, or A+N for N bytes starting at A"
                ));
            }
        };
        let start = if start.is_empty() { 0 } else { start.parse::<Size>()?.bytes };
        let end = if end.is_empty() { None } else { Some(end.parse::<Size>()?.bytes) };
        match end {
            Some(end) if end < start => Err(format!("range ends at {end}, before {start}")),
            _ => Ok(ByteRange { start, end }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_may_be_open() {
        let cases = [
            ("5..9", 5, Some(9)),
            ("1K..", 1024, None),
            ("..2M", 0, Some(2 << 20)),
            ("..", 0, None),
            ("7..7", 7, Some(7)),
            ("1000M..1001M", 1000 << 20, Some(1001 << 20)),
            ("10G+4K", 10 << 30, Some((10 << 30) + (4 << 10))),
            ("10G..10G+4K", 10 << 30, Some((10 << 30) + (4 << 10))),
            ("1M+1..", (1 << 20) + 1, None),
            ("5+0", 5, Some(5)),
            ("0+1KiB", 0, Some(1024)),
        ];
        for (text, start, end) in cases {
            assert_eq!(text.parse(), Ok(ByteRange { start, end }), "{text}");
        }
        for text in [
            "",
            "5",
            "9..5",
            "a..b",
            "1...2",
            "5-9",
            "+5",
            "5+",
            "5..+5",
            "1..2+",
            "16777215T+1T",
        ] {
            assert!(text.parse::<ByteRange>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn ranges_do_not_reach_beyond_the_end_of_the_content() {
        let range = |text: &str| text.parse::<ByteRange>().unwrap();
        assert_eq!(range("5..9").within(100), Some(5..9));
        assert_eq!(range("5..9").within(9), Some(5..9));
        assert_eq!(range("5..9").within(8), None);
        assert_eq!(range("5..").within(8), Some(5..8));
        assert_eq!(range("8..").within(8), Some(8..8));
        assert_eq!(range("9..").within(8), None);
        assert_eq!(range("9..9").within(8), None);
        assert_eq!(ByteRange::ALL.within(0), Some(0..0));
    }

    #[test]
    fn ranges_are_written_as_they_are_read() {
        for text in ["5..9", "5..", "..9", ".."] {
            assert_eq!(text.parse::<ByteRange>().unwrap().to_string(), text);
        }
    }
}
