//! What threads spend their time on.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use refrain_trace::{Event, EventKind};

use crate::profile::locks::short_name;

/// The argument of a wait for a device being written.
const WRITING: u64 = 1;

/// What a thread does, without nested activities.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::profile) enum Activity {
    Stage(&'static str),
    /// A flow, outside of stages.
    Other,
    Lock(String),
    /// A wait for a device being read.
    Reading(&'static str),
    /// A wait for a device being written.
    Writing(&'static str),
    /// A wait for something else.
    Wait(&'static str),
    Idle,
}

impl Activity {
    pub(super) fn from_event(event: &Event) -> Option<Activity> {
        Some(match event.kind {
            EventKind::Stage => Activity::Stage(event.name),
            EventKind::Run => Activity::Other,
            EventKind::LockWait => Activity::Lock(short_name(event.name)),
            EventKind::Idle => Activity::Idle,
            // The deciding thread has nothing to decide: the activities around it say why.
            EventKind::Wait if event.name == "results" => return None,
            EventKind::Wait if !is_device(event.name) => Activity::Wait(event.name),
            EventKind::Wait if event.argument == WRITING => Activity::Writing(event.name),
            EventKind::Wait => Activity::Reading(event.name),
            // Their stage counts.
            EventKind::Read | EventKind::Write => return None,
            EventKind::Wake | EventKind::Ready | EventKind::Count => return None,
        })
    }

    pub(super) fn is_work(&self) -> bool {
        matches!(self, Activity::Stage(_) | Activity::Other)
    }

    pub(in crate::profile) fn text(&self) -> String {
        match self {
            Activity::Stage(name) => stage_text(name),
            Activity::Other => "work outside of stages".into(),
            Activity::Lock(name) => format!("waiting for the lock {name}"),
            Activity::Reading(device) => format!("waiting to read {}", device_text(device)),
            Activity::Writing(device) => format!("waiting to write {}", device_text(device)),
            Activity::Wait(name) => format!("waiting for {name}"),
            Activity::Idle => "idle".into(),
        }
    }
}

fn is_device(name: &str) -> bool {
    matches!(name, "disk" | "stream" | "network")
}

/// A device, as part of a sentence.
pub(super) fn device_text(device: &str) -> &str {
    match device {
        "disk" => "the disk",
        "stream" => "the pipe",
        "network" => "the network",
        other => other,
    }
}

/// A stage, as part of a sentence. Names of codec stages need no addition.
pub(super) fn stage_text(name: &str) -> String {
    if name.starts_with("codec ") {
        name.to_owned()
    } else {
        format!("stage {name}")
    }
}

pub(super) type Times = BTreeMap<Activity, u64>;

/// A time during which a thread does one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Period {
    pub start_ns: u64,
    pub end_ns: u64,
    pub activity: Activity,
}

pub(super) fn end_of(event: &Event) -> u64 {
    event.start_ns.saturating_add(event.duration_ns)
}

/// The successive activities of a thread. Of nested activities the innermost counts.
pub(super) fn periods(events: &[Event]) -> Vec<Period> {
    let mut spans: Vec<&Event> = events.iter().collect();
    spans.sort_by_key(|event| (event.start_ns, Reverse(end_of(event))));
    let mut found: Vec<Period> = vec![];
    // The activities in progress, each with its end.
    let mut open: Vec<(Activity, u64)> = vec![];
    // Time up to here is accounted for.
    let mut done_ns = 0;
    let mut put = |activity: &Activity, done_ns: &mut u64, end_ns: u64| {
        if end_ns > *done_ns {
            found.push(Period {
                start_ns: *done_ns,
                end_ns,
                activity: activity.clone(),
            });
            *done_ns = end_ns;
        }
    };
    for event in spans {
        let Some(activity) = Activity::from_event(event) else {
            continue;
        };
        while let Some((ended, end_ns)) = open.pop_if(|last| last.1 <= event.start_ns) {
            put(&ended, &mut done_ns, end_ns);
        }
        match open.last() {
            Some((around, _)) => put(around, &mut done_ns, event.start_ns),
            None => done_ns = done_ns.max(event.start_ns),
        }
        open.push((activity, end_of(event)));
    }
    while let Some((ended, end_ns)) = open.pop() {
        put(&ended, &mut done_ns, end_ns);
    }
    found
}

/// The sum of the periods of each activity.
pub(super) fn add(periods: &[Period], times: &mut Times) {
    for period in periods {
        *times.entry(period.activity.clone()).or_default() += period.end_ns - period.start_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::event;
    use super::*;

    #[test]
    fn the_time_inside_counts_once() {
        let events = [
            event(EventKind::Stage, "inner", 20, 10),
            event(EventKind::LockWait, "a::Queue", 22, 3),
            event(EventKind::Stage, "inner", 40, 20),
            event(EventKind::Run, "", 10, 60),
            event(EventKind::Wake, "", 15, 0),
            event(EventKind::Idle, "", 75, 30),
        ];
        let found = periods(&events);
        let inner = Activity::Stage("inner");
        let expected = [
            (10, 20, Activity::Other),
            (20, 22, inner.clone()),
            (22, 25, Activity::Lock("Queue".into())),
            (25, 30, inner.clone()),
            (30, 40, Activity::Other),
            (40, 60, inner.clone()),
            (60, 70, Activity::Other),
            (75, 105, Activity::Idle),
        ];
        let expected = expected.map(|(start_ns, end_ns, activity)| Period {
            start_ns,
            end_ns,
            activity,
        });
        assert_eq!(found, expected);
        let mut times = Times::new();
        add(&found, &mut times);
        assert_eq!(times[&inner], 27);
        assert_eq!(times[&Activity::Other], 30);
    }
}
