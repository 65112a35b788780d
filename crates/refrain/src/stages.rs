//! Measurement of the stages of the work: time, bytes and processor use of each.

pub use refrain_pool::stages::{StageProfile, Usage, measure, report, whole_process};
