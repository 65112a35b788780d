//! Options that select entries of directories to store, restore or list.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// The patterns that select entries.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct PatternArgs {
    /// Leave out what matches PATTERN and everything below it (may be repeated; the syntax is
    /// described at the end)
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<OsString>,
    /// As --exclude, for each line of FILE; patterns of --exclude come later and so take precedence
    #[arg(long, value_name = "FILE")]
    pub exclude_from: Vec<PathBuf>,
    /// Only what matches PATTERN and everything below it (may be repeated)
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<OsString>,
}

impl PatternArgs {
    /// The name of an option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (!self.exclude.is_empty(), "--exclude"),
            (!self.exclude_from.is_empty(), "--exclude-from"),
            (!self.include.is_empty(), "--include"),
        ];
        first_given(&given)
    }
}

/// Options for storing a directory.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Selection")]
pub struct WalkArgs {
    #[command(flatten)]
    pub patterns: PatternArgs,
    /// Of a directory with a CACHEDIR.TAG, store only the directory and the tag
    #[arg(long)]
    pub exclude_caches: bool,
    /// Store only the paths in FILE, one per line, relative to DIR (default: the current
    /// directory); '-' is standard input. A directory does not include what is below it
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,
    /// The paths in --files-from end with NUL (as from `find -print0` or `refrain list -0`)
    #[arg(short = '0', long, requires = "files_from")]
    pub null: bool,
    /// Do not enter other file systems
    #[arg(long)]
    pub one_file_system: bool,
    /// Fail at the first unreadable file instead of leaving it out
    #[arg(long)]
    pub strict: bool,
}

impl WalkArgs {
    /// The name of an option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.exclude_caches, "--exclude-caches"),
            (self.files_from.is_some(), "--files-from"),
            (self.one_file_system, "--one-file-system"),
            (self.strict, "--strict"),
        ];
        self.patterns.given().or_else(|| first_given(&given))
    }
}

/// The owners of restored entries.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Directories")]
pub struct OwnerArgs {
    /// Restore owners and groups, and report failures (default: restore what is permitted, which is
    /// everything for root)
    #[arg(long, overrides_with = "no_same_owner")]
    pub same_owner: bool,
    /// Make restored files belong to the user who restores them
    #[arg(long, overrides_with = "same_owner")]
    pub no_same_owner: bool,
    /// Restore owners and groups by number, not by name
    #[arg(long, conflicts_with = "no_same_owner")]
    pub numeric_owner: bool,
}

impl OwnerArgs {
    /// The name of an option that was given.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.same_owner, "--same-owner"),
            (self.no_same_owner, "--no-same-owner"),
            (self.numeric_owner, "--numeric-owner"),
        ])
    }
}

/// The syntax of patterns, for the help of verbs that accept them.
pub const PATTERNS_TEXT: &str = "\
Patterns have the syntax of gitignore and are relative to the root of a directory. `*` stands for \
any bytes of one name, `?` for one, `[a-z]` for one of these, `**` for any number of names. Without \
a slash, or with one at its end only, a pattern matches names at any depth (*.o); with a slash at \
its beginning or inside it matches paths from the root (/build, docs/*.html). A slash at the end \
restricts it to directories. `!` takes back what earlier patterns matched: the last pattern that \
matches decides. What is below an excluded directory cannot be taken back.";

fn first_given(options: &[(bool, &'static str)]) -> Option<&'static str> {
    let given = options.iter().find(|(is_given, _)| *is_given);
    given.map(|(_, name)| *name)
}
