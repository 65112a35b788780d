//! Decides which operands of a verb are archives, and which are paths inside one.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use refrain::{Archive, Dialect, ReadOptions};
use refrain_pool::Cancellation;

use super::entries;
use super::recognize::PREFIX_BYTES;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::paths::{is_dash, label};
use crate::selection::has_wildcards;
use crate::{urls, volumes};

/// Operands, sorted out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Operands {
    pub archives: Vec<PathBuf>,
    /// Paths, or patterns, inside the only archive.
    pub paths: Vec<Vec<u8>>,
}

/// What an operand looks like by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// A file that starts like an archive, or that cannot be examined: a pipe, a URL.
    Archive,
    /// A missing or other file with an archive's name.
    ArchiveName,
    /// Anything else.
    Other,
}

/// Sorts the operands. The first is an archive; the others are paths inside it, unless they are
/// archives. `after_dashes` follow `--`: they are always paths, if there is an operand before.
///
/// # Errors
/// `Usage` for ambiguous operands, and for paths beside several archives.
pub fn resolve(
    operands: &[PathBuf],
    after_dashes: &[PathBuf],
    options: &ReadOptions,
    cancellation: &Cancellation,
) -> Result<Operands> {
    if operands.is_empty() && !after_dashes.is_empty() {
        return resolve(after_dashes, &[], options, cancellation);
    }
    match (operands, after_dashes) {
        (_, []) => sort_out(operands, options, cancellation),
        ([archive], paths) => Ok(Operands {
            archives: vec![archive.clone()],
            paths: paths.iter().map(|path| bytes(path)).collect(),
        }),
        (_, _) => {
            let text = "paths after -- are taken from one archive only";
            Err(Failure::usage("", text))
        }
    }
}

fn sort_out(
    operands: &[PathBuf],
    options: &ReadOptions,
    cancellation: &Cancellation,
) -> Result<Operands> {
    let Some((first, others)) = operands.split_first() else {
        return Ok(Operands::default());
    };
    let first_archive = FirstArchive {
        path: first,
        options,
        cancellation,
        opened: OnceCell::new(),
    };
    let mut archives = vec![first.clone()];
    let mut paths = Vec::new();
    for operand in others {
        match (look(operand), || first_archive.holds(operand)) {
            (Look::Archive, holds) if holds() => {
                let (first, operand) = (first.display(), operand.display());
                let text = format!(
                    "is an archive, and {first} also holds this path: write `{first} -- {operand}` for \
                     that, or name one archive at a time"
                );
                return Err(Failure::usage(operand.to_string(), text));
            }
            (Look::Archive, _) => archives.push(operand.clone()),
            (Look::ArchiveName, holds) if !holds() => archives.push(operand.clone()),
            (Look::ArchiveName | Look::Other, _) => paths.push(operand),
        }
    }
    if let (true, Some(path)) = (archives.len() > 1, paths.first()) {
        let text = "is not an archive, and paths are taken from one archive only";
        return Err(Failure::usage(label(path), text));
    }
    Ok(Operands {
        archives,
        paths: paths.into_iter().map(|path| bytes(path)).collect(),
    })
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn look(operand: &Path) -> Look {
    if is_dash(operand) || urls::is_url(operand) || volumes::at_path(operand).is_some() {
        return Look::Archive;
    }
    match fs::metadata(operand) {
        Ok(found) if found.is_file() && begins_like_an_archive(operand) => Look::Archive,
        Ok(found) if !found.is_file() && !found.is_dir() => Look::Archive,
        _ if names::has_archive_suffix(operand)
            && !has_wildcards(operand.as_os_str().as_bytes()) =>
        {
            Look::ArchiveName
        }
        _ => Look::Other,
    }
}

fn begins_like_an_archive(path: &Path) -> bool {
    let mut first = Vec::with_capacity(PREFIX_BYTES);
    let read = File::open(path).and_then(|file| {
        let mut start = file.take(PREFIX_BYTES as u64);
        start.read_to_end(&mut first)
    });
    read.is_ok() && Dialect::from_prefix(&first).is_some()
}

/// The first operand, opened if needed.
struct FirstArchive<'a> {
    path: &'a Path,
    options: &'a ReadOptions,
    cancellation: &'a Cancellation,
    opened: OnceCell<Option<Archive>>,
}

impl FirstArchive<'_> {
    /// Whether the archive has this path. One that cannot be opened has none: the verb says why.
    fn holds(&self, path: &Path) -> bool {
        let Some(archive) = self.opened.get_or_init(|| self.open()) else {
            return false;
        };
        let found = entries::find(archive, self.path, "", path.as_os_str().as_bytes());
        found.is_ok_and(|found| found.is_some())
    }

    /// Opens a native archive; lrzip archives have no directories.
    fn open(&self) -> Option<Archive> {
        let temporary = self.options.temporary.as_deref();
        let source = files::file_or_url(self.path, temporary, self.cancellation).ok()?;
        match Dialect::from_source(&*source) {
            Ok(Dialect::Native) => Archive::open(source, self.options).ok(),
            _ => None,
        }
    }
}
