//! Describes a map in words and as a table.

use std::fmt::Write;

use super::nights;
use super::survey::Survey;
use crate::text::{counted, printable};
use crate::units::{binary_text, bytes_text, percent_text, ratio_text};

/// Rows of a list.
const ROWS_MAX: usize = 12;

/// The most important numbers, in sentences.
pub fn summary(survey: &Survey) -> String {
    let info = &survey.info;
    let (what, whole_bytes) = match survey.nights.sums() {
        Some((count, bytes)) => (format!("{} of ", counted(count, "generation")), bytes),
        None => (String::new(), info.content_bytes),
    };
    let mut text = format!(
        "{what}{} became {} ({}).",
        bytes_text(whole_bytes),
        bytes_text(info.archive_bytes),
        ratio_text(whole_bytes, info.archive_bytes),
    );
    let derived_bytes = info.content_bytes.saturating_sub(survey.content_bytes);
    let mut saved = vec![];
    if survey.total.run_bytes > 0 {
        saved.push(format!("{} are runs", bytes_text(survey.total.run_bytes)));
    }
    if survey.total.repeated_bytes > 0 {
        saved.push(format!(
            "{} repeat",
            bytes_text(survey.total.repeated_bytes)
        ));
    }
    if derived_bytes > 0 {
        saved.push(format!(
            "{} are whole files that occur again, and headers",
            bytes_text(derived_bytes)
        ));
    }
    let stored_bytes = survey.costs.at(u64::MAX);
    let left = format!(
        "{} occur for the first time and compressed to {}.",
        bytes_text(info.store_bytes),
        bytes_text(stored_bytes)
    );
    if saved.is_empty() {
        text.push_str(" Nothing repeats; ")
    } else {
        let _ = write!(text, " {}; ", saved.join(", "));
    }
    text.push_str(&left);
    if let Some(distance) = survey.passages.median_distance() {
        let distance = bytes_text(distance);
        let _ = write!(
            text,
            " Half of the repeated bytes are more than about {distance} behind their first occurrence."
        );
    }
    text
}

/// The text for a terminal.
pub fn table(label: &str, survey: &Survey) -> String {
    let mut text = format!("{}\n  {}\n", printable(label), summary(survey));
    if !survey.introduced.is_exact() || !survey.costs.is_exact() {
        text.push_str(
            "  (figures of small folders are about right: more memory makes them exact)\n",
        );
    }
    nights::table(&mut text, &survey.nights);
    distances(&mut text, survey);
    codecs(&mut text, survey);
    folders(&mut text, survey);
    passages(&mut text, survey);
    text
}

fn distances(text: &mut String, survey: &Survey) {
    let classes = survey.passages.by_doubling();
    if classes.is_empty() {
        return;
    }
    let most = classes.iter().map(|class| class.repeated_bytes).max();
    text.push_str("\nrepeats by distance to the first occurrence\n");
    // Writing to a string cannot fail.
    for class in &classes {
        let bar = class.repeated_bytes as u128 * 30 / u128::from(most.unwrap_or(1).max(1));
        let _ = writeln!(
            text,
            "  from {:>8}  {:>9}  {:>15}  {}",
            binary_text(class.from),
            bytes_text(class.repeated_bytes),
            counted(class.extents, "extent"),
            "#".repeat(bar as usize)
        );
    }
}

fn codecs(text: &mut String, survey: &Survey) {
    if survey.info.codecs.is_empty() {
        return;
    }
    text.push_str("\nblocks by codec\n");
    for codec in &survey.info.codecs {
        let name = if codec.filters.is_empty() {
            codec.codec.clone()
        } else {
            format!("{} + {}", codec.codec, codec.filters)
        };
        let _ = writeln!(
            text,
            "  {name:<20}  {:>12}  {:>9} -> {:>9}  {:>7}",
            counted(codec.blocks, "block"),
            bytes_text(codec.raw_bytes),
            bytes_text(codec.stored_bytes),
            percent_text(codec.stored_bytes, codec.raw_bytes)
        );
    }
}

fn folders(text: &mut String, survey: &Survey) {
    let largest = survey.folders.largest(ROWS_MAX);
    if largest.is_empty() {
        return;
    }
    text.push_str("\nwhat costs most: stored bytes, bytes of files, name\n");
    for (path, cost) in largest {
        let _ = writeln!(
            text,
            "  {:>9}  {:>9}  {}",
            bytes_text(cost.stored_bytes),
            bytes_text(cost.file_bytes),
            printable(&path)
        );
    }
}

fn passages(text: &mut String, survey: &Survey) {
    let largest = survey.passages.largest();
    if largest.is_empty() {
        return;
    }
    text.push_str("\nlargest passages that repeat: bytes, where, first occurrence\n");
    for passage in largest.iter().take(ROWS_MAX) {
        let _ = writeln!(
            text,
            "  {:>9}  at {:>14}  as at {:>14}",
            bytes_text(passage.repeated_bytes),
            passage.content_offset,
            passage.source_offset
        );
    }
}
