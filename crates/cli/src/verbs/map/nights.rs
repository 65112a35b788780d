//! What each generation of an archive cost, and which folders cost it.

use std::fmt::Write;
use std::ops::Range;

use refrain::{Archive, GenerationInfo};
use serde_json::{Value, json};

use super::folders::{Cost, Folders};
use super::parts::Parts;
use crate::report::time_text;
use crate::text::printable;
use crate::units::bytes_text;

/// Of how many generations, the newest, folders are listed: that reads all their lists of entries.
const DETAILED_MAX: usize = 32;
/// How many folders of a generation are listed.
const FOLDERS_MAX: usize = 20;
/// How many of them the table shows.
const SHOWN_FOLDERS_MAX: usize = 3;
/// How many generations the table shows, the newest.
const SHOWN_MAX: usize = 32;

/// A generation.
#[derive(Debug)]
pub struct Night {
    row: GenerationInfo,
    /// What of its content is new.
    pub parts: Parts,
    /// What that takes in the archive.
    pub stored_bytes: u64,
    /// The folders that cost most, if they were counted.
    folders: Vec<(String, Cost)>,
}

/// All generations that are kept, oldest first.
#[derive(Debug, Default)]
pub struct Nights(Vec<Night>);

impl Nights {
    /// The generations of an archive, without costs.
    pub fn new(archive: &Archive) -> Nights {
        let rows = archive.generations().iter();
        let night = |row: &GenerationInfo| Night {
            row: row.clone(),
            parts: Parts::default(),
            stored_bytes: 0,
            folders: vec![],
        };
        Nights(rows.map(night).collect())
    }

    pub fn all(&mut self) -> impl Iterator<Item = &mut Night> {
        self.0.iter_mut()
    }

    /// How many there are, and the bytes of their content together; `None` if there are none.
    pub fn sums(&self) -> Option<(u64, u64)> {
        let bytes = self.0.iter().map(|night| night.row.content_bytes);
        let sum = bytes.fold(0_u64, u64::saturating_add);
        (!self.0.is_empty()).then_some((self.0.len() as u64, sum))
    }

    /// Those whose folders are listed.
    pub fn detailed(&mut self) -> impl Iterator<Item = &mut Night> {
        let first = self.0.len().saturating_sub(DETAILED_MAX);
        let newest = self.0.iter_mut().skip(first);
        newest.filter(|night| night.parts.first_bytes > 0)
    }

    /// The generation with this content.
    pub fn at(&mut self, content_offset: u64) -> Option<&mut Night> {
        let after = (self.0).partition_point(|night| night.row.content_start <= content_offset);
        let found = self.0.get_mut(after.checked_sub(1)?);
        found.filter(|night| night.content().contains(&content_offset))
    }
}

impl Night {
    /// Its range of the content of all generations.
    pub fn content(&self) -> Range<u64> {
        let start = self.row.content_start;
        start..start.saturating_add(self.row.content_bytes)
    }

    pub fn number(&self) -> u16 {
        self.row.number
    }

    /// Notes the folders with something new.
    pub fn set_folders(&mut self, folders: &Folders) {
        self.folders = folders.telling(FOLDERS_MAX);
        self.folders.retain(|(_, cost)| cost.first_bytes > 0);
    }
}

/// The generations as JSON.
pub fn json(nights: &Nights) -> Value {
    let folder = |(path, cost): &(String, Cost)| {
        json!({
            "path": path,
            "first_bytes": cost.first_bytes,
            "stored_bytes": cost.stored_bytes,
        })
    };
    let rows = nights.0.iter().map(|night| {
        json!({
            "generation": night.row.number,
            "created": night.row.created.map(|created| created.seconds),
            "content_bytes": night.row.content_bytes,
            "first_bytes": night.parts.first_bytes,
            "repeated_bytes": night.parts.repeated_bytes,
            "run_bytes": night.parts.run_bytes,
            "stored_bytes": night.stored_bytes,
            "folders": night.folders.iter().map(folder).collect::<Value>(),
        })
    });
    rows.collect()
}

/// Adds a table of the generations.
pub fn table(text: &mut String, nights: &Nights) {
    if nights.0.is_empty() {
        return;
    }
    let hidden = nights.0.len().saturating_sub(SHOWN_MAX);
    text.push_str("\ngenerations: new bytes, stored for them, repeated bytes, what costs most\n");
    if hidden > 0 {
        let _ = writeln!(text, "  ({hidden} earlier ones: see --json)");
    }
    for night in nights.0.iter().skip(hidden) {
        let folders = night.folders.iter().take(SHOWN_FOLDERS_MAX);
        let folders = folders
            .map(|(path, cost)| format!("{} {}", printable(path), bytes_text(cost.stored_bytes)));
        // Writing to a string cannot fail.
        let line = format!(
            "  {:>5}  {:20}  {:>9}  {:>9}  {:>9}  {}",
            night.row.number,
            time_text(&night.row),
            bytes_text(night.parts.first_bytes),
            bytes_text(night.stored_bytes),
            bytes_text(night.parts.repeated_bytes),
            folders.collect::<Vec<_>>().join(", "),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
}
