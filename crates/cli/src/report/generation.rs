//! Generations, for people and for scripts.

use refrain::GenerationInfo;
use serde_json::{Value, json};

use crate::text::escaped;
use crate::units::bytes_text;
use refrain_page::utc_text;

/// When a generation was made, in UTC; empty if nobody stated it.
pub fn time_text(row: &GenerationInfo) -> String {
    row.created
        .map(|created| utc_text(created.seconds))
        .unwrap_or_default()
}

/// The lines of a table of generations: number, time, members, size of the content, new bytes,
/// host, tags and comment.
pub fn generation_lines(rows: &[GenerationInfo]) -> Vec<String> {
    let texts = |texts: &[Vec<u8>]| {
        let texts: Vec<_> = texts.iter().map(|text| escaped(text)).collect();
        texts.join(",")
    };
    let line = |row: &GenerationInfo| {
        let line = format!(
            "{:>5}  {:20}  {:>7}  {:>10}  {:>10}  {}  {}  {}",
            row.number,
            time_text(row),
            row.member_count,
            bytes_text(row.content_bytes),
            bytes_text(row.store_bytes),
            escaped(&row.host),
            texts(&row.tags),
            escaped(&row.comment),
        );
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A generation as JSON.
pub fn generation_json(row: &GenerationInfo) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    json!({
        "generation": row.number,
        "created": row.created.map(|created| created.seconds),
        "members": row.member_count,
        "content_bytes": row.content_bytes,
        "store_bytes": row.store_bytes,
        "host": text(&row.host),
        "comment": text(&row.comment),
        "tags": row.tags.iter().map(|tag| text(tag)).collect::<Vec<_>>(),
    })
}
