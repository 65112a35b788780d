//! A flame graph (SVG): the root at the top, then the stages, then the calls.
//!
//! The boxes are in the file, in percent of the width, so that programs without scripts show them
//! too. Each is a nested picture, which clips what does not fit.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use refrain_page::{escaped, stage_color};
use refrain_sampler::flame::{Flame, Label, tree};
use refrain_sampler::{FunctionNumber, Profile};

use super::words::{about_samples, short_function, stage_name};

const STYLE: &str = include_str!("flame.css");
/// The script of a page with a flame graph.
pub(super) const SCRIPT: &str = include_str!("flame.js");

const BOX_HEIGHT: usize = 17;
/// Title, words, controls, legend, the text about a box.
const HEAD_HEIGHT: usize = 152;
const HEAD_HEIGHT_IN_PAGE: usize = 96;
/// Boxes with a smaller share are left out: they are thinner than a tenth of a pixel.
const SHARE_MIN: f64 = 1e-4;
/// Boxes at least this wide show their name even without a script.
const NAMED_SHARE_MIN: f64 = 0.03;
/// The colors of origins; the last but one is for all others, the last for stages.
const ORIGIN_COLORS: usize = 7;
const OTHER_COLOR: usize = 7;
const STAGE_COLOR: usize = 8;

/// A standalone file.
pub(super) fn file(profile: &Profile, title: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
        graph(profile, Some(title))
    )
}

/// For a page, which has a title and the script.
pub(super) fn part_of_page(profile: &Profile) -> String {
    graph(profile, None)
}

fn graph(profile: &Profile, title: Option<&str>) -> String {
    let root = tree(
        profile,
        |function| is_start(profile, function),
        |function| is_scheduler(profile, function),
    );
    let colors = colors(profile);
    let head = match title {
        Some(_) => HEAD_HEIGHT,
        None => HEAD_HEIGHT_IN_PAGE,
    };
    let mut boxes = String::new();
    let mut drawing = Drawing {
        profile,
        colors: &colors,
        total: root.count.cpu.max(1) as f64,
        levels: 0,
        out: &mut boxes,
    };
    drawing.draw(&root, 0.0, 0);
    let height = drawing.levels * BOX_HEIGHT;
    let mut out = format!(
        "<svg class=\"flame\" xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" height=\"{}\" \
         role=\"img\">\n<style>\n{STYLE}</style>\n",
        head + height + 12
    );
    let mut controls_at = 4;
    if let Some(title) = title {
        controls_at += HEAD_HEIGHT - HEAD_HEIGHT_IN_PAGE;
        let _ = writeln!(
            out,
            "<rect width=\"100%\" height=\"100%\" style=\"fill: var(--ground)\"/>\n\
             <text class=\"title\" x=\"10\" y=\"22\">{}</text>",
            escaped(title)
        );
        for (line, y) in about_samples(profile).iter().zip([38, 53]) {
            let _ = writeln!(
                out,
                "<text class=\"faint\" x=\"10\" y=\"{y}\">{}</text>",
                escaped(line)
            );
        }
    }
    let _ = writeln!(
        out,
        "<foreignObject x=\"10\" y=\"{controls_at}\" width=\"97%\" height=\"72\">\
         <div xmlns=\"http://www.w3.org/1999/xhtml\"><div class=\"bar\">\
         <input class=\"search\" type=\"search\" placeholder=\"search\" aria-label=\"search\"/>\
         <button class=\"reset\">whole</button><span class=\"found\"></span></div>\
         <div class=\"bar\">{}</div></div></foreignObject>\n\
         <text class=\"about\" x=\"10\" y=\"{}\">Click a box to see it alone.</text>\n\
         <svg class=\"boxes\" x=\"0\" y=\"{head}\" width=\"100%\" height=\"{height}\">\n{boxes}</svg>",
        legend(&colors),
        head - 8,
    );
    if title.is_some() {
        let _ = writeln!(out, "<script><![CDATA[\n{SCRIPT}]]></script>");
    }
    out.push_str("</svg>\n");
    out
}

