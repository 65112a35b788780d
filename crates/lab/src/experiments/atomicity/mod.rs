//! What a file system and pipes guarantee about simultaneous operations, judged by the content.
//!
//! The questions are Roberson's five: do readers wait for readers, do readers wait for writers,
//! what do readers see of a write, do writers wait for writers, and what results from two writes.

mod offsets;
mod pipes;
mod probe;
mod record;
mod together;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use offsets::{Fate, Growth};
use probe::Target;
use record::Sighting;
use together::Role;

use crate::context::Context;
use crate::error::{Result, at};
use crate::experiment::Experiment;
use crate::file_system;
use crate::outcome::{Cell, Findings, Outcome, Section, Unit};
use crate::units::value_text;
use crate::unnamed_files::{self, Mode};
use refrain_page::binary_text;

/// The sizes of reads and writes.
const SIZES_BYTES: [usize; 4] = [512, 4 << 10, 64 << 10, 1 << 20];

/// The disk space that one growing file may take.
const GROWTH_BYTES_MAX: u64 = 16 << 20;

pub(super) struct Atomicity;

impl Experiment for Atomicity {
    fn name(&self) -> &'static str {
        "atomicity"
    }

    fn measures(&self) -> &'static str {
        "what readers and writers of one file or pipe at the same time see and leave of each other"
    }

    fn explains(&self) -> &'static str {
        "Every write is filled with one number, so a read or a result that holds two of them is \
         mixed: one call was not one step. \"Pieces\" are the lengths that stayed whole. That no \
         mixture was seen proves nothing, it was only not seen in that many looks; POSIX requires \
         whole results of every read and write of a regular file, and few systems give them. What \
         must not mix needs a lock of its own."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 3.2 } else { 14.0 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let needed_bytes = 2 * GROWTH_BYTES_MAX + 8 * SIZES_BYTES[3] as u64;
        unnamed_files::require_space(&context.directory, needed_bytes)?;
        let mut findings = vec![format!(
            "Files in {} are on {}.",
            context.directory.display(),
            file_system::name_of(&context.directory)
        )];
        let sections = vec![
            together(context, &mut findings)?,
            mixtures(context, &mut findings)?,
            fates(context, &mut findings)?,
            interleaving(context, &mut findings)?,
        ];
        Ok(Outcome {
            sections,
            findings,
            ..Outcome::default()
        })
    }
}

struct HostFile(File);

impl HostFile {
    fn create(context: &Context) -> Result<Arc<HostFile>> {
        let mut files = unnamed_files::open(&context.directory, &[Mode::ReadWrite])?;
        Ok(Arc::new(HostFile(files.remove(0))))
    }
}

impl Target for HostFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self.0.write_at(bytes, offset)? {
            count if count == bytes.len() => Ok(()),
            count => Err(offsets::short_write(count, bytes.len())),
        }
    }
}

// ------------------------------------------------------------------------ who runs with whom

const PAIRS: [(&str, [Role; 2]); 4] = [
    ("readers with readers", [Role::Read, Role::Read]),
    ("readers with writers", [Role::Read, Role::Write]),
    ("writers with writers", [Role::Write, Role::Write]),
    (
        "writers with writers elsewhere",
        [Role::Write, Role::WriteElsewhere],
    ),
];

fn together(context: &Context, findings: &mut Findings) -> Result<Section> {
    let columns = [
        ("who", Unit::Text),
        ("size", Unit::Bytes),
        ("work of two", Unit::Times),
    ];
    let title = "Who runs at the same time: what two threads get done, of what one gets done alone";
    let mut section = Section::new(title, &columns).with_chart(1, 2, Some(0), false);
    for (name, roles) in PAIRS {
        let mut least_and_most: Option<(f64, f64)> = None;
        for size in &SIZES_BYTES[1..] {
            let cell = match context.processors {
                0 | 1 => Cell::not_available("needs two processors"),
                _ => {
                    let file = HostFile::create(context)?;
                    // Bytes to read and overwrite.
                    let first = file.write_at(0, &vec![1; 2 * size]);
                    first.map_err(at("write a file in", &context.directory))?;
                    let time = context.time(30, 180);
                    let share = together::share(context, &file, *size, roles, time)?;
                    let share = share.map_err(at("use a file in", &context.directory))?;
                    let (least, most) = least_and_most.unwrap_or((share, share));
                    least_and_most = Some((least.min(share), most.max(share)));
                    share.into()
                }
            };
            section.push([name.into(), (*size).into(), cell]);
        }
        if let Some((least, most)) = least_and_most {
            findings.push(format!(
                "{}: two get {least:.1} to {most:.1} times as much done as one: {}.",
                capitalised(name),
                together_text(least, most)
            ));
        }
    }
    Ok(section)
}

