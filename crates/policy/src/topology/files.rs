//! The kernel's small files: one number, one list, one line. What cannot be read is not there.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::list::parse_list;

/// No file read here is longer; what is beyond is not looked at.
const FILE_LENGTH_MAX: u64 = 64 * 1024;

/// Numbers of the entries of `folder` named `prefix` and a number, ascending.
pub(super) fn listed_folders(folder: &Path, prefix: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| {
        entry
            .file_name()
            .to_str()?
            .strip_prefix(prefix)?
            .parse()
            .ok()
    };
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

pub(super) fn text_in(file: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(file)
        .ok()?
        .take(FILE_LENGTH_MAX)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

pub(super) fn number_in(file: &Path) -> Option<u64> {
    text_in(file)?.trim().parse().ok()
}

pub(super) fn list_in(file: &Path) -> Vec<u32> {
    text_in(file).map_or_else(Vec::new, |text| parse_list(&text))
}

pub(super) fn first_list(files: &[PathBuf]) -> Vec<u32> {
    let lists = files.iter().map(|file| list_in(file));
    lists
        .into_iter()
        .find(|list| !list.is_empty())
        .unwrap_or_default()
}
