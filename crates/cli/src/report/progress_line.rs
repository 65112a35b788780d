//! The progress line on a terminal: drawn when something was done, and as time passes.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use refrain::Progress;
use refrain_policy::{Class, Entity, Latency};
use refrain_pool::pool::{Flow, Pool};

use super::line_text::{Pace, line_text};
use super::position::{Position, Total};
use super::size_estimate::SizeEstimate;
use crate::standard::takes_escapes;
use crate::text::printable;

/// The time between updates: ten per second look continuous and cost little.
const REDRAW: Duration = Duration::from_millis(100);
/// The time after which the line is redrawn even if nothing was done: encoding a block with a dense
/// codec takes up to a minute.
const STANDSTILL: Duration = Duration::from_millis(400);
/// The time between checks for that.
const TICK: Duration = Duration::from_millis(200);
/// The rate is averaged over the last five to ten seconds.
const WINDOW: Duration = Duration::from_secs(5);
/// The width assumed for a terminal that does not report one.
const COLUMNS_DEFAULT: usize = 80;

/// The progress line of one item of work. Draws nothing unless standard error is a terminal.
///
/// It is drawn by whichever thread reports progress, and by a timer of the pool. Both hold the lock
/// of standard error while they draw, as does whoever removes the line.
#[derive(Debug)]
pub struct ProgressLine {
    label: String,
    started: Instant,
    is_enabled: bool,
    /// Odd while a timer draws it, from the beginning of the work to its end: how often the line
    /// was begun or ended.
    life: AtomicU64,
    is_drawn: AtomicBool,
    last_drawn_milliseconds: AtomicU64,
    latest: Latest,
    /// The total, if it is determined by a separate thread.
    estimate: OnceLock<SizeEstimate>,
    window: Window,
}

/// The latest position. Its parts are read separately, so they may be inconsistent, which nobody
/// notices in a line that is soon redrawn.
#[derive(Debug, Default)]
struct Latest {
    content_bytes: AtomicU64,
    archive_bytes: AtomicU64,
    done_bytes: AtomicU64,
    /// 0 if unknown.
    total_bytes: AtomicU64,
    is_part_of_archive: AtomicBool,
}

impl Latest {
    fn set(&self, position: &Position) {
        let (done, total) = position.part.unwrap_or_default();
        self.content_bytes
            .store(position.content_bytes, Ordering::Relaxed);
        self.archive_bytes
            .store(position.archive_bytes, Ordering::Relaxed);
        self.done_bytes.store(done, Ordering::Relaxed);
        self.total_bytes.store(total, Ordering::Relaxed);
        (self.is_part_of_archive).store(position.is_part_of_archive, Ordering::Relaxed);
    }

    fn get(&self) -> Position {
        let total = self.total_bytes.load(Ordering::Relaxed);
        let done = self.done_bytes.load(Ordering::Relaxed).min(total);
        Position {
            content_bytes: self.content_bytes.load(Ordering::Relaxed),
            archive_bytes: self.archive_bytes.load(Ordering::Relaxed),
            part: (total > 0).then_some((done, total)),
            is_part_of_archive: self.is_part_of_archive.load(Ordering::Relaxed),
        }
    }
}

/// Two moments in the past, with the content bytes done by then. Written under the lock of standard
/// error.
#[derive(Debug, Default)]
struct Window {
    earlier: [AtomicU64; 2],
    later: [AtomicU64; 2],
}

