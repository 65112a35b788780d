//! `refrain decompress` of a file of another format.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain::MemberKind;
use refrain::foreign::Format;

use super::super::extraction::{Extraction, NOTHING_TEXT};
use super::super::input::ArchiveContent;
use super::super::part_stream;
use crate::entry_paths::normalized;
use crate::failure::{Failure, Result};
use crate::names;
use crate::paths;
use crate::plan::{DecompressPlan, Destination, RestorePlan, check_owners};
use crate::report::Report;
use crate::restore::{Placement, Restore, StreamPlacement};
use crate::selection::has_wildcards;
use crate::text::quoted;

/// Restores the content of a file.
pub fn extract<'a>(
    content: ArchiveContent,
    format: Format,
    item: &RestorePlan,
    plan: &DecompressPlan,
    report: &Report<'a>,
) -> Result<Extraction<'a>> {
    let label = &item.archive.label;
    if !format.is_stream() && item.destination == Destination::Stdout {
        let text = format!(
            "is a {format} file, which holds files: name a directory with -o, or write one file with \
             `refrain cat`; it cannot be read from a pipe"
        );
        return Err(Failure::usage(label, text));
    }
    let selection = &plan.selection;
    let is_part = !selection.is_everything();
    if is_part && item.destination == Destination::Stdout {
        return part_stream::refuse(label);
    }
    check_owners(label, &plan.owners, is_part || !format.is_stream())?;
    let placement = match (&content, &item.destination) {
        (_, Destination::Stdout) => Placement::Stdout,
        (ArchiveContent::Source(_), destination) => {
            let path = &item.archive.path;
            let output = match destination {
                Destination::Path(output) => Some(output.as_path()),
                _ => None,
            };
            match (format.is_stream(), is_part) {
                (true, true) => Placement::of_tar_part(output),
                (true, false) => Placement::of_only_member(path, output, MemberKind::Stream, b"")?,
                (false, _) => {
                    let name = names::of_member(path, b"");
                    Placement::of_only_member(path, output, MemberKind::Tree, &name)?
                }
            }
        }
        (ArchiveContent::Stream(_), Destination::Path(output)) => {
            Placement::Stream(StreamPlacement::at(output)?)
        }
        (ArchiveContent::Stream(_), Destination::Default) => Placement::Stdout,
    };
    let mut restore = Restore::new(label, placement, &plan.output);
    restore.protect(match &content {
        ArchiveContent::Source(_) => item.archive.metadata.clone(),
        ArchiveContent::Stream(_) => paths::stdin_metadata(),
    });
    restore.set_owners(&plan.owners);
    restore.set_memory(plan.options.memory_bytes);
    restore.select(selection, Some(1));
    // As gunzip and the like do: the content gets the mode and the time of the file.
    if let (ArchiveContent::Source(_), Some(file)) = (&content, &item.archive.metadata) {
        restore.take_attributes_of(file);
    }
    let mut meter = report.meter(label);
    restore.name_files(meter.file_namer());
    meter.set_total(content.total());
    meter.begin(None);
    let summary =
        refrain::foreign::extract(content.into(), format, &mut restore, &plan.options, &meter)
            .map_err(|error| Failure::engine(label, error))?;
    restore.publish_complete()?;
    let mut not_found = Vec::new();
    if restore.restored_count() == 0 && is_part {
        not_found.push(NOTHING_TEXT.to_string());
    } else if let Some(root) = restore.restored().first() {
        not_found.extend(missing(Path::new(root), selection.paths()));
    }
    Ok(Extraction {
        restore,
        summary,
        meter,
        not_found,
        damage: refrain::Damage::default(),
        members: 1,
    })
}

/// What to say about each of the paths that is not below `root`, where all that the file holds of
/// them was restored.
fn missing<'a>(root: &Path, paths: &'a [Vec<u8>]) -> impl Iterator<Item = String> + 'a {
    let root = root.to_path_buf();
    let is_missing = move |path: &&Vec<u8>| {
        // A pattern names no file.
        if has_wildcards(path) {
            return false;
        }
        let inside = normalized(path).join(&b'/');
        let inside = inside.strip_prefix(b"//").unwrap_or(&inside);
        let restored = root.join(OsStr::from_bytes(inside));
        std::fs::symlink_metadata(restored).is_err()
    };
    paths
        .iter()
        .filter(is_missing)
        .map(|path| format!("holds no {}", quoted(path)))
}
