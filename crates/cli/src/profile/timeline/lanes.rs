//! What the page shows: lanes of threads, with spans in rows and moments beside them, and counts
//! over time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use refrain::trace::{Event, EventKind, ThreadTrace};
use serde_json::{Value, json};

use super::columns::Column;
use crate::profile::locks::short_name;

/// What a coordinator does that has nothing to decide: no trouble, so it does not look like one.
const RESULTS: &str = "results";

/// The kinds of names, as the script knows them.
fn kind_text(kind: EventKind, name: &str) -> &'static str {
    match kind {
        EventKind::Wait if name == RESULTS => "results",
        EventKind::Stage => "stage",
        EventKind::Run => "run",
        EventKind::Idle => "idle",
        EventKind::LockWait => "lock",
        EventKind::Wake => "wake",
        EventKind::Ready => "ready",
        EventKind::Wait => "wait",
        EventKind::Read => "read",
        EventKind::Write => "write",
        EventKind::Count => "count",
    }
}

fn name_text(kind: EventKind, name: &str) -> String {
    match kind {
        EventKind::Stage | EventKind::Count => name.to_owned(),
        EventKind::Run => "flow".into(),
        EventKind::Idle => "idle".into(),
        EventKind::LockWait => format!("lock {}", short_name(name)),
        EventKind::Wake => "wake".into(),
        EventKind::Ready => "ready".into(),
        EventKind::Wait => format!("wait for {name}"),
        EventKind::Read => format!("read {name}"),
        EventKind::Write => format!("write {name}"),
    }
}

/// The names of events, by their number.
#[derive(Debug, Default)]
struct Names {
    numbers: BTreeMap<(EventKind, String), u64>,
    rows: Vec<Value>,
}

impl Names {
    fn number_of(&mut self, event: &Event) -> u64 {
        let key = (event.kind, name_text(event.kind, event.name));
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.rows.len() as u64;
        let kind = kind_text(event.kind, event.name);
        self.rows.push(json!({ "text": key.1, "kind": kind }));
        self.numbers.insert(key, number);
        number
    }
}

/// Spans of a thread that do not overlap, in their order.
#[derive(Debug, Default)]
struct Row {
    count: u64,
    end_ns: u64,
    /// Each from the end of the one before.
    gaps: Column,
    lengths: Column,
    names: Column,
    arguments: Column,
    flows: Column,
}

impl Row {
    fn push(&mut self, event: &Event, start_ns: u64, name: u64) {
        self.gaps.push(start_ns.saturating_sub(self.end_ns));
        self.lengths.push(event.duration_ns);
        self.names.push(name);
        self.arguments.push(event.argument);
        self.flows.push(event.flow.into());
        self.end_ns = start_ns.saturating_add(event.duration_ns);
        self.count += 1;
    }

    fn json(&self) -> Value {
        json!({
            "count": self.count,
            "gaps": self.gaps.text(),
            "lengths": self.lengths.text(),
            "names": self.names.text(),
            "arguments": self.arguments.text(),
            "flows": self.flows.text(),
        })
    }
}

/// Wake-ups by a thread.
#[derive(Debug, Default)]
struct Moments {
    count: u64,
    last_ns: u64,
    gaps: Column,
    names: Column,
    arguments: Column,
    flows: Column,
}

impl Moments {
    fn push(&mut self, event: &Event, start_ns: u64, name: u64) {
        self.gaps.push(start_ns.saturating_sub(self.last_ns));
        self.names.push(name);
        self.arguments.push(event.argument);
        self.flows.push(event.flow.into());
        self.last_ns = start_ns;
        self.count += 1;
    }

    fn json(&self) -> Value {
        json!({
            "count": self.count,
            "gaps": self.gaps.text(),
            "names": self.names.text(),
            "arguments": self.arguments.text(),
            "flows": self.flows.text(),
        })
    }
}

/// The data of the page.
pub(super) fn data(threads: &[ThreadTrace]) -> Value {
    let events = || threads.iter().flat_map(|thread| &thread.events);
    let first_ns = events().map(|event| event.start_ns).min().unwrap_or(0);
    let end_ns = |event: &Event| event.start_ns.saturating_add(event.duration_ns);
    let whole_ns = events().map(end_ns).max().unwrap_or(0) - first_ns;
    let mut names = Names::default();
    let mut sorted: Vec<&ThreadTrace> = threads.iter().collect();
    sorted.sort_by_key(|thread| place(thread));
    let lanes = sorted
        .iter()
        .map(|thread| lane(thread, first_ns, &mut names));
    let lanes: Vec<Value> = lanes.collect();
    json!({
        "whole_ns": whole_ns,
        "lanes": lanes,
        "counts": counts(threads, first_ns),
        "names": names.rows,
    })
}

/// Workers first, by their number; then the others by their names.
fn place(thread: &ThreadTrace) -> (bool, u64, &str) {
    match worker_number(&thread.name) {
        Some(number) => (false, number, &thread.name),
        None => (true, 0, &thread.name),
    }
}

