//! Directories: what is stored, what is restored, and what is reported about both.
//!
//! A [`Selection`] has the rules for which entries are wanted; [`WalkOptions`] decide what of a
//! directory is stored; a [`TreeRestore`] writes entries below a target according to
//! [`RestoreOptions`]. A [`Problem`] names a file that an archive lacks or has not as it was at one
//! moment, a [`RestoreProblem`] one that was not restored, or not completely. [`compare_paths`]
//! defines the order of a directory's entries.

pub use refrain_entries::tar::cut_from;
pub use refrain_entries::{Decision, Selection, SelectionBuilder, SelectionError, compare_paths};
pub use refrain_filesystem::restore::{
    LeftOut, OwnerPolicy, Problem as RestoreProblem, RestoreOptions, RestoreSummary,
    RestoredObserver, TreeRestore,
};

pub use refrain_filesystem::{Problem, ProblemKind, WalkOptions};
