//! Measurement of the stages of the work: time, bytes and processor use of each.

#[cfg(target_os = "linux")]
pub use refrain_pool::stages::changes;
pub use refrain_pool::stages::{StageProfile, Usage, measure, report, whole_process};
