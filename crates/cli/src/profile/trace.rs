//! `--trace`: what every thread did and when, as a page (`timeline/`) or in the format of Chrome's
//! trace viewer, which Perfetto opens.
//!
//! In that format each thread is a row: stages, flows, idle times and waits are spans, which may
//! nest; wake-ups are instants, and an arrow leads from the thread that gave work to a flow to the
//! turn that the flow then had.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use refrain::storage::Sink;
use refrain_trace::{Event, EventKind, ThreadTrace, TurnEnd, collect, start, stop};
use serde_json::{Value, json};

use super::facts::Facts;
use super::locks::short_name;
use super::summary::summary;
use super::timeline;
use crate::failure::{Failure, Result};
use crate::files;
use crate::paths::NewFile;

/// How many events are kept per thread: at most 32 MiB.
const EVENTS_PER_THREAD: usize = 1 << 20;
const WRITE_BYTES: usize = 1 << 16;

/// Starts recording.
pub(super) fn begin() {
    start(EVENTS_PER_THREAD);
}

/// Stops recording, and writes all events to a file. Returns their description.
pub(super) fn finish(path: &Path, facts: &Facts) -> Result<Vec<String>> {
    stop();
    let new = NewFile {
        overwrite: true,
        ..NewFile::default()
    };
    let mut sink = files::file_sink(path, new)?;
    let mut out = BufWriter::with_capacity(WRITE_BYTES, ToSink(&mut sink));
    let threads = collect();
    let words = summary(&threads, facts.level);
    let written = if is_page(path) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let title = format!("Timeline {name}");
        out.write_all(timeline::page(&title, &words, facts, &threads).as_bytes())
    } else {
        write_events(&threads, &mut out)
    };
    let written = written.and_then(|()| out.flush());
    drop(out);
    written.map_err(Failure::Storage)?;
    files::publish(sink.as_mut(), path)?;
    Ok(words.lines())
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "html")
}

struct ToSink<'a, S: Sink>(&'a mut S);

impl<S: Sink> Write for ToSink<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_events(threads: &[ThreadTrace], out: &mut impl Write) -> io::Result<()> {
    let starts = threads.iter().flat_map(|thread| &thread.events);
    let first_ns = starts.map(|event| event.start_ns).min().unwrap_or(0);
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    let mut separator = "";
    let mut put = |value: &Value| {
        let line = format!("{separator}{value}");
        separator = ",\n";
        out.write_all(line.as_bytes())
    };
    for (number, thread) in (1_u64..).zip(threads) {
        let name = match thread.name.as_str() {
            "" => "unnamed",
            name => name,
        };
        let lost = thread.lost;
        put(&json!({
            "ph": "M", "pid": 1, "tid": number, "name": "thread_name",
            "args": { "name": name, "events_lost": lost },
        }))?;
        for event in &thread.events {
            put(&row(event, number, first_ns))?;
        }
    }
    for (number, cause) in (1_u64..).zip(causes(threads)) {
        for end in cause.rows(number, first_ns) {
            put(&end)?;
        }
    }
    out.write_all(b"\n]}\n")
}

/// Why a turn ended, as a word.
fn end_text(end: TurnEnd) -> &'static str {
    match end {
        TurnEnd::NoJobs => "no jobs",
        TurnEnd::SliceOver => "slice over",
        TurnEnd::Preempted => "preempted",
        TurnEnd::Yielded => "yielded",
    }
}

/// A thread gave work to a flow, and a turn of the flow followed: thread number and time of both.
struct Cause {
    ready: (u64, u64),
    run: (u64, u64),
}

impl Cause {
    /// The two ends of the arrow with this number.
    fn rows(&self, number: u64, first_ns: u64) -> [Value; 2] {
        let end = |phase: &str, (thread, time_ns): (u64, u64)| {
            json!({
                "ph": phase, "pid": 1, "tid": thread, "cat": "wake", "name": "ready", "id": number,
                "ts": microseconds(time_ns - first_ns), "bp": "e",
            })
        };
        [end("s", self.ready), end("f", self.run)]
    }
}

