//! The arguments of `refrain lab`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::size::Size;

/// `refrain lab`
#[derive(Debug, Args)]
#[command(after_help = LAB_TEXT)]
pub struct LabArgs {
    /// What to measure (default: everything; --list shows the choices)
    #[arg(value_name = "EXPERIMENT", value_parser = PossibleValuesParser::new(names()))]
    pub experiments: Vec<String>,
    /// List the experiments with what they measure, and exit
    #[arg(
        long,
        conflicts_with_all = ["experiments", "directory", "memory", "output", "save", "compare", "json", "quiet"]
    )]
    pub list: bool,
    /// Measure for a shorter time, less exactly: everything takes less than 20 seconds
    #[arg(long)]
    pub quick: bool,
    /// Directory for the files of disk and atomicity, which measure its file system (default:
    /// TMPDIR or /var/tmp, if on a disk)
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
    /// Maximum memory of an experiment (at least 16M); larger sizes are left out
    #[arg(short = 'M', long, value_name = "SIZE", default_value = "384M")]
    pub memory: Size,
    /// Write a page with charts to FILE
    #[arg(short, long, value_name = "FILE.html", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite an existing FILE.html
    #[arg(short, long, requires = "output")]
    pub force: bool,
    /// Save settings for later runs as this machine's profile, in ~/.config/refrain/machine.json;
    /// measures what it needs
    #[arg(long)]
    pub save: bool,
    /// Measure what the profile gains: alternates between the defaults and the profile
    #[arg(long)]
    pub compare: bool,
    /// No tables
    #[arg(short, long)]
    pub quiet: bool,
    /// One JSON document on standard output instead of tables
    #[arg(long)]
    pub json: bool,
}

fn names() -> impl Iterator<Item = &'static str> {
    refrain_lab::ALL.iter().map(|experiment| experiment.name())
}

const LAB_TEXT: &str = "\
Each table is followed by what it says, in words. 'n/a' is what could not be measured, with the reason. \
Measure on a machine that does nothing else. Files have no name once they are open, so nothing is left \
behind. The profile sets the capacity of pipes and the pages of tables; a profile of another machine is \
ignored, and without one the defaults hold.";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{RefrainArgs, Verb};

    #[test]
    fn experiments_are_named_and_others_refused() {
        let parsed = |words: &[&str]| {
            let words = ["refrain", "lab"].iter().chain(words);
            RefrainArgs::try_parse_from(words)
        };
        let Verb::Lab(args) = parsed(&["cache", "pipe", "--quick"]).unwrap().verb else {
            panic!("another verb");
        };
        assert_eq!(args.experiments, ["cache", "pipe"]);
        assert_eq!(args.memory.bytes, 384 << 20);
        let refused = parsed(&["cash"]).unwrap_err().to_string();
        assert!(refused.contains("'cache'"), "{refused}");
    }
}
