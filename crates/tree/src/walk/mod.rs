//! Directories as entries: listing a tree with all metadata, opening its files, and the order in
//! which their contents are best stored.
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
//! | `order`, `siblings`, `name_order` | [`content_order`]: siblings side by side |

#[cfg(feature = "filesystem")]
mod attributes;
#[cfg(feature = "filesystem")]
mod cache_tag;
#[cfg(feature = "filesystem")]
mod computed;
#[cfg(feature = "filesystem")]
mod data_ranges;
#[cfg(feature = "filesystem")]
mod directories;
#[cfg(feature = "filesystem")]
mod file_root;
#[cfg(feature = "filesystem")]
mod listed;
#[cfg(feature = "filesystem")]
mod metadata;
mod name_order;
#[cfg(feature = "filesystem")]
mod names;
mod order;
#[cfg(feature = "filesystem")]
mod owners;
#[cfg(feature = "filesystem")]
mod problem;
mod siblings;
#[cfg(feature = "filesystem")]
mod walker;

#[cfg(all(test, feature = "filesystem"))]
mod tests;

#[cfg(feature = "filesystem")]
pub use file_root::{FileRoot, OpenedFile};
pub use order::content_order;
#[cfg(feature = "filesystem")]
pub use problem::{Problem, ProblemKind};
#[cfg(feature = "filesystem")]
pub(crate) use walker::OWN_OUTPUT_TEXT;
#[cfg(feature = "filesystem")]
pub use walker::{WalkOptions, Walker, relative_path};
