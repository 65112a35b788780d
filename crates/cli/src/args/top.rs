//! The arguments of `refrain top`.

use std::time::Duration;

use clap::Args;

/// `refrain top`
#[derive(Debug, Args)]
#[command(after_help = TOP_TEXT)]
pub struct TopArgs {
    /// Address of `refrain serve --http`: HOST:PORT, http://HOST:PORT or unix:PATH
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    /// Print one table and exit
    #[arg(long)]
    pub once: bool,
    /// Print each table as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// Reset the statistics: before the first table, or with --once after it
    #[arg(long)]
    pub reset: bool,
    /// Time between tables, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, conflicts_with = "once")]
    pub interval: Duration,
}

const TOP_TEXT: &str = "\
A row for each operation that was called: its share of the time that all took, the number of calls, the time that \
calls took (average, shortest, median, 99 of 100, longest), errors and bytes. Below it, what reads found in memory \
and what they decoded since the service began. p50 and p99 are exact to 1/16.";

/// A number of seconds from a hundredth to a day.
fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok();
    match number.filter(|number| (0.01..=86_400.0).contains(number)) {
        Some(number) => Ok(Duration::from_secs_f64(number)),
        None => Err(format!(
            "{text:?} is not a number of seconds from 0.01 to 86400"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_seconds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "nan", "1e9", "1s"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
