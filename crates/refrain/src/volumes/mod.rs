//! Archives in volumes: files of a folder, or objects of a bucket, that are created and deleted,
//! never changed.
//!
//! The archive is one string of bytes, in the same format as in a file. The newest head lists the
//! volumes that hold it; a run that adds something writes new volumes, and at last a head, which
//! can be created by one writer alone. `docs/format-volumes.md` specifies heads.
//!
//! | file | what |
//! |---|---|
//! | `heads` | reads heads, and composes the next |
//! | `following` | reads an archive while its volumes are replaced |
//! | `growing` | [`GrowingVolumes`]: what a run adds |
//! | `compacting` | gives parts of an archive back |

mod compacting;
mod following;
mod growing;
mod heads;

use std::sync::Arc;

use refrain_format::volumes::{HEAD_PREFIX, VOLUME_PREFIX, VolumeName, head_name, head_number};
use refrain_storage::{Source, VolumePlace};

use self::following::FollowingSource;
pub use self::growing::{GrowingVolumes, VOLUME_BYTES_DEFAULT, VOLUME_BYTES_MIN};
use self::heads::Heads;
use crate::error::{Error, ErrorKind, Result};

/// A file of an archive in volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeFile {
    /// Its name in the folder.
    pub name: String,
    /// Its length; `None` for heads.
    pub length_bytes: Option<u64>,
    /// BLAKE3 of its bytes; `None` for the newest head.
    pub digest: Option<[u8; 32]>,
}

/// Whether the name of a file is that of a head.
pub fn is_head_name(name: &str) -> bool {
    head_number(name).is_some()
}

/// Whether there is an archive in volumes at a place.
///
/// # Errors
/// `Io`.
pub fn holds_archive(place: &dyn VolumePlace) -> Result<bool> {
    Ok(heads::newest_number(place)?.is_some())
}

/// Whether a place has nothing, or only what a first run left that did not end: an archive can
/// begin there.
///
/// # Errors
/// `Io`.
pub fn may_begin(place: &dyn VolumePlace) -> Result<bool> {
    // What sorts before, between and behind the names of volumes.
    let names = place.names("", OTHERS_MAX)?;
    Ok(names.iter().all(|name| VolumeName::parse(name).is_some()))
}

/// How many names are looked at to see whether a folder is used for something else.
const OTHERS_MAX: usize = 1000;

/// The bytes of the archive at a place: of the newest head, or of the one with this name. Volumes
/// are opened when they are read. If one is gone then, because others took its place, those are
/// read, unless the head was named.
///
/// # Errors
/// `Usage` if there is none; `Damaged`, `Unsupported`, `Limit` for a head; `Io`.
pub fn open_volumes(place: &Arc<dyn VolumePlace>, head: Option<&str>) -> Result<Arc<dyn Source>> {
    let heads = heads_of(&**place, head)?;
    if head.is_some() {
        return Ok(place.joined(heads.joined())?);
    }
    Ok(Arc::new(FollowingSource::new(Arc::clone(place), &heads)?))
}

/// The files that the archive needs: its heads and its volumes, from front to back. All others can
/// be deleted.
///
/// # Errors
/// As [`open_volumes`].
pub fn needed_files(place: &dyn VolumePlace, head: Option<&str>) -> Result<Vec<VolumeFile>> {
    let heads = heads_of(place, head)?;
    let newest = VolumeFile {
        name: head_name(heads.number),
        length_bytes: None,
        digest: None,
    };
    let base = heads.base.map(|base| VolumeFile {
        name: head_name(base.number),
        length_bytes: None,
        digest: Some(base.digest),
    });
    let volumes = heads.volumes.iter().map(|volume| VolumeFile {
        name: volume.name.to_string(),
        length_bytes: Some(volume.data_bytes()),
        digest: Some(volume.digest),
    });
    Ok([newest].into_iter().chain(base).chain(volumes).collect())
}

/// Names of files that no head will ever need again: volumes of runs that did not end, or that
/// newer ones stand for. Those of a run that is still writing are not among them.
///
/// # Errors
/// As [`open_volumes`].
pub fn orphans(place: &dyn VolumePlace) -> Result<Vec<String>> {
    let heads = heads_of(place, None)?;
    let mut needed: Vec<_> = heads.volumes.iter().map(|volume| volume.name).collect();
    needed.sort_unstable();
    let names = place.names(VOLUME_PREFIX, usize::MAX)?.into_iter();
    let is_orphan = |text: &String| {
        // Only the head with this number can list it first.
        VolumeName::parse(text)
            .is_some_and(|name| name.head <= heads.number && needed.binary_search(&name).is_err())
    };
    Ok(names.filter(is_orphan).collect())
}

fn heads_of(place: &dyn VolumePlace, head: Option<&str>) -> Result<Heads> {
    let found = match head {
        Some(name) => head_number(name).map(|number| Heads::read(place, number)),
        None => Heads::newest(place)?.map(Ok),
    };
    found.unwrap_or_else(|| {
        let text = format!("there is no archive in volumes: no file begins with {HEAD_PREFIX}");
        Err(Error::new(ErrorKind::Usage, text))
    })
}

#[cfg(test)]
mod tests;
