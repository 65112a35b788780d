//! Directories of an archive: what is directly in one, and what is below one.

use std::collections::BTreeMap;

use refrain::{Archive, Entry, EntryKind, Result};

/// The path below a directory; `None` if it is not below it.
fn below<'path>(path: &'path [u8], directory: &[u8]) -> Option<&'path [u8]> {
    if directory.is_empty() {
        return (path != b"." && !path.is_empty()).then_some(path);
    }
    path.strip_prefix(directory)?.strip_prefix(b"/")
}

/// Calls `each` for every entry at or below a directory. Frames that cannot have any are not read.
fn for_each_below(
    archive: &Archive,
    member: usize,
    directory: &[u8],
    each: &mut dyn FnMut(Entry),
) -> Result<()> {
    let list = archive.entry_list(member)?;
    let is_sorted = list.is_sorted();
    let first = if is_sorted && !directory.is_empty() {
        list.frames_for_path(directory)?.start
    } else {
        0
    };
    for frame in first..list.frame_count()? {
        let is_behind = list.with_frame(frame, |entries| {
            let mut is_behind = false;
            for entry in entries {
                if matches!(entry.kind, EntryKind::Raw | EntryKind::Removed) {
                    continue;
                }
                let is_below = entry.path == directory || below(&entry.path, directory).is_some();
                is_behind = is_sorted
                    && !is_below
                    && refrain::directory::compare_paths(&entry.path, directory).is_gt();
                if is_behind {
                    break;
                }
                if is_below {
                    each(entry);
                }
            }
            is_behind
        })?;
        if is_behind {
            break;
        }
    }
    Ok(())
}

/// What is directly in a directory, in the order of names. The last entry of a name counts, as
/// when a tar stream is unpacked; directories that only paths mention are made up.
pub fn children(archive: &Archive, member: usize, directory: &[u8]) -> Result<Vec<Entry>> {
    let mut found: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
    for_each_below(archive, member, directory, &mut |entry| {
        let Some(rest) = below(&entry.path, directory) else {
            return;
        };
        match rest.iter().position(|&byte| byte == b'/') {
            None => {
                found.insert(rest.to_vec(), entry);
            }
            Some(end) => {
                let path_bytes = entry.path.len() - rest.len() + end;
                found.entry(rest[..end].to_vec()).or_insert_with(|| Entry {
                    path: entry.path[..path_bytes].to_vec(),
                    kind: EntryKind::Directory,
                    mode: 0o755,
                    ..Entry::default()
                });
            }
        }
    })?;
    Ok(found.into_values().collect())
}

/// The entries at or below a path, in archive order.
pub fn matching(archive: &Archive, member: usize, path: &[u8]) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    for_each_below(archive, member, path, &mut |entry| found.push(entry))?;
    Ok(found)
}
