#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! |---|---|
//! | `walk` | a directory as entries: [`Walker`]; the data of its files: [`FileRoot`] |
//! | `prefetch` | threads that request readahead: [`Prefetcher`] |
//! | [`restore`] | entries restored below a directory, from many threads |
//! | `tar_sink` | a tar stream restored while it arrives: [`TarSink`] |

#![forbid(unsafe_code)]

mod error;
mod prefetch;
pub mod restore;
mod tar_sink;
mod walk;

pub use prefetch::Prefetcher;
pub use tar_sink::TarSink;
pub use walk::{FileRoot, OpenedFile, Problem, ProblemKind, WalkOptions, Walker, relative_path};