/// Functions of the system and the standard library that start a thread.
fn is_start(profile: &Profile, function: FunctionNumber) -> bool {
    let function = &profile.functions[function as usize];
    matches!(function.origin.as_str(), "std" | "libc")
        || matches!(function.name.as_str(), "main" | "_start")
}

/// Crates that run the work of others.
fn is_scheduler(profile: &Profile, function: FunctionNumber) -> bool {
    let function = &profile.functions[function as usize];
    matches!(
        function.origin.as_str(),
        "refrain_pool" | "refrain_policy" | "corosensei"
    )
}

/// The origins with the most samples of their own get a color each.
fn colors(profile: &Profile) -> BTreeMap<&str, usize> {
    let mut own: BTreeMap<&str, u64> = BTreeMap::new();
    for row in &profile.rows {
        if let Some(function) = profile.functions_of(row.path).next() {
            let origin = profile.functions[function as usize].origin.as_str();
            *own.entry(origin).or_default() += row.count.cpu;
        }
    }
    let mut origins: Vec<(&str, u64)> = own.into_iter().collect();
    origins.sort_by_key(|(name, samples)| (std::cmp::Reverse(*samples), *name));
    let origins = origins.iter().take(ORIGIN_COLORS).enumerate();
    origins.map(|(color, (name, _))| (*name, color)).collect()
}

fn legend(colors: &BTreeMap<&str, usize>) -> String {
    let mut named: Vec<(usize, &str)> =
        colors.iter().map(|(name, color)| (*color, *name)).collect();
    named.sort_unstable();
    named.push((OTHER_COLOR, "other"));
    let mut out = String::new();
    for (color, name) in named {
        let _ = write!(
            out,
            "<span><i style=\"background: var(--c{color})\"></i>{}</span>",
            escaped(name)
        );
    }
    out
}

struct Drawing<'a> {
    profile: &'a Profile,
    colors: &'a BTreeMap<&'a str, usize>,
    total: f64,
    levels: usize,
    out: &'a mut String,
}

impl Drawing<'_> {
    /// Draws a box that starts at this share of the width, and the boxes on it.
    fn draw(&mut self, flame: &Flame, from: f64, level: usize) {
        let share = flame.count.cpu as f64 / self.total;
        if share < SHARE_MIN {
            return;
        }
        self.levels = self.levels.max(level + 1);
        let mut style = String::new();
        let (name, short, color) = match flame.label {
            Label::All => ("all".to_owned(), "all".to_owned(), STAGE_COLOR),
            Label::Stage(stage) => {
                let name = stage_name(stage);
                if let Some(stage) = stage {
                    style = format!(" style=\"fill: {}\"", stage_color(stage));
                }
                (format!("stage: {name}"), name.to_owned(), STAGE_COLOR)
            }
            Label::Scheduler => {
                let name = "scheduler".to_owned();
                (
                    format!("{name} (the pool and its policy)"),
                    name,
                    OTHER_COLOR,
                )
            }
            Label::Function(function) => {
                let function = &self.profile.functions[function as usize];
                let origin = function.origin.as_str();
                let color = self.colors.get(origin).copied().unwrap_or(OTHER_COLOR);
                let full = format!("{} ({origin})", function.name);
                (full, short_function(&function.name), color)
            }
        };
        let time_ms = flame.count.cpu * self.profile.cpu_ns_per_sample / 1_000_000;
        let hidden = if share < NAMED_SHARE_MIN { " style=\"display: none\"" } else { "" };
        let _ = writeln!(
            self.out,
            "<svg class=\"box\" x=\"{:.4}%\" y=\"{}\" width=\"{:.4}%\" height=\"{BOX_HEIGHT}\">\
             <title>{}: {:.2} %, {time_ms} ms, {} samples</title>\
             <rect class=\"c{color}\"{style} width=\"100%\" height=\"100%\"/>\
             <text x=\"3\" y=\"13\"{hidden}>{}</text></svg>",
            from * 100.0,
            level * BOX_HEIGHT,
            share * 100.0,
            escaped(&name),
            share * 100.0,
            flame.count.cpu,
            escaped(&short),
        );
        let mut from = from;
        for inner in &flame.inner {
            self.draw(inner, from, level + 1);
            from += inner.count.cpu as f64 / self.total;
        }
    }
}
