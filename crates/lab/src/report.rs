//! Results of experiments, as text for a terminal and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::outcome::{Cell, Chart, Column, Outcome, Section, Unit};
use crate::units::value_text;

/// The text of a cell without a value.
pub(crate) const NOT_AVAILABLE: &str = "n/a";

/// An experiment and its results.
#[derive(Debug, Clone)]
pub struct Report {
    /// The name of the experiment.
    pub name: &'static str,
    /// What it measures.
    pub measures: &'static str,
    /// How to read the numbers.
    pub explains: &'static str,
    /// How long it took.
    pub taken_ns: u64,
    /// The results.
    pub outcome: Outcome,
}

/// Runs an experiment.
///
/// # Errors
/// As [`Experiment::run`].
pub fn run(experiment: &dyn Experiment, context: &Context) -> Result<Report> {
    let start_ns = context.now_ns();
    let outcome = experiment.run(context)?;
    // Cancelling may have cut the last round short.
    context.check()?;
    Ok(Report {
        name: experiment.name(),
        measures: experiment.measures(),
        explains: experiment.explains(),
        taken_ns: context.now_ns() - start_ns,
        outcome,
    })
}

impl Report {
    /// Formats the report for a terminal.
    pub fn text(&self) -> String {
        let taken = value_text(self.taken_ns as f64, Unit::Nanoseconds);
        let mut text = format!("{}: {} ({taken})\n", self.name, self.measures);
        for section in &self.outcome.sections {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{}", section_text(section));
        }
        text.push('\n');
        for finding in &self.outcome.findings {
            let _ = writeln!(text, "- {finding}");
        }
        text
    }

    /// Formats the report as JSON.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "measures": self.measures,
            "taken_ns": self.taken_ns,
            "sections": self.outcome.sections.iter().map(section_json).collect::<Vec<_>>(),
            "findings": self.outcome.findings,
        })
    }
}

/// All results of a run, as JSON.
pub fn document(machine: &Machine, context: &Context, reports: &[Report]) -> Value {
    let caches = machine.caches.iter();
    json!({
        "machine": {
            "model": machine.model,
            "processors": machine.processors,
            "caches": caches
                .map(|cache| json!({ "level": cache.level, "bytes": cache.bytes }))
                .collect::<Vec<_>>(),
            "huge_pages": machine.huge_pages,
        },
        "quick": context.is_quick,
        "directory": context.directory.to_string_lossy(),
        "experiments": reports.iter().map(Report::json).collect::<Vec<_>>(),
    })
}

fn section_json(section: &Section) -> Value {
    let columns = section.columns.iter();
    let cell_json = |cell: &Cell| match cell {
        Cell::Number(value) => json!(value),
        Cell::Text(text) => json!(text),
        Cell::NotAvailable(reason) => json!({ "not_available": reason }),
    };
    let rows = section.rows.iter();
    json!({
        "title": section.title,
        "columns": columns
            .map(|column| json!({ "name": column.name, "unit": column.unit.name() }))
            .collect::<Vec<_>>(),
        "rows": rows
            .map(|row| row.iter().map(cell_json).collect::<Vec<_>>())
            .collect::<Vec<_>>(),
        "chart": section.chart.map(chart_json),
    })
}

fn chart_json(chart: Chart) -> Value {
    json!({ "x": chart.x, "y": chart.y, "by": chart.by, "log": chart.is_log_y })
}

pub(crate) fn cell_text(cell: &Cell, column: Column) -> String {
    match cell {
        Cell::Number(value) => value_text(*value, column.unit),
        Cell::Text(text) => text.clone(),
        Cell::NotAvailable(_) => NOT_AVAILABLE.to_owned(),
    }
}

/// Why cells of a table have no value; each reason once.
pub(crate) fn reasons(section: &Section) -> Vec<&str> {
    let mut reasons = Vec::new();
    for cell in section.rows.iter().flatten() {
        if let Cell::NotAvailable(reason) = cell
            && !reasons.contains(&reason.as_str())
        {
            reasons.push(reason.as_str());
        }
    }
    reasons
}

/// The title, the table with aligned columns, and why values are missing.
fn section_text(section: &Section) -> String {
    let head = section.columns.iter().map(|column| column.name.to_owned());
    let mut rows: Vec<Vec<String>> = vec![head.collect()];
    for row in &section.rows {
        let cells = row.iter().zip(&section.columns);
        rows.push(
            cells
                .map(|(cell, column)| cell_text(cell, *column))
                .collect(),
        );
    }
    let mut text = format!("{}\n", section.title);
    for row in &rows {
        let mut line = String::new();
        for (index, (cell, column)) in row.iter().zip(&section.columns).enumerate() {
            let widest = rows.iter().filter_map(|row| row.get(index));
            let width = widest.map(|cell| cell.chars().count()).max().unwrap_or(0);
            let _ = match column.unit {
                Unit::Text => write!(line, "  {cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for reason in reasons(section) {
        let _ = writeln!(text, "  {NOT_AVAILABLE}: {reason}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        let columns = [
            ("size", Unit::Bytes),
            ("what", Unit::Text),
            ("time", Unit::Nanoseconds),
        ];
        let mut section = Section::new("A title", &columns).with_chart(0, 2, Some(1), true);
        section.push([4096_u64.into(), "read".into(), 1.5.into()]);
        let reason = || Cell::not_available("no disk");
        section.push([65_536_u64.into(), "write".into(), reason()]);
        section.push([8_u64.into(), "w".into(), reason()]);
        section
    }

    #[test]
    fn tables_are_aligned_and_say_why_values_are_missing() {
        let expected = "A title\n    size  what      time\n   4 KiB  read   1.50 ns\n  \
                        64 KiB  write      n/a\n     8 B  w          n/a\n  n/a: no disk\n";
        assert_eq!(section_text(&section()), expected);
    }

    #[test]
    fn json_has_numbers_units_and_reasons() {
        let json = section_json(&section());
        assert_eq!(
            json["columns"][0],
            json!({ "name": "size", "unit": "bytes" })
        );
        assert_eq!(json["rows"][0], json!([4096.0, "read", 1.5]));
        assert_eq!(json["rows"][1][2]["not_available"], "no disk");
        assert_eq!(json["chart"]["by"], 1);
    }
}
