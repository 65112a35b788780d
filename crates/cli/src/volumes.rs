//! Archives in volumes: operands that are folders of such files, or one of their heads.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use refrain::volumes::{GrowingVolumes, VOLUME_BYTES_DEFAULT, holds_archive, is_head_name};
use refrain_pool::Cancellation;
use refrain_storage::{GivesBack, GrowingFile, VolumeFolder};

use crate::failure::{Failure, Result};
use crate::in_volumes::InVolumes;
use crate::paths::{check_no_url, label};
use crate::{memory_limit, remote, urls};

/// What to say of a place without heads.
const NO_ARCHIVE: &str = "has no archive in volumes";

/// A folder for volumes, which may not exist yet.
pub fn folder(path: &Path) -> VolumeFolder {
    VolumeFolder::new(path).with_cache(memory_limit::for_pages())
}

/// The archive in volumes that a path on this machine leads to: the folder, or one of its heads.
pub fn at_path(path: &Path) -> Option<InVolumes> {
    if urls::is_url(path) {
        return None;
    }
    let (folder, head) = if path.is_dir() {
        (folder(path), None)
    } else {
        let name = path.file_name().and_then(OsStr::to_str)?;
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        let parent = folder(parent.unwrap_or(Path::new(".")));
        (parent, is_head_name(name).then(|| name.to_owned()))
    };
    let is_archive = head.is_some() || path.is_dir() && holds_archive(&folder).unwrap_or(false);
    is_archive.then(|| InVolumes {
        place: Arc::new(folder),
        head,
    })
}

/// The archive in volumes that an operand leads to, if there can be one: a path or a URL.
///
/// # Errors
/// Of the settings for a store.
pub fn of_operand(
    operand: &Path,
    temporary: Option<&Path>,
    cancellation: &Cancellation,
) -> Result<Option<InVolumes>> {
    if urls::is_url(operand) {
        remote::volumes(operand, temporary, cancellation)
    } else {
        Ok(at_path(operand))
    }
}

/// An archive that grows: a file, or volumes.
///
/// # Errors
/// It does not exist, or another program writes to it.
pub fn growing(
    path: &Path,
    temporary: Option<&Path>,
    cancellation: &Cancellation,
) -> Result<Box<dyn GivesBack>> {
    if urls::bucket_and_key(path).is_none() {
        check_no_url(path)?;
    }
    let Some(found) = of_operand(path, temporary, cancellation)? else {
        let file = GrowingFile::open(path).map_err(Failure::Storage)?;
        return Ok(Box::new(file));
    };
    if found.head.is_some() {
        let text = "is one head of an archive in volumes: name the folder";
        return Err(Failure::usage(label(path), text));
    }
    let failed = |error| Failure::engine(&label(path), error);
    if !holds_archive(&*found.place).map_err(failed)? {
        return Err(Failure::usage(label(path), NO_ARCHIVE));
    }
    let growing = GrowingVolumes::open(found.place, VOLUME_BYTES_DEFAULT);
    Ok(Box::new(growing.map_err(failed)?))
}

/// Refuses an archive in volumes where a file is needed.
///
/// # Errors
/// `Usage`, with the reason `why`.
pub fn check_is_file(path: &Path, why: &str) -> Result<()> {
    let is_remote = urls::bucket_and_key(path).is_some();
    if is_remote || at_path(path).is_some() {
        let text = format!("is an archive in volumes, which never change: {why}");
        return Err(Failure::usage(label(path), text));
    }
    Ok(())
}
