//! The handler to the kernel: an archive as a read-only file system (FUSE).
//!
//! [`Mount::new`] mounts, [`Mount::serve`] answers the kernel's requests until the file system is
//! unmounted. The archive does not change, so the kernel may retain all that it has seen: names,
//! also those that do not exist, attributes, links, lists of directories and content. It is told so
//! in every reply, and needs no requests to open or close files.
//!
//! What is damaged fails alone: the ranges of a file whose blocks cannot be decoded are an
//! input-output error (EIO), and the service's reporter is told which.

mod buffers;
mod convert;
mod files_ahead;
mod handler;
mod mount;
mod mount_point;
mod options;
mod page_cache;
mod read_ahead;
mod reports;
mod seek;
mod spin;

pub use mount::{Mount, Unmounter};
pub use options::MountOptions;
