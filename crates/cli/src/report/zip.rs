//! `info` for zip files.

use std::collections::BTreeMap;

use refrain::foreign::{ZipEntry, ZipKind};
use serde_json::{Value, json};

use super::archive::{Rows, exact};
use crate::text::{counted, printable};
use crate::units::{percent_text, ratio_text};

/// A summary of a zip file's central directory.
#[derive(Debug, Default)]
pub struct ZipSummary {
    file_bytes: u64,
    content_bytes: u64,
    entries: u64,
    files: u64,
    encrypted: u64,
    /// The number of files by method.
    methods: BTreeMap<String, u64>,
}

impl ZipSummary {
    pub fn set_file_bytes(&mut self, file_bytes: u64) {
        self.file_bytes = file_bytes;
    }

    pub fn add(&mut self, entry: &ZipEntry) {
        self.entries += 1;
        if entry.kind == ZipKind::File {
            self.files += 1;
            self.content_bytes = self.content_bytes.saturating_add(entry.content_bytes);
            *self.methods.entry(entry.method.clone()).or_default() += 1;
        }
        self.encrypted += u64::from(entry.is_encrypted);
    }
}

/// The line in the table of `rfn -l`.
pub fn zip_line(label: &str, summary: &ZipSummary) -> String {
    let (file_bytes, content_bytes) = (summary.file_bytes, summary.content_bytes);
    let ratio = percent_text(file_bytes, content_bytes);
    format!(
        "{file_bytes:>15} {content_bytes:>15} {ratio:>8}  {}\n",
        printable(label)
    )
}

/// The text for people.
pub fn zip_text(label: &str, summary: &ZipSummary) -> String {
    let mut rows = Rows::default();
    let (file_bytes, content_bytes) = (summary.file_bytes, summary.content_bytes);
    rows.add("original", exact(content_bytes));
    rows.add("compressed", exact(file_bytes));
    rows.add(
        "ratio",
        format!(
            "{} ({} of the original)",
            ratio_text(content_bytes, file_bytes),
            percent_text(file_bytes, content_bytes)
        ),
    );
    let (entries, files) = (summary.entries, summary.files);
    rows.add(
        "entries",
        format!("{entries}, of which {}", counted(files, "file")),
    );
    let methods = summary.methods.iter();
    let methods = methods.map(|(method, count)| format!("{method} {}", counted(*count, "file")));
    rows.add("methods", methods.collect::<Vec<_>>().join(", "));
    if summary.encrypted > 0 {
        let text = format!(
            "{}, which cannot be read",
            counted(summary.encrypted, "entry")
        );
        rows.add("encrypted", text);
    }
    rows.add(
        "integrity",
        "CRC-32 of each file; not checked here, `refrain test` does",
    );
    rows.add("random access", "from the beginning of each file");
    rows.add("format", "zip");
    format!("{}\n{}", printable(label), rows.into_text())
}

/// Everything, for scripts.
pub fn zip_json(label: &str, summary: &ZipSummary) -> Value {
    json!({
        "file": label,
        "archive_bytes": summary.file_bytes,
        "content_bytes": summary.content_bytes,
        "integrity_checked": false,
        "foreign": {
            "format": "zip",
            "entries": summary.entries,
            "files": summary.files,
            "encrypted": summary.encrypted,
            "methods": summary.methods,
            "checks": ["CRC-32"],
        },
    })
}
