//! The contents of the page: lanes of threads with rows of spans and moments beside them, and
//! counts over time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use refrain_trace::{Event, EventKind, ThreadTrace};
use serde_json::{Value, json};

use super::columns::Column;
use crate::profile::locks::short_name;

/// The coordinator's wait when it has nothing to decide: not a problem, so it is not shown as one.
const RESULTS: &str = "results";

/// The kinds of names, as known to the script.
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

/// Non-overlapping spans of a thread, in order.
#[derive(Debug, Default)]
struct Track {
    count: u64,
    end_ns: u64,
    /// Each since the end of the previous one.
    gaps: Column,
    lengths: Column,
    names: Column,
    arguments: Column,
    flows: Column,
}

impl Track {
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

/// The spans in progress, one in each row.
#[derive(Debug, Default)]
struct OpenRows {
    /// When the span in each row ends.
    ends: Vec<u64>,
}

impl OpenRows {
    /// The row of a span: the first free one below all spans that contain it. Spans of jobs that
    /// took turns on the thread may overlap without nesting.
    fn place(&mut self, start_ns: u64, end_ns: u64) -> usize {
        let is_around = |row_end_ns: &u64| *row_end_ns > start_ns && *row_end_ns >= end_ns;
        let below = self
            .ends
            .iter()
            .rposition(is_around)
            .map_or(0, |row| row + 1);
        let free = (below..self.ends.len()).find(|&row| self.ends[row] <= start_ns);
        let row = free.unwrap_or(self.ends.len().max(below));
        self.ends.resize(self.ends.len().max(row + 1), 0);
        self.ends[row] = end_ns;
        row
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

/// Workers first, by number; then the others by name.
fn place(thread: &ThreadTrace) -> (bool, u64, &str) {
    match worker_number(&thread.name) {
        Some(number) => (false, number, &thread.name),
        None => (true, 0, &thread.name),
    }
}

fn worker_number(name: &str) -> Option<u64> {
    name.strip_prefix("worker-")?.parse().ok()
}

fn lane(thread: &ThreadTrace, first_ns: u64, names: &mut Names) -> Value {
    let mut sorted: Vec<&Event> = thread.events.iter().collect();
    sorted.sort_by_key(|event| (event.start_ns, Reverse(event.duration_ns)));
    let mut rows: Vec<Track> = vec![];
    let mut moments = Moments::default();
    let mut open = OpenRows::default();
    // Until when each wait of the thread is already in a row.
    let mut waited: BTreeMap<&str, u64> = BTreeMap::new();
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
        let mut event = *event;
        if event.kind == EventKind::Wait {
            // Jobs that wait for the same thing at once form a single wait of the thread.
            let end_ns = start_ns.saturating_add(event.duration_ns);
            let until_ns = waited.entry(event.name).or_default();
            let new_ns = start_ns.max(*until_ns);
            if new_ns >= end_ns && new_ns > start_ns {
                continue;
            }
            *until_ns = end_ns.max(*until_ns);
            event.start_ns = first_ns + new_ns;
            event.duration_ns = end_ns - new_ns;
        }
        let start_ns = event.start_ns - first_ns;
        let depth = open.place(start_ns, start_ns.saturating_add(event.duration_ns));
        rows.resize_with(rows.len().max(depth + 1), Track::default);
        if let Some(row) = rows.get_mut(depth) {
            row.push(&event, start_ns, name);
        }
    }
    let name = match thread.name.as_str() {
        "" => "unnamed",
        name => name,
    };
    json!({
        "name": name,
        "worker": worker_number(name),
        "lost": thread.lost,
        "rows": rows.iter().map(Track::json).collect::<Vec<_>>(),
        "moments": moments.json(),
    })
}

/// The counts over time.
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

    fn depth_of(events: Vec<Event>) -> (usize, Vec<u64>) {
        let thread = ThreadTrace {
            name: "input".into(),
            events,
            lost: 0,
        };
        let data = data(&[thread]);
        let rows = data["lanes"][0]["rows"].as_array().unwrap();
        (
            rows.len(),
            rows.iter()
                .map(|row| row["count"].as_u64().unwrap())
                .collect(),
        )
    }

    #[test]
    fn overlapping_spans_nest_no_deeper_than_they_overlap() {
        // Each starts before the previous one has ended, and ends after it.
        let chain = |kind| (0..60).map(move |step| event(kind, "read", 1000 + step * 10, 15));
        assert_eq!(
            depth_of(chain(EventKind::Stage).collect()),
            (2, vec![30, 30])
        );
        // The same inside a longer span.
        let around = event(EventKind::Run, "", 1000, 1000);
        let all = std::iter::once(around).chain(chain(EventKind::Stage));
        assert_eq!(depth_of(all.collect()), (3, vec![1, 30, 30]));
    }

    #[test]
    fn a_thread_waits_once_at_a_time() {
        let waits = (0..60).map(|job| event(EventKind::Wait, "stream", 1000 + job, 500));
        let mut waits: Vec<Event> = waits.collect();
        waits.push(event(EventKind::Wait, "stream", 1100, 50));
        let (depth, counts) = depth_of(waits.clone());
        assert_eq!((depth, counts), (1, vec![60]));
        let thread = ThreadTrace {
            name: "input".into(),
            events: waits,
            lost: 0,
        };
        let lengths = column(&data(&[thread])["lanes"][0]["rows"][0]["lengths"]);
        // 500 in two groups of seven bits, then the increments.
        assert_eq!(lengths, [&[0xf4, 3][..], &[1; 59]].concat());
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
