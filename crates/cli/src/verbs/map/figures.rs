//! The numbers of a map as JSON, which the page also shows.

use serde_json::{Value, json};

use super::nights;
use super::passages::{MATRIX_SIZE, Passage};
use super::survey::{COLUMNS, Survey, part_of};
use super::words;

/// Folders in the tree.
const FOLDERS_MAX: usize = 1500;
/// Rows of the table of folders.
const ROWS_MAX: usize = 100;

/// All numbers.
pub fn figures(label: &str, survey: &Survey) -> Value {
    let info = &survey.info;
    let column = |count: fn(&super::parts::Parts) -> u64| -> Vec<u64> {
        survey.columns.iter().map(count).collect()
    };
    let stored = (0..COLUMNS).map(|number| survey.stored_bytes(survey.column_range(number)));
    let largest = survey.folders.largest(ROWS_MAX);
    let folders = largest.iter().map(|(path, cost)| {
        json!({
            "path": path,
            "files": cost.files,
            "file_bytes": cost.file_bytes,
            "first_bytes": cost.first_bytes,
            "stored_bytes": cost.stored_bytes,
        })
    });
    let passages = survey.passages.largest();
    let mut all = json!({
        "file": label,
        "summary": words::summary(survey),
        "archive_bytes": info.archive_bytes,
        "view_bytes": info.content_bytes,
        "content_bytes": survey.content_bytes,
        "store_bytes": info.store_bytes,
        "first_bytes": survey.total.first_bytes,
        "repeated_bytes": survey.total.repeated_bytes,
        "run_bytes": survey.total.run_bytes,
        "zero_bytes": survey.zero_bytes,
        "block_frame_bytes": survey.costs.at(u64::MAX),
        "extents_frame_bytes": info.extents_frame_bytes,
        "entries_frame_bytes": info.entries_frame_bytes,
        "extents": survey.extents(),
        "median_distance": survey.passages.median_distance(),
        "is_exact": survey.introduced.is_exact() && survey.costs.is_exact(),
    });
    all["generations"] = nights::json(&survey.nights);
    all["columns"] = json!({
        "count": COLUMNS,
        "first_bytes": column(|parts| parts.first_bytes),
        "repeated_bytes": column(|parts| parts.repeated_bytes),
        "run_bytes": column(|parts| parts.run_bytes),
        "stored_bytes": stored.collect::<Vec<_>>(),
    });
    all["distances"] = distances(survey);
    let rows = passages.iter().map(|passage| passage_json(survey, passage));
    all["passages"] = rows.collect();
    all["matrix"] = json!({ "size": MATRIX_SIZE, "cells": survey.passages.cells() });
    all["codecs"] = codecs(survey);
    all["store_columns"] = store_columns(survey);
    all["member_count"] = info.members.into();
    all["members"] = members(survey);
    all["folders"] = folders.collect();
    all["folders_are_complete"] = survey.folders.is_complete().into();
    all["folder_tree"] = survey.folders.tree_json(FOLDERS_MAX);
    all
}

fn distances(survey: &Survey) -> Value {
    let classes = survey.passages.by_doubling();
    let rows = classes.iter().map(|class| {
        json!({
            "from": class.from,
            "repeated_bytes": class.repeated_bytes,
            "extents": class.extents,
        })
    });
    rows.collect()
}

fn passage_json(survey: &Survey, passage: &Passage) -> Value {
    json!({
        "repeated_bytes": passage.repeated_bytes,
        "content_offset": passage.content_offset,
        "content_end": passage.content_end,
        "source_offset": passage.source_offset,
        "source_end": passage.source_end,
        "member": survey.member_at(passage.content_offset),
        "source_member": survey.member_at(passage.source_offset),
        "path": path_at(survey, passage.content_offset),
        "source_path": path_at(survey, passage.source_offset),
    })
}

/// The file at a place, as text.
pub fn path_at(survey: &Survey, content_offset: u64) -> Option<String> {
    let path = survey.places.path_at(content_offset);
    path.map(|path| String::from_utf8_lossy(path).into_owned())
}

fn codecs(survey: &Survey) -> Value {
    let rows = survey.info.codecs.iter().map(|codec| {
        json!({
            "codec": codec.codec,
            "filters": codec.filters,
            "blocks": codec.blocks,
            "raw_bytes": codec.raw_bytes,
            "stored_bytes": codec.stored_bytes,
        })
    });
    rows.collect()
}

/// The columns of the store: where each starts, what its blocks contain and take, and its
/// predominant codec.
fn store_columns(survey: &Survey) -> Value {
    let columns = survey.store_columns.iter().enumerate();
    let used = columns.filter(|(_, column)| column.raw_bytes > 0);
    let row = |(number, column): (usize, &super::survey::StoreColumn)| {
        let most = column
            .by_codec
            .iter()
            .enumerate()
            .max_by_key(|(_, bytes)| **bytes);
        json!([
            part_of(survey.info.store_bytes, number),
            column.raw_bytes,
            column.stored_bytes,
            most.map_or(0, |(codec, _)| codec),
        ])
    };
    json!({ "codecs": survey.codecs, "rows": used.map(row).collect::<Value>() })
}

fn members(survey: &Survey) -> Value {
    let rows = survey.members.iter().map(|place| {
        json!({
            "name": String::from_utf8_lossy(&place.member.name),
            "content_offset": place.content.start,
            "content_bytes": place.content.end - place.content.start,
            "first_bytes": survey.introduced.between(place.content.start, place.content.end),
            "stored_bytes": survey.stored_bytes(place.content.clone()),
        })
    });
    rows.collect()
}
