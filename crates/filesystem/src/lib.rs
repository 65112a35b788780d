//! Directories walked, prefetched and restored as entries.
//!
//! | module | contents |
//! |---|---|
//! | `walk` | a directory as entries: [`Walker`]; the data of its files: [`FileRoot`] |
//! | `prefetch` | threads that request readahead: [`Prefetcher`] |
//! | [`restore`] | entries restored below a directory, from many threads |
//! | `reader`, `stream_file` | a directory as a tar stream: [`TreeReader`] |
//! | `sink` | a tar stream as a directory: [`TreeSink`] |

#![forbid(unsafe_code)]

mod error;
mod open;
mod prefetch;
mod reader;
pub mod restore;
mod sink;
mod stream_file;
mod walk;

pub use open::open_regular_file;
pub use prefetch::Prefetcher;
pub use reader::{HeaderObserver, ProblemObserver, StreamedHeader, TreeReader};
pub use sink::TreeSink;
pub use walk::{FileRoot, OpenedFile, Problem, ProblemKind, WalkOptions, Walker, relative_path};

#[cfg(test)]
mod tests;
