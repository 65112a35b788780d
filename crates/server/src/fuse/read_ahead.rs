//! How far the kernel reads ahead.

use std::fs;

/// How far the kernel reads ahead of a program that reads a file from front to back, in bytes.
pub(super) const READ_AHEAD_BYTES: u32 = 1 << 20;

/// Lets the kernel read ahead as far as the handler allows, on a mount with this device number.
/// Every mount starts with 128 KiB, and only the system's administrator may change that: for others
/// it stays.
pub(super) fn widen(device: &str) {
    let setting = format!("/sys/class/bdi/{device}/read_ahead_kb");
    let _ = fs::write(setting, (READ_AHEAD_BYTES >> 10).to_string());
}
