//! Generations: what an archive had at one moment.

use std::fmt;
use std::str::FromStr;

pub use refrain_format::GenerationInfo;
use refrain_format::Timestamp;

use crate::error::{Error, ErrorKind, Result};

/// What is said of a generation when it is added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GenerationLabel {
    /// When it was made. The archive's bytes depend on it.
    pub created: Option<Timestamp>,
    /// The name of the machine; at most 4,096 bytes, as the other texts.
    pub host: Vec<u8>,
    /// Anything.
    pub comment: Vec<u8>,
    /// Names by which it is chosen and kept, at most 64.
    pub tags: Vec<Vec<u8>>,
}

impl GenerationLabel {
    /// Puts the tags in order, and checks that no tag would be taken for a number or a time.
    ///
    /// # Errors
    /// `Usage`.
    pub(crate) fn checked(mut self) -> Result<GenerationLabel> {
        self.tags.sort_unstable();
        self.tags.dedup();
        for tag in &self.tags {
            let text = String::from_utf8_lossy(tag);
            let is_name = matches!(text.parse(), Ok(GenerationChoice::Tag(_)));
            if !is_name || tag.contains(&b',') {
                let message = format!(
                    "'{text}' cannot be a tag: it is empty, has a comma, or would be taken for a \
                     number or a time"
                );
                return Err(Error::new(ErrorKind::Usage, message));
            }
        }
        Ok(self)
    }
}

/// Which generation of an archive is read.
///
/// As text: `latest`, a number, a tag, or a time in UTC such as `2026-11-27`, `2026-11-27T10:30`,
/// or `2026-11-27T10:30:00`: the last generation that is not newer. A date stands for its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GenerationChoice {
    /// The last one.
    #[default]
    Latest,
    /// By its number.
    Number(u16),
    /// The last one with this tag.
    Tag(Vec<u8>),
    /// The last one made at this time or before, in seconds since 1970-01-01 UTC.
    At(i64),
}

impl GenerationChoice {
    /// Checks that an archive without generations has it.
    pub(crate) fn of_one(&self) -> Result<()> {
        match self {
            GenerationChoice::Latest | GenerationChoice::Number(0) => Ok(()),
            _ => {
                let text = "nothing was added to this archive: it has only generation 0";
                Err(Error::new(ErrorKind::Usage, text))
            }
        }
    }

    /// The chosen one of these, which are in ascending order.
    ///
    /// # Errors
    /// `Usage` if there is none.
    pub fn of<'a>(&self, kept: &'a [GenerationInfo]) -> Result<&'a GenerationInfo> {
        let is_chosen = |row: &&GenerationInfo| match self {
            GenerationChoice::Latest => true,
            GenerationChoice::Number(number) => row.number == *number,
            GenerationChoice::Tag(tag) => row.tags.contains(tag),
            GenerationChoice::At(seconds) => row.created.is_some_and(|at| at.seconds <= *seconds),
        };
        let missing = || {
            let message = format!("the archive has no generation {self}");
            Error::new(ErrorKind::Usage, message)
        };
        kept.iter().rev().find(is_chosen).ok_or_else(missing)
    }
}

impl fmt::Display for GenerationChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GenerationChoice::Latest => out.write_str("at all"),
            GenerationChoice::Number(number) => write!(out, "{number}"),
            GenerationChoice::Tag(tag) => {
                write!(out, "with the tag '{}'", String::from_utf8_lossy(tag))
            }
            GenerationChoice::At(_) => out.write_str("of that time or before"),
        }
    }
}

impl FromStr for GenerationChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<GenerationChoice> {
        if text.is_empty() {
            return Err(Error::new(ErrorKind::Usage, "a generation has a name"));
        }
        if text == "latest" {
            return Ok(GenerationChoice::Latest);
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().map_err(|_| {
                let message = format!("no archive has a generation {text}: 65535 is the largest");
                Error::new(ErrorKind::Usage, message)
            })?;
            return Ok(GenerationChoice::Number(number));
        }
        Ok(match seconds_of(text) {
            Some(seconds) => GenerationChoice::At(seconds),
            None => GenerationChoice::Tag(text.as_bytes().to_vec()),
        })
    }
}

