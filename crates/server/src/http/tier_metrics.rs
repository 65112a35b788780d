//! What the caches in front of the archives were asked, as text for Prometheus and as JSON.

use std::fmt::Write as _;

use refrain_cache::tiers::TierRow;
use serde_json::{Value, json};

use super::metrics::{describe, histogram, label_value};

type Counter = (&'static str, &'static str, fn(&TierRow) -> u64);

const COUNTERS: &[Counter] = &[
    ("hits_total", "Ranges that a tier had.", |row| row.hits),
    ("bytes_total", "Bytes of ranges that a tier had.", |row| {
        row.bytes
    }),
    ("errors_total", "Calls of a tier that failed.", |row| {
        row.errors
    }),
    (
        "corrupt_total",
        "Values that were not what was stored.",
        |row| row.corrupt,
    ),
    (
        "hedges_total",
        "Requests to a node because another was late.",
        |row| row.hedges,
    ),
    (
        "hedges_won_total",
        "Such requests that were answered first.",
        |row| row.hedges_won,
    ),
    (
        "timeouts_total",
        "Requests to a node that were given up.",
        |row| row.timeouts,
    ),
];

pub(super) fn text(rows: &[TierRow]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    for (name, help, value) in COUNTERS {
        describe(&mut text, &format!("tier_{name}"), help, "counter");
        for row in rows {
            let _ = writeln!(
                text,
                "refrain_tier_{name}{{{}}} {}",
                labels(row),
                value(row)
            );
        }
    }
    let help = "Whether a node is left out because it owes replies.";
    describe(&mut text, "tier_node_left_out", help, "gauge");
    for row in rows {
        if let Some(state) = row.state {
            let is_left_out = u8::from(state != "closed");
            let _ = writeln!(
                text,
                "refrain_tier_node_left_out{{{}}} {is_left_out}",
                labels(row)
            );
        }
    }
    describe(&mut text, "tier_seconds", "Latency of a tier.", "histogram");
    for row in rows {
        histogram(&mut text, "tier_seconds", &labels(row), &row.times);
    }
    text
}

fn labels(row: &TierRow) -> String {
    let node = row.node.as_deref().unwrap_or_default();
    let node = label_value(node.as_bytes());
    format!("tier=\"{}\",node=\"{node}\"", row.tier)
}

/// The part of the document that `refrain top` reads.
pub(super) fn document(rows: &[TierRow]) -> Value {
    let row = |row: &TierRow| {
        json!({
            "tier": row.tier,
            "node": row.node,
            "calls": row.times.count(),
            "average_ns": row.times.average_ns(),
            "min_ns": row.times.min_ns(),
            "p50_ns": row.times.quantile_ns(0.5),
            "p99_ns": row.times.quantile_ns(0.99),
            "max_ns": row.times.max_ns(),
            "hits": row.hits,
            "bytes": row.bytes,
            "errors": row.errors,
            "corrupt": row.corrupt,
            "hedges": row.hedges,
            "hedges_won": row.hedges_won,
            "timeouts": row.timeouts,
            "state": row.state,
        })
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::LatencyHistogram;
    use refrain_pool::SharedHistogram;

    fn times() -> LatencyHistogram {
        let times = SharedHistogram::default();
        [1000, 5_000_000].iter().for_each(|time| times.add(*time));
        times.snapshot()
    }

    #[test]
    fn tiers_and_nodes_are_labels() {
        let row = |tier, node: Option<&str>, state| TierRow {
            tier,
            node: node.map(str::to_owned),
            times: times(),
            hits: 1,
            bytes: 2,
            errors: 3,
            corrupt: 4,
            hedges: 5,
            hedges_won: 6,
            timeouts: 7,
            state,
        };
        let rows = [
            row("disk", None, None),
            row("shared", Some("a\"b:1"), Some("open")),
        ];
        let found = text(&rows);
        for line in [
            "refrain_tier_hits_total{tier=\"disk\",node=\"\"} 1\n",
            "refrain_tier_timeouts_total{tier=\"shared\",node=\"a\\\"b:1\"} 7\n",
            "refrain_tier_node_left_out{tier=\"shared\",node=\"a\\\"b:1\"} 1\n",
            "refrain_tier_seconds_count{tier=\"disk\",node=\"\"} 2\n",
        ] {
            assert!(found.contains(line), "{line}{found}");
        }
        assert_eq!(found.matches("left_out{").count(), 1);
        let found = document(&rows);
        assert_eq!(
            (&found[0]["calls"], &found[1]["hedges_won"]),
            (&json!(2), &json!(6))
        );
        assert_eq!(
            (&found[0]["state"], &found[1]["state"]),
            (&json!(null), &json!("open"))
        );
        assert_eq!(text(&[]), "");
    }
}
