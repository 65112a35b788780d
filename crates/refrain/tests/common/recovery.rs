//! Recovery data made and used in memory.

use std::sync::Arc;

use refrain::storage::{MemorySink, Source};
use refrain::{
    ProtectSummary, RecoveryOptions, RepairPlan, RepairSummary, Result, Unwatched, plan_repair,
    protect,
};

use super::source;

/// Options with that share of parity.
pub fn recovery_options(share: &str, threads: usize) -> RecoveryOptions {
    RecoveryOptions {
        share: share.parse().unwrap(),
        threads,
        memory_bytes: 64 << 20,
        temporary: Some(std::env::temp_dir()),
    }
}

/// What `protect` writes.
pub fn protected(file: &[u8], share: &str) -> Result<(Vec<u8>, ProtectSummary)> {
    let mut sink = MemorySink::new();
    let output = sink.output();
    let summary = protect(
        &source(file),
        &mut sink,
        &recovery_options(share, 2),
        &Unwatched,
    )?;
    Ok((output.published().unwrap(), summary))
}

pub fn plan_of(files: &[&[u8]]) -> Result<RepairPlan> {
    let inputs: Vec<Arc<dyn Source>> = files.iter().map(|file| source(file)).collect();
    plan_repair(inputs, &recovery_options("10%", 2), &Unwatched)
}

/// What `repair` writes.
pub fn repaired(files: &[&[u8]]) -> Result<(Vec<u8>, RepairSummary)> {
    let plan = plan_of(files)?;
    let mut sink = MemorySink::new();
    let output = sink.output();
    plan.write(&mut sink, &Unwatched)?;
    Ok((output.published().unwrap(), plan.summary().clone()))
}
