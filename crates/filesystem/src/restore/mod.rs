//! A tree restored below a target directory, from many threads at once.
//!
//! | file | contents |
//! |---|---|
//! | `options.rs` | [`RestoreOptions`], [`OwnerPolicy`] |
//! | `path.rs` | paths from an archive that cannot leave the target |
//!
//! `target.rs`
//! the target: a new directory under a temporary name, or an existing one
//!
//! `abandoned.rs`
//! temporary names, and what killed processes left behind
//!
//! `directories.rs`
//! open directories, and their creation
//! | `created.rs` | what was created, so that nothing else is replaced or removed |
//! | `path_log.rs` | notes about paths, in bounded memory |
//!
//! `accounts.rs`
//! translates names of users and groups to ids of this machine
//! | `metadata.rs` | owners, extended attributes, modes and times |
//! | `metadata_bytes.rs` | the metadata of a directory as bytes |
//! | `shared.rs` | what the parts of one restore share |
//! | `file.rs` | one file: [`RestoredFile`] |
//!
//! `unnamed.rs`
//! files in an existing target, until they are complete
//!
//! `replace.rs`
//! entries that replace existing ones
//! | `special.rs` | symbolic links, devices, FIFOs and hard links |
//!
//! `tree.rs`
//! joins them: [`TreeRestore`]
//! | `unconfirmed.rs` | files that wait to be read back |
//! | `waiting_links.rs` | hard links until their files are restored |
//! | `summary.rs` | what was restored, what failed, what was not permitted |

mod abandoned;
mod accounts;
mod created;
mod directories;
mod directory;
mod file;
mod metadata;
mod metadata_bytes;
mod options;
mod path;
mod path_log;
mod replace;
mod shared;
mod special;
mod summary;
mod target;
mod tree;
mod unconfirmed;
mod unnamed;
mod waiting_links;

pub use file::RestoredFile;
pub use options::{OwnerPolicy, RestoreOptions};
pub use shared::RestoredObserver;
pub use summary::{HardLink, LeftOut, Problem, RestoreSummary};
pub use tree::TreeRestore;

#[cfg(test)]
mod tests;
