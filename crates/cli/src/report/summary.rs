//! The line about a finished item of work.

use std::time::Duration;

use refrain::FrameTotals;

use crate::text::{counted, printable};
use crate::units::{bytes_text, duration_text, percent_text, rate_text};

/// The sizes of an archive and its content.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Bytes of all members' contents.
    pub content_bytes: u64,
    pub archive_bytes: u64,
}

/// `x: 2.72 GB -> 195 MB (7.2 %), 3.9 s, 698 MB/s`
pub fn compressed_line(label: &str, sizes: Sizes, elapsed: Duration) -> String {
    format!(
        "{}: {} -> {} ({}), {}",
        printable(label),
        bytes_text(sizes.content_bytes),
        bytes_text(sizes.archive_bytes),
        percent_text(sizes.archive_bytes, sizes.content_bytes),
        time_and_rate(sizes, elapsed),
    )
}

/// `x.rfn: 2.72 GB, 12.3 MB added (0.5 %), 100000 files unchanged, 3.9 s, 698 MB/s`
pub fn added_line(label: &str, sizes: Sizes, unchanged_files: u64, elapsed: Duration) -> String {
    let unchanged = match unchanged_files {
        0 => String::new(),
        1 => "1 file unchanged, ".to_owned(),
        count => format!("{count} files unchanged, "),
    };
    format!(
        "{}: {}, {} added ({}), {unchanged}{}",
        printable(label),
        bytes_text(sizes.content_bytes),
        bytes_text(sizes.archive_bytes),
        percent_text(sizes.archive_bytes, sizes.content_bytes),
        time_and_rate(sizes, elapsed),
    )
}

/// `x.rfn: 195 MB -> 2.72 GB, in x/, 2.5 s, 1.09 GB/s`
pub fn decompressed_line(
    label: &str,
    sizes: Sizes,
    place: Option<String>,
    elapsed: Duration,
) -> String {
    let (label, sizes_text) = (printable(label), arrow(sizes));
    let place = place_text(place);
    format!(
        "{label}: {sizes_text}{place}, {}",
        time_and_rate(sizes, elapsed)
    )
}

/// `x.rfn: 12 entries restored, in x/, 0.1 s`
pub fn restored_part_line(
    label: &str,
    count: u64,
    place: Option<String>,
    elapsed: Duration,
) -> String {
    let (label, entries) = (printable(label), counted(count, "entry"));
    let place = place_text(place);
    format!(
        "{label}: {entries} restored{place}, {}",
        duration_text(elapsed)
    )
}

fn place_text(place: Option<String>) -> String {
    place.map_or_else(String::new, |place| {
        if place.ends_with('/') {
            format!(", in {}", printable(&place))
        } else {
            format!(", as {}", printable(&place))
        }
    })
}

/// `x.rfn: OK, 195 MB -> 2.72 GB, 1.6 s, 1.70 GB/s`
pub fn tested_line(label: &str, sizes: Sizes, elapsed: Duration) -> String {
    let (label, sizes_text) = (printable(label), arrow(sizes));
    format!(
        "{label}: OK, {sizes_text}, {}",
        time_and_rate(sizes, elapsed)
    )
}

/// `x.rfn: checksums OK, 195 MB in 210 frames, 0.10 s, 1.95 GB/s`
pub fn checksums_line(label: &str, totals: &FrameTotals, elapsed: Duration) -> String {
    let (label, bytes) = (printable(label), bytes_text(totals.archive_bytes));
    format!(
        "{label}: checksums OK, {bytes} in {}, {}, {}",
        counted(totals.frames, "frame"),
        duration_text(elapsed),
        rate_text(totals.archive_bytes, elapsed)
    )
}

fn arrow(sizes: Sizes) -> String {
    format!(
        "{} -> {}",
        bytes_text(sizes.archive_bytes),
        bytes_text(sizes.content_bytes)
    )
}

fn time_and_rate(sizes: Sizes, elapsed: Duration) -> String {
    format!(
        "{}, {}",
        duration_text(elapsed),
        rate_text(sizes.content_bytes, elapsed)
    )
}
