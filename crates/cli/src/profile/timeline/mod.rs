//! The page of a trace: lanes of threads and flows over time, to zoom, pan and search.
//!
//! Modeled on FreeBSD's schedgraph (Roberson). The page is one file that needs no network. Events
//! are stored as columns of numbers (`columns.rs`), which the script decodes once into typed
//! arrays; drawing takes time proportional to the window's width, not to the number of events.

mod columns;
mod lanes;

use refrain_page::{Page, escaped, stage_color};
use refrain_trace::ThreadTrace;

use super::facts::{Facts, facts_html};
use super::summary::{Activity, Share, Words};

const STYLE: &str = include_str!("page.css");
const SECTIONS: &str = include_str!("page.html");
/// In this order: each uses the ones above it.
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

/// The page of a trace, with `words` explaining it.
pub(super) fn page(title: &str, words: &Words, facts: &Facts, threads: &[ThreadTrace]) -> String {
    let notes = words.notes.iter();
    let notes = notes.map(|line| format!("<p class=\"faint\">{}</p>\n", escaped(line)));
    let remedy = words.remedy.as_ref();
    let remedy = remedy.map(|text| format!(" <span id=\"remedy\">{}</span>", escaped(text)));
    let body = format!(
        "<h1>{}</h1>\n<p id=\"verdict\">{}.{}</p>\n{}{}{}{SECTIONS}",
        escaped(title),
        escaped(&words.verdict),
        remedy.unwrap_or_default(),
        share_bar(words),
        notes.collect::<String>(),
        facts_html(facts),
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

/// The workers' time as one bar, in the colors of the stages.
fn share_bar(words: &Words) -> String {
    let (mut bar, mut names) = (String::new(), String::new());
    for Share { activity, share } in &words.shares {
        let color = match activity {
            Activity::Stage(name) => stage_color(name),
            Activity::Other => "var(--h)".to_owned(),
            Activity::Lock(_) => "var(--e)".to_owned(),
            Activity::Reading(_) | Activity::Writing(_) | Activity::Wait(_) => {
                "var(--b)".to_owned()
            }
            Activity::Idle => "var(--line)".to_owned(),
        };
        let percent = share * 100.0;
        let text = escaped(&format!("{} {percent:.0} %", activity.text()));
        bar.push_str(&format!(
            "<i style=\"width:{percent:.2}%;background:{color}\" title=\"{text}\"></i>"
        ));
        names.push_str(&format!(
            "<span><i style=\"background:{color}\"></i>{text}</span>"
        ));
    }
    if words.shares.is_empty() {
        String::new()
    } else {
        format!(
            "<div class=\"share\" role=\"img\" aria-label=\"Shares of the workers' time\">{bar}</div>\n\
         <div class=\"legend\">{names}</div>\n"
        )
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
