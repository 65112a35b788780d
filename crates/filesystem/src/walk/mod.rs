//! Lists directories as entries with all metadata, and opens their files.
//!
//! | module | contents |
//! |---|---|
//! | `walker` | [`Walker`]: the entries of a tree in path order |
//! | `directories` | the open directories between the root and the current entry |
//! | `names` | the names of one directory |
//! | `listed` | lists of paths instead of whole trees |
//! | `cache_tag` | directories that are marked as caches |
//! | `computed` | file systems that state no sizes |
//! | `metadata`, `attributes`, `owners` | what is recorded about one file |
//! | `file_root` | [`FileRoot`], [`OpenedFile`]: the files' data |
//! | `data_ranges` | the data and the holes of sparse files |
//! | `problem` | [`Problem`]: what is missing, and why |

mod attributes;
mod cache_tag;
mod computed;
mod data_ranges;
mod directories;
mod file_root;
mod listed;
mod metadata;
mod names;
mod owners;
mod problem;
mod walker;

#[cfg(test)]
mod tests;

pub use file_root::{FileRoot, OpenedFile};
pub use problem::{Problem, ProblemKind};
pub use walker::{WalkOptions, Walker, relative_path};
