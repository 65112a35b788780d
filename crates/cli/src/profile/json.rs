//! The profile as JSON: times in nanoseconds; what cannot be measured here is `null`.

use refrain_pool::stages::{StageProfile, Usage};
use refrain_sync::LockProfile;
use serde_json::{Value, json};

use super::locks::short_name;

pub(super) fn profile(
    stages: &[StageProfile],
    whole: &Usage,
    locks: &[LockProfile],
    locks_not_counted: u64,
) -> Value {
    json!({
        "stages": stages.iter().map(stage).collect::<Vec<_>>(),
        "whole_program": usage(whole),
        "locks": locks.iter().map(lock).collect::<Vec<_>>(),
        "locks_not_counted": locks_not_counted,
    })
}

fn stage(stage: &StageProfile) -> Value {
    let mut row = usage(&stage.usage);
    if let Value::Object(row) = &mut row {
        row.insert("stage".into(), stage.name.into());
        row.insert("pieces".into(), stage.pieces.into());
        row.insert("gap_ns_p99".into(), stage.gaps.quantile_ns(0.99).into());
        row.insert("gap_ns_max".into(), stage.gaps.quantile_ns(1.0).into());
    }
    row
}

fn usage(usage: &Usage) -> Value {
    let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    json!({
        "time_ns": ns(usage.time),
        "cpu_ns": ns(usage.cpu),
        "bytes": usage.bytes,
        "minor_faults": usage.minor_faults,
        "major_faults": usage.major_faults,
        "waits": usage.waits,
        "preemptions": usage.preemptions,
        "cycles": usage.cycles,
        "instructions": usage.instructions,
    })
}

fn lock(lock: &LockProfile) -> Value {
    json!({
        "file": lock.file,
        "line": lock.line,
        "name": short_name(lock.name),
        "acquired": lock.acquired,
        "contended": lock.contended,
        "hold_ns": lock.hold_ns,
        "hold_ns_max": lock.hold_ns_max,
        "holds_measured": lock.held,
        "wait_ns": lock.wait_ns,
        "wait_ns_max": lock.wait_ns_max,
    })
}
