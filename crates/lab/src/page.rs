//! The page: measurements, explanations, and charts.

use std::fmt::Write as _;

use refrain_page::{Page, escaped};

use crate::context::Context;
use crate::machine::Machine;
use crate::outcome::{Section, Unit};
use crate::report::{NOT_AVAILABLE, Report, cell_text, document, reasons};
use crate::units::value_text;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A self-contained page about a run.
pub fn html(machine: &Machine, context: &Context, reports: &[Report]) -> String {
    let data = document(machine, context, reports);
    Page {
        title: "The machine: what Refrain's lab measured",
        style: STYLE,
        body: &body(machine, context, reports),
        script: SCRIPT,
        data: &data,
    }
    .html()
}

fn body(machine: &Machine, context: &Context, reports: &[Report]) -> String {
    let mut body = format!(
        "<h1>What this machine does</h1>\n<p>{}</p>\n<p class=\"faint\">Files in {}. {} Other \
         programs that ran at the same time are in the numbers.</p>\n<nav>",
        escaped(&machine.text()),
        escaped(&context.directory.to_string_lossy()),
        if context.is_quick {
            "Measured quickly (<code>--quick</code>): expect noise."
        } else {
            ""
        }
    );
    // Writing to a string cannot fail.
    for report in reports {
        let name = escaped(report.name);
        let _ = writeln!(body, "<a href=\"#{name}\">{name}</a>");
    }
    body.push_str("</nav>\n");
    for (index, report) in reports.iter().enumerate() {
        push_report(&mut body, index, report);
    }
    body
}

fn push_report(body: &mut String, index: usize, report: &Report) {
    let name = escaped(report.name);
    let _ = write!(
        body,
        "<section id=\"{name}\">\n<h2>{name}: {}</h2>\n<ul class=\"findings\">",
        escaped(report.measures)
    );
    for finding in &report.outcome.findings {
        let _ = writeln!(body, "<li>{}</li>", escaped(finding));
    }
    let _ = writeln!(
        body,
        "</ul>\n<p class=\"faint\">{}</p>",
        escaped(report.explains)
    );
    for (place, section) in report.outcome.sections.iter().enumerate() {
        push_section(body, index, place, section);
    }
    let taken = value_text(report.taken_ns as f64, Unit::Nanoseconds);
    let _ = writeln!(body, "<p class=\"faint\">It took {taken}.</p>\n</section>");
}

fn push_section(body: &mut String, index: usize, place: usize, section: &Section) {
    let _ = writeln!(body, "<h3>{}</h3>", escaped(&section.title));
    if section.chart.is_some() {
        let _ = writeln!(
            body,
            "<div class=\"chart\" data-experiment=\"{index}\" data-section=\"{place}\"></div>"
        );
    }
    let open = match section.chart {
        Some(_) => "<details><summary>All numbers</summary>",
        None => "<details open><summary>All numbers</summary>",
    };
    body.push_str(open);
    body.push_str("<div class=\"wide\"><table><thead><tr>");
    let class = |unit| match unit {
        Unit::Text => "",
        _ => " class=\"number\"",
    };
    for column in &section.columns {
        let _ = write!(
            body,
            "<th{}>{}</th>",
            class(column.unit),
            escaped(column.name)
        );
    }
    body.push_str("</tr></thead><tbody>\n");
    for row in &section.rows {
        body.push_str("<tr>");
        for (cell, column) in row.iter().zip(&section.columns) {
            let text = escaped(&cell_text(cell, *column));
            let _ = write!(body, "<td{}>{text}</td>", class(column.unit));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>");
    for reason in reasons(section) {
        let _ = writeln!(
            body,
            "<p class=\"faint\">{NOT_AVAILABLE}: {}</p>",
            escaped(reason)
        );
    }
    body.push_str("</details>\n");
}
