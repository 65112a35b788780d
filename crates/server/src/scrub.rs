//! Checks archives in the background, again and again: damage is found while a good copy may
//! still exist, not when somebody needs the bytes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refrain::Layout;
use refrain_pool::pool::Pool;
use refrain_pool::{Event, SignalDelivery, in_background, start_detached};

use crate::archives::Archives;
use crate::error::{Error, Result};
use crate::service::Service;
use crate::statistics::{Metric, MetricSource};

/// How many bytes are read in a second at most.
const BYTES_PER_SECOND: u64 = 32 << 20;

/// How long a check waits while the server computes for clients.
const FOREGROUND_REST: Duration = Duration::from_millis(20);

/// How long it rests when all is checked.
const ROUND_REST: Duration = Duration::from_secs(24 * 60 * 60);

/// A check that goes on in the background, on a thread of the kernel's idle class, until this is
/// dropped. It reads all frames of the archives and compares them with their checksums, and begins
/// again a day after it has ended.
pub struct Scrub {
    progress: Arc<Progress>,
    stop: Arc<Event>,
}

#[derive(Default)]
struct Progress {
    bytes: AtomicU64,
    rounds: AtomicU64,
    damaged_frames: AtomicU64,
}

impl Scrub {
    /// Starts checking an archive, or several, of which those without frames (lrzip) are left out.
    /// Damage is reported once to the service's reporter.
    ///
    /// # Errors
    /// `Archive` if a single one has no frames; `System` if no thread can be started.
    pub fn start(archives: impl Into<Archives>) -> Result<Scrub> {
        Scrub::with_rate(archives.into(), BYTES_PER_SECOND)
    }

    fn with_rate(archives: Archives, bytes_per_second: u64) -> Result<Scrub> {
        if let Some(opened) = archives.only() {
            opened.service.archive().layout().frame_after(0)?;
        }
        let stop = Arc::<Event>::default();
        let progress = Arc::<Progress>::default();
        let mut check = Check {
            archives,
            progress: Arc::clone(&progress),
            bytes_per_second,
            stop: Arc::clone(&stop),
            reported: BTreeSet::new(),
        };
        let run = move || in_background(|| check.run());
        if start_detached("scrub", SignalDelivery::OwnFaults, run) {
            Ok(Scrub { progress, stop })
        } else {
            let error = std::io::ErrorKind::OutOfMemory.into();
            let what = "cannot check the archive in the background";
            Err(Error::system(what, error))
        }
    }

    /// What is checked so far.
    pub fn metrics(&self) -> Arc<dyn MetricSource> {
        Arc::clone(&self.progress) as _
    }
}

impl Drop for Scrub {
    fn drop(&mut self) {
        self.stop.happen();
    }
}

impl MetricSource for Progress {
    fn metrics(&self) -> Vec<Metric> {
        let metric = |name, help, value: &AtomicU64| Metric {
            name,
            help,
            value: value.load(Ordering::Relaxed) as f64,
        };
        vec![
            metric(
                "scrub_bytes_total",
                "Bytes of the archive checked in the background.",
                &self.bytes,
            ),
            metric(
                "scrub_rounds_total",
                "Complete checks of the archive.",
                &self.rounds,
            ),
            metric(
                "scrub_damaged_frames",
                "Frames that a check found damaged.",
                &self.damaged_frames,
            ),
        ]
    }
}

struct Check {
    archives: Archives,
    progress: Arc<Progress>,
    bytes_per_second: u64,
    /// Happens when the check has to stop.
    stop: Arc<Event>,
    /// Where damage was reported: the name of the archive, and the offset.
    reported: BTreeSet<(Vec<u8>, u64)>,
}

impl Check {
    fn run(&mut self) {
        while self.round().is_some() {
            self.progress.rounds.fetch_add(1, Ordering::Relaxed);
            if self.rest(ROUND_REST).is_none() {
                return;
            }
        }
    }

