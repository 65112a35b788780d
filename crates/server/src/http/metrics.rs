//! The statistics as text for Prometheus and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::archive_counts::ArchiveRow;
use crate::statistics::{LatencyHistogram, Metric, OperationStatistics, Statistics};

pub(super) const TEXT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The bucket limits are powers of two in nanoseconds, which the histograms know exactly: from 1 µs
/// to 17 s, in steps of a factor of four.
const BUCKET_ENDS_LOG2: std::ops::RangeInclusive<u32> = 10..=34;

const NANOSECONDS: f64 = 1e9;

pub(super) fn text(statistics: &Statistics, metrics: &[Metric], archives: &[ArchiveRow]) -> String {
    let rows = statistics.snapshot();
    let mut text = String::new();
    let counters = [
        (
            "calls_total",
            "Calls of an operation.",
            calls as fn(&OperationStatistics) -> u64,
        ),
        ("errors_total", "Calls that failed.", |row| row.errors),
        ("bytes_total", "Bytes that were delivered.", |row| row.bytes),
    ];
    for (name, help, value) in counters {
        describe(&mut text, &format!("operation_{name}"), help, "counter");
        for row in &rows {
            let operation = row.operation.name();
            let value = value(row);
            let line = format!("refrain_operation_{name}{{operation=\"{operation}\"}} {value}\n");
            text.push_str(&line);
        }
    }
    let help = "Latency of an operation.";
    describe(&mut text, "operation_seconds", help, "histogram");
    for row in &rows {
        let labels = format!("operation=\"{}\"", row.operation.name());
        histogram(&mut text, "operation_seconds", &labels, &row.times);
    }
    let uptime = Metric {
        name: "uptime_seconds",
        help: "Seconds since the start.",
        value: statistics.now_ns() as f64 / NANOSECONDS,
    };
    for metric in metrics.iter().chain([&uptime]) {
        let kind = if metric.is_counter() { "counter" } else { "gauge" };
        describe(&mut text, metric.name, metric.help, kind);
        text.push_str(&format!("refrain_{} {}\n", metric.name, metric.value));
    }
    of_archives(&mut text, archives);
    text
}

/// What was asked of each of several archives.
fn of_archives(text: &mut String, archives: &[ArchiveRow]) {
    if archives.is_empty() {
        return;
    }
    let counters = [
        (
            "calls_total",
            "Calls for an archive.",
            (|row| row.calls) as fn(&ArchiveRow) -> u64,
        ),
        ("errors_total", "Calls for an archive that failed.", |row| {
            row.errors
        }),
        (
            "bytes_total",
            "Bytes of an archive that were delivered.",
            |row| row.bytes,
        ),
        ("open", "Whether an archive is open.", |row| {
            u64::from(row.is_open)
        }),
    ];
    for (name, help, value) in counters {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        describe(text, &format!("archive_{name}"), help, kind);
        for row in archives {
            let archive = label_value(&row.name);
            let value = value(row);
            let line = format!("refrain_archive_{name}{{archive=\"{archive}\"}} {value}\n");
            text.push_str(&line);
        }
    }
}

/// A name as the value of a label.
pub(super) fn label_value(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn calls(row: &OperationStatistics) -> u64 {
    row.times.count()
}

pub(super) fn describe(text: &mut String, name: &str, help: &str, kind: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "# HELP refrain_{name} {help}\n# TYPE refrain_{name} {kind}"
    );
}

/// A histogram with these labels.
pub(super) fn histogram(text: &mut String, name: &str, labels: &str, times: &LatencyHistogram) {
    let mut bucket = |end: &str, count: u64| {
        let labels = format!("{labels},le=\"{end}\"");
        let _ = writeln!(text, "refrain_{name}_bucket{{{labels}}} {count}");
    };
    for log2 in BUCKET_ENDS_LOG2.step_by(2) {
        let end_ns = 1_u64 << log2;
        let end = (end_ns as f64 / NANOSECONDS).to_string();
        bucket(&end, times.count_below_ns(end_ns));
    }
    bucket("+Inf", times.count());
    let sum = times.sum_ns() as f64 / NANOSECONDS;
    let count = times.count();
    let _ = writeln!(
        text,
        "refrain_{name}_sum{{{labels}}} {sum}\nrefrain_{name}_count{{{labels}}} {count}"
    );
}

