//! The progress line on a terminal, and notices of the engine on standard error.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refrain::directory::Problem;
use refrain::{BlockInfo, Progress, Watch};
use serde_json::Value;

use super::block::{block_json, block_line};
use super::size_estimate::SizeEstimate;
use crate::args::ReportArgs;
use crate::messages;
use crate::session::Session;
use crate::text::printable;
use crate::units::{bytes_text, clock_text, rate_text};

/// Time between two updates of the line: ten per second look continuous and cost little.
const REDRAW_MILLISECONDS: u64 = 100;
/// The width assumed for a terminal that does not report one.
const COLUMNS_DEFAULT: usize = 80;
/// A label shorter than this is left out rather than cut.
const LABEL_COLUMNS_MIN: usize = 6;
/// Columns between two parts of the line.
const GAP: &str = "  ";

/// The progress line of one item of work. Draws nothing unless standard error is a terminal.
#[derive(Debug)]
pub struct ProgressLine {
    label: String,
    started: Instant,
    is_enabled: bool,
    last_drawn_milliseconds: AtomicU64,
    is_drawn: AtomicBool,
}

impl ProgressLine {
    fn new(label: &str, is_enabled: bool) -> ProgressLine {
        ProgressLine {
            label: printable(label),
            started: Instant::now(),
            is_enabled: is_enabled && io::stderr().is_terminal(),
            last_drawn_milliseconds: AtomicU64::new(0),
            is_drawn: AtomicBool::new(false),
        }
    }

    /// Draws the line unless it was drawn a moment ago. May be called from any thread.
    pub fn update(&self, progress: &Progress) {
        self.draw(&Position::of(progress, &Total::Reported));
    }

    fn draw(&self, position: &Position) {
        if !self.is_enabled {
            return;
        }
        let elapsed = self.started.elapsed();
        let now = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let last = self.last_drawn_milliseconds.load(Ordering::Relaxed);
        let is_due = now >= last.saturating_add(REDRAW_MILLISECONDS);
        let is_mine = is_due
            && (self.last_drawn_milliseconds)
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if !is_mine {
            return;
        }
        self.is_drawn.store(true, Ordering::Relaxed);
        // The last column stays empty: some terminals wrap when it is written.
        let columns = terminal_columns().saturating_sub(1);
        let line = line_text(&self.label, position, elapsed, columns);
        let _ = io::stderr()
            .lock()
            .write_all(format!("\r{line}\x1b[K").as_bytes());
    }

    /// Removes the line from the terminal.
    fn erase(&self) {
        if self.is_drawn.swap(false, Ordering::Relaxed) {
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}

/// What the percentage refers to.
#[derive(Debug, Clone)]
pub enum Total {
    /// The size of the content, if the engine reports it.
    Reported,
    /// The size of the archive that is read.
    ArchiveBytes(u64),
    /// An estimate of the size of the content.
    Estimate(SizeEstimate),
}

/// How far an item of work is.
#[derive(Debug, Clone, Copy)]
struct Position {
    content_bytes: u64,
    archive_bytes: u64,
    /// The bytes done and the bytes in total that the percentage refers to.
    part: Option<(u64, u64)>,
}

impl Position {
    fn of(progress: &Progress, total: &Total) -> Position {
        let content_bytes = progress.content_bytes_done;
        let archive_bytes = progress.archive_bytes;
        let part = match total {
            Total::Reported => (content_bytes, progress.content_bytes_total),
            // A directory is not restored in the order of the archive.
            Total::ArchiveBytes(_) if archive_bytes == 0 => {
                (content_bytes, progress.content_bytes_total)
            }
            Total::ArchiveBytes(bytes) => (archive_bytes, Some(*bytes)),
            Total::Estimate(estimate) => (content_bytes, estimate.bytes()),
        };
        let (done, total) = (part.0, part.1.filter(|bytes| *bytes > 0));
        Position {
            content_bytes,
            archive_bytes,
            part: total.map(|total| (done.min(total), total)),
        }
    }
}

/// Watches one item of work for the engine.
#[derive(Debug)]
pub struct Meter<'a> {
    session: &'a Session,
    line: Arc<ProgressLine>,
    total: Total,
    prints_notices: bool,
    prints_blocks: bool,
    /// The blocks for the JSON document, if it lists them.
    blocks: Option<RefCell<Vec<Value>>>,
    /// The problems that the engine reported, with the numbers of their members.
    problems: RefCell<Vec<(usize, Problem)>>,
}

impl<'a> Meter<'a> {
    /// Starts the clock.
    pub fn start(label: &str, args: &ReportArgs, session: &'a Session) -> Meter<'a> {
        let prints = !args.quiet && !args.json;
        Meter {
            session,
            line: Arc::new(ProgressLine::new(label, prints)),
            total: Total::Reported,
            prints_notices: !args.quiet,
            prints_blocks: prints && args.verbose >= 2,
            blocks: (args.json && args.verbose >= 2).then(RefCell::default),
            problems: RefCell::default(),
        }
    }

    /// Sets what the percentage refers to.
    pub fn set_total(&mut self, total: Total) {
        self.total = total;
    }

    /// Whether the progress line is drawn.
    pub fn is_drawn(&self) -> bool {
        self.line.is_enabled
    }

    /// The problems that the engine reported, with the numbers of their members.
    pub fn take_problems(&self) -> Vec<(usize, Problem)> {
        self.problems.take()
    }

    /// Adds the blocks to a result, if it lists them.
    pub fn add_blocks(&self, result: &mut Value) {
        if let Some(blocks) = &self.blocks {
            result["blocks"] = Value::from(blocks.take());
        }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.line.started.elapsed()
    }

    /// The line, for work that reports its progress from other threads.
    pub fn line(&self) -> Arc<ProgressLine> {
        if self.line.is_enabled {
            // A signal must not leave the line on the terminal.
            self.session.require_orderly_end();
        }
        Arc::clone(&self.line)
    }

    /// Removes the line from the terminal.
    pub fn erase(&self) {
        self.line.erase();
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        if let Total::Estimate(estimate) = &self.total {
            estimate.cancel();
        }
        self.erase();
    }
}

impl Watch for Meter<'_> {
    fn problem(&self, member: usize, problem: &Problem) {
        self.problems.borrow_mut().push((member, problem.clone()));
    }

