//! `info` for files of other formats.

use refrain::foreign::{Description, Format};
use serde_json::{Value, json};

use super::archive::{Rows, exact};
use crate::text::{counted, escaped, printable};
use crate::units::{binary_text, percent_text, ratio_text};

/// The line in the table of `rfn -l`, with a dash for what the file does not state.
pub fn foreign_line(label: &str, description: &Description) -> String {
    let (content, ratio) = match description.content_bytes {
        Some(bytes) => (
            bytes.to_string(),
            percent_text(description.file_bytes, bytes),
        ),
        None => ("-".to_string(), "-".to_string()),
    };
    let file_bytes = description.file_bytes;
    format!(
        "{file_bytes:>15} {content:>15} {ratio:>8}  {}\n",
        printable(label)
    )
}

/// The text for people.
pub fn foreign_text(label: &str, description: &Description) -> String {
    let mut rows = Rows::default();
    let file_bytes = description.file_bytes;
    rows.add("original", original_text(description));
    rows.add("compressed", exact(file_bytes));
    if let Some(content_bytes) = description.content_bytes {
        rows.add(
            "ratio",
            format!(
                "{} ({} of the original)",
                ratio_text(content_bytes, file_bytes),
                percent_text(file_bytes, content_bytes)
            ),
        );
    }
    let part = description.format.part_name();
    rows.add(
        &format!("{part}s"),
        match description.parts {
            Some(count) => skipped_text(counted(count, part), description.skipped_frames),
            None => "not stated".to_string(),
        },
    );
    if description.blocks.is_some() || description.block_bytes_max.is_some() {
        rows.add("blocks", blocks_text(description));
    }
    if let Some(bytes) = description.window_bytes {
        rows.add("window", format!("up to {}", binary_text(bytes)));
    }
    if let Some(name) = &description.name {
        rows.add("stored name", escaped(name));
    }
    let checks = match description.checks.as_slice() {
        [] => "no checksum of the content".to_string(),
        checks => format!(
            "{}; not checked here, `refrain test` does",
            checks.join(", ")
        ),
    };
    rows.add("integrity", checks);
    rows.add("random access", "from the beginning only");
    rows.add("format", description.format.name());
    format!("{}\n{}", printable(label), rows.into_text())
}

fn original_text(description: &Description) -> String {
    match (description.content_bytes, description.last_member_bytes) {
        (Some(bytes), _) => exact(bytes),
        (None, Some(last)) => format!(
            "not stated; the last member says {} (modulo 4 GiB)",
            counted(u64::from(last), "byte")
        ),
        (None, None) => "not stated".to_string(),
    }
}

fn skipped_text(parts: String, skipped: u64) -> String {
    match skipped {
        0 => parts,
        skipped => format!("{parts}, and {} without content", counted(skipped, "frame")),
    }
}

fn blocks_text(description: &Description) -> String {
    let count = match description.blocks {
        Some(count) => counted(count, "block"),
        None => "their number is not stated".to_string(),
    };
    match description.block_bytes_max {
        // bzip2 states them in thousands of bytes, before its first stage.
        Some(bytes) if description.format == Format::Bzip2 => {
            format!("{count}; of up to {bytes} bytes after runs are shortened")
        }
        Some(bytes) => format!("{count} of up to {}", binary_text(bytes)),
        None => count,
    }
}

/// Everything, for scripts, with null for what the file does not state.
pub fn foreign_json(label: &str, description: &Description) -> Value {
    let name = description.name.as_deref();
    json!({
        "file": label,
        "archive_bytes": description.file_bytes,
        "content_bytes": description.content_bytes,
        "integrity_checked": false,
        "foreign": {
            "format": description.format.name(),
            "parts": description.parts,
            "part_name": description.format.part_name(),
            "skipped_frames": description.skipped_frames,
            "blocks": description.blocks,
            "block_bytes_max": description.block_bytes_max,
            "window_bytes": description.window_bytes,
            "checks": description.checks,
            "name": name.map(String::from_utf8_lossy),
            "modified": description.modified,
            "last_member_bytes": description.last_member_bytes,
        },
    })
}
