//! The memory of the tables of zstd's match finders.

use super::finder::Finder;

/// log2 of the entries of the hash and of the chain (or tree) table per level 1..=22, for blocks
/// above 256 KiB; never less than for smaller blocks. The published defaults of zstd. A test
/// compares the estimate with the actual size of a context.
const TABLE_LOGS: [(u32, u32); 22] = [
    (15, 14),
    (16, 15),
    (17, 16),
    (18, 18),
    (19, 18),
    (19, 18),
    (20, 19),
    (20, 19),
    (21, 20),
    (22, 21),
    (22, 21),
    (23, 22),
    (22, 22),
    (23, 22),
    (23, 23),
    (22, 22),
    (22, 23),
    (22, 23),
    (22, 24),
    (23, 25),
    (24, 26),
    (25, 27),
];

/// The upper bound of the tables of a match finder, bytes. zstd never makes a table larger than
/// twice the entries of the window.
pub(super) fn table_bytes(finder: &Finder, window_log: u32, long_distance: bool) -> u64 {
    let row = usize::try_from(finder.level - 1).unwrap_or(0);
    let (hash_log, chain_log) = TABLE_LOGS[row.min(TABLE_LOGS.len() - 1)];
    let hash_log = finder.hash_log.unwrap_or(hash_log);
    let hash_entries = 1_u64 << hash_log.min(window_log + 1);
    let chain_entries = 1_u64 << chain_log.min(window_log + 1);
    // Entries of 4 bytes, and one tag byte per hash entry for the row match finder.
    let tables = hash_entries * 5 + chain_entries * 4;
    let long = if long_distance { (1_u64 << window_log) / 2 + (64 << 10) } else { 0 };
    tables + long
}