fn together_text(least: f64, most: f64) -> &'static str {
    match (least, most) {
        _ if least >= 1.5 => "they run at the same time",
        _ if most <= 1.25 => "they take turns, or the machine is busy",
        _ => "they hinder each other at some sizes, or the machine is busy",
    }
}

// --------------------------------------------------------------------------- what is mixed

fn mixtures(context: &Context, findings: &mut Findings) -> Result<Section> {
    let columns = [
        ("what", Unit::Text),
        ("size", Unit::Bytes),
        ("looks", Unit::Count),
        ("mixed", Unit::Count),
        ("of 1,000", Unit::Count),
        ("pieces", Unit::Bytes),
    ];
    let title = "Mixed bytes: reads during a write, and results of two writes at the same time";
    let mut section = Section::new(title, &columns).with_chart(1, 4, Some(0), false);
    let mut all: [Vec<(usize, Sighting)>; 3] = Default::default();
    let names = [
        "a read during a write",
        "two writes of a range",
        "two writes that overlap by half",
    ];
    for (kind, name) in names.into_iter().enumerate() {
        for size in SIZES_BYTES {
            let file = HostFile::create(context)?;
            let time = context.time(45, 300);
            let seen = match kind {
                0 => probe::reads_during_writes(context, &file, size, time)?,
                1 => probe::writes_during_writes(context, &file, size, 0, time)?,
                _ => probe::writes_during_writes(context, &file, size, size / 2, time)?,
            };
            let seen = seen.map_err(at("use a file in", &context.directory))?;
            section.push([
                name.into(),
                size.into(),
                seen.looks.into(),
                seen.mixed.into(),
                seen.per_thousand().into(),
                pieces_cell(seen),
            ]);
            all[kind].push((size, seen));
        }
        findings.push(format!(
            "{}: {}",
            capitalised(name),
            sightings_text(&all[kind], ["look", "looks"])
        ));
    }
    Ok(section)
}

fn pieces_cell(seen: Sighting) -> Cell {
    match seen.mixed {
        0 => Cell::not_available("nothing was mixed"),
        _ => seen.piece_bytes.into(),
    }
}

/// The sightings at each size, in words.
fn sightings_text(all: &[(usize, Sighting)], [one, many]: [&str; 2]) -> String {
    let parts = all.iter().map(|(size, seen)| {
        let size = binary_text(*size as u64);
        let looks = match seen.looks {
            1 => format!("1 {one}"),
            looks => format!("{} {many}", value_text(looks as f64, Unit::Count)),
        };
        match seen.mixed {
            0 => format!("{size}: mixed not seen in {looks}"),
            mixed => format!(
                "{size}: mixed seen {mixed} times in {looks} (pieces of {})",
                binary_text(seen.piece_bytes)
            ),
        }
    });
    parts.collect::<Vec<_>>().join("; ") + "."
}

// ------------------------------------------------------------------- appends, shared offsets

const GROWTHS: [(&str, Growth, [Mode; 2]); 3] = [
    (
        "appends (O_APPEND)",
        Growth::Append,
        [Mode::Append, Mode::Append],
    ),
    (
        "writes at a shared offset",
        Growth::SharedOffset,
        [Mode::ReadWrite, Mode::ReadWrite],
    ),
    (
        "writes after seeking to the end",
        Growth::SeekToEnd,
        [Mode::ReadWrite, Mode::ReadWrite],
    ),
];

/// Reads through one descriptor are tested with this many bytes of records.
const READ_BYTES: usize = 4 << 20;

