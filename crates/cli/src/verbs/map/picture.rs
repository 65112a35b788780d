//! The main picture (SVG): the content from left to right, what each part of it is, and arcs from
//! passages to their first occurrence.

use std::fmt::Write;

use refrain_page::escaped;

use super::figures::path_at;
use super::parts::Parts;
use super::passages::Passage;
use super::survey::{COLUMNS, Survey};
use crate::units::bytes_text;

/// The height of the arcs, of the columns below them, and of the strip of members.
const ARCS_HEIGHT: f64 = 300.0;
const ARCS_HEIGHT_MAX: f64 = ARCS_HEIGHT - 8.0;
/// The height of an arc by its radius.
const STEEPNESS_MAX: f64 = 2.0;
const COLUMNS_HEIGHT: f64 = 120.0;
const MEMBERS_TOP: f64 = ARCS_HEIGHT + COLUMNS_HEIGHT + 6.0;
const HEIGHT: f64 = MEMBERS_TOP + 34.0;

const MEMBER_COLORS: usize = 8;

/// The minimum distance of each color class except the first, in bytes.
pub const DISTANCE_LIMITS: [u64; 5] = [1 << 20, 16 << 20, 256 << 20, 4 << 30, 64 << 30];

/// Colors have the names used by the page, with values for a light ground where there is no page.
const STYLE: &str = "\
.map .ground { fill: var(--raised, #fff); } .map text { fill: var(--faint, #686b73); font: 12px system-ui, sans-serif; }
.map .first { fill: var(--a, #2f6fd0); } .map .repeated { fill: var(--b, #c2571a); } .map .run { fill: var(--line, #d9dade); }
.map .arc { fill: none; stroke-opacity: .45; } .map .arc:hover { stroke-opacity: 1; }
.map .d0 { stroke: var(--c, #2d8a4e); } .map .d1 { stroke: var(--f, #0f8a8a); } .map .d2 { stroke: var(--g, #8a6d0f); }
.map .d3 { stroke: var(--d, #8b4bb5); } .map .d4 { stroke: var(--e, #b0203f); } .map .d5 { stroke: var(--h, #6b7280); }
.map[data-color=member] .m0 { stroke: var(--c, #2d8a4e); } .map[data-color=member] .m1 { stroke: var(--f, #0f8a8a); }
.map[data-color=member] .m2 { stroke: var(--a, #2f6fd0); } .map[data-color=member] .m3 { stroke: var(--d, #8b4bb5); }
.map[data-color=member] .m4 { stroke: var(--b, #c2571a); } .map[data-color=member] .m5 { stroke: var(--e, #b0203f); }
.map[data-color=member] .m6 { stroke: var(--g, #8a6d0f); } .map[data-color=member] .m7 { stroke: var(--h, #6b7280); }
.map .member { fill: var(--line, #d9dade); stroke: var(--raised, #fff); }
.map .m0.member { fill: var(--c, #2d8a4e); } .map .m1.member { fill: var(--f, #0f8a8a); }
.map .m2.member { fill: var(--a, #2f6fd0); } .map .m3.member { fill: var(--d, #8b4bb5); }
.map .m4.member { fill: var(--b, #c2571a); } .map .m5.member { fill: var(--e, #b0203f); }
.map .m6.member { fill: var(--g, #8a6d0f); } .map .m7.member { fill: var(--h, #6b7280); }
";

fn distance_class(distance: u64) -> usize {
    DISTANCE_LIMITS.partition_point(|&limit| limit <= distance)
}

/// The picture as an element of a page or, with its name space, as a file.
pub fn picture(survey: &Survey) -> String {
    // Writing to a string cannot fail.
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"map\" id=\"picture\" data-color=\"distance\" \
         viewBox=\"0 0 {COLUMNS} {HEIGHT}\" role=\"img\" aria-label=\"Where passages repeat\">\n\
         <style>\n{STYLE}</style>\n<rect class=\"ground\" width=\"{COLUMNS}\" height=\"{HEIGHT}\"/>\n"
    );
    arcs(&mut svg, survey);
    columns(&mut svg, survey);
    members(&mut svg, survey);
    for quarter in 0..=4 {
        let x = COLUMNS / 4 * quarter;
        let anchor = ["start", "middle", "middle", "middle", "end"][quarter];
        let place = bytes_text((u128::from(survey.content_bytes) * quarter as u128 / 4) as u64);
        let y = HEIGHT - 5.0;
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{place}</text>"
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn x_of(survey: &Survey, content_offset: u64) -> f64 {
    content_offset as f64 / survey.content_bytes.max(1) as f64 * COLUMNS as f64
}

fn arcs(svg: &mut String, survey: &Survey) {
    let largest = survey.passages.largest();
    let ends = |passage: &Passage| {
        let middle = |from: u64, to: u64| from + to.saturating_sub(from) / 2;
        let from = x_of(survey, middle(passage.source_offset, passage.source_end));
        let to = x_of(survey, middle(passage.content_offset, passage.content_end));
        (from, to, ((to - from) / 2.0).abs().max(0.5))
    };
    // The widest arc is as high as the picture allows.
    let widest = largest
        .iter()
        .map(|passage| ends(passage).2)
        .fold(0.5, f64::max);
    let steepness = (ARCS_HEIGHT_MAX / widest).min(STEEPNESS_MAX);
    // The largest are drawn first, so that small ones are not hidden.
    for (number, passage) in largest.iter().enumerate() {
        let (from, to, radius) = ends(passage);
        let length = passage.content_end.saturating_sub(passage.content_offset);
        let width = x_of(survey, length).clamp(0.7, 60.0);
        let height = radius * steepness;
        let distance = passage.content_offset.saturating_sub(passage.source_offset);
        let class = distance_class(distance);
        let member = survey.member_at(passage.content_offset).unwrap_or(0) % MEMBER_COLORS;
        let _ = writeln!(
            svg,
            "<path class=\"arc d{class} m{member}\" data-passage=\"{number}\" stroke-width=\"{width:.1}\" \
             d=\"M{from:.1} {ARCS_HEIGHT}A{radius:.1} {height:.1} 0 0 1 {to:.1} {ARCS_HEIGHT}\">\
             <title>{}</title></path>",
            escaped(&title_of(survey, passage))
        );
    }
}

/// What repeats, and in which files.
fn title_of(survey: &Survey, passage: &Passage) -> String {
    let name = |offset: u64| path_at(survey, offset).unwrap_or_else(|| bytes_text(offset));
    let (repeats, first) = (name(passage.content_offset), name(passage.source_offset));
    format!(
        "{} of {repeats}, first in {first}",
        bytes_text(passage.repeated_bytes)
    )
}

/// One of the numbers of a column.
type Count = fn(&Parts) -> u64;

fn columns(svg: &mut String, survey: &Survey) {
    let kinds: [(&str, Count); 3] = [
        ("first", |parts| parts.first_bytes),
        ("repeated", |parts| parts.repeated_bytes),
        ("run", |parts| parts.run_bytes),
    ];
    for (kind, count) in kinds {
        let mut path = String::new();
        for (number, parts) in survey.columns.iter().enumerate() {
            let all = parts.first_bytes + parts.repeated_bytes + parts.run_bytes;
            let below = match kind {
                "first" => 0,
                "repeated" => parts.first_bytes,
                _ => parts.first_bytes + parts.repeated_bytes,
            };
            if all == 0 || count(parts) == 0 {
                continue;
            }
            let height = count(parts) as f64 / all as f64 * COLUMNS_HEIGHT;
            let bottom = ARCS_HEIGHT + COLUMNS_HEIGHT - below as f64 / all as f64 * COLUMNS_HEIGHT;
            let _ = write!(path, "M{number} {bottom:.1}v-{height:.1}h1v{height:.1}z");
        }
        let _ = writeln!(svg, "<path class=\"{kind}\" d=\"{path}\"/>");
    }
}

fn members(svg: &mut String, survey: &Survey) {
    for (number, place) in survey.members.iter().enumerate() {
        let from = x_of(survey, place.content.start);
        let width = x_of(survey, place.content.end) - from;
        if width < 0.2 {
            continue;
        }
        let color = number % MEMBER_COLORS;
        let _ = writeln!(
            svg,
            "<rect class=\"member m{color}\" data-member=\"{number}\" x=\"{from:.1}\" y=\"{MEMBERS_TOP}\" \
             width=\"{width:.1}\" height=\"8\"/>"
        );
    }
}
