//! The tiers in front of the archives, and their nodes, as a table.

use serde_json::Value;

use super::columns::aligned;
use crate::text::printable;
use crate::units::{bytes_text, time_text};

const HEAD: [&str; 15] = [
    "calls", "hits", "average", "min", "p50", "p99", "max", "errors", "timeouts", "hedges", "won",
    "corrupt", "bytes", "state", "tier",
];

/// The table of these rows; `None` if they have another form.
pub fn text(tiers: &[Value]) -> Option<String> {
    let mut rows = vec![HEAD.map(str::to_owned)];
    for tier in tiers {
        rows.push(row(tier)?);
    }
    Some(aligned(&rows))
}

fn row(tier: &Value) -> Option<[String; 15]> {
    let number = |name: &str| tier[name].as_u64();
    let text = |name: &str| number(name).map(|number| number.to_string());
    let time = |name: &str| number(name).map(time_text);
    let name = tier["tier"].as_str()?;
    let name = match tier["node"].as_str() {
        Some(node) => format!("{name} {node}"),
        None => name.to_owned(),
    };
    Some([
        text("calls")?,
        text("hits")?,
        time("average_ns")?,
        time("min_ns")?,
        time("p50_ns")?,
        time("p99_ns")?,
        time("max_ns")?,
        text("errors")?,
        text("timeouts")?,
        text("hedges")?,
        text("hedges_won")?,
        text("corrupt")?,
        bytes_text(number("bytes")?),
        tier["state"].as_str().unwrap_or("-").to_owned(),
        printable(&name),
    ])
}
