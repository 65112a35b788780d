//! The text of the progress line.

use std::time::Duration;

use super::position::Position;
use crate::units::{bytes_text, clock_text, rate_text};

/// Instead of cutting a label shorter than this, leave it out.
const LABEL_COLUMNS_MIN: usize = 6;
/// Columns between two parts of the line.
const GAP: &str = "  ";
/// The remaining time is extrapolated; below this part of the whole it would be a guess.
const FRACTION_MIN: f64 = 0.002;

/// The speed: content bytes and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub bytes: u64,
    pub time: Duration,
}

/// `kern2.tar  1.22 GB of 2.72 GB -> 198 MB  45 %  698 MB/s  0:02  0:02 left` in at most `columns`
/// columns. On a narrow terminal the amounts are left out first, then the label, then the elapsed
/// time.
pub fn line_text(
    label: &str,
    position: &Position,
    pace: Pace,
    elapsed: Duration,
    columns: usize,
) -> String {
    let rate = (pace.bytes > 0).then(|| rate_text(pace.bytes, pace.time));
    let clock = clock_text(elapsed);
    let (amounts, parts) = match position.part {
        Some((done, total)) => {
            let fraction = done as f64 / total as f64;
            let percent = format!("{} %", (fraction * 100.0) as u32);
            let amounts = format!("{} of {}", bytes_text(done), bytes_text(total));
            let left = time_left(fraction, elapsed).map(|left| format!("{left} left"));
            (amounts, [Some(percent), rate, Some(clock), left])
        }
        None => {
            let amounts = match position.archive_bytes {
                0 => String::new(),
                bytes => format!("archive {}", bytes_text(bytes)),
            };
            let done = bytes_text(position.content_bytes);
            (amounts, [Some(done), rate, Some(clock), None])
        }
    };
    let joined = |with_clock: bool| {
        let parts = parts.iter().enumerate();
        let parts = parts.filter(|(place, _)| with_clock || *place != 2);
        let parts: Vec<&str> = parts.filter_map(|(_, part)| part.as_deref()).collect();
        parts.join(GAP)
    };
    let has_room =
        |text: &str, other: usize| !text.is_empty() && width(text) + GAP.len() + other <= columns;
    let mut line = joined(true);
    if width(&line) + GAP.len() + LABEL_COLUMNS_MIN > columns {
        line = joined(false);
    }
    for amounts in [amounts_with_output(&amounts, position), amounts] {
        if has_room(
            &amounts,
            width(&line) + GAP.len() + LABEL_COLUMNS_MIN.max(width(label).min(12)),
        ) {
            line = format!("{amounts}{GAP}{line}");
            break;
        }
    }
    let room = columns.saturating_sub(width(&line) + GAP.len());
    if room >= LABEL_COLUMNS_MIN {
        line = format!("{}{GAP}{line}", shortened(label, room));
    }
    // Only a terminal with very few columns still needs a cut.
    line.chars().take(columns).collect()
}

/// The amounts, with the output so far.
fn amounts_with_output(amounts: &str, position: &Position) -> String {
    match position.output_bytes() {
        0 => String::new(),
        bytes => format!("{amounts} -> {}", bytes_text(bytes)),
    }
}

/// The remaining time, if known: something is done, but not everything.
fn time_left(fraction: f64, elapsed: Duration) -> Option<String> {
    let is_known = (FRACTION_MIN..1.0).contains(&fraction);
    let left = is_known.then(|| elapsed.mul_f64(((1.0 - fraction) / fraction).min(1e9)));
    left.filter(|left| left.as_secs() > 0).map(clock_text)
}

/// The end of a label wider than `columns`: it says more than the beginning.
fn shortened(label: &str, columns: usize) -> String {
    if width(label) <= columns {
        return label.to_string();
    }
    let mut rest = label;
    while width(rest) + 3 > columns {
        let mut chars = rest.chars();
        if chars.next().is_none() {
            break;
        }
        rest = chars.as_str();
    }
    format!("...{rest}")
}

/// The columns of a text. Characters from U+1100 count as two, as East Asian ones are.
fn width(text: &str) -> usize {
    text.chars()
        .map(|c| if c < '\u{1100}' { 1 } else { 2 })
        .sum()
}

#[cfg(test)]
mod tests {
    use refrain::Progress;

    use super::super::position::Total;
    use super::*;

    fn text_of(position: &Position, seconds: u64, columns: usize) -> String {
        let elapsed = Duration::from_secs(seconds);
        let pace = Pace {
            bytes: position.content_bytes,
            time: elapsed,
        };
        line_text("x.tar", position, pace, elapsed, columns)
    }

    fn line(done: u64, total: Option<u64>, seconds: u64, columns: usize) -> String {
        let progress = Progress {
            content_bytes_done: done,
            content_bytes_total: total,
            ..Progress::default()
        };
        text_of(
            &Position::new(&progress, &Total::Reported),
            seconds,
            columns,
        )
    }

    #[test]
    fn the_time_left_follows_from_the_part_that_is_done() {
        let text = line(1_000_000_000, Some(4_000_000_000), 10, 79);
        assert_eq!(
            text,
            "x.tar  1.00 GB of 4.00 GB  25 %  100 MB/s  0:10  0:30 left"
        );
        let text = line(1_000_000_000, None, 10, 79);
        assert_eq!(text, "x.tar  1.00 GB  100 MB/s  0:10");
    }

    #[test]
    fn nothing_is_said_of_what_is_unknown() {
        let text = line(0, Some(4_000_000_000), 7, 79);
        assert_eq!(text, "x.tar  0 B of 4.00 GB  0 %  0:07");
        let text = line(4_000_000_000, Some(4_000_000_000), 40, 79);
        assert_eq!(
            text, "x.tar  4.00 GB of 4.00 GB  100 %  100 MB/s  0:40",
            "the last blocks are still being encoded"
        );
        assert_eq!(line(0, None, 7, 79), "x.tar  0 B  0:07");
    }

    #[test]
    fn the_percentage_may_refer_to_the_archive() {
        let progress = Progress {
            content_bytes_done: 1_000_000_000,
            content_bytes_total: Some(1_000_000_000),
            archive_bytes: 10_000_000,
        };
        let position = Position::new(&progress, &Total::ArchiveBytes(40_000_000));
        assert_eq!(
            text_of(&position, 10, 79),
            "x.tar  10.0 MB of 40.0 MB -> 1.00 GB  25 %  100 MB/s  0:10  0:30 left"
        );
        let position = Position::new(&progress, &Total::Reported);
        assert_eq!(
            text_of(&position, 10, 79),
            "x.tar  1.00 GB of 1.00 GB -> 10.0 MB  100 %  100 MB/s  0:10"
        );
    }

    #[test]
    fn a_narrow_line_keeps_percentage_rate_and_time_left() {
        let text = line(1_000_000_000, Some(4_000_000_000), 10, 39);
        assert_eq!(text, "x.tar  25 %  100 MB/s  0:10  0:30 left");
        let text = line(1_000_000_000, Some(4_000_000_000), 10, 28);
        assert_eq!(text, "25 %  100 MB/s  0:30 left");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in [0, 1, 10, 39, 79, 200] {
            for done in [0, 1, u64::MAX] {
                for total in [None, Some(0), Some(1), Some(u64::MAX)] {
                    for seconds in [0, 1, u64::from(u32::MAX)] {
                        assert!(width(&line(done, total, seconds, columns)) <= columns);
                    }
                }
            }
        }
        assert_eq!(shortened("0123456789", 8), "...56789");
        assert_eq!(width(&shortened(&"\u{4e16}".repeat(50), 20)), 19);
    }
}
