//! The table of locks.

use std::time::Duration;

use refrain_sync::LockProfile;

use super::columns::{aligned, time_text};

const HEAD: [&str; 9] = [
    "lock",
    "taken",
    "contended",
    "wait",
    "average",
    "longest",
    "held",
    "average",
    "longest",
];

/// Places beyond these are left out.
const ROWS_MAX: usize = 20;

/// The locks that threads waited for longest; empty without any.
pub(super) fn table(locks: &[LockProfile], rejected: u64) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(locks.iter().take(ROWS_MAX).map(row));
    let mut text = if locks.is_empty() { String::new() } else { aligned(&rows) };
    if locks.len() > ROWS_MAX {
        text.push_str(&format!("and {} other places\n", locks.len() - ROWS_MAX));
    }
    if rejected > 0 {
        text.push_str(&format!("{rejected} locks were not counted\n"));
    }
    text
}

fn row(lock: &LockProfile) -> [String; HEAD.len()] {
    let time = |ns| time_text(Duration::from_nanos(ns));
    let average = |ns: u64, count: u64| time(ns.checked_div(count).unwrap_or(0));
    [
        format!("{} at {}", short_name(lock.name), place(lock)),
        lock.acquired.to_string(),
        lock.contended.to_string(),
        time(lock.wait_ns),
        average(lock.wait_ns, lock.contended),
        time(lock.wait_ns_max),
        time(lock.hold_ns),
        average(lock.hold_ns, lock.acquired),
        time(lock.hold_ns_max),
    ]
}

/// The source file below its crate, and the line.
fn place(lock: &LockProfile) -> String {
    let file = lock
        .file
        .rsplit_once("crates/")
        .map_or(lock.file, |(_, file)| file);
    format!("{}:{}", file.replace("/src/", "/"), lock.line)
}

/// A type without the paths of its parts.
pub(super) fn short_name(name: &str) -> String {
    let mut short = String::new();
    let mut part = String::new();
    for character in name.chars().chain(std::iter::once(' ')) {
        match character {
            ':' => part.clear(),
            other if other.is_alphanumeric() || other == '_' => part.push(other),
            other => {
                short.push_str(&part);
                part.clear();
                short.push(other);
            }
        }
    }
    short.pop();
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_rows_complete() {
        let name = "alloc::vec::Vec<(u64, core::option::Option<refrain::read::Block>)>";
        assert_eq!(short_name(name), "Vec<(u64, Option<Block>)>");
        let lock = LockProfile {
            file: "/home/x/crates/refrain/src/read/cache.rs",
            line: 7,
            name,
            acquired: 10,
            contended: 4,
            held: 10,
            hold_ns: 20_000,
            hold_ns_max: 9_000,
            wait_ns: 8_000_000,
            wait_ns_max: 5_000_000,
        };
        let expected = [
            "Vec<(u64, Option<Block>)> at refrain/read/cache.rs:7",
            "10",
            "4",
            "8.00 ms",
            "2.00 ms",
            "5.00 ms",
            "20.0 µs",
            "2.00 µs",
            "9.00 µs",
        ];
        assert_eq!(row(&lock), expected.map(str::to_owned));
        assert_eq!(table(&[], 0), "");
        let many = vec![lock; 22];
        let text = table(&many, 3);
        assert!(
            text.ends_with("and 2 other places\n3 locks were not counted\n"),
            "{text}"
        );
    }
}
