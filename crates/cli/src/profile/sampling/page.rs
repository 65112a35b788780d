//! A page with the flame graph and tables.

use std::collections::HashMap;
use std::fmt::Write as _;

use refrain_page::{Page, escaped};
use refrain_sampler::tables::{Sum, by_function, by_origin, by_stage, by_thread};
use refrain_sampler::{Count, Profile};
use serde_json::{Value, json};

use super::super::facts::{Facts, facts_html};
use super::svg;
use super::words::{about_samples, findings, stage_name};

const STYLE: &str = "
td:first-child { max-width: 34rem; overflow: hidden; text-overflow: ellipsis; }
@media (max-width: 600px) { td:first-child { min-width: 8rem; max-width: 13rem; white-space: normal; overflow-wrap: anywhere; } }
svg.flame { margin-top: .5rem; }
svg.flame svg { background: none; border: 0; border-radius: 0; max-width: none; }
";
const SCRIPT: &str = include_str!("page.js");

/// The page. `measured` has the numbers of stages and locks, as in a JSON profile.
pub(super) fn html(profile: &Profile, measured: Value, title: &str, facts: &Facts) -> String {
    let mut body = format!("<h1>{}</h1>\n", escaped(title));
    for line in findings(profile) {
        let _ = writeln!(body, "<p class=\"finding\">{}</p>", escaped(&line));
    }
    body.push_str(&facts_html(facts));
    for line in about_samples(profile) {
        let _ = writeln!(body, "<p class=\"faint\">{}</p>", escaped(&line));
    }
    let _ = writeln!(
        body,
        "<h2>Flame graph</h2>\n<p class=\"faint\">The width of a box is the CPU time of a stage or \
         function with all that it calls; below it is what it calls.</p>\n{}",
        svg::part_of_page(profile)
    );
    body.push_str(
        "<h2>Stages, sampled</h2><div id=\"stages\"></div>\n\
         <h2>Crates and libraries</h2><div id=\"origins\"></div>\n\
         <h2>Functions</h2><p><input id=\"filter\" type=\"search\" placeholder=\"filter\" \
         aria-label=\"filter\"> <span id=\"shown\" class=\"faint\"></span></p>\
         <div id=\"functions\"></div>\n\
         <h2>Threads</h2><div id=\"threads\"></div>\n\
         <h2>Stages, counted</h2><p class=\"faint\">Cycles and instructions are n/a where there are \
         no hardware counters.</p><div id=\"measured\"></div>\n",
    );
    let data = data(profile, measured);
    let script = format!("{}{SCRIPT}", svg::SCRIPT);
    let page = Page {
        title,
        style: STYLE,
        body: &body,
        script: &script,
        data: &data,
    };
    page.html()
}

fn data(profile: &Profile, measured: Value) -> Value {
    let total = profile.total();
    let names: HashMap<u32, &str> = profile
        .threads
        .iter()
        .map(|(id, name)| (*id, name.as_str()))
        .collect();
    let count = |count: Count| json!({ "samples": count.cpu, "faults": count.faults });
    let stages = by_stage(profile)
        .into_iter()
        .map(|(stage, samples)| with(count(samples), "stage", stage_name(stage).into()));
    let threads = by_thread(profile).into_iter().map(|(id, samples)| {
        let name = names.get(&id).copied().unwrap_or_default();
        with(count(samples), "name", format!("{name} ({id})").into())
    });
    let origins = by_origin(profile);
    let origins = origins
        .iter()
        .map(|row| with(sum(row), "name", row.key.into()));
    let functions = by_function(profile);
    let functions = functions.iter().map(|row| {
        let function = &profile.functions[row.key as usize];
        let named = with(sum(row), "name", function.name.as_str().into());
        with(named, "origin", function.origin.as_str().into())
    });
    json!({
        "samples": total.cpu,
        "cpu_ns_per_sample": profile.cpu_ns_per_sample,
        "faults_per_sample": profile.faults_per_sample,
        "stages": stages.collect::<Vec<_>>(),
        "threads": threads.collect::<Vec<_>>(),
        "origins": origins.collect::<Vec<_>>(),
        "functions": functions.collect::<Vec<_>>(),
        "measured": measured,
    })
}

fn sum<Key>(row: &Sum<Key>) -> Value {
    json!({
        "own": row.own.cpu,
        "total": row.total.cpu,
        "own_faults": row.own.faults,
        "total_faults": row.total.faults,
    })
}

fn with(mut row: Value, key: &str, value: Value) -> Value {
    if let Value::Object(row) = &mut row {
        row.insert(key.into(), value);
    }
    row
}
