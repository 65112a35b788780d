//! The page of a trace: lanes of threads and flows over time, to zoom, pan and search.
//!
//! The model is FreeBSD's schedgraph (Roberson). The page is one file that needs no network. Events
//! are in it as columns of numbers (`columns.rs`), which the script decodes once into typed arrays;
//! what it draws takes time by the width of the window, not by the number of events.

mod columns;
mod lanes;

use refrain::trace::ThreadTrace;
use refrain_page::{Page, escaped};

const STYLE: &str = include_str!("page.css");
const SECTIONS: &str = include_str!("page.html");
/// In this order: each uses what is above it.
const SCRIPT: &str = concat!(
    include_str!("decode.js"),
    include_str!("levels.js"),
    include_str!("lanes.js"),
    include_str!("draw.js"),
    include_str!("explain.js"),
    include_str!("view.js"),
    include_str!("search.js"),
    include_str!("totals.js"),
);

/// The page of a trace. `words` say what it means.
pub(super) fn page(title: &str, words: &[String], threads: &[ThreadTrace]) -> String {
    let lines = words
        .iter()
        .map(|line| format!("<li>{}</li>", escaped(line)));
    let body = format!(
        "<h1>{}</h1>\n<ul id=\"words\">{}</ul>\n{SECTIONS}",
        escaped(title),
        lines.collect::<String>(),
    );
    let page = Page {
        title,
        style: STYLE,
        body: &body,
        script: SCRIPT,
        data: &lanes::data(threads),
    };
    page.html()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
