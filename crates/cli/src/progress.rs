//! The progress line on a terminal, and remarks of the engine on standard error.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refrain::{BlockInfo, Progress, Watch};
use serde_json::{Value, json};

use crate::args::ReportArgs;
use crate::messages;
use crate::names::shown;
use crate::session::Session;
use crate::units::{bytes_text, clock_text, rate_text};

/// Time between two drawings: ten a second look alive and cost nothing.
const REDRAW_MILLISECONDS: u64 = 100;
/// Columns that the line may use; a line that wraps could not be erased.
const LINE_COLUMNS_MAX: usize = 79;
/// Columns of the line that the name may use.
const LABEL_COLUMNS_MAX: usize = 28;

/// Watches one piece of work.
#[derive(Debug)]
pub struct Meter<'a> {
    session: &'a Session,
    label: String,
    started: Instant,
    draws: bool,
    tells_notices: bool,
    tells_blocks: bool,
    /// For the JSON document, where it is to tell them.
    kept_blocks: Option<RefCell<Vec<Value>>>,
    last_drawn_milliseconds: AtomicU64,
    is_drawn: AtomicBool,
}

impl<'a> Meter<'a> {
    /// Starts the clock. Nothing is drawn unless standard error is a terminal.
    pub fn start(label: &str, args: &ReportArgs, session: &'a Session) -> Meter<'a> {
        let speaks = !args.quiet && !args.json;
        Meter {
            session,
            label: short_label(&shown(label)),
            started: Instant::now(),
            draws: speaks && io::stderr().is_terminal(),
            tells_notices: !args.quiet,
            tells_blocks: speaks && args.verbose >= 2,
            kept_blocks: (args.json && args.verbose >= 2).then(RefCell::default),
            last_drawn_milliseconds: AtomicU64::new(0),
            is_drawn: AtomicBool::new(false),
        }
    }

    /// Adds what was seen of the blocks to a result, if it is to tell them.
    pub fn add_blocks(&self, result: &mut Value) {
        if let Some(blocks) = &self.kept_blocks {
            result["blocks"] = Value::from(blocks.take());
        }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Removes the line from the terminal.
    pub fn erase(&self) {
        if self.is_drawn.swap(false, Ordering::Relaxed) {
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }

    fn draw(&self, progress: &Progress) {
        let now = self.elapsed();
        let milliseconds = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let last = self.last_drawn_milliseconds.load(Ordering::Relaxed);
        if milliseconds < last.saturating_add(REDRAW_MILLISECONDS) {
            return;
        }
        // The line is to go when a signal comes.
        self.session.end_in_order();
        self.last_drawn_milliseconds
            .store(milliseconds, Ordering::Relaxed);
        self.is_drawn.store(true, Ordering::Relaxed);
        let line = progress_line(&self.label, progress, now);
        let _ = io::stderr()
            .lock()
            .write_all(format!("\r{line}\x1b[K").as_bytes());
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.erase();
    }
}

impl Watch for Meter<'_> {
    fn progress(&self, progress: &Progress) {
        if self.draws {
            self.draw(progress);
        }
    }

    fn notice(&self, notice: &str) {
        if self.tells_notices {
            self.erase();
            messages::tell(
                self.session.program,
                &format!("{}: {}", self.label, shown(notice)),
            );
        }
    }

    fn block(&self, block: &BlockInfo) {
        if self.tells_blocks {
            self.erase();
            messages::line(&block_line(block));
        }
        if let Some(blocks) = &self.kept_blocks {
            blocks.borrow_mut().push(block_json(block));
        }
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        Some(self.session.cancel_flag())
    }
}

/// The end of a long name says more than its beginning.
fn short_label(label: &str) -> String {
    let count = label.chars().count();
    match count <= LABEL_COLUMNS_MAX {
        true => label.to_string(),
        false => {
            let tail: String = label
                .chars()
                .skip(count - (LABEL_COLUMNS_MAX - 3))
                .collect();
            format!("...{tail}")
        }
    }
}

/// `kern2.tar  1.22 GB of 2.72 GB  45 %  698 MB/s  0:02 left`
fn progress_line(label: &str, progress: &Progress, elapsed: Duration) -> String {
    let done = progress.content_bytes_done;
    let rate = rate_text(done, elapsed);
    let line = match progress.content_bytes_total {
        Some(total) if total > 0 => {
            let fraction = (done as f64 / total as f64).min(1.0);
            let left = match fraction > 0.0 {
                true => elapsed.mul_f64(((1.0 - fraction) / fraction).min(1e9)),
                false => Duration::ZERO,
            };
            let (done, total) = (bytes_text(done), bytes_text(total));
            let percent = (fraction * 100.0) as u32;
            format!(
                "{label}  {done} of {total}  {percent} %  {rate}  {} left",
                clock_text(left)
            )
        }
        _ => {
            let archive = match progress.archive_bytes {
                0 => String::new(),
                bytes => format!("  archive {}", bytes_text(bytes)),
            };
            format!("{label}  {}{archive}  {rate}", bytes_text(done))
        }
    };
    line.chars().take(LINE_COLUMNS_MAX).collect()
}

/// One block, for `-vv`.
pub fn block_line(block: &BlockInfo) -> String {
    let filters = match block.filters.is_empty() {
        true => String::new(),
        false => format!(" + {}", block.filters),
    };
    let fallback = block
        .fallback
        .as_ref()
        .map(|why| format!("  ({why})"))
        .unwrap_or_default();
    format!(
        "block {:>6}  archive {:>13}  store {:>13}  {:>9} -> {:>9}  {}{filters}{fallback}",
        block.block,
        block.archive_offset,
        block.offset_in_store,
        block.raw_bytes,
        block.stored_bytes,
        block.codec,
    )
}

/// One block, for scripts.
pub fn block_json(block: &BlockInfo) -> Value {
    json!({
        "block": block.block,
        "archive_offset": block.archive_offset,
        "offset_in_store": block.offset_in_store,
        "raw_bytes": block.raw_bytes,
        "stored_bytes": block.stored_bytes,
        "codec": block.codec,
        "filters": block.filters,
        "fallback": block.fallback,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(done: u64, total: Option<u64>, seconds: u64) -> String {
        let progress = Progress {
            content_bytes_done: done,
            content_bytes_total: total,
            ..Progress::default()
        };
        progress_line("x.tar", &progress, Duration::from_secs(seconds))
    }

    #[test]
    fn time_left_follows_the_rate() {
        let text = line(1_000_000_000, Some(4_000_000_000), 10);
        assert_eq!(text, "x.tar  1.00 GB of 4.00 GB  25 %  100 MB/s  0:30 left");
    }

    #[test]
    fn no_line_wraps_and_no_number_breaks_it() {
        for done in [0, 1, u64::MAX] {
            for total in [None, Some(0), Some(1), Some(u64::MAX)] {
                for seconds in [0, 1, u64::from(u32::MAX)] {
                    assert!(line(done, total, seconds).chars().count() <= LINE_COLUMNS_MAX);
                }
            }
        }
        assert_eq!(
            short_label(&"ä".repeat(50)).chars().count(),
            LABEL_COLUMNS_MAX
        );
    }
}
