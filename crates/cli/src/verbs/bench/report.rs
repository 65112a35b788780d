//! Writes the results as a table for people, as Markdown, or as JSON for scripts.

use std::io::{self, Write};

use super::contest::{ContenderResult, FileResult, Summary};
use super::reads::ReadTimes;
use crate::args::BenchArgs;

/// Writes all results in the requested form.
pub(super) fn write(
    results: &[FileResult],
    args: &BenchArgs,
    out: &mut dyn Write,
) -> io::Result<()> {
    if args.json {
        serde_json::to_writer_pretty(&mut *out, results)?;
        return writeln!(out);
    }
    for (number, result) in results.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let table = table(result);
        writeln!(out, "{}", heading(result))?;
        writeln!(out)?;
        if args.markdown {
            write_markdown(&table, out)?;
        } else {
            write_aligned(&table, out)?;
        }
        let standings = standings(result);
        if !standings.is_empty() {
            writeln!(out)?;
        }
        for line in standings {
            let bullet = if args.markdown { "- " } else { "" };
            writeln!(out, "{bullet}{line}")?;
        }
    }
    Ok(())
}

fn heading(result: &FileResult) -> String {
    let s = if result.runs == 1 { "" } else { "s" };
    let target = if result.discarded { ", to /dev/null" } else { "" };
    format!(
        "{}, {} bytes, {} threads, medians of {} interleaved run{s}{target}",
        result.file,
        grouped(result.input_bytes),
        result.threads,
        result.runs,
    )
}

/// The cells as text; the first row is the head.
fn table(result: &FileResult) -> Vec<Vec<String>> {
    let decompressed = result.rows.iter().any(|row| row.decompress.is_some());
    let tested = result.rows.iter().any(|row| row.test.is_some());
    let mut head = vec![
        "program",
        "bytes",
        "of input",
        "seconds",
        "(spread)",
        "of baseline",
        "MB/s",
        "CPU s",
        "peak MB",
    ];
    if decompressed {
        head.extend(["decompress s", "peak MB"]);
    }
    if tested {
        head.extend(["test s", "test MB/s"]);
    }
    let read_from = result.rows.iter().any(|row| row.reads.is_some());
    if read_from {
        head.extend(["first read ms", "4 KiB read ms"]);
    }
    let baseline = result.rows.first().map(|row| row.compress.seconds.median);
    let mut table = vec![head.into_iter().map(String::from).collect()];
    for row in &result.rows {
        let mut cells = compress_cells(row, result.input_bytes, baseline);
        if decompressed {
            cells.extend(decompress_cells(row.decompress.as_ref()));
        }
        if tested {
            cells.extend(test_cells(row.test.as_ref(), result.input_bytes));
        }
        if read_from {
            cells.extend(read_cells(row.reads.as_ref()));
        }
        table.push(cells);
    }
    table
}

fn compress_cells(row: &ContenderResult, input_bytes: u64, baseline: Option<f64>) -> Vec<String> {
    let seconds = row.compress.seconds;
    vec![
        row.name.clone(),
        grouped(row.archive_bytes),
        format!(
            "{:.2} %",
            100.0 * ratio(row.archive_bytes as f64, input_bytes as f64)
        ),
        format!("{:.2}", seconds.median),
        format!("{:.2}..{:.2}", seconds.min, seconds.max),
        baseline.map_or_else(String::new, |b| format!("{:.2}", ratio(seconds.median, b))),
        megabytes_per_second(input_bytes, seconds.median),
        format!("{:.2}", row.compress.cpu_seconds.median),
        megabytes(row.compress.peak_memory_bytes),
    ]
}

fn decompress_cells(summary: Option<&Summary>) -> [String; 2] {
    summary.map_or_else(Default::default, |summary| {
        [
            format!("{:.2}", summary.seconds.median),
            megabytes(summary.peak_memory_bytes),
        ]
    })
}

fn test_cells(summary: Option<&Summary>, input_bytes: u64) -> [String; 2] {
    summary.map_or_else(Default::default, |summary| {
        [
            format!("{:.2}", summary.seconds.median),
            megabytes_per_second(input_bytes, summary.seconds.median),
        ]
    })
}

fn read_cells(times: Option<&ReadTimes>) -> [String; 2] {
    let milliseconds = |seconds: f64| format!("{:.2}", seconds * 1000.0);
    times.map_or_else(Default::default, |times| {
        let later = times
            .later()
            .map_or_else(String::new, |later| milliseconds(later.median));
        [milliseconds(times.first_seconds), later]
    })
}