    fn progress(&self, progress: &Progress) {
        if self.line.is_enabled {
            self.session.require_orderly_end();
            self.line.draw(&Position::of(progress, &self.total));
        }
    }

    fn notice(&self, notice: &str) {
        if self.prints_notices {
            self.erase();
            let text = format!("{}: {}", self.line.label, printable(notice));
            messages::tell(self.session.program, &text);
        }
    }

    fn block(&self, block: &BlockInfo) {
        if self.prints_blocks {
            self.erase();
            messages::line(&block_line(block));
        }
        if let Some(blocks) = &self.blocks {
            blocks.borrow_mut().push(block_json(block));
        }
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        Some(self.session.cancel_flag())
    }
}

/// The width of the terminal on standard error.
fn terminal_columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => COLUMNS_DEFAULT,
    }
}

/// `kern2.tar  1.22 GB of 2.72 GB  45 %  698 MB/s  0:02 left` in at most `columns` columns. On a
/// narrow terminal the amounts are left out first, then the label.
fn line_text(label: &str, position: &Position, elapsed: Duration, columns: usize) -> String {
    let rate = rate_text(position.content_bytes, elapsed);
    let (amounts, essential) = match position.part {
        Some((done, total)) => {
            let fraction = done as f64 / total as f64;
            let left = time_left(fraction, elapsed);
            let percent = (fraction * 100.0) as u32;
            (
                format!("{} of {}", bytes_text(done), bytes_text(total)),
                format!("{percent} %{GAP}{rate}{GAP}{left} left"),
            )
        }
        None => {
            let amounts = match position.archive_bytes {
                0 => String::new(),
                bytes => format!("archive {}", bytes_text(bytes)),
            };
            let done = bytes_text(position.content_bytes);
            (amounts, format!("{done}{GAP}{rate}"))
        }
    };
    let has_room =
        |text: &str, other: usize| !text.is_empty() && width(text) + GAP.len() + other <= columns;
    let mut line = essential;
    if has_room(&amounts, width(&line) + GAP.len() + LABEL_COLUMNS_MIN) {
        line = format!("{amounts}{GAP}{line}");
    }
    let room = columns.saturating_sub(width(&line) + GAP.len());
    if room >= LABEL_COLUMNS_MIN {
        line = format!("{}{GAP}{line}", shortened(label, room));
    }
    // Only a terminal of a few columns still needs a cut.
    line.chars().take(columns).collect()
}

fn time_left(fraction: f64, elapsed: Duration) -> String {
    match fraction > 0.0 {
        true => clock_text(elapsed.mul_f64(((1.0 - fraction) / fraction).min(1e9))),
        false => "?".to_string(),
    }
}

/// The end of a label that is wider than `columns`: it says more than the beginning.
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

/// Columns of a text. Characters from U+1100 on count as two, which East Asian ones are.
fn width(text: &str) -> usize {
    text.chars()
        .map(|c| if c < '\u{1100}' { 1 } else { 2 })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(done: u64, total: Option<u64>, seconds: u64, columns: usize) -> String {
        let progress = Progress {
            content_bytes_done: done,
            content_bytes_total: total,
            ..Progress::default()
        };
        let position = Position::of(&progress, &Total::Reported);
        line_text("x.tar", &position, Duration::from_secs(seconds), columns)
    }

    #[test]
    fn the_time_left_follows_from_the_rate() {
        let text = line(1_000_000_000, Some(4_000_000_000), 10, 79);
        assert_eq!(text, "x.tar  1.00 GB of 4.00 GB  25 %  100 MB/s  0:30 left");
        let text = line(1_000_000_000, None, 10, 79);
        assert_eq!(text, "x.tar  1.00 GB  100 MB/s");
    }

    #[test]
    fn the_percentage_may_refer_to_the_archive() {
        let progress = Progress {
            content_bytes_done: 1_000_000_000,
            content_bytes_total: Some(1_000_000_000),
            archive_bytes: 10_000_000,
        };
        let position = Position::of(&progress, &Total::ArchiveBytes(40_000_000));
        let text = line_text("x", &position, Duration::from_secs(10), 79);
        assert_eq!(text, "x  10.0 MB of 40.0 MB  25 %  100 MB/s  0:30 left");
    }

    #[test]
    fn a_narrow_line_keeps_percentage_rate_and_time_left() {
        let text = line(1_000_000_000, Some(4_000_000_000), 10, 39);
        assert_eq!(text, "x.tar  25 %  100 MB/s  0:30 left");
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
        assert_eq!(width(&shortened(&"世".repeat(50), 20)), 19);
    }
}