fn fates(context: &Context, findings: &mut Findings) -> Result<Section> {
    let columns = [
        ("what", Unit::Text),
        ("size", Unit::Bytes),
        ("records", Unit::Count),
        ("lost", Unit::Count),
        ("twice", Unit::Count),
        ("mixed", Unit::Count),
    ];
    let title = "What became of records that two threads wrote or read one after the other";
    let mut section = Section::new(title, &columns);
    let failed = at("use a file in", &context.directory);
    for (name, growth, modes) in GROWTHS {
        let mut all = Vec::new();
        for size in SIZES_BYTES {
            let mut files =
                unnamed_files::open(&context.directory, &[modes[0], modes[1], Mode::ReadWrite])?;
            let reader = files.remove(2);
            let limits = (context.time(30, 150), GROWTH_BYTES_MAX);
            let fate = offsets::writers(context, growth, files, &reader, size, limits)?;
            let fate = fate.map_err(&failed)?;
            section.push(fate_row(name, size, fate));
            all.push((size, fate));
        }
        findings.push(format!("{}: {}", capitalised(name), fates_text(&all)));
    }
    let name = "reads at a shared offset";
    let mut all = Vec::new();
    for size in SIZES_BYTES {
        let file = unnamed_files::open(&context.directory, &[Mode::ReadWrite])?.remove(0);
        // Fewer at 512 bytes: enough to see an effect.
        let records = (READ_BYTES / size).min(4096) as u64;
        let fate = offsets::readers(context, file, size, records)?.map_err(&failed)?;
        section.push(fate_row(name, size, fate));
        all.push((size, fate));
    }
    findings.push(format!("{}: {}", capitalised(name), fates_text(&all)));
    Ok(section)
}

fn fate_row(name: &str, size: usize, fate: Fate) -> [Cell; 6] {
    [
        name.into(),
        size.into(),
        fate.records.into(),
        fate.lost.into(),
        fate.twice.into(),
        fate.mixed.into(),
    ]
}

fn fates_text(all: &[(usize, Fate)]) -> String {
    let total = |of: fn(&Fate) -> u64| all.iter().map(|(_, fate)| of(fate)).sum::<u64>();
    let records = value_text(total(|fate| fate.records) as f64, Unit::Count);
    let seen = [
        ("lost", total(|fate| fate.lost)),
        ("read twice", total(|fate| fate.twice)),
        ("mixed", total(|fate| fate.mixed)),
    ];
    let seen: Vec<String> = seen
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    if seen.is_empty() {
        format!("none of {records} records was seen lost, read twice or mixed.")
    } else {
        format!("of {records} records {}.", seen.join(", "))
    }
}

// ------------------------------------------------------------------------------------ pipes

fn interleaving(context: &Context, findings: &mut Findings) -> Result<Section> {
    let columns = [
        ("write", Unit::Bytes),
        ("looks", Unit::Count),
        ("mixed", Unit::Count),
        ("of 1,000", Unit::Count),
        ("pieces", Unit::Bytes),
    ];
    let title = "Pipes: records that two threads wrote to one pipe";
    let mut section = Section::new(title, &columns).with_chart(0, 3, None, false);
    let mut all = Vec::new();
    for size in SIZES_BYTES {
        let seen = pipes::writers(context, size, context.time(40, 250))?;
        let seen = seen.map_err(at("use", std::path::Path::new("a pipe")))?;
        section.push([
            size.into(),
            seen.looks.into(),
            seen.mixed.into(),
            seen.per_thousand().into(),
            pieces_cell(seen),
        ]);
        all.push((size, seen));
    }
    let text = sightings_text(&all, ["record", "records"]);
    findings.push(format!(
        "Two writers to one pipe: {text} POSIX promises whole writes up to PIPE_BUF, 4 KiB on Linux."
    ));
    Ok(section)
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_say_what_was_seen_and_not_more() {
        let none = Sighting {
            looks: 70,
            ..Sighting::default()
        };
        let some = Sighting {
            looks: 9,
            mixed: 2,
            piece_bytes: 4096,
        };
        let text = sightings_text(&[(512, none), (65_536, some)], ["read", "reads"]);
        let expected = "512 B: mixed not seen in 70 reads; 64 KiB: mixed seen 2 times in 9 reads \
                        (pieces of 4 KiB).";
        assert_eq!(text, expected);
        let fate = Fate {
            records: 10,
            lost: 3,
            ..Fate::default()
        };
        assert_eq!(fates_text(&[(512, fate)]), "of 10 records 3 lost.");
        assert!(fates_text(&[(512, Fate::default())]).contains("none of 0 records"));
        assert!(together_text(1.9, 2.0).contains("same time"));
        assert!(together_text(0.9, 1.1).contains("turns"));
        assert_eq!(capitalised("two writes"), "Two writes");
    }
}
