//! `refrain decompress -o -` for a part of an archive: directories as tar streams, other members
//! unchanged, one after the other.

use std::path::Path;

use refrain::{Archive, ExtractSummary};

use super::entries::has_entries;
use super::extraction::{Extraction, NOTHING_TEXT};
use crate::failure::{Failure, Result};
use crate::files;
use crate::plan::{DecompressPlan, RestorePlan};
use crate::report::Report;
use crate::restore::{Placement, Restore};
use crate::selection::{ArchiveSelection, Wanted};

/// What an opened archive has of what was requested.
pub struct Part<'a> {
    pub archive: &'a Archive,
    pub selection: &'a ArchiveSelection,
    pub not_found: Vec<String>,
}

/// Refuses to select a part of something that can only be read forward, or has no entries.
///
/// # Errors
/// `Usage`.
pub fn refuse<T>(label: &str) -> Result<T> {
    let text = "a part of this is restored to files only: name a directory with -o, or write single files \
                with `refrain cat`";
    Err(Failure::usage(label, text))
}

/// Writes the part to standard output.
pub fn write<'a>(
    part: Part<'_>,
    item: &RestorePlan,
    plan: &DecompressPlan,
    report: &Report<'a>,
) -> Result<Extraction<'a>> {
    let label = &item.archive.label;
    let failure = |error| Failure::engine(label, error);
    let mut restore = Restore::new(label, Placement::Stdout, &plan.output);
    let meter = report.meter(label);
    let mut stdout = files::content_sink(plan.output.force)?;
    meter.begin(None);
    let count = part.archive.member_count();
    let mut summary = ExtractSummary {
        content_bytes: 0,
        archive_bytes: part.archive.size_bytes().map_err(failure)?,
        members: count,
        entries: 0,
    };
    let mut not_found = part.not_found;
    for index in 0..count {
        let member = part.archive.member(index).map_err(failure)?;
        let wanted = if has_entries(&member) {
            part.selection.for_tree(&member.name, Some(count))?
        } else {
            part.selection.for_file(&member.name)?
        };
        match wanted {
            Wanted::Nothing => {}
            Wanted::Everything => {
                let written = part.archive.write_member(index, stdout.as_mut(), &meter);
                written.map_err(failure)?;
                summary.content_bytes += member.content_bytes;
                restore.count(1);
            }
            Wanted::Part(selection) => {
                let sink = stdout.as_mut();
                let written = part.archive.write_part(index, &selection, sink, &meter);
                let entries = written.map_err(failure)?;
                summary.entries += entries;
                restore.count(entries);
            }
        }
    }
    files::publish(stdout.as_mut(), Path::new("standard output"))?;
    if restore.restored_count() == 0 && not_found.is_empty() {
        not_found.push(NOTHING_TEXT.to_string());
    }
    Ok(Extraction {
        restore,
        summary,
        meter,
        not_found,
        damage: Default::default(),
        members: count,
    })
}