/// The JSON document read by `refrain top`.
pub(super) fn document(
    statistics: &Statistics,
    metrics: &[Metric],
    archives: &[ArchiveRow],
) -> Value {
    let operation = |row: &OperationStatistics| {
        json!({
            "operation": row.operation.name(),
            "calls": calls(row),
            "errors": row.errors,
            "bytes": row.bytes,
            "total_ns": row.times.sum_ns(),
            "average_ns": row.times.average_ns(),
            "min_ns": row.times.min_ns(),
            "p50_ns": row.times.quantile_ns(0.5),
            "p90_ns": row.times.quantile_ns(0.9),
            "p99_ns": row.times.quantile_ns(0.99),
            "max_ns": row.times.max_ns(),
        })
    };
    let value = |metric: &Metric| (metric.name.to_owned(), json!(metric.value));
    let operations: Vec<Value> = statistics.snapshot().iter().map(operation).collect();
    let archive = |row: &ArchiveRow| {
        json!({
            "archive": String::from_utf8_lossy(&row.name),
            "calls": row.calls,
            "errors": row.errors,
            "bytes": row.bytes,
            "is_open": row.is_open,
        })
    };
    json!({
        "uptime_seconds": statistics.now_ns() as f64 / NANOSECONDS,
        "seconds_since_reset": statistics.elapsed_ns() as f64 / NANOSECONDS,
        "operations": operations,
        "archives": archives.iter().map(archive).collect::<Vec<_>>(),
        "metrics": metrics.iter().map(value).collect::<serde_json::Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Operation, Outcome};

    fn sample() -> Statistics {
        let statistics = Statistics::new();
        for outcome in [Outcome::Bytes(10), Outcome::Failed] {
            statistics.record(Operation::HttpGet, statistics.now_ns(), outcome);
        }
        statistics
    }

    fn rows() -> Vec<ArchiveRow> {
        vec![ArchiveRow {
            name: b"a\"b\\\n\xff".to_vec(),
            calls: 3,
            errors: 1,
            bytes: 20,
            is_open: true,
        }]
    }

    const METRICS: [Metric; 2] = [
        Metric {
            name: "cache_hits_total",
            help: "Hits.",
            value: 7.0,
        },
        Metric {
            name: "clients",
            help: "Clients.",
            value: 2.0,
        },
    ];

    #[test]
    fn every_line_of_the_text_is_a_comment_or_a_sample() {
        let text = text(&sample(), &METRICS, &rows());
        for line in text.lines() {
            let is_sample = line.rsplit_once(' ').is_some_and(|(name, value)| {
                name.starts_with("refrain_") && value.parse::<f64>().is_ok()
            });
            assert!(
                line.starts_with("# HELP refrain_")
                    || line.starts_with("# TYPE refrain_")
                    || is_sample,
                "{line}"
            );
        }
        for expected in [
            "refrain_operation_calls_total{operation=\"http_get\"} 2\n",
            "refrain_operation_errors_total{operation=\"http_get\"} 1\n",
            "refrain_operation_bytes_total{operation=\"http_get\"} 10\n",
            "refrain_operation_seconds_bucket{operation=\"http_get\",le=\"+Inf\"} 2\n",
            "refrain_operation_seconds_count{operation=\"http_get\"} 2\n",
            "refrain_operation_calls_total{operation=\"nbd_read\"} 0\n",
            "# TYPE refrain_cache_hits_total counter\nrefrain_cache_hits_total 7\n",
            "# TYPE refrain_clients gauge\nrefrain_clients 2\n",
            "refrain_archive_calls_total{archive=\"a\\\"b\\\\\\n\u{fffd}\"} 3\n",
            "# TYPE refrain_archive_open gauge\n",
        ] {
            assert!(text.contains(expected), "{expected}{text}");
        }
    }

    #[test]
    fn the_document_has_every_operation() {
        let found = document(&sample(), &METRICS, &rows());
        let operations = found["operations"].as_array().unwrap();
        assert_eq!(operations.len(), Operation::ALL.len());
        let get = &operations[Operation::HttpGet as usize];
        assert_eq!(
            (get["calls"].as_u64(), get["bytes"].as_u64()),
            (Some(2), Some(10))
        );
        assert_eq!(found["metrics"]["cache_hits_total"], 7.0);
        assert_eq!(found["archives"][0]["bytes"], 20);
    }
}
