//! Finds what keeps workers from working, at each moment.
//!
//! While all workers compute, the limit is work. At any other moment somebody waits, and the cause
//! is the first of these that applies: a thread waits to write, a thread waits to read, a worker
//! waits for a lock, the memory budget is used up, only some of the workers have work, or none has.

use std::collections::BTreeMap;

use super::times::{Activity, Period, Times};

/// Why not all workers work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Limit {
    /// All workers do.
    Work,
    /// A device is being written.
    Output(&'static str),
    /// A device is being read.
    Input(&'static str),
    Lock(String),
    Memory,
    /// Only some workers have work.
    Few,
    /// No worker has work.
    None,
}

/// How long each limit applied.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub times: BTreeMap<Limit, u64>,
    /// What the workers did while only some of them had work.
    pub alone: Times,
    /// What other threads did while no worker had work and nothing was waited for.
    pub others: BTreeMap<(String, Activity), u64>,
}

/// What a thread does.
pub(super) struct ThreadPeriods<'a> {
    pub name: &'a str,
    pub is_worker: bool,
    pub periods: &'a [Period],
}

/// The activities in progress, with the number of threads in each.
#[derive(Default)]
struct Present {
    workers: BTreeMap<Activity, usize>,
    others: BTreeMap<(String, Activity), usize>,
}

fn change<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K, begins: bool) {
    let count = counts.entry(key).or_default();
    if begins { *count += 1 } else { *count = count.saturating_sub(1) }
}

impl Present {
    fn any(&self) -> impl Iterator<Item = &Activity> {
        let workers = self.workers.iter().filter(|(_, count)| **count > 0);
        let others = self.others.iter().filter(|(_, count)| **count > 0);
        let others = others.map(|((_, activity), _)| activity);
        workers.map(|(activity, _)| activity).chain(others)
    }

    fn limit(&self, workers: usize) -> Limit {
        let working = self
            .workers
            .iter()
            .filter(|(activity, _)| activity.is_work());
        let working: usize = working.map(|(_, count)| *count).sum();
        if workers > 0 && working >= workers {
            return Limit::Work;
        }
        let output = self.any().find_map(|activity| match activity {
            Activity::Writing(device) => Some(Limit::Output(device)),
            _ => None,
        });
        let input = || {
            self.any().find_map(|activity| match activity {
                Activity::Reading(device) => Some(Limit::Input(device)),
                _ => None,
            })
        };
        let lock = || {
            let mut workers = self.workers.iter().filter(|(_, count)| **count > 0);
            workers.find_map(|(activity, _)| match activity {
                Activity::Lock(name) => Some(Limit::Lock(name.clone())),
                _ => None,
            })
        };
        let memory = || {
            let is_short = self
                .any()
                .any(|activity| *activity == Activity::Wait("memory"));
            is_short.then_some(Limit::Memory)
        };
        let rest = || match working {
            0 => Limit::None,
            _ => Limit::Few,
        };
        (output.or_else(input).or_else(lock).or_else(memory)).unwrap_or_else(rest)
    }
}

/// Follows all threads from the first to the last moment.
pub(super) fn limits(threads: &[ThreadPeriods<'_>], begin_ns: u64, end_ns: u64) -> Limits {
    let workers = threads.iter().filter(|thread| thread.is_worker).count();
    let mut changes: Vec<(u64, bool, usize, usize)> = vec![];
    for (thread, found) in threads.iter().enumerate() {
        for (number, period) in found.periods.iter().enumerate() {
            changes.push((period.start_ns, true, thread, number));
            changes.push((period.end_ns, false, thread, number));
        }
    }
    changes.sort_unstable();
    let mut present = Present::default();
    let mut limits = Limits::default();
    let mut now_ns = begin_ns;
    let mut pass = |present: &Present, now_ns: &mut u64, time_ns: u64| {
        let passed_ns = time_ns.saturating_sub(*now_ns);
        if passed_ns == 0 {
            return;
        }
        *now_ns = time_ns;
        let limit = present.limit(workers);
        if limit == Limit::Few {
            let working = present.workers.iter();
            for (activity, count) in working.filter(|(activity, _)| activity.is_work()) {
                *limits.alone.entry(activity.clone()).or_default() += passed_ns * *count as u64;
            }
        }
        if limit == Limit::None {
            for (key, _) in present.others.iter().filter(|(_, count)| **count > 0) {
                *limits.others.entry(key.clone()).or_default() += passed_ns;
            }
        }
        *limits.times.entry(limit).or_default() += passed_ns;
    };
    for (time_ns, begins, thread, number) in changes {
        pass(&present, &mut now_ns, time_ns);
        let Some(found) = threads.get(thread) else {
            continue;
        };
        let Some(period) = found.periods.get(number) else {
            continue;
        };
        let activity = period.activity.clone();
        if found.is_worker {
            change(&mut present.workers, activity, begins)
        } else {
            change(
                &mut present.others,
                (found.name.to_owned(), activity),
                begins,
            )
        }
    }
    pass(&present, &mut now_ns, end_ns);
    limits
}
