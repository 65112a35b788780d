//! Serves an archive to the kernel as a read-only file system (FUSE).
//!
//! [`Mount::new`] mounts, [`Mount::serve`] answers the kernel's requests until the file system is
//! unmounted. The archive does not change, so every reply lets the kernel cache what it has seen:
//! names, even missing ones, attributes, links, directory lists and content. Opening and closing
//! files takes no requests.
//!
//! A request that waits for a slow source holds a thread, but no other request.
//!
//! Damage stays local: reading a range whose blocks cannot be decoded is an input-output error
//! (EIO), and the service's reporter is told which range.

mod buffers;
mod convert;
mod dispatcher;
mod files_ahead;
mod handler;
mod mount;
mod mount_point;
mod mounts;
mod options;
mod page_cache;
mod read_ahead;
mod seek;
mod spin;
mod watcher;

pub use mount::{Mount, Unmounter};
pub use options::MountOptions;
