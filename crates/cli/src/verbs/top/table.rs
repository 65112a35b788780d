//! The statistics of a service as a table, in the form of GlusterFS's io-stats.

use std::time::Duration;

use serde_json::Value;

use super::columns::aligned;
use super::tiers;
use crate::text::{counted, printable};
use crate::units::{bytes_text, clock_text, percent_text, time_text};

const HEAD: [&str; 10] = [
    "%-latency",
    "calls",
    "average",
    "min",
    "p50",
    "p99",
    "max",
    "errors",
    "bytes",
    "operation",
];

/// How many archives are shown.
const ARCHIVES_MAX: usize = 10;

/// The table of a service; `None` if the document has another form.
pub fn text(address: &str, statistics: &Value) -> Option<String> {
    let seconds = |name: &str| statistics[name].as_f64().map(clock_of);
    let metric = |name: &str| {
        statistics["metrics"][name]
            .as_f64()
            .map(|value| value as u64)
    };
    let operations = statistics["operations"].as_array()?;
    let mut text = format!("{}: up {}", printable(address), seconds("uptime_seconds")?);
    text += &format!(", {} since the last reset", seconds("seconds_since_reset")?);
    if let Some(clients) = metric("clients") {
        text += &format!(", {}", counted(clients, "client"));
    }
    text += "\n\n";
    let mut called = vec![];
    for operation in operations {
        if operation["calls"].as_u64()? > 0 {
            called.push((operation["total_ns"].as_u64()?, operation));
        }
    }
    called.sort_by_key(|(total_ns, _)| std::cmp::Reverse(*total_ns));
    let all_ns: u64 = called.iter().map(|(total_ns, _)| total_ns).sum();
    let mut rows = vec![HEAD.map(str::to_owned)];
    for (total_ns, operation) in &called {
        rows.push(row(operation, percent_text(*total_ns, all_ns))?);
    }
    text += &aligned(&rows);
    if called.is_empty() {
        text += "no requests yet\n";
    }
    if let Some(reads) = reads_text(&metric) {
        text += &format!("\n{reads}");
    }
    if let Some(tiers) = statistics["tiers"]
        .as_array()
        .filter(|rows| !rows.is_empty())
    {
        text += &format!("\n{}", tiers::text(tiers)?);
    }
    text += &archives_text(
        statistics["archives"]
            .as_array()
            .map_or(&[][..], Vec::as_slice),
    )?;
    Some(text)
}

/// The archives of which most was asked; empty if there is one, without a name.
fn archives_text(archives: &[Value]) -> Option<String> {
    let mut called = vec![];
    for archive in archives {
        let calls = archive["calls"].as_u64()?;
        if calls > 0 {
            called.push((calls, archive));
        }
    }
    if called.is_empty() {
        return Some(String::new());
    }
    called.sort_by_key(|(calls, _)| std::cmp::Reverse(*calls));
    let mut rows = vec![["calls", "errors", "bytes", "archive"].map(str::to_owned)];
    for (calls, archive) in called.iter().take(ARCHIVES_MAX) {
        rows.push([
            calls.to_string(),
            archive["errors"].as_u64()?.to_string(),
            bytes_text(archive["bytes"].as_u64()?),
            printable(archive["archive"].as_str()?),
        ]);
    }
    let others = called.len().saturating_sub(ARCHIVES_MAX) as u64;
    let others = if others > 0 {
        format!("and {} with fewer calls\n", counted(others, "archive"))
    } else {
        String::new()
    };
    Some(format!("\n{}{others}", aligned(&rows)))
}

fn row(operation: &Value, share: String) -> Option<[String; 10]> {
    let number = |name: &str| operation[name].as_u64();
    let time = |name: &str| number(name).map(time_text);
    Some([
        share,
        number("calls")?.to_string(),
        time("average_ns")?,
        time("min_ns")?,
        time("p50_ns")?,
        time("p99_ns")?,
        time("max_ns")?,
        number("errors")?.to_string(),
        bytes_text(number("bytes")?),
        printable(operation["operation"].as_str()?),
    ])
}

