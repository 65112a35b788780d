//! One block of an archive, for people and for scripts.

use refrain::BlockInfo;
use serde_json::{Value, json};

/// The line of a block, for `-vv`.
pub fn block_line(block: &BlockInfo) -> String {
    let filters = if block.filters.is_empty() {
        String::new()
    } else {
        format!(" + {}", block.filters)
    };
    let fallback = block
        .fallback
        .as_ref()
        .map(|why| format!("  ({why})"))
        .unwrap_or_default();
    format!(
        "block {:>6}  archive {:>13}  store {:>13}  {:>9} -> {:>9}  {}{filters}{fallback}",
        block.block,
        block.archive_offset,
        block.offset_in_store,
        block.raw_bytes,
        block.stored_bytes,
        block.codec,
    )
}

/// A block, for scripts.
pub fn block_json(block: &BlockInfo) -> Value {
    json!({
        "block": block.block,
        "archive_offset": block.archive_offset,
        "offset_in_store": block.offset_in_store,
        "raw_bytes": block.raw_bytes,
        "stored_bytes": block.stored_bytes,
        "codec": block.codec,
        "filters": block.filters,
        "fallback": block.fallback,
    })
}
