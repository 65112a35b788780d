//! Directories as entries, tar as a view of them, and both restored as files.
//!
//! [`TreeReader`] reads a directory as a tar stream and collects the list of its entries.
//! [`TreeSink`] receives such a stream in pieces of any length and restores it, never outside its
//! root. Between them are pure functions over bytes: [`TarHeader`] encodes and parses one header,
//! [`TarParser`] parses a stream that is pushed to it. [`Entry`] describes one file, directory,
//! link or device; its paths are bytes.
//!
//! The stream of [`TreeReader`] is POSIX.1-2001 pax (IEEE Std 1003.1-2017, "pax Interchange
//! Format"), so that any tar program can read it. It has no names of users, no extended attributes
//! and no access control lists; the entries of [`Walker`] have all of them, and [`restore`]
//! restores them as far as the user may.
//!
//! | module | contents | feature |
//! |---|---|---|
//! | `entry` | [`Entry`], [`EntryKind`], [`Timestamp`] | |
//! | `path_order` | the order of entries: [`compare_paths`] | |
//! | `header` | the bytes of a tar header: [`TarHeader`] | |
//! | `parser` | the push parser: [`TarParser`] and its [`TarHandler`] | |
//! | [`tar`] | the tar view: [`tar::TarView`]; tar streams taken apart: [`tar::TarSplitter`] | |
//! | `reader`, `stream_file` | a directory as a tar stream: [`TreeReader`] | `filesystem` |
//! | `prefetch` | threads that request readahead for the reader | `filesystem` |
//! | [`restore`] | entries restored below a directory, from many threads | `filesystem` |
//! | `sink` | a tar stream as a directory: [`TreeSink`] | `filesystem` |
//! | `selection` | which entries are wanted: [`Selection`] | |
//! | `walk` | a directory as entries: [`Walker`], [`FileRoot`], [`content_order`] | in part |
//!
//! Without the feature `filesystem` (on by default) the crate uses no files. With it, it takes
//! threads, a lock and a clock from the worker pool's crate, and [`Sink`](refrain_storage::Sink)
//! from `refrain-storage`. It does not depend on the engine:
//!
//! ```
//! # #[cfg(feature = "filesystem")] {
//! use std::io::Read;
//!
//! use refrain_storage::Sink;
//! use refrain_tree::{EntryKind, TreeReader, TreeSink};
//!
//! let directory = tempfile::tempdir()?;
//! let (original, copy) = (directory.path().join("original"), directory.path().join("copy"));
//! std::fs::create_dir(&original)?;
//! std::fs::write(original.join("a"), "content")?;
//!
//! let mut reader = TreeReader::open(&original)?;
//! let mut stream = Vec::new();
//! reader.read_to_end(&mut stream)?;
//! let entries = reader.take_entries();
//! assert_eq!(entries[1].path, b"a");
//! assert_eq!(entries[1].kind, EntryKind::File);
//!
//! let overwrite = false;
//! let mut sink = TreeSink::create(&copy, overwrite)?;
//! sink.write_all(&stream)?;
//! sink.publish()?;
//! assert_eq!(std::fs::read(copy.join("a"))?, b"content");
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

mod entry;
#[cfg(feature = "filesystem")]
mod error;
mod header;
#[cfg(feature = "filesystem")]
mod open;
mod parser;
mod path_order;
#[cfg(feature = "filesystem")]
mod prefetch;
#[cfg(any(test, feature = "property"))]
pub mod property;
#[cfg(feature = "filesystem")]
mod reader;
#[cfg(feature = "filesystem")]
pub mod restore;
mod selection;
#[cfg(feature = "filesystem")]
mod sink;
#[cfg(feature = "filesystem")]
mod stream_file;
pub mod tar;
mod walk;

pub use entry::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};
pub use header::{HeaderError, TarHeader};
#[cfg(feature = "filesystem")]
pub use open::open_regular_file;
pub use parser::{TarError, TarHandler, TarParser};
pub use path_order::{ascend, compare_paths};
#[cfg(feature = "filesystem")]
pub use prefetch::Prefetcher;
#[cfg(feature = "filesystem")]
pub use reader::{HeaderObserver, ProblemObserver, StreamedHeader, TreeReader};
pub use selection::{Decision, Selection, SelectionBuilder, SelectionError};
#[cfg(feature = "filesystem")]
pub use sink::TreeSink;
pub use tar::{RECORD_BYTES, padding_bytes};
pub use walk::content_order;
#[cfg(feature = "filesystem")]
pub use walk::{FileRoot, OpenedFile, Problem, ProblemKind, WalkOptions, Walker, relative_path};

#[cfg(test)]
#[cfg(feature = "filesystem")]
mod tests;
