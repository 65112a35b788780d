//! `refrain info` for files of other formats.

use refrain::foreign::ForeignFile;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::plan::SeekableInput;
use crate::report::{
    Outcome, Report, ZipSummary, foreign_json, foreign_line, foreign_text, print, zip_json,
    zip_line, zip_text,
};

/// Describes what a file states about itself, without decoding.
pub fn info(
    mut file: ForeignFile,
    input: &SeekableInput,
    is_table: bool,
    report: &Report,
) -> Result<Outcome> {
    let label = &input.label;
    let failure = |error| Failure::engine(label, error);
    let meter = report.meter(label);
    // The line of the table, the text, or everything.
    let (line, text, json) = if file.format().is_stream() {
        let description = file.describe().map_err(failure)?;
        (
            foreign_line(label, &description),
            foreign_text(label, &description),
            foreign_json(label, &description),
        )
    } else {
        let mut summary = ZipSummary::default();
        let read = file.for_each_zip_entry(&meter, &mut |entry| summary.add(entry));
        summary.set_file_bytes(read.map_err(failure)?);
        (
            zip_line(label, &summary),
            zip_text(label, &summary),
            zip_json(label, &summary),
        )
    };
    let json = if report.writes_text() {
        print(if is_table { &line } else { &text })?;
        Value::Null
    } else {
        json
    };
    let mut outcome = Outcome::new(label, String::new(), json);
    outcome.add_unread(meter.take_unread());
    Ok(outcome)
}
