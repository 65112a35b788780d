//! Lines about an archive's damage, and the affected files.

use std::ops::Range;
use std::path::Path;

use refrain::{Damage, DamagedFile, DamagedPart, DamagedPlace};
use serde_json::{Value, json};

use super::listing::add_bytes;
use super::outcome::Outcome;
use super::problems::{FileProblem, FileProblemKind};
use crate::entry_paths::{full_path, prefix_of};
use crate::exit::Exit;
use crate::names;
use crate::text::{counted, printable};
use crate::units::{bytes_text, range_text};

/// The maximum number of places with their own line.
const LINES_MAX: usize = 20;

const REMEDY: &str = "--keep-broken restores these too, with zeros for what is missing";

const REMEDY_OF_TEST: &str = "`refrain decompress` restores what is whole";

/// The maximum number of ranges in a line.
const RANGES_MAX: usize = 3;

/// An archive's damage, to be reported.
pub struct DamageReport<'a> {
    /// The archive's path, from which unnamed members get their name.
    pub path: &'a Path,
    /// The number of its members.
    pub members: usize,
    /// The number of requested files, for comparison.
    pub files: u64,
    /// What is damaged.
    pub damage: &'a Damage,
    /// Whether nothing was restored, only examined.
    pub is_test: bool,
}

impl DamageReport<'_> {
    /// Reports places with the number of files, the files, and what to do.
    pub fn report(&self, outcome: &mut Outcome) {
        let files = self.damage.files.iter().map(|file| FileProblem {
            path: self.path_of(file),
            kind: FileProblemKind::Damaged,
            text: text(file),
        });
        let texts = self.texts();
        if !texts.is_empty() {
            outcome.add_damaged_files(files);
        }
        for text in texts {
            outcome.add_loss(Exit::Damaged, &text);
        }
    }

    /// Places with the number of files, and what to do.
    fn texts(&self) -> Vec<String> {
        let damage = self.damage;
        if damage.is_none() {
            return Vec::new();
        }
        let mut texts = place_texts(&damage.places);
        let counts = self.counts();
        match texts.as_mut_slice() {
            [only] => only.push_str(&format!(": {counts}")),
            _ => texts.push(counts),
        }
        if self.is_test {
            if let Some(last) = texts.last_mut() {
                last.push_str("; ");
                last.push_str(REMEDY_OF_TEST);
            }
            return texts;
        }
        let are_left_out = damage.files.iter().any(|file| !file.is_kept);
        if are_left_out && damage.files.iter().any(|file| !file.missing.is_empty()) {
            texts.push(REMEDY.to_owned());
        }
        texts
    }

    /// `4 of 3210 files affected`.
    fn counts(&self) -> String {
        let damage = self.damage;
        let total = self.files.max(damage.file_count);
        let files = match (damage.file_count, damage.incomplete_lists) {
            (0, 0) => "no file is affected".to_string(),
            (0, _) => String::new(),
            (count, _) => {
                let files = if total == 1 { "file" } else { "files" };
                format!("{count} of {total} {files} affected")
            }
        };
        let lost = match (damage.lost_entries, damage.incomplete_lists) {
            (_, 0) => String::new(),
            (0, _) => "the end of the list of files is missing".to_string(),
            (count, _) => format!("{} lost with their names", counted(count, "entry")),
        };
        let hash = if damage.has_losses() && !self.is_test {
            "; what was restored was verified by the checksums of its frames"
        } else {
            ""
        };
        let parts = [files, lost].into_iter().filter(|part| !part.is_empty());
        format!("{}{hash}", parts.collect::<Vec<_>>().join(", and "))
    }

    /// A file's path, as printed by `list`.
    fn path_of(&self, file: &DamagedFile) -> Vec<u8> {
        let name = names::of_member(self.path, &file.member_name);
        match &file.path {
            None => name,
            Some(path) => full_path(&prefix_of(&name, self.members), path),
        }
    }

    /// All of it, for scripts.
    pub fn to_json(&self) -> Value {
        let damage = self.damage;
        if damage.is_none() {
            return Value::Null;
        }
        let files = damage.files.iter().map(|file| {
            let path = self.path_of(file);
            let end = |end: u64| Some(end).filter(|&end| end < u64::MAX);
            let missing = file.missing.iter();
            let missing = missing.map(|range| json!([range.start, end(range.end)]));
            let mut json = json!({
                "path": String::from_utf8_lossy(&path),
                "size_bytes": file.size_bytes,
                "missing": missing.collect::<Value>(),
                "kept": file.is_kept,
            });
            add_bytes(&mut json, "path_bytes", Some(&path));
            json
        });
        json!({
            "places": places_json(&damage.places),
            "cut_off_at": damage.cut_off_at(),
            "files": files.collect::<Value>(),
            "file_count": damage.file_count,
            "lost_entries": damage.lost_entries,
        })
    }
}