/// The seconds since 1970 of `YYYY-MM-DD`, at its end, or `YYYY-MM-DDTHH:MM[:SS]`, in UTC.
fn seconds_of(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time.trim_end_matches('Z'))),
        None => (text, None),
    };
    let numbers = |text: &str, mark, digits: &[usize]| -> Option<Vec<i64>> {
        let parts: Vec<_> = text.split(mark).collect();
        let fits = parts.len() == digits.len();
        let parts = parts.iter().zip(digits);
        let number = |(part, digits): (&&str, &usize)| {
            let is_number = part.len() == *digits && part.bytes().all(|b| b.is_ascii_digit());
            part.parse().ok().filter(|_| is_number)
        };
        fits.then(|| parts.map(number).collect()).flatten()
    };
    let date = numbers(date, '-', &[4, 2, 2])?;
    let [year, month, day] = date[..] else {
        return None;
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    let Some(time) = time else {
        return Some((days + 1) * 86_400 - 1);
    };
    let time = match time.len() {
        5 => [numbers(time, ':', &[2, 2])?, vec![59]].concat(),
        _ => numbers(time, ':', &[2, 2, 2])?,
    };
    let [hour, minute, second] = time[..] else {
        return None;
    };
    let is_time = hour < 24 && minute < 60 && second < 61;
    is_time.then_some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar. Years begin in March, so that the
/// leap day is their last (Hinnant, chrono-compatible low-level date algorithms).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u16, seconds: i64, tags: &[&str]) -> GenerationInfo {
        GenerationInfo {
            number,
            start: 0,
            end: Some(1),
            first_member: 0,
            member_count: 0,
            content_start: 0,
            content_bytes: 0,
            store_bytes: 0,
            created: (number > 0).then_some(Timestamp {
                seconds,
                nanoseconds: 0,
            }),
            host: vec![],
            comment: vec![],
            tags: tags.iter().map(|tag| tag.as_bytes().to_vec()).collect(),
        }
    }

    #[test]
    fn a_generation_is_chosen_by_number_tag_and_time() {
        let day = 86_400;
        let rows = [
            row(0, 0, &[]),
            row(2, 20_000 * day + 5, &["weekly"]),
            row(3, 20_001 * day, &["weekly", "x"]),
            row(7, 20_001 * day + 60, &[]),
        ];
        let number = |text: &str| {
            let choice: GenerationChoice = text.parse().expect(text);
            choice.of(&rows).map(|row| row.number).ok()
        };
        // 20,000 days are 2024-10-04.
        let expected = [
            ("latest", Some(7)),
            ("0", Some(0)),
            ("3", Some(3)),
            ("4", None),
            ("weekly", Some(3)),
            ("none", None),
            ("2024-10-03", None),
            ("2024-10-04", Some(2)),
            ("2024-10-05", Some(7)),
            ("2024-10-05T00:00", Some(3)),
            ("2024-10-05T00:00:59Z", Some(3)),
            ("2024-10-05 00:01:00", Some(7)),
        ];
        for (text, expected) in expected {
            assert_eq!(number(text), expected, "{text}");
        }
        assert!("".parse::<GenerationChoice>().is_err());
        assert!("70000".parse::<GenerationChoice>().is_err());
        let not_times = [
            "2024-13-01",
            "2024-1-1",
            "24-10-04",
            "2024-10-04T1:00",
            "2024-10-04T24:00",
        ];
        for text in not_times {
            assert!(
                matches!(text.parse(), Ok(GenerationChoice::Tag(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn tags_are_names() {
        let checked = |tags: &[&str]| {
            let label = GenerationLabel {
                tags: tags.iter().map(|tag| tag.as_bytes().to_vec()).collect(),
                ..GenerationLabel::default()
            };
            label.checked().map(|label| label.tags)
        };
        assert_eq!(checked(&["b", "a", "b"]).unwrap(), [b"a", b"b"]);
        for tag in ["", "12", "latest", "2024-10-04", "a,b"] {
            assert!(checked(&[tag]).is_err(), "{tag}");
        }
    }
}
