//! Describes a trace in words: where the workers' time went, and what limits the run.

mod limits;
mod times;

use std::cmp::Reverse;
use std::time::Duration;

use refrain_trace::{Event, EventKind, ThreadTrace};

use super::columns::time_text;
use crate::units::rate_text;
use limits::{Limit, Limits, ThreadPeriods, limits};
pub(in crate::profile) use times::Activity;
use times::{Period, Times, add, device_text, end_of, periods, stage_text};

/// The prefix of the pool's thread names.
const WORKER: &str = "worker";
/// Smaller shares of the time are not named.
const NAMED_SHARE: f64 = 0.005;
const NAMED_MAX: usize = 6;

/// The share of an activity in the time of all workers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Share {
    pub activity: Activity,
    /// 0 to 1.
    pub share: f64,
}

/// The description of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Words {
    /// What limits the run.
    pub verdict: String,
    /// What could make it faster.
    pub remedy: Option<String>,
    /// Where the workers' time went, the largest share first.
    pub shares: Vec<Share>,
    /// Further lines.
    pub notes: Vec<String>,
}

impl Words {
    /// Everything as lines, the verdict last.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = self.notes.clone();
        let remedy = self.remedy.as_ref().map(|text| format!("; {text}"));
        lines.push(format!("{}{}", self.verdict, remedy.unwrap_or_default()));
        lines
    }
}

/// Describes the trace of a run at this level.
pub(super) fn summary(threads: &[ThreadTrace], level: Option<u8>) -> Words {
    let events = || threads.iter().flat_map(|thread| &thread.events);
    let begin_ns = events().map(|event| event.start_ns).min();
    let end_ns = events().map(end_of).max();
    let (Some(begin_ns), Some(end_ns)) = (begin_ns, end_ns) else {
        return Words {
            verdict: "nothing was recorded".into(),
            ..Words::default()
        };
    };
    let found: Vec<Vec<Period>> = threads.iter().map(|each| periods(&each.events)).collect();
    let is_worker = |thread: &ThreadTrace| thread.name.starts_with(WORKER);
    let workers = threads.iter().filter(|thread| is_worker(thread)).count();
    let mut times = Times::new();
    for (thread, periods) in threads.iter().zip(&found) {
        if is_worker(thread) {
            add(periods, &mut times);
        }
    }
    let whole_ns = (end_ns - begin_ns).max(1);
    let all_ns = whole_ns * workers.max(1) as u64;
    let known_ns: u64 = times.values().sum();
    *times.entry(Activity::Idle).or_default() += all_ns.saturating_sub(known_ns);
    let threads_of = threads.iter().zip(&found);
    let of_threads: Vec<_> = threads_of
        .map(|(thread, periods)| ThreadPeriods {
            name: &thread.name,
            is_worker: is_worker(thread),
            periods,
        })
        .collect();
    let run = MeasuredRun {
        workers,
        whole_ns,
        limits: limits(&of_threads, begin_ns, end_ns),
        times,
        all_ns,
        threads,
        level,
    };
    let mut lines = vec![];
    if workers > 0 {
        let time = time_text(Duration::from_nanos(whole_ns));
        let shares = run.shares_text();
        lines.push(format!("{} over {time}: {shares}", workers_text(workers)));
    }
    let lost: u64 = threads.iter().map(|thread| thread.lost).sum();
    if lost > 0 {
        lines.push(format!(
            "{lost} early events are missing: the shares cover only the rest"
        ));
    }
    let (verdict, remedy) = run.verdict();
    Words {
        verdict,
        remedy,
        shares: run.shares(),
        notes: lines,
    }
}

