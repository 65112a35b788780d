//! `info`: describes a file of another format, for people and for scripts.

use refrain::foreign::{Description, Format, ZipCounts};
use serde_json::{Value, json};

use super::archive::{Rows, exact, shrunk};
use crate::text::{counted, escaped, printable};
use crate::units::binary_text;

/// The text for people.
pub fn description_text(label: &str, description: &Description) -> String {
    let mut rows = Rows::default();
    let file_bytes = description.file_bytes;
    rows.add("original", original_text(description));
    rows.add("compressed", exact(file_bytes));
    if let Some(content_bytes) = description.content_bytes {
        rows.add("ratio", shrunk(file_bytes, content_bytes));
    }
    let checks = match &description.zip {
        Some(counts) => {
            add_entries(&mut rows, description.parts.unwrap_or(0), counts);
            "CRC-32 of each file".to_string()
        }
        None => {
            add_parts(&mut rows, description);
            description.checks.join(", ")
        }
    };
    rows.add(
        "integrity",
        match checks.as_str() {
            "" => "no checksum of the content".to_string(),
            checks => format!("{checks}; not checked here, `refrain test` does"),
        },
    );
    rows.add(
        "random access",
        match description.zip {
            Some(_) => "from the beginning of each file",
            None => "from the beginning only",
        },
    );
    rows.add("format", description.format.name());
    format!("{}\n{}", printable(label), rows.into_text())
}

/// The parts of a compressed stream.
fn add_parts(rows: &mut Rows, description: &Description) {
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
}

/// The entries of a zip file.
fn add_entries(rows: &mut Rows, entries: u64, counts: &ZipCounts) {
    let files = counted(counts.files, "file");
    rows.add("entries", format!("{entries}, of which {files}"));
    let methods = counts.methods.iter();
    let methods = methods.map(|(method, count)| format!("{method} {}", counted(*count, "file")));
    rows.add("methods", methods.collect::<Vec<_>>().join(", "));
    if counts.encrypted > 0 {
        let encrypted = counted(counts.encrypted, "entry");
        rows.add("encrypted", format!("{encrypted}, which cannot be read"));
    }
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
pub fn description_json(label: &str, description: &Description) -> Value {
    let stated = match &description.zip {
        Some(counts) => json!({
            "format": description.format.name(),
            "entries": description.parts,
            "files": counts.files,
            "encrypted": counts.encrypted,
            "methods": counts.methods,
            "checks": description.checks,
        }),
        None => json!({
            "format": description.format.name(),
            "parts": description.parts,
            "part_name": description.format.part_name(),
            "skipped_frames": description.skipped_frames,
            "blocks": description.blocks,
            "block_bytes_max": description.block_bytes_max,
            "window_bytes": description.window_bytes,
            "checks": description.checks,
            "name": description.name.as_deref().map(String::from_utf8_lossy),
            "modified": description.modified,
            "last_member_bytes": description.last_member_bytes,
        }),
    };
    json!({
        "file": label,
        "archive_bytes": description.file_bytes,
        "content_bytes": description.content_bytes,
        "integrity_checked": false,
        "foreign": stated,
    })
}
