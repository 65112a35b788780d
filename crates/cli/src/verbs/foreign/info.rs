//! `refrain info` of a file of another format.

use std::sync::Arc;

use refrain::ReadOptions;
use refrain::foreign::{Format, Zip, describe};
use refrain::storage::Source;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::plan::SeekableInput;
use crate::report::{
    Outcome, Report, ZipSummary, foreign_json, foreign_line, foreign_text, print, zip_json,
    zip_line, zip_text,
};

/// Says what a file states about itself: nothing is decoded.
pub fn info(
    (format, source): (Format, Arc<dyn Source>),
    input: &SeekableInput,
    is_table: bool,
    report: &Report,
    options: &ReadOptions,
) -> Result<Outcome> {
    if !format.is_stream() {
        return zip(source, input, is_table, report, options);
    }
    let description = describe(source, format);
    let description = description.map_err(|error| Failure::engine(&input.label, error))?;
    if !report.writes_text() {
        let json = foreign_json(&input.label, &description);
        return Ok(Outcome::complete(String::new(), json));
    }
    print(&if is_table {
        foreign_line(&input.label, &description)
    } else {
        foreign_text(&input.label, &description)
    })?;
    Ok(Outcome::complete(String::new(), Value::Null))
}

/// Sums up the central directory of a zip file.
fn zip(
    source: Arc<dyn Source>,
    input: &SeekableInput,
    is_table: bool,
    report: &Report,
    options: &ReadOptions,
) -> Result<Outcome> {
    let failure = |error| Failure::engine(&input.label, error);
    let meter = report.meter(&input.label);
    let mut zip = Zip::open(source, options).map_err(failure)?;
    let mut summary = ZipSummary::new(zip.file_bytes());
    for index in 0..zip.entries().len() {
        summary.add(&zip.details(index).map_err(failure)?);
    }
    let json = if !report.writes_text() {
        zip_json(&input.label, &summary)
    } else {
        print(&if is_table {
            zip_line(&input.label, &summary)
        } else {
            zip_text(&input.label, &summary)
        })?;
        Value::Null
    };
    zip.report_others(&meter);
    let mut outcome = Outcome::new(&input.label, String::new(), json);
    outcome.add_unread(meter.take_unread());
    Ok(outcome)
}
