//! Reads small kernel files: a number, a list, a line. A file that cannot be read counts as
//! missing.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::list::parse_list;

const FILE_LENGTH_MAX: u64 = 64 * 1024;

/// The numbers of the entries of `directory` whose names are `prefix` and a number, ascending.
pub(super) fn numbered_entries(directory: &Path, prefix: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
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

pub(super) fn read_text(file: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(file)
        .ok()?
        .take(FILE_LENGTH_MAX)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

pub(super) fn read_number(file: &Path) -> Option<u64> {
    read_text(file)?.trim().parse().ok()
}

pub(super) fn read_list(file: &Path) -> Vec<u32> {
    read_text(file).map_or_else(Vec::new, |text| parse_list(&text))
}

pub(super) fn read_first_list(files: &[PathBuf]) -> Vec<u32> {
    let lists = files.iter().map(|file| read_list(file));
    lists
        .into_iter()
        .find(|list| !list.is_empty())
        .unwrap_or_default()
}