/// The number in the name of a worker's thread.
fn worker_number(name: &str) -> Option<u64> {
    name.strip_prefix("worker-")?.parse().ok()
}

fn lane(thread: &ThreadTrace, first_ns: u64, names: &mut Names) -> Value {
    let mut sorted: Vec<&Event> = thread.events.iter().collect();
    sorted.sort_by_key(|event| (event.start_ns, Reverse(event.duration_ns)));
    let mut rows: Vec<Row> = vec![];
    let mut moments = Moments::default();
    // The ends of the spans that are going on, one in each row.
    let mut open: Vec<u64> = vec![];
    for event in sorted {
        if event.kind == EventKind::Count {
            continue;
        }
        let start_ns = event.start_ns - first_ns;
        let name = names.number_of(event);
        if event.kind.is_instant() {
            moments.push(event, start_ns, name);
            continue;
        }
        while open.pop_if(|end_ns| *end_ns <= start_ns).is_some() {}
        if rows.len() == open.len() {
            rows.push(Row::default());
        }
        if let Some(row) = rows.get_mut(open.len()) {
            row.push(event, start_ns, name);
        }
        open.push(start_ns.saturating_add(event.duration_ns));
    }
    let name = match thread.name.as_str() {
        "" => "unnamed",
        name => name,
    };
    json!({
        "name": name,
        "worker": worker_number(name),
        "lost": thread.lost,
        "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
        "moments": moments.json(),
    })
}

/// What is counted, in the order of time.
fn counts(threads: &[ThreadTrace], first_ns: u64) -> Vec<Value> {
    let mut by_name: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for event in threads.iter().flat_map(|thread| &thread.events) {
        if event.kind == EventKind::Count {
            let samples = by_name.entry(event.name).or_default();
            samples.push((event.start_ns - first_ns, event.argument));
        }
    }
    let count = |(name, mut samples): (&str, Vec<(u64, u64)>)| {
        samples.sort_by_key(|(time_ns, _)| *time_ns);
        let (mut gaps, mut changes) = (Column::default(), Column::default());
        let mut last = (0, 0);
        for sample in &samples {
            gaps.push(sample.0 - last.0);
            changes.push_difference(last.1, sample.1);
            last = *sample;
        }
        json!({
            "name": name,
            "count": samples.len(),
            "gaps": gaps.text(),
            "changes": changes.text(),
        })
    };
    by_name.into_iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn event(kind: EventKind, name: &'static str, start_ns: u64, duration_ns: u64) -> Event {
        Event {
            kind,
            name,
            flow: 2,
            start_ns,
            duration_ns,
            argument: 9,
        }
    }

    fn column(value: &Value) -> Vec<u8> {
        STANDARD.decode(value.as_str().unwrap()).unwrap()
    }

    #[test]
    fn spans_inside_others_have_a_row_below() {
        let thread = ThreadTrace {
            name: "worker-3".into(),
            lost: 7,
            events: vec![
                event(EventKind::Stage, "a", 1010, 20),
                event(EventKind::LockWait, "x::Y", 1012, 3),
                event(EventKind::Stage, "b", 1030, 5),
                event(EventKind::Run, "", 1000, 40),
                event(EventKind::Wake, "", 1041, 0),
                event(EventKind::Count, "jobs", 1041, 0),
                event(EventKind::Idle, "", 1045, 5),
            ],
        };
        let main = ThreadTrace {
            name: "main".into(),
            events: vec![Event {
                argument: 4,
                ..event(EventKind::Count, "jobs", 1020, 0)
            }],
            lost: 0,
        };
        let data = data(&[main, thread]);
        assert_eq!(data["whole_ns"], 50);
        let texts: Vec<&Value> = (data["names"].as_array().unwrap().iter())
            .map(|name| &name["text"])
            .collect();
        assert_eq!(texts, ["flow", "a", "lock Y", "b", "wake", "idle"]);
        let worker = &data["lanes"][0];
        assert_eq!(worker["worker"], 3);
        assert_eq!(worker["lost"], 7);
        let rows = worker["rows"].as_array().unwrap();
        let of = |row: usize, name: &str| column(&rows[row][name]);
        assert_eq!(rows.len(), 3);
        assert_eq!(of(0, "gaps"), [0, 5]);
        assert_eq!(of(0, "lengths"), [40, 5]);
        assert_eq!(of(0, "flows"), [2, 2]);
        assert_eq!(of(1, "gaps"), [10, 0]);
        assert_eq!(of(1, "names"), [1, 3]);
        assert_eq!(of(2, "gaps"), [12]);
        assert_eq!(of(2, "arguments"), [9]);
        assert_eq!(column(&worker["moments"]["gaps"]), [41]);
        assert_eq!(data["lanes"][1]["name"], "main");
        assert_eq!(data["counts"][0]["count"], 2);
        assert_eq!(column(&data["counts"][0]["gaps"]), [20, 21]);
        assert_eq!(column(&data["counts"][0]["changes"]), [8, 10]);
    }
}
