//! What two archives share: in words, as a picture, as a page and as JSON.

use std::fmt::Write;

use refrain_page::{Page, escaped};
use serde_json::{Value, json};

use super::shared::{Shared, Side};
use super::survey::{COLUMNS, part_of};
use crate::text::printable;
use crate::units::{binary_text, bytes_text, percent_text};

const STYLE: &str = "\
.both .ground { fill: var(--line, #d9dade); } .both .shared { fill: var(--b, #c2571a); }
.both text { fill: var(--ink, #1c1d20); font: 14px system-ui, sans-serif; }
.both { width: 100%; min-width: 640px; height: auto; }
";

/// What is shared, in sentences.
pub fn summary(labels: [&str; 2], shared: &Shared) -> String {
    let side = |label: &str, side: &Side| {
        format!(
            "{} of the {} in the store of {label} ({}) are in the other archive, too; they take {}.",
            bytes_text(side.shared_bytes),
            bytes_text(side.store_bytes),
            percent_text(side.shared_bytes, side.store_bytes),
            bytes_text(side.stored_bytes)
        )
    };
    format!(
        "{} {} Found by pieces of about {}; shorter passages are not seen.",
        side(labels[0], &shared.first),
        side(labels[1], &shared.second),
        binary_text(shared.piece_bytes)
    )
}

/// The text for a terminal.
pub fn table(labels: [&str; 2], shared: &Shared) -> String {
    let mut text = format!(
        "{:>10}  {:>10}  {:>7}  {:>10}  name\n",
        "store", "shared", "share", "stored"
    );
    for (label, side) in labels.into_iter().zip([&shared.first, &shared.second]) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>10}  {:>10}  {:>7}  {:>10}  {}",
            bytes_text(side.store_bytes),
            bytes_text(side.shared_bytes),
            percent_text(side.shared_bytes, side.store_bytes),
            bytes_text(side.stored_bytes),
            printable(label)
        );
    }
    let piece = binary_text(shared.piece_bytes);
    let _ = writeln!(
        text,
        "found by pieces of about {piece}; shorter passages are not seen"
    );
    text
}

/// The numbers.
pub fn figures(labels: [&str; 2], shared: &Shared) -> Value {
    let sides = labels.into_iter().zip([&shared.first, &shared.second]);
    let sides = sides.map(|(label, side)| {
        json!({
            "file": label,
            "store_bytes": side.store_bytes,
            "shared_bytes": side.shared_bytes,
            "stored_bytes": side.stored_bytes,
            "columns": side.columns,
        })
    });
    json!({
        "summary": summary(labels, shared),
        "piece_bytes": shared.piece_bytes,
        "archives": sides.collect::<Value>(),
    })
}

/// Both stores from left to right, and how much of each part is shared.
pub fn picture(labels: [&str; 2], shared: &Shared) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"both\" id=\"picture\" viewBox=\"0 0 {COLUMNS} 250\" \
         role=\"img\" aria-label=\"What the stores of two archives share\">\n<style>{STYLE}</style>\n"
    );
    let sides = labels.into_iter().zip([&shared.first, &shared.second]);
    for (number, (label, side)) in sides.enumerate() {
        let top = number * 125;
        let (text_y, bar_y, bottom) = (top + 18, top + 26, top + 116);
        let share = percent_text(side.shared_bytes, side.store_bytes);
        let label = escaped(&printable(label));
        let _ = writeln!(
            svg,
            "<text x=\"4\" y=\"{text_y}\">{label}: {share} shared</text>\
             <rect class=\"ground\" x=\"0\" y=\"{bar_y}\" width=\"{COLUMNS}\" height=\"90\"/>"
        );
        let mut path = String::new();
        for (column, &bytes) in side.columns.iter().enumerate() {
            let whole = part_of(side.store_bytes, column + 1) - part_of(side.store_bytes, column);
            let share = (bytes as f64 / whole.max(1) as f64).min(1.0);
            if bytes > 0 {
                let height = share * 90.0;
                let _ = write!(path, "M{column} {bottom}v-{height:.1}h1v{height:.1}z");
            }
        }
        let _ = writeln!(svg, "<path class=\"shared\" d=\"{path}\"/>");
    }
    svg.push_str("</svg>\n");
    svg
}

pub fn page(labels: [&str; 2], shared: &Shared, figures: &Value) -> String {
    let title = format!("What {} and {} share", labels[0], labels[1]);
    let body = format!(
        "<h1>{}</h1>\n<p id=\"summary\">{}</p>\n\
         <p class=\"faint\">The stores (each passage once) from left to right; what is colored is in both.</p>\n\
         <div class=\"wide\">{}</div>\n<div id=\"sides\"></div>",
        escaped(&title),
        escaped(&summary(labels, shared)),
        picture(labels, shared)
    );
    let page = Page {
        title: &title,
        style: "",
        body: &body,
        script: SCRIPT,
        data: figures,
    };
    page.html()
}

const SCRIPT: &str = r#"
document.getElementById("sides").append(table(data.archives, [
  ["Archive", (row) => row.file],
  ["Store", (row) => row.store_bytes, bytes],
  ["Shared", (row) => row.shared_bytes, bytes],
  ["Share", (row) => (row.store_bytes ? 100 * row.shared_bytes / row.store_bytes : 0), (share) => share.toFixed(1) + " %"],
  ["Takes in the archive", (row) => row.stored_bytes, bytes],
]));
"#;
