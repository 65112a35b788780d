//! Times and speeds in lrzip's layout.

use std::time::Instant;

/// A line like `Total time: 00:01:02.34`.
pub fn total_time(started: Instant) -> String {
    let seconds = started.elapsed().as_secs_f64();
    let whole = seconds as u64;
    format!(
        "Total time: {:02}:{:02}:{:05.2}",
        whole / 3600,
        whole / 60 % 60,
        seconds - (whole / 60 * 60) as f64
    )
}

/// A speed like `12.345MB/s`, computed like lrzip: whole megabytes by whole seconds.
pub fn speed(content_bytes: u64, started: Instant) -> String {
    let seconds = started.elapsed().as_secs_f64().max(1e-6);
    let mebibytes = content_bytes as f64 / f64::from(1 << 20);
    format!("{:6.3}MB/s", mebibytes / seconds)
}