fn workers_text(count: usize) -> String {
    match count {
        1 => "1 worker".into(),
        count => format!("{count} workers"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What to call the workers in a stage.
fn worker_text(stage: &str) -> &'static str {
    match stage {
        "encode" | "encode extents" | "encode records" => "the encoder",
        codec if codec.starts_with("codec ") => "the encoder",
        "decode" | "assemble" => "the decoder",
        "scan" | "find repeats" | "match" | "commit" => "the search for repeats",
        "hash" | "hash files" | "read and hash" => "hashing",
        "restore" => "restoring files",
        "read" => "reading",
        "write" | "deliver" => "writing",
        _ => "the work",
    }
}

struct MeasuredRun<'a> {
    workers: usize,
    whole_ns: u64,
    limits: Limits,
    /// Of the workers.
    times: Times,
    /// The time of all workers.
    all_ns: u64,
    threads: &'a [ThreadTrace],
    /// The level, if the run compresses.
    level: Option<u8>,
}

impl MeasuredRun<'_> {
    fn share(&self, counts: impl Fn(&Activity) -> bool) -> f64 {
        let counted = self.times.iter().filter(|(activity, _)| counts(activity));
        counted.map(|(_, ns)| *ns).sum::<u64>() as f64 / self.all_ns as f64
    }

    /// All activities and their shares.
    fn shares(&self) -> Vec<Share> {
        let mut sorted: Vec<_> = self.times.iter().collect();
        sorted.sort_by_key(|(_, ns)| Reverse(**ns));
        let shares = sorted.into_iter().map(|(activity, ns)| Share {
            activity: activity.clone(),
            share: *ns as f64 / self.all_ns as f64,
        });
        shares.filter(|share| share.share >= NAMED_SHARE).collect()
    }

    /// The largest activities and their shares.
    fn shares_text(&self) -> String {
        let shares = self.shares();
        let named = shares.iter().take(NAMED_MAX);
        let texts = named.map(|one| format!("{} {}", one.activity.text(), percent(one.share)));
        texts.collect::<Vec<_>>().join(", ")
    }

    fn faster_level(&self) -> Option<String> {
        let level = self.level.filter(|level| *level > 1)?;
        Some(format!("try -{}", level - 1))
    }

    /// What limits the run, and what would help.
    fn verdict(&self) -> (String, Option<String>) {
        let longest = self.limits.times.iter().max_by_key(|(_, ns)| **ns);
        let Some((limit, ns)) = longest else {
            return ("nothing took any time".into(), None);
        };
        let share = percent(*ns as f64 / self.whole_ns as f64);
        let verdict = self.verdict_text(limit, &share);
        let remedy = match limit {
            Limit::Work => self.work_remedy(),
            Limit::Input(device) => Some(match *device {
                "stream" => {
                    "the program that writes into the pipe would have to be faster".to_owned()
                }
                device => format!("try a source that is faster than {}", device_text(device)),
            }),
            Limit::Output(device) => Some(match *device {
                "stream" => {
                    "the program that reads from the pipe would have to be faster".to_owned()
                }
                device => format!("try a target that is faster than {}", device_text(device)),
            }),
            Limit::Memory => Some("try a larger --memory or a smaller --block-size".to_owned()),
            Limit::Few => self.few_remedy(),
            Limit::Lock(_) | Limit::None => None,
        };
        (verdict, remedy)
    }

    /// Used if the workers are the bottleneck.
    fn work_remedy(&self) -> Option<String> {
        let (stage, _) = self.largest_stage()?;
        match worker_text(stage) {
            "the encoder" => self.faster_level(),
            "the search for repeats" if self.level.is_some_and(|level| level > 1) => {
                Some("try -1, which searches less".to_owned())
            }
            _ => None,
        }
    }

    /// Used if only some workers have work.
    fn few_remedy(&self) -> Option<String> {
        let longest = self.limits.alone.iter().max_by_key(|(_, ns)| **ns);
        match longest?.0 {
            Activity::Stage(stage) if worker_text(stage) == "the encoder" => Some(
                "try a smaller --block-size: there are too few blocks for all workers".to_owned(),
            ),
            _ => None,
        }
    }

    /// The stage in which workers spend most time.
    fn largest_stage(&self) -> Option<(&'static str, u64)> {
        let stages = self
            .times
            .iter()
            .filter_map(|(activity, ns)| match activity {
                Activity::Stage(name) => Some((*name, *ns)),
                _ => None,
            });
        stages.max_by_key(|(_, ns)| *ns)
    }

    fn verdict_text(&self, limit: &Limit, share: &str) -> String {
        match limit {
            Limit::Work => self.work_text(),
            Limit::Input(device) => {
                let rate = self.rate_text(EventKind::Read, device);
                format!(
                    "{} is the bottleneck: {share} of the time work waits until it is read{rate}",
                    device_text(device)
                )
            }
            Limit::Output(device) => {
                let rate = self.rate_text(EventKind::Write, device);
                format!(
                    "{} is the bottleneck: {share} of the time work waits until it is written{rate}",
                    device_text(device)
                )
            }
            Limit::Lock(name) => {
                let waits = self.share(|activity| *activity == Activity::Lock(name.clone()));
                format!(
                    "a lock is the bottleneck: workers spend {} waiting for the lock {name}{}",
                    percent(waits),
                    self.lock_lines(name)
                )
            }
            Limit::Memory => format!(
                "memory is the bottleneck: {share} of the time workers have nothing to do because the budget is \
                 used up"
            ),
            Limit::Few => self.few_text(share),
            Limit::None => self.none_text(share),
        }
    }

    /// Used if the workers are the bottleneck.
    fn work_text(&self) -> String {
        let largest = self.largest_stage();
        let waits = self.share(|each| matches!(each, Activity::Reading(_) | Activity::Writing(_)));
        let idle = self.share(|activity| *activity == Activity::Idle);
        let rest = format!(
            "{} waiting for the disk or a pipe, {} idle",
            percent(waits),
            percent(idle)
        );
        match largest {
            None => format!("the work outside of stages is the bottleneck: {rest}"),
            Some((stage, ns)) => format!(
                "{} is the bottleneck: workers spend {} in {}, {rest}",
                worker_text(stage),
                percent(ns as f64 / self.all_ns as f64),
                stage_text(stage)
            ),
        }
    }

    /// How fast a device was read or written, over the whole run.
    fn rate_text(&self, kind: EventKind, device: &str) -> String {
        let events = self.threads.iter().flat_map(|thread| &thread.events);
        let of_device = events.filter(|event| event.kind == kind && event.name == device);
        match of_device.map(|event| event.argument).sum() {
            0 => String::new(),
            bytes => {
                let rate = rate_text(bytes, Duration::from_nanos(self.whole_ns));
                format!(", at {rate}")
            }
        }
    }

    /// The source line with the longest waits for a lock.
    fn lock_lines(&self, name: &str) -> String {
        let events = self.threads.iter().flat_map(|thread| &thread.events);
        let is_it =
            |event: &&Event| Activity::from_event(event) == Some(Activity::Lock(name.to_owned()));
        let mut lines = std::collections::BTreeMap::<u64, u64>::new();
        for event in events.filter(is_it) {
            *lines.entry(event.argument).or_default() += event.duration_ns;
        }
        match lines.into_iter().max_by_key(|(_, ns)| *ns) {
            Some((line, _)) => format!(", most of all in line {line}; --profile names the file"),
            None => String::new(),
        }
    }

    /// Used if only some workers have work.
    fn few_text(&self, share: &str) -> String {
        let longest = self.limits.alone.iter().max_by_key(|(_, ns)| **ns);
        let idle = percent(self.share(|activity| *activity == Activity::Idle));
        let Some((activity, _)) = longest else {
            return format!("there is too little to do at the same time: workers are idle {idle}");
        };
        let advice = match activity {
            Activity::Stage(stage) if worker_text(stage) == "the decoder" => {
                ": there are too few blocks"
            }
            _ => "",
        };
        format!(
            "there is too little to do at the same time: {share} of the time only some of the {} have work, \
             most of it in {}{advice}; workers are idle {idle}",
            workers_text(self.workers),
            activity.text()
        )
    }

    /// Used if no worker has anything to do.
    fn none_text(&self, share: &str) -> String {
        let working = self
            .limits
            .others
            .iter()
            .filter(|((_, activity), _)| activity.is_work());
        match working.max_by_key(|(_, ns)| **ns) {
            Some(((thread, activity), ns)) => format!(
                "the thread {thread} is the bottleneck: {share} of the time no worker has anything to do, and it spends {} in {}",
                percent(*ns as f64 / self.whole_ns as f64),
                activity.text()
            ),
            None => format!("{share} of the time no thread has anything to do that is recorded"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn event(
        kind: EventKind,
        name: &'static str,
        start_ns: u64,
        duration_ns: u64,
    ) -> Event {
        Event {
            kind,
            name,
            flow: 0,
            start_ns,
            duration_ns,
            argument: 0,
        }
    }

    fn thread(name: &str, events: Vec<Event>) -> ThreadTrace {
        ThreadTrace {
            name: name.into(),
            events,
            lost: 0,
        }
    }

    fn last(threads: &[ThreadTrace]) -> String {
        summary(threads, Some(3)).lines().pop().unwrap()
    }

    fn stage(name: &'static str, start_ns: u64, duration_ns: u64) -> Event {
        event(EventKind::Stage, name, start_ns, duration_ns)
    }

    #[test]
    fn busy_workers_are_the_bottleneck() {
        let busy = [
            thread(
                "worker-0",
                vec![stage("encode", 5, 905), stage("codec zstd", 10, 900)],
            ),
            thread(
                "worker-1",
                vec![
                    stage("codec zstd", 0, 500),
                    stage("read", 500, 500),
                    event(EventKind::Wait, "disk", 500, 60),
                ],
            ),
        ];
        let words = summary(&busy, Some(3));
        assert_eq!(
            words.notes[0],
            "2 workers over 1.00 µs: codec zstd 70 %, stage read 22 %, idle 5 %, waiting to read the disk 3 %"
        );
        assert_eq!(words.remedy.as_deref(), Some("try -2"));
        let shares: Vec<_> = words
            .shares
            .iter()
            .map(|one| (one.activity.text(), percent(one.share)))
            .collect();
        assert_eq!(shares[0], ("codec zstd".into(), "70 %".into()));
        assert_eq!(shares.len(), 4);
        assert_eq!(
            words.verdict,
            "the encoder is the bottleneck: workers spend 70 % in codec zstd, \
             3 % waiting for the disk or a pipe, 5 % idle"
        );
        assert!(words.lines().last().unwrap().ends_with("5 % idle; try -2"));
        assert_eq!(summary(&busy, Some(1)).remedy, None);
        assert_eq!(summary(&[], None).lines(), ["nothing was recorded"]);
    }

    #[test]
    fn devices_are_the_bottleneck() {
        let read = |argument| Event {
            argument,
            ..event(EventKind::Read, "stream", 0, 1000)
        };
        let waits = |argument| Event {
            argument,
            ..event(EventKind::Wait, "stream", 0, 980)
        };
        let threads = |argument| {
            [
                thread("worker-0", vec![stage("encode", 100, 300)]),
                thread(
                    "input",
                    vec![stage("read", 0, 1000), waits(argument), read(2_000)],
                ),
            ]
        };
        let words = last(&threads(0));
        let expected = "the pipe is the bottleneck: 68 % of the time work waits until it is read, at 2.00 GB/s; \
                        the program that writes into the pipe would have to be faster";
        assert_eq!(words, expected);
        let words = last(&threads(1));
        assert!(words.contains("until it is written"), "{words}");
    }

    #[test]
    fn locks_memory_and_few_blocks_are_the_bottleneck() {
        let lock = [
            thread(
                "worker-0",
                vec![
                    stage("scan", 0, 300),
                    event(EventKind::LockWait, "a::Cache", 300, 700),
                ],
            ),
            thread("worker-1", vec![stage("scan", 0, 1000)]),
        ];
        let words = last(&lock);
        assert!(
            words.starts_with(
                "a lock is the bottleneck: workers spend 35 % waiting for the lock Cache"
            ),
            "{words}"
        );
        let few = |main: Vec<Event>| {
            [
                thread("worker-0", vec![stage("codec lzma", 0, 1000)]),
                thread("worker-1", vec![event(EventKind::Idle, "", 0, 900)]),
                thread("main", main),
            ]
        };
        let words = last(&few(vec![event(EventKind::Wait, "results", 0, 1000)]));
        assert!(
            words.contains(
                "100 % of the time only some of the 2 workers have work, most of it in codec lzma"
            ),
            "{words}"
        );
        assert!(words.contains("too few blocks"), "{words}");
        let words = last(&few(vec![
            event(EventKind::Wait, "memory", 100, 900),
            event(EventKind::Wait, "results", 110, 880),
        ]));
        assert!(
            words.starts_with("memory is the bottleneck: 90 %"),
            "{words}"
        );
    }

    #[test]
    fn a_thread_that_is_no_worker_is_the_bottleneck() {
        let serial = [
            thread("worker-0", vec![stage("encode", 0, 100)]),
            thread("main", vec![stage("write", 50, 950)]),
        ];
        let words = last(&serial);
        let expected = "the thread main is the bottleneck: 90 % of the time no worker has anything to do, \
                        and it spends 90 % in stage write";
        assert_eq!(words, expected);
    }

    /// A real case: workers of a pool that need the same lock for everything.
    #[test]
    fn a_hot_lock_is_named() {
        use refrain_policy::{Class, Entity};
        use refrain_pool::Lock;
        use refrain_pool::pool::{Options, Pool};
        use std::sync::Arc;
        use std::time::Duration;

        refrain_trace::start(1 << 16);
        let pool = Pool::start(Options::with_workers(3)).unwrap();
        let hot = Arc::new(Lock::new(vec![0_u64]));
        let flows: Vec<_> = (0..3)
            .map(|_| pool.flow(Entity::new(Class::Normal)))
            .collect();
        let jobs: Vec<_> = (0..90)
            .map(|job| {
                let hot = Arc::clone(&hot);
                flows[job % 3].spawn(move || {
                    let mut held = hot.lock();
                    std::thread::sleep(Duration::from_millis(3));
                    held[0] += 1;
                })
            })
            .collect();
        for job in jobs {
            job.wait().unwrap();
        }
        refrain_trace::stop();
        assert_eq!(hot.lock()[0], 90);
        let mut threads = refrain_trace::collect();
        threads.retain(|thread| thread.name.starts_with(WORKER));
        let words = last(&threads);
        let expected = "waiting for the lock Vec<u64>, most of all in line ";
        assert!(
            words.starts_with("a lock is the bottleneck") && words.contains(expected),
            "{words}"
        );
    }
}