/// Places for scripts.
fn places_json(places: &[DamagedPlace]) -> Value {
    let places = places.iter().map(|place| {
        json!({
            "what": part_text(place.part),
            "start": place.bytes.start,
            "end": place.bytes.end,
        })
    });
    places.collect()
}

/// A text for each place: `block 2 damaged (bytes 2.36–3.60 MB)`.
pub fn place_texts(places: &[DamagedPlace]) -> Vec<String> {
    let mut texts: Vec<String> = places.iter().take(LINES_MAX).map(place_text).collect();
    let others = places.len().saturating_sub(LINES_MAX) as u64;
    if others > 0 {
        texts.push(format!("{} more", counted(others, "damaged place")));
    }
    texts
}

/// As above, as lines about an archive.
pub fn place_lines(label: &str, places: &[DamagedPlace]) -> Vec<String> {
    let label = printable(label);
    let texts = place_texts(places).into_iter();
    texts.map(|text| format!("{label}: {text}")).collect()
}

fn place_text(place: &DamagedPlace) -> String {
    let what = part_text(place.part);
    let bytes = &place.bytes;
    match place.part {
        DamagedPart::CutOff => format!("archive is cut off at {}", bytes_text(bytes.end)),
        DamagedPart::Frames(frames) if bytes.is_empty() && frames > 0 => {
            let frames = counted(frames, "frame");
            format!("{frames} missing at {}", bytes_text(bytes.start))
        }
        _ if bytes.is_empty() => format!("{what} damaged (at {})", bytes_text(bytes.start)),
        DamagedPart::Frames(0) => format!("bytes {} belong to no frame", range_text(bytes)),
        _ => format!("{what} damaged (bytes {})", range_text(bytes)),
    }
}

fn part_text(part: DamagedPart) -> String {
    match part {
        DamagedPart::Settings => "the archive's start".into(),
        DamagedPart::Block(block) => format!("block {block}"),
        DamagedPart::Extents => "a map of content".into(),
        DamagedPart::Entries => "a part of the list of files".into(),
        DamagedPart::Member => "the start or end of a member".into(),
        DamagedPart::Index => "a part of the index".into(),
        DamagedPart::End => "the archive's end".into(),
        DamagedPart::Whole => "the archive's only frame".into(),
        DamagedPart::Frames(0) => "no frame".into(),
        DamagedPart::Frames(count) => counted(count, "frame"),
        DamagedPart::CutOff => "cut off".into(),
        _ => "a frame".into(),
    }
}