/// The causes of turns, in order of time.
fn causes(threads: &[ThreadTrace]) -> Vec<Cause> {
    let mut events: Vec<(u64, EventKind, u32, u64)> = vec![];
    for (number, thread) in (1_u64..).zip(threads) {
        let of_flow = |event: &&Event| {
            event.flow != 0 && matches!(event.kind, EventKind::Ready | EventKind::Run)
        };
        let of_flows = thread.events.iter().filter(of_flow);
        events.extend(of_flows.map(|event| (event.start_ns, event.kind, event.flow, number)));
    }
    // At equal times, the cause comes first.
    events.sort_by_key(|(start_ns, kind, ..)| (*start_ns, *kind == EventKind::Run));
    let mut ready: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut found = vec![];
    for (start_ns, kind, flow, thread) in events {
        if kind == EventKind::Ready {
            ready.insert(flow, (thread, start_ns));
        } else if let Some(cause) = ready.remove(&flow) {
            found.push(Cause {
                ready: cause,
                run: (thread, start_ns),
            });
        }
    }
    found
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// An event of the thread with this number; times in microseconds since the first event.
fn row(event: &Event, thread: u64, first_ns: u64) -> Value {
    let (category, name, arguments) = match event.kind {
        EventKind::Stage => (
            "stage",
            event.name.to_owned(),
            json!({ "bytes": event.argument }),
        ),
        EventKind::Run => {
            let name = match event.flow {
                0 => "flow".to_owned(),
                flow => format!("flow {flow}"),
            };
            let end = TurnEnd::ALL.get(event.argument as usize);
            ("run", name, json!({ "end": end.map(|end| end_text(*end)) }))
        }
        EventKind::Idle => {
            let slept = event.argument == 1;
            ("idle", "idle".to_owned(), json!({ "slept": slept }))
        }
        EventKind::LockWait => {
            let name = format!("lock {}", short_name(event.name));
            ("lock", name, json!({ "line": event.argument }))
        }
        EventKind::Wake => (
            "wake",
            "wake".to_owned(),
            json!({ "worker": event.argument, "flow": event.flow }),
        ),
        EventKind::Ready => ("wake", "ready".to_owned(), json!({ "flow": event.flow })),
        EventKind::Wait => ("wait", format!("wait for {}", event.name), json!({})),
        EventKind::Read | EventKind::Write => {
            let verb = match event.kind {
                EventKind::Read => "read",
                _ => "write",
            };
            let bytes = json!({ "bytes": event.argument });
            ("io", format!("{verb} {}", event.name), bytes)
        }
        EventKind::Count => {
            let value = json!({ "value": event.argument });
            ("count", event.name.to_owned(), value)
        }
    };
    let start = microseconds(event.start_ns.saturating_sub(first_ns));
    let mut row = json!({
        "pid": 1, "tid": thread, "cat": category, "name": name, "ts": start, "args": arguments,
    });
    if let Value::Object(row) = &mut row {
        match event.kind {
            EventKind::Count => {
                row.insert("ph".into(), "C".into());
            }
            EventKind::Wake | EventKind::Ready => {
                row.insert("ph".into(), "i".into());
                row.insert("s".into(), "t".into());
            }
            _ => {
                row.insert("ph".into(), "X".into());
                row.insert("dur".into(), microseconds(event.duration_ns).into());
            }
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_a_row_of_its_thread() {
        let event = |kind, name, start_ns, duration_ns, argument| Event {
            kind,
            name,
            flow: match kind {
                EventKind::Run | EventKind::Ready => 6,
                _ => 0,
            },
            start_ns,
            duration_ns,
            argument,
        };
        let threads = [
            ThreadTrace {
                name: "worker \"1\"".into(),
                lost: 5,
                events: vec![
                    event(EventKind::Stage, "encode", 1_000_500, 2_000, 77),
                    event(EventKind::LockWait, "a::B<c::D>", 1_001_000, 10, 12),
                ],
            },
            ThreadTrace {
                name: String::new(),
                lost: 0,
                events: vec![
                    event(EventKind::Wake, "", 1_000_000, 0, 3),
                    event(EventKind::Ready, "", 1_000_000, 0, 0),
                    event(
                        EventKind::Run,
                        "",
                        1_002_000,
                        1_000,
                        TurnEnd::SliceOver as u64,
                    ),
                    event(EventKind::Count, "jobs", 1_002_000, 0, 7),
                    event(EventKind::Read, "disk", 1_002_000, 1_000, 9),
                    event(EventKind::Wait, "disk", 1_002_000, 500, 0),
                ],
            },
        ];
        let mut text = vec![];
        write_events(&threads, &mut text).unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        let expected = json!([
            { "ph": "M", "pid": 1, "tid": 1, "name": "thread_name",
              "args": { "name": "worker \"1\"", "events_lost": 5 } },
            { "ph": "X", "pid": 1, "tid": 1, "cat": "stage", "name": "encode", "ts": 0.5, "dur": 2.0,
              "args": { "bytes": 77 } },
            { "ph": "X", "pid": 1, "tid": 1, "cat": "lock", "name": "lock B<D>", "ts": 1.0,
              "dur": 0.01, "args": { "line": 12 } },
            { "ph": "M", "pid": 1, "tid": 2, "name": "thread_name",
              "args": { "name": "unnamed", "events_lost": 0 } },
            { "ph": "i", "s": "t", "pid": 1, "tid": 2, "cat": "wake", "name": "wake", "ts": 0.0,
              "args": { "worker": 3, "flow": 0 } },
            { "ph": "i", "s": "t", "pid": 1, "tid": 2, "cat": "wake", "name": "ready", "ts": 0.0,
              "args": { "flow": 6 } },
            { "ph": "X", "pid": 1, "tid": 2, "cat": "run", "name": "flow 6", "ts": 2.0, "dur": 1.0,
              "args": { "end": "slice over" } },
            { "ph": "C", "pid": 1, "tid": 2, "cat": "count", "name": "jobs", "ts": 2.0,
              "args": { "value": 7 } },
            { "ph": "X", "pid": 1, "tid": 2, "cat": "io", "name": "read disk", "ts": 2.0,
              "dur": 1.0, "args": { "bytes": 9 } },
            { "ph": "X", "pid": 1, "tid": 2, "cat": "wait", "name": "wait for disk", "ts": 2.0,
              "dur": 0.5, "args": {} },
            { "ph": "s", "pid": 1, "tid": 2, "cat": "wake", "name": "ready", "id": 1, "ts": 0.0,
              "bp": "e" },
            { "ph": "f", "pid": 1, "tid": 2, "cat": "wake", "name": "ready", "id": 1, "ts": 2.0,
              "bp": "e" },
        ]);
        assert_eq!(document["traceEvents"], expected);
    }
}
