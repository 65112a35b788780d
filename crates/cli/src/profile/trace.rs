//! `--trace`: what every thread did and when, in the format of Chrome's trace viewer, which
//! Perfetto opens.
//!
//! Each thread is a row: stages, flows, idle times and waits for locks are spans, which may be
//! inside one another; wake-ups are instants.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use refrain::storage::Sink;
use refrain::trace::{Event, EventKind, ThreadTrace, collect, start, stop};
use serde_json::{Value, json};

use super::locks::short_name;
use super::summary::summary;
use crate::failure::{Failure, Result};
use crate::files;
use crate::paths::NewFile;

/// The events that are retained of each thread: 32 MiB.
const EVENTS_PER_THREAD: usize = 1 << 20;
const WRITE_BYTES: usize = 1 << 16;

/// Records from now on.
pub(super) fn begin() {
    start(EVENTS_PER_THREAD);
}

/// Ends recording, and writes all events to a file. Returns what they say.
pub(super) fn finish(path: &Path) -> Result<Vec<String>> {
    stop();
    let new = NewFile {
        overwrite: true,
        ..NewFile::default()
    };
    let mut sink = files::file_sink(path, new)?;
    let mut out = BufWriter::with_capacity(WRITE_BYTES, ToSink(&mut sink));
    let threads = collect();
    let written = write_events(&threads, &mut out).and_then(|()| out.flush());
    drop(out);
    written.map_err(Failure::Storage)?;
    files::publish(sink.as_mut(), path)?;
    Ok(summary(&threads))
}

/// Appends to a sink.
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
    out.write_all(b"\n]}\n")
}

/// An event of the thread with this number; times in microseconds since the first one.
fn row(event: &Event, thread: u64, first_ns: u64) -> Value {
    let microseconds = |ns: u64| ns as f64 / 1000.0;
    let (category, name, arguments) = match event.kind {
        EventKind::Stage => (
            "stage",
            event.name.to_owned(),
            json!({ "bytes": event.argument }),
        ),
        EventKind::Run => ("run", "flow".to_owned(), json!({})),
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
            json!({ "worker": event.argument }),
        ),
    };
    let start = microseconds(event.start_ns.saturating_sub(first_ns));
    let mut row = json!({
        "pid": 1, "tid": thread, "cat": category, "name": name, "ts": start, "args": arguments,
    });
    if let Value::Object(row) = &mut row {
        match event.kind {
            EventKind::Wake => {
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
                events: vec![event(EventKind::Wake, "", 1_000_000, 0, 3)],
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
              "args": { "worker": 3 } },
        ]);
        assert_eq!(document["traceEvents"], expected);
    }
}
