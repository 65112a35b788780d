//! Reports to the server's owner: each failure once, and what clients do at most once per period.

use std::collections::BTreeSet;
use std::time::Duration;

use refrain_pool::Lock;
use refrain_sync::clock::{Clock, RealClock};

/// How many messages are remembered. With more kinds of damage, some are repeated.
const REMEMBERED_MAX: usize = 10_000;

/// The least time between two lines about events of one kind.
const PERIOD: Duration = Duration::from_secs(60);

/// Which messages were reported.
#[derive(Default)]
pub(crate) struct Reports(Lock<BTreeSet<String>>);

impl Reports {
    /// Whether a message with this key is new: clients repeat what failed.
    pub(crate) fn is_new(&self, key: String) -> bool {
        let mut told = self.0.lock();
        if told.contains(&key) {
            return false;
        }
        if told.len() >= REMEMBERED_MAX {
            told.clear();
        }
        told.insert(key)
    }
}

/// Counts events of one kind: refusals for one reason, clients that are too slow.
pub(crate) struct Occurrences {
    clock: RealClock,
    counted: Lock<Counted>,
}

#[derive(Default)]
struct Counted {
    count: u64,
    /// The count in the last line, and when that was reported.
    told: u64,
    told_at: Option<Duration>,
}

impl Occurrences {
    pub(crate) fn new() -> Occurrences {
        Occurrences {
            clock: RealClock::new(),
            counted: Lock::default(),
        }
    }

    /// Counts one, and reports it unless another was reported within the period.
    pub(crate) fn add(&self, reporter: &dyn Fn(&str), what: &str) {
        let untold = self.counted.lock().add(self.clock.now());
        match untold {
            Some(1) => reporter(what),
            Some(count) => reporter(&format!("{what} ({count} times since the last such line)")),
            None => {}
        }
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.counted.lock().count
    }
}

impl Counted {
    /// Counts one. Returns the number since the last line if a line is due.
    fn add(&mut self, now: Duration) -> Option<u64> {
        self.count += 1;
        if self
            .told_at
            .is_some_and(|told_at| now.saturating_sub(told_at) < PERIOD)
        {
            return None;
        }
        let untold = self.count - self.told;
        (self.told, self.told_at) = (self.count, Some(now));
        Some(untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_new_once() {
        let reports = Reports::default();
        let new = ["a", "b", "a", "b", "c"].map(|key| reports.is_new(key.to_owned()));
        assert_eq!(new, [true, true, false, false, true]);
    }

    #[test]
    fn occurrences_are_counted_and_told_once_per_period() {
        let mut counted = Counted::default();
        let mut add = |seconds| counted.add(Duration::from_secs(seconds));
        let told = [0, 1, 59, 60, 61, 200].map(&mut add);
        assert_eq!(told, [Some(1), None, None, Some(3), None, Some(2)]);
        assert_eq!(counted.count, 6);
    }

    #[test]
    fn a_line_says_what_happens() {
        let told = std::sync::Arc::new(Lock::new(vec![]));
        let own = std::sync::Arc::clone(&told);
        let reporter = move |text: &str| own.lock().push(text.to_owned());
        let refusals = Occurrences::new();
        for _ in 0..300 {
            refusals.add(&reporter, "full");
        }
        assert_eq!(*told.lock(), ["full"]);
        assert_eq!(refusals.count(), 300);
    }
}
