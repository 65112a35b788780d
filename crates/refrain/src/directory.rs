//! Directories: what is stored of them, what is restored, and what is reported about both.
//!
//! A [`Selection`] holds the rules about which entries are wanted; [`WalkOptions`] say what of a
//! directory is stored; a [`TreeRestore`] writes entries below a target by [`RestoreOptions`]. A
//! [`Problem`] names a file that is missing in an archive or was not stored as it was at one
//! moment, a [`RestoreProblem`] one that was not restored, or not completely. [`compare_paths`] is
//! the order of the entries of a directory.

pub use refrain_entries::tar::cut_from;
pub use refrain_entries::{Decision, Selection, SelectionBuilder, SelectionError, compare_paths};
pub use refrain_filesystem::restore::{
    LeftOut, OwnerPolicy, Problem as RestoreProblem, RestoreOptions, RestoreSummary,
    RestoredObserver, TreeRestore,
};

pub use refrain_filesystem::{Problem, ProblemKind, WalkOptions};
