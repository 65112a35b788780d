//! Bytes in volumes: files in a folder, or objects in a bucket, that are created and deleted, and
//! never changed.
//!
//! A [`VolumePlace`] is such a folder. What its volumes mean, and in which order they follow one
//! another, is its user's business; small files tell that.
//!
//! | file | contents |
//! |---|---|
//! | `place` | [`VolumePlace`]: what such a folder can do |
//! | `layout` | which bytes of which volumes a range of the joined bytes is |
//! | `folder` | [`VolumeFolder`]: a folder on this machine |
//! | `folder_source` | files of a folder, one behind the other |

mod folder;
mod folder_source;
mod layout;
mod place;

pub use folder::VolumeFolder;
#[cfg(feature = "remote")]
pub(crate) use folder_source::{missing, other_length};
pub use layout::{JoinedVolume, Layout, Place};
pub use place::{Alone, VolumeLock, VolumePlace};
