//! What a trace says in words: where the workers' time went, and what they waited for.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use refrain::trace::{Event, EventKind, ThreadTrace};

use super::columns::time_text;
use super::locks::short_name;

/// The names of the pool's threads begin like this.
const WORKER: &str = "worker";
/// Workers that work for this share of the time are the bottleneck.
const BUSY_SHARE: f64 = 0.6;
/// Waits for locks count from this share of the time on.
const LOCK_SHARE: f64 = 0.15;
/// A thread that spends this share of the time in a stage is what the others wait for.
const SERIAL_SHARE: f64 = 0.5;
/// Smaller shares of the time are not named.
const NAMED_SHARE: f64 = 0.005;
const NAMED_MAX: usize = 6;

/// What a thread does, without what it does inside of that.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Activity {
    Stage(&'static str),
    /// A flow, outside of stages.
    Other,
    Lock(String),
    /// A wait for something else.
    Wait(&'static str),
    Idle,
}

impl Activity {
    fn of(event: &Event) -> Option<Activity> {
        Some(match event.kind {
            EventKind::Stage => Activity::Stage(event.name),
            EventKind::Run => Activity::Other,
            EventKind::LockWait => Activity::Lock(short_name(event.name)),
            EventKind::Idle => Activity::Idle,
            EventKind::Wait => Activity::Wait(event.name),
            // Their stage counts.
            EventKind::Read | EventKind::Write => return None,
            EventKind::Wake | EventKind::Ready | EventKind::Count => return None,
        })
    }

    fn text(&self) -> String {
        match self {
            Activity::Stage(name) => format!("stage {name}"),
            Activity::Other => "work outside of stages".into(),
            Activity::Lock(name) => format!("waiting for the lock {name}"),
            Activity::Wait(name) => format!("waiting for {name}"),
            Activity::Idle => "idle".into(),
        }
    }
}

type Times = BTreeMap<Activity, u64>;

/// The lines of the summary.
pub(super) fn summary(threads: &[ThreadTrace]) -> Vec<String> {
    let events = || threads.iter().flat_map(|thread| &thread.events);
    let begin_ns = events().map(|event| event.start_ns).min();
    let end_ns = events().map(end_of).max();
    let (Some(begin_ns), Some(end_ns)) = (begin_ns, end_ns) else {
        return vec!["nothing was recorded".into()];
    };
    let whole_ns = (end_ns - begin_ns).max(1);
    let is_worker = |thread: &&ThreadTrace| thread.name.starts_with(WORKER);
    let workers: Vec<_> = threads.iter().filter(is_worker).collect();
    let others: Vec<_> = threads.iter().filter(|each| !is_worker(each)).collect();
    let mut times = Times::new();
    for worker in &workers {
        add_own_times(&worker.events, &mut times);
    }
    let all_ns = whole_ns * workers.len().max(1) as u64;
    let known_ns: u64 = times.values().sum();
    *times.entry(Activity::Idle).or_default() += all_ns.saturating_sub(known_ns);
    let mut lines = vec![];
    if !workers.is_empty() {
        let time = time_text(Duration::from_nanos(whole_ns));
        let shares = shares_text(&times, all_ns);
        lines.push(format!(
            "{} over {time}: {shares}",
            workers_text(workers.len())
        ));
    }
    lines.push(verdict(&times, all_ns, &others, whole_ns));
    let lost: u64 = threads.iter().map(|thread| thread.lost).sum();
    if lost > 0 {
        lines.push(format!(
            "{lost} early events are missing: the shares are those of the rest"
        ));
    }
    lines
}

fn workers_text(count: usize) -> String {
    match count {
        1 => "1 worker".into(),
        count => format!("{count} workers"),
    }
}

fn end_of(event: &Event) -> u64 {
    event.start_ns.saturating_add(event.duration_ns)
}

/// Adds the time of each activity without that of the activities inside it.
fn add_own_times(events: &[Event], times: &mut Times) {
    let mut spans: Vec<&Event> = events.iter().collect();
    spans.sort_by_key(|event| (event.start_ns, Reverse(end_of(event))));
    // The activities that are going on, each with its end and the time of those inside.
    let mut open: Vec<(Activity, u64, u64, u64)> = vec![];
    let close = |(activity, start_ns, end_ns, inner_ns): (Activity, u64, u64, u64),
                 open: &mut Vec<(Activity, u64, u64, u64)>,
                 times: &mut Times| {
        let whole_ns = end_ns - start_ns;
        *times.entry(activity).or_default() += whole_ns.saturating_sub(inner_ns);
        if let Some((.., inner_ns)) = open.last_mut() {
            *inner_ns += whole_ns;
        }
    };
    for event in spans {
        let Some(activity) = Activity::of(event) else {
            continue;
        };
        while let Some(last) = open.pop_if(|last| last.2 <= event.start_ns) {
            close(last, &mut open, times);
        }
        open.push((activity, event.start_ns, end_of(event), 0));
    }
    while let Some(last) = open.pop() {
        close(last, &mut open, times);
    }
}

fn share(times: &Times, all_ns: u64, counts: impl Fn(&Activity) -> bool) -> f64 {
    let counted = times.iter().filter(|(activity, _)| counts(activity));
    counted.map(|(_, ns)| *ns).sum::<u64>() as f64 / all_ns as f64
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The largest activities, and their shares.
fn shares_text(times: &Times, all_ns: u64) -> String {
    let mut sorted: Vec<_> = times.iter().collect();
    sorted.sort_by_key(|(_, ns)| Reverse(**ns));
    let named = sorted
        .into_iter()
        .map(|(activity, ns)| (activity, *ns as f64 / all_ns as f64));
    let named = named
        .filter(|(_, share)| *share >= NAMED_SHARE)
        .take(NAMED_MAX);
    let texts = named.map(|(activity, share)| format!("{} {}", activity.text(), percent(share)));
    texts.collect::<Vec<_>>().join(", ")
}

/// The activity with the largest share among those that count.
fn largest(times: &Times, counts: impl Fn(&Activity) -> bool) -> Option<(&Activity, u64)> {
    let counted = times.iter().filter(|(activity, _)| counts(activity));
    counted
        .map(|(activity, ns)| (activity, *ns))
        .max_by_key(|(_, ns)| *ns)
}

fn is_stage(activity: &Activity) -> bool {
    matches!(activity, Activity::Stage(_))
}

/// What limits the run.
fn verdict(times: &Times, all_ns: u64, others: &[&ThreadTrace], whole_ns: u64) -> String {
    let is_work = |activity: &Activity| matches!(activity, Activity::Stage(_) | Activity::Other);
    let is_lock = |activity: &Activity| matches!(activity, Activity::Lock(_));
    let busy = share(times, all_ns, is_work);
    let locked = share(times, all_ns, is_lock);
    if busy >= BUSY_SHARE {
        let most = largest(times, is_stage).map_or(String::new(), |(stage, ns)| {
            let share = percent(ns as f64 / all_ns as f64);
            format!(", most of all in {} ({share})", stage.text())
        });
        let busy = percent(busy);
        return format!("the workers are the bottleneck: they work {busy} of the time{most}");
    }
    if locked >= LOCK_SHARE
        && let Some((lock, ns)) = largest(times, is_lock)
    {
        let share = percent(ns as f64 / all_ns as f64);
        return format!(
            "a lock is the bottleneck: {} takes {share} of the time",
            lock.text()
        );
    }
    let mut serial: Vec<(&str, Activity, u64)> = vec![];
    for thread in others {
        let mut own = Times::new();
        add_own_times(&thread.events, &mut own);
        if let Some((stage, ns)) = largest(&own, is_stage) {
            serial.push((&thread.name, stage.clone(), ns));
        }
    }
    let idle = percent(share(times, all_ns, |activity| *activity == Activity::Idle));
    let slowest = serial.into_iter().max_by_key(|(.., ns)| *ns);
    match slowest {
        Some((thread, stage, ns)) if ns as f64 >= SERIAL_SHARE * whole_ns as f64 => {
            let share = percent(ns as f64 / whole_ns as f64);
            let cause = match &stage {
                Activity::Stage("read") => ": the source of the data (a disk, a pipe, a network)",
                Activity::Stage("write" | "deliver") => ": where the data goes",
                _ => "",
            };
            format!(
                "the thread {thread} is the bottleneck: it spends {share} of the time in {}{cause}; \
                 the workers are idle {idle} of the time",
                stage.text()
            )
        }
        _ => format!(
            "there is too little to do at the same time: the workers are idle {idle} of the time, \
             and no single stage of another thread explains it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, name: &'static str, start_ns: u64, duration_ns: u64) -> Event {
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

    #[test]
    fn the_time_inside_counts_once() {
        let events = [
            event(EventKind::Stage, "inner", 20, 10),
            event(EventKind::LockWait, "a::Queue", 22, 3),
            event(EventKind::Stage, "inner", 40, 20),
            event(EventKind::Run, "", 10, 60),
            event(EventKind::Wake, "", 15, 0),
            event(EventKind::Idle, "", 70, 30),
        ];
        let mut times = Times::new();
        add_own_times(&events, &mut times);
        let expected = [
            (Activity::Stage("inner"), 27),
            (Activity::Other, 30),
            (Activity::Lock("Queue".into()), 3),
            (Activity::Idle, 30),
        ];
        assert_eq!(times, Times::from(expected));
    }

    #[test]
    fn the_words_name_what_limits() {
        let stage = |name, ns| event(EventKind::Stage, name, 0, ns);
        let last = |threads: &[ThreadTrace]| summary(threads).pop().unwrap();
        let busy = [
            thread("worker-0", vec![stage("encode", 900)]),
            thread(
                "worker-1",
                vec![
                    stage("encode", 500),
                    event(EventKind::Stage, "scan", 500, 500),
                ],
            ),
        ];
        let words = summary(&busy);
        assert_eq!(
            words[0],
            "2 workers over 1.00 us: stage encode 70 %, stage scan 25 %, idle 5 %"
        );
        assert!(
            words[1].contains("workers are the bottleneck: they work 95 %"),
            "{words:?}"
        );
        assert!(words[1].contains("stage encode (70 %)"), "{words:?}");
        let input = [
            thread("worker-0", vec![stage("encode", 100)]),
            thread("input", vec![stage("read", 1000)]),
        ];
        let words = last(&input);
        assert!(
            words.contains("the thread input is the bottleneck"),
            "{words}"
        );
        assert!(
            words.contains("100 % of the time in stage read: the source"),
            "{words}"
        );
        let lock = [thread(
            "worker-0",
            vec![
                stage("scan", 300),
                event(EventKind::LockWait, "a::Cache", 300, 700),
            ],
        )];
        let words = last(&lock);
        assert!(
            words.contains("waiting for the lock Cache takes 70 %"),
            "{words}"
        );
        let few = [
            thread("worker-0", vec![stage("encode", 1000)]),
            thread("worker-1", vec![]),
        ];
        assert!(last(&few).contains("too little to do"), "{}", last(&few));
        assert_eq!(summary(&[]), ["nothing was recorded"]);
    }
}