/// What is missing in a file.
fn text(file: &DamagedFile) -> String {
    let Some(last) = file.missing.last() else {
        return "is not what its hash says: not restored".to_string();
    };
    let mut ranges: Vec<String> = (file.missing.iter().take(RANGES_MAX))
        .map(|range| match range.end {
            u64::MAX => format!("from {} on", bytes_text(range.start)),
            _ => range_text(range),
        })
        .collect();
    let others = file.missing.len().saturating_sub(RANGES_MAX) as u64;
    if others > 0 {
        ranges.push(format!("{} more", counted(others, "range")));
    }
    let of = match last.end {
        u64::MAX => String::new(),
        _ => format!(" of {}", bytes_text(file.size_bytes)),
    };
    let kept = match (file.is_kept, file.delivered_bytes) {
        (true, _) => ", replaced by zeros".to_string(),
        (false, 0) => String::new(),
        (false, bytes) => format!(", the first {} were written", bytes_text(bytes)),
    };
    let is_all = file.missing == [all(file)];
    if is_all {
        format!("all of it is missing{kept}")
    } else {
        format!("bytes {}{of} are missing{kept}", ranges.join(", "))
    }
}

fn all(file: &DamagedFile) -> Range<u64> {
    0..file.size_bytes
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    fn file(path: &str, missing: &[Range<u64>]) -> DamagedFile {
        DamagedFile {
            member: 0,
            member_name: b"d".to_vec(),
            path: Some(path.into()),
            size_bytes: 40_000,
            missing: missing.to_vec(),
            is_kept: false,
            delivered_bytes: 0,
        }
    }

    #[test]
    fn places_files_and_the_remedy_are_told() {
        let damage = Damage {
            places: vec![DamagedPlace {
                part: DamagedPart::Block(2),
                bytes: 2_360_000..3_600_000,
            }],
            files: vec![
                file("f1", &[0..12_300, 20_000..20_001]),
                file("f2", slice::from_ref(&(0..40_000))),
            ],
            file_count: 2,
            ..Damage::default()
        };
        let mut report = DamageReport {
            path: Path::new("d.rfn"),
            members: 1,
            files: 3210,
            damage: &damage,
            is_test: false,
        };
        let texts = report.texts();
        let first = "block 2 damaged (bytes 2.36–3.60 MB): 2 of 3210 files affected";
        assert!(texts[0].starts_with(first), "{}", texts[0]);
        assert_eq!(texts[1..], [REMEDY]);
        assert_eq!(
            text(&damage.files[0]),
            "bytes 0.0–12.3 kB, 20.000–20.001 kB of 40.0 kB are missing"
        );
        assert_eq!(text(&damage.files[1]), "all of it is missing");
        assert_eq!(report.path_of(&damage.files[0]), b"f1");
        report.members = 2;
        assert_eq!(report.path_of(&damage.files[0]), b"d/f1");
        let json = report.to_json();
        assert_eq!(json["files"][0]["missing"][1], json!([20_000, 20_001]));
        let mut outcome = Outcome::new("d.rfn", "success".into(), json!({}));
        report.report(&mut outcome);
        assert_eq!(outcome.exit(), Exit::Damaged);
        assert_eq!(outcome.files_to_name(false).count(), 2);
    }

    #[test]
    fn many_places_are_counted() {
        let place = |number| DamagedPlace {
            part: DamagedPart::CutOff,
            bytes: 4_000_000..5_000_000 + number,
        };
        let places: Vec<_> = (0..50_u64).map(place).collect();
        let texts = place_texts(&places);
        assert_eq!(texts[0], "archive is cut off at 5.00 MB");
        assert_eq!(texts[20..], ["30 damaged places more"]);
        let damage = Damage {
            places: places[..1].to_vec(),
            files: vec![file("f", slice::from_ref(&(0..u64::MAX)))],
            file_count: 1,
            ..Damage::default()
        };
        assert_eq!(text(&damage.files[0]), "bytes from 0 B on are missing");
        let report = DamageReport {
            path: Path::new("d.rfn"),
            members: 1,
            files: 100,
            damage: &damage,
            is_test: true,
        };
        let texts = report.texts();
        let expected =
            format!("archive is cut off at 5.00 MB: 1 of 100 files affected; {REMEDY_OF_TEST}");
        assert_eq!(texts, [expected]);
        assert_eq!(report.to_json()["files"][0]["missing"][0], json!([0, null]));
        assert_eq!(report.to_json()["cut_off_at"], 5_000_000);
    }
}