/// What reads found in which tier since the service started; `None` if it does not say.
fn reads_text(metric: &dyn Fn(&str) -> Option<u64>) -> Option<String> {
    let (hits, misses) = (metric("cache_hits_total")?, metric("cache_misses_total")?);
    let (served, decoded) = (
        metric("delivered_bytes_total")?,
        metric("decoded_bytes_total")?,
    );
    let read = metric("source_bytes_total")?;
    let rows = [
        ["tier", "calls", "share", "bytes", ""],
        [
            "memory",
            &hits.to_string(),
            &percent_text(hits, hits + misses),
            &bytes_text(served),
            "served",
        ],
        [
            "decoder",
            &misses.to_string(),
            &percent_text(misses, hits + misses),
            &bytes_text(decoded),
            "decoded",
        ],
        ["source", "", "", &bytes_text(read), "read"],
    ]
    .map(|row| row.map(str::to_owned));
    let each = match served {
        0 => "-".to_owned(),
        _ => format!("{:.2}", decoded as f64 / served as f64),
    };
    Some(format!(
        "{}{each} bytes decoded for each byte served\n",
        aligned(&rows)
    ))
}

fn clock_of(seconds: f64) -> String {
    clock_text(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_table_has_the_called_operations_by_their_share() {
        let operation = |name: &str, calls: u64, total_ns: u64| {
            json!({
                "operation": name, "calls": calls, "errors": 1, "bytes": 4096, "total_ns": total_ns,
                "average_ns": 1500, "min_ns": 12, "p50_ns": 91_000, "p90_ns": 1, "p99_ns": 2_200_000,
                "max_ns": 1_000_000_000,
            })
        };
        let document = json!({
            "uptime_seconds": 3723.4,
            "seconds_since_reset": 7.0,
            "operations": [operation("a", 0, 0), operation("b", 1, 25), operation("c", 9, 75)],
            "metrics": {
                "clients": 2.0, "cache_hits_total": 3.0, "cache_misses_total": 1.0,
                "delivered_bytes_total": 1000.0, "decoded_bytes_total": 2500.0,
                "source_bytes_total": 700.0,
            },
        });
        let expected = "\
x: up 1:02:03, 0:07 since the last reset, 2 clients

%-latency  calls  average    min      p50      p99     max  errors    bytes  operation
   75.0 %      9  1.50 µs  12 ns  91.0 µs  2.20 ms  1.00 s       1  4.10 kB  c
   25.0 %      1  1.50 µs  12 ns  91.0 µs  2.20 ms  1.00 s       1  4.10 kB  b

   tier  calls   share    bytes
 memory      3  75.0 %  1.00 kB  served
decoder      1  25.0 %  2.50 kB  decoded
 source                   700 B  read
2.50 bytes decoded for each byte served
";
        assert_eq!(text("x", &document).as_deref(), Some(expected));
        let mut behind = document.clone();
        behind["tiers"] = json!([{
            "tier": "shared", "node": "a:1", "calls": 7, "average_ns": 1500, "min_ns": 12,
            "p50_ns": 1000, "p99_ns": 2000, "max_ns": 3000, "hits": 6, "bytes": 4096, "errors": 1,
            "corrupt": 2, "hedges": 3, "hedges_won": 1, "timeouts": 4, "state": "open",
        }]);
        let expected = "
calls  hits  average    min      p50      p99      max  errors  timeouts  hedges  won  corrupt    bytes  state  tier
    7     6  1.50 µs  12 ns  1.00 µs  2.00 µs  3.00 µs       1         4       3    1        2  4.10 kB   open  shared a:1
";
        let found = text("x", &behind).unwrap();
        assert_eq!(found.split_once("byte served\n").unwrap().1, expected);
        let mut several = document;
        several["archives"] = (0..12)
            .map(|number| {
                let name = format!("a{number}\u{1b}");
                json!({ "archive": name, "calls": number, "errors": 1, "bytes": 4096 })
            })
            .collect();
        let found = text("x", &several).unwrap();
        let (_, archives) = found.split_once("served\n\n").unwrap();
        assert!(
            archives.starts_with("calls  errors    bytes  archive\n   11  "),
            "{archives}"
        );
        assert!(archives.contains("4.10 kB  a11?\n"), "{archives}");
        assert!(
            archives.ends_with("a2?\nand 1 archive with fewer calls\n"),
            "{archives}"
        );
        assert_eq!(text("x", &json!({})), None);
        assert_eq!(text("x", &json!([])), None);
    }
}