impl Window {
    /// The pace of the last seconds, or the overall pace if nothing was done in them.
    fn pace(&self, bytes: u64, elapsed: Duration) -> Pace {
        let now = milliseconds(elapsed);
        let load = |[time, bytes]: &[AtomicU64; 2]| {
            (time.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
        };
        let store = |[time, bytes]: &[AtomicU64; 2], values: (u64, u64)| {
            time.store(values.0, Ordering::Relaxed);
            bytes.store(values.1, Ordering::Relaxed);
        };
        let later = load(&self.later);
        if now.saturating_sub(later.0) >= milliseconds(WINDOW) {
            store(&self.earlier, later);
            store(&self.later, (now, bytes));
        }
        let (time, before) = load(&self.earlier);
        match bytes.saturating_sub(before) {
            0 => Pace {
                bytes,
                time: elapsed,
            },
            recent => Pace {
                bytes: recent,
                time: Duration::from_millis(now.saturating_sub(time)),
            },
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl ProgressLine {
    /// A line not drawn yet.
    pub fn new(label: &str, is_enabled: bool) -> ProgressLine {
        ProgressLine {
            label: printable(label),
            started: Instant::now(),
            is_enabled: is_enabled && takes_escapes(&io::stderr()),
            life: AtomicU64::new(0),
            is_drawn: AtomicBool::new(false),
            last_drawn_milliseconds: AtomicU64::new(0),
            latest: Latest::default(),
            estimate: OnceLock::new(),
            window: Window::default(),
        }
    }

    /// The name of the work, safe to print.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether it is drawn at all.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Sets the total before anything is done.
    pub fn expect(&self, bytes: Option<u64>) {
        self.latest.set(&Position {
            part: bytes.filter(|bytes| *bytes > 0).map(|bytes| (0, bytes)),
            ..Position::default()
        });
    }

    /// Takes the total from an estimate, once available.
    pub fn expect_estimate(&self, estimate: &SizeEstimate) {
        let _ = self.estimate.set(estimate.clone());
    }

    /// Also draws the line as time passes, until it is erased.
    pub fn follow_clock(self: &Arc<Self>) {
        let life = self.life.load(Ordering::Relaxed) + 1;
        if !self.is_enabled || is_live(life - 1) {
            return;
        }
        self.life.store(life, Ordering::Relaxed);
        // Without a pool, the line is drawn only when something was done.
        if let Ok(pool) = Pool::of_process() {
            let flow = pool.flow(Entity::new(Class::Normal).with_latency(Latency::Insensitive));
            draw_later(Arc::downgrade(self), life, pool, flow);
        }
    }

    /// Draws the line unless it was drawn a moment ago. May be called from any thread.
    pub fn update(&self, progress: &Progress) {
        self.draw(&Position::new(progress, &Total::Reported));
    }

    /// As [`update`](ProgressLine::update), for a position.
    pub fn draw(&self, position: &Position) {
        if self.is_enabled {
            self.latest.set(position);
            self.draw_if_older(REDRAW);
        }
    }

    /// Draws the line if it is older than `age`.
    fn draw_if_older(&self, age: Duration) {
        let elapsed = self.started.elapsed();
        let now = milliseconds(elapsed);
        let last = self.last_drawn_milliseconds.load(Ordering::Relaxed);
        let is_due = now >= last.saturating_add(milliseconds(age));
        let is_mine = is_due
            && (self.last_drawn_milliseconds)
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_mine {
            self.write(elapsed, age == STANDSTILL);
        }
    }

    fn write(&self, elapsed: Duration, is_by_clock: bool) {
        let mut stderr = io::stderr().lock();
        // It may have been erased while waiting for the lock.
        if is_by_clock && !is_live(self.life.load(Ordering::Relaxed)) {
            return;
        }
        self.is_drawn.store(true, Ordering::Relaxed);
        let mut position = self.latest.get();
        if let (None, Some(total)) = (position.part, self.estimated_bytes()) {
            position.part = Some((position.content_bytes.min(total), total));
        }
        let pace = self.window.pace(position.content_bytes, elapsed);
        // The last column stays empty: some terminals wrap when it is written.
        let columns = terminal_columns().saturating_sub(1);
        let line = line_text(&self.label, &position, pace, elapsed, columns);
        let _ = stderr.write_all(format!("\r{line}\x1b[K").as_bytes());
    }

    fn estimated_bytes(&self) -> Option<u64> {
        let bytes = self.estimate.get()?.bytes();
        bytes.filter(|bytes| *bytes > 0)
    }

    /// Removes the line from the terminal. As time passes it is no longer drawn.
    pub fn erase(&self) {
        if self.is_enabled {
            let mut stderr = io::stderr().lock();
            let life = self.life.load(Ordering::Relaxed);
            self.life.store(life + life % 2, Ordering::Relaxed);
            self.remove(&mut stderr);
        }
    }

    /// Prints something in place of the line, which returns with its next update.
    pub fn interrupt(&self, print: impl FnOnce()) {
        let mut stderr = io::stderr().lock();
        self.remove(&mut stderr);
        print();
    }

    fn remove(&self, stderr: &mut impl Write) {
        if self.is_drawn.swap(false, Ordering::Relaxed) {
            let _ = stderr.write_all(b"\r\x1b[K");
        }
    }
}

fn is_live(life: u64) -> bool {
    !life.is_multiple_of(2)
}

/// Lets a timer of the pool draw the line, again and again while it is live: since it was live for
/// the time with this number.
fn draw_later(line: Weak<ProgressLine>, life: u64, pool: Arc<Pool>, flow: Flow) {
    let (again, same_pool) = (flow.clone(), Arc::clone(&pool));
    pool.after(TICK, &flow, move || {
        if let Some(drawn) = line.upgrade()
            && drawn.life.load(Ordering::Relaxed) == life
        {
            drawn.draw_if_older(STANDSTILL);
            draw_later(line, life, same_pool, again);
        }
    });
}

/// The width of the terminal on standard error.
fn terminal_columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => COLUMNS_DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_last_seconds() {
        let window = Window::default();
        let rate = |bytes: u64, seconds: u64| {
            let pace = window.pace(bytes, Duration::from_secs(seconds));
            pace.bytes / pace.time.as_secs()
        };
        assert_eq!(rate(1000, 1), 1000);
        // Ten seconds of 1000 per second, then ten of 100.
        for second in 2..=10 {
            rate(second * 1000, second);
        }
        for second in 1..10 {
            rate(10_000 + second * 100, 10 + second);
        }
        assert_eq!(rate(11_000, 20), 100);
        // At a standstill the average says more than 0.
        for second in 21..40 {
            rate(11_000, second);
        }
        assert_eq!(rate(11_000, 44), 250);
    }
}
