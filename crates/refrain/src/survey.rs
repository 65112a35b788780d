//! Finds the damaged files of an archive without writing any.

use std::ops::Range;
use std::sync::Arc;

use refrain_entries::tar::TarView;
use refrain_storage::Source;

use crate::archive::Archive;
use crate::archive_info::{Member, MemberKind};
use crate::damage::{Damage, DamagedFile, push_range};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::read_control::ReadControl;
use crate::read::tree::recovery::{in_file, inside};
use crate::recover::recover;
use crate::targets::Nowhere;

/// Reads a whole archive and reports every damaged file with its missing ranges, as [`recover`]
/// would.
///
/// # Errors
/// As [`recover`].
pub fn damaged_files(
    source: &Arc<dyn Source>,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<Damage> {
    let found = recover(source.clone(), &mut Nowhere, true, options, watch)?;
    let (_, mut damage) = found;
    let archive = Archive::open_or_scan(source.clone(), options)?;
    for file in std::mem::take(&mut damage.files) {
        let member = archive.member(file.member)?;
        match member.kind {
            MemberKind::Tree | MemberKind::Tar if file.path.is_none() => {
                damage.file_count -= 1;
                add_entries(&archive, &member, file, &mut damage)?;
            }
            _ => damage.files.push(file),
        }
    }
    Ok(damage)
}

/// Adds a member's entries that need missing parts of its tar stream.
fn add_entries(
    archive: &Archive,
    member: &Member,
    stream: DamagedFile,
    damage: &mut Damage,
) -> Result<()> {
    let mut view = match member.kind {
        MemberKind::Tar => TarView::recorded(),
        _ => TarView::canonical(),
    };
    let mut at = 0_u64;
    let tree = archive.tree_with_entries(stream.member, &ReadControl::default())?;
    for frame in 0..tree.entry_frames()? {
        view.restart();
        let entries = match tree.entries_of(frame) {
            // It is among what is lost.
            Err(error) if error.kind == ErrorKind::Damaged => continue,
            entries => entries?,
        };
        for entry in entries.iter() {
            let item = view.entry(entry);
            let item = item.map_err(|error| Error::damaged(error.to_string()))?;
            let start = at.saturating_add(item.header.len() as u64);
            at = at.saturating_add(item.view_bytes());
            let missing = in_content(&stream.missing, start, &item.content);
            if !missing.is_empty() {
                damage.add_file(DamagedFile {
                    path: Some(entry.path.clone()),
                    size_bytes: entry.size_bytes,
                    missing: in_file(entry, &missing),
                    is_kept: false,
                    delivered_bytes: 0,
                    ..stream.clone()
                });
            }
        }
    }
    Ok(())
}

/// Converts missing ranges of a tar stream to ranges of the content at `start` in it.
fn in_content(missing: &[Range<u64>], start: u64, content: &Range<u64>) -> Vec<Range<u64>> {
    let length_bytes = content.end.saturating_sub(content.start);
    let mut found = Vec::new();
    for lost in inside(missing, &(start..start.saturating_add(length_bytes))) {
        let first = content.start + (lost.start - start);
        push_range(&mut found, first..first + (lost.end - lost.start));
    }
    found
}