/// For every peer: the fastest row of Refrain with an archive that is no larger, which is the fair
/// comparison.
fn standings(result: &FileResult) -> Vec<String> {
    let peers = result.rows.iter().filter(|row| !row.is_refrain);
    peers.map(|peer| standing(peer, &result.rows)).collect()
}

fn standing(peer: &ContenderResult, rows: &[ContenderResult]) -> String {
    let fastest = rows
        .iter()
        .filter(|row| row.is_refrain && row.archive_bytes <= peer.archive_bytes)
        .min_by(|a, b| {
            a.compress
                .seconds
                .median
                .total_cmp(&b.compress.seconds.median)
        });
    match fastest {
        Some(row) => format!(
            "no larger than {}: {} in {:.2} of its time",
            peer.name,
            row.name,
            ratio(row.compress.seconds.median, peer.compress.seconds.median),
        ),
        None => format!("no larger than {}: no measured level of Refrain", peer.name),
    }
}

/// A quotient for the table; 0 for an empty input or a time below the clock's resolution.
fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator > 0.0 { numerator / denominator } else { 0.0 }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

fn megabytes_per_second(bytes: u64, seconds: f64) -> String {
    format!("{:.0}", ratio(bytes as f64 / 1e6, seconds))
}

/// 1234567 as "1,234,567".
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Pads columns to their widest cell; the first is left-aligned, numbers are right-aligned.
fn write_aligned(table: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in table {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line.push_str(&format!("  {cell:>width$}"));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn write_markdown(table: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    for (number, row) in table.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
        if number == 0 {
            writeln!(out, "|---|{}", "---:|".repeat(row.len().saturating_sub(1)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::statistics::Spread;
    use super::*;

    fn summary(seconds: f64) -> Summary {
        let spread = Spread::from_values([seconds]).unwrap();
        Summary {
            seconds: spread,
            cpu_seconds: spread,
            peak_memory_bytes: 5_000_000,
        }
    }

    fn row(name: &str, is_refrain: bool, archive_bytes: u64, seconds: f64) -> ContenderResult {
        ContenderResult {
            name: name.into(),
            is_refrain,
            archive_bytes,
            compress: summary(seconds),
            decompress: None,
            test: is_refrain.then(|| summary(0.5)),
            reads: (name == "refrain --level 2").then(|| ReadTimes {
                open_seconds: 0.1,
                first_seconds: 0.01,
                later_seconds: vec![0.003, 0.001, 0.002],
            }),
        }
    }

    fn result() -> FileResult {
        FileResult {
            file: "data".into(),
            input_bytes: 2_000_000_000,
            runs: 1,
            threads: 2,
            discarded: false,
            rows: vec![
                row("peer|x", false, 200_000_000, 10.0),
                row("small peer", false, 1, 90.0),
                row("refrain --level 1", true, 250_000_000, 1.0),
                row("refrain --level 2", true, 200_000_000, 2.5),
                row("refrain --level 3", true, 150_000_000, 5.0),
            ],
        }
    }

    #[test]
    fn the_standing_is_the_fastest_row_that_is_no_larger() {
        assert_eq!(
            standings(&result()),
            [
                "no larger than peer|x: refrain --level 2 in 0.25 of its time",
                "no larger than small peer: no measured level of Refrain",
            ]
        );
    }

    #[test]
    fn cells_are_relative_to_the_first_row() {
        let table = table(&result());
        assert_eq!(table[4][0], "refrain --level 2");
        assert_eq!(table[4][1], "200,000,000");
        assert_eq!(table[4][2], "10.00 %");
        assert_eq!(table[4][5], "0.25");
        assert_eq!(table[4][6], "800");
        assert_eq!(table[4][8], "5");
        assert_eq!(table[4][10], "4000");
        assert_eq!(table[4][11..], ["10.00", "2.00"]);
        assert!(table.iter().all(|row| row.len() == table[0].len()));
    }

    #[test]
    fn tables_are_even_and_markdown_is_escaped() {
        let mut text = Vec::new();
        write_markdown(&table(&result()), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("| peer\\|x |"));
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        let first = bars(text.lines().next().unwrap());
        assert!(text.lines().all(|line| bars(line) == first), "{text}");

        let mut text = Vec::new();
        write_aligned(&table(&result()), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count(), 6);
        // The column of bytes ends at the same position in every line.
        for (line, bytes) in text
            .lines()
            .zip(["bytes", "200,000,000", "1", "250,000,000"])
        {
            let end = "refrain --level 1".len() + 2 + "200,000,000".len();
            assert!(line[..end].ends_with(bytes), "{line}");
        }
    }

    #[test]
    fn numbers_are_grouped_and_empty_input_divides_to_zero() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(ratio(1.0, 0.0), 0.0);
    }
}