    /// Checks all archives once. `None`: the check has to stop.
    fn round(&mut self) -> Option<()> {
        if let Some(opened) = self.archives.only() {
            return self.check(b"", &opened.service);
        }
        for name in self.archives.names() {
            // What cannot be opened any more is an error for who asks for it.
            if let Ok(Some(opened)) = self.archives.get(&name)
                && opened.service.archive().layout().frame_after(0).is_ok()
            {
                self.check(&name, &opened.service)?;
            }
        }
        Some(())
    }

    /// Checks all frames of an archive. `None`: the check has to stop.
    fn check(&mut self, name: &[u8], service: &Service) -> Option<()> {
        let layout = service.archive().layout();
        let mut at = 0;
        loop {
            let frame = match next_frame(layout, at) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Some(()),
                // Where the next frame begins is unknown.
                Err(error) => {
                    self.report(name, service, at, &error);
                    return Some(());
                }
            };
            if let Err(error) = layout.frame_at(frame.start) {
                self.report(name, service, frame.start, &error);
            }
            at = frame.end;
            let bytes = frame.end - frame.start;
            self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
            let time_ns = bytes.saturating_mul(1_000_000_000) / self.bytes_per_second;
            self.rest(Duration::from_nanos(time_ns))?;
            while Pool::of_process().is_ok_and(|pool| pool.has_foreground_load()) {
                self.rest(FOREGROUND_REST)?;
            }
        }
    }

    fn report(&mut self, name: &[u8], service: &Service, offset: u64, error: &refrain::Error) {
        if self.reported.insert((name.to_vec(), offset)) {
            let count = self.reported.len() as u64;
            self.progress.damaged_frames.store(count, Ordering::Relaxed);
            service.report(&format!("scrub: {error}"));
        }
    }

    /// Waits this long. `None`: the check has to stop.
    fn rest(&self, time: Duration) -> Option<()> {
        (!self.stop.wait_for(time)).then_some(())
    }
}

/// The place of the first frame at or after an offset, by its header.
fn next_frame(layout: Layout<'_>, at: u64) -> refrain::Result<Option<Range<u64>>> {
    let Some(start) = layout.frame_after(at)? else {
        return Ok(None);
    };
    Ok(Some(start..layout.frame_end(start)?))
}

#[cfg(test)]
mod tests {
    use refrain_pool::Lock;

    use super::*;
    use crate::fixture::{archive_of, open};

    /// Checks an archive, changed after it was opened, once. Returns what was reported, and the
    /// numbers.
    fn checked(damage: bool) -> (Vec<String>, Vec<f64>) {
        let content: Vec<u8> = (0..300_000_u32)
            .flat_map(|number| number.wrapping_mul(number).to_le_bytes())
            .collect();
        let mut bytes = archive_of("a", content).unwrap();
        if damage {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        let archive = open(bytes).unwrap();
        let lines = Arc::new(Lock::new(vec![]));
        let told = Arc::clone(&lines);
        let reporter = Arc::new(move |line: &str| told.lock().push(line.to_owned()));
        let scrub = Scrub::with_rate(Service::new(archive, reporter).into(), u64::MAX).unwrap();
        let numbers = || -> Vec<f64> {
            let metrics = scrub.metrics().metrics();
            metrics.iter().map(|metric| metric.value).collect()
        };
        while numbers()[1] < 1.0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let lines = lines.lock().clone();
        (lines, numbers())
    }

    #[test]
    fn damage_is_reported_and_the_check_goes_on_behind_it() {
        let (lines, intact) = checked(false);
        assert_eq!((lines, intact[2]), (vec![], 0.0));
        let (lines, damaged) = checked(true);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("scrub: ") && lines[0].contains("offset"),
            "{lines:?}"
        );
        assert_eq!((damaged[0], damaged[2]), (intact[0], 1.0));
    }
}
