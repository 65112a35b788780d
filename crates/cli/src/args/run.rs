//! Options of the whole run, accepted by every verb and `rfn`.

use std::path::PathBuf;

use clap::{Args, value_parser};

/// Options of the whole run.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// Print the time, CPU time and bytes of each stage of the work, and the locks that threads
    /// waited for, on standard error at the end, or write them to FILE.json. Other FILEs get
    /// samples of where threads spend their time: .svg (flame graph), .html (page with flame graph
    /// and tables) or .pb.gz (for pprof)
    #[arg(
        long,
        global = true,
        help_heading = "Reporting",
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        value_parser = profile_file
    )]
    #[allow(clippy::option_option, reason = "the option, and its value")]
    pub profile: Option<Option<ProfileFile>>,
    /// With --profile: count all locks, not only those that threads had to wait for; not for .svg
    /// and .pb.gz
    #[arg(long, global = true, help_heading = "Reporting", requires = "profile")]
    pub profile_locks: bool,
    /// Record what every thread does and when, and write it to FILE (.html: a page to look at;
    /// .json: the format of Chrome's trace viewer, which Perfetto opens)
    #[arg(
        long,
        global = true,
        help_heading = "Reporting",
        value_name = "FILE",
        value_parser = trace_file
    )]
    pub trace: Option<PathBuf>,
    /// Use only processor time and disk bandwidth that nothing else needs (Linux: the idle
    /// scheduling classes)
    #[arg(long, global = true, help_heading = "Resources")]
    pub background: bool,
    /// How soon the work of this run gets a processor beside other work of the same process: 0
    /// (insensitive to latency), 1 (default), 2 (sensitive) or 3 (exquisitely sensitive)
    #[arg(
        long,
        global = true,
        help_heading = "Resources",
        value_name = "CLASS",
        value_parser = value_parser!(u8).range(0..=3),
        conflicts_with = "background"
    )]
    pub latency: Option<u8>,
    /// Load the codec or filter in FILE: a shared library, or a source in C or Rust, which is
    /// compiled if it changed (`refrain plugin`). It can do whatever this program can. May be
    /// repeated
    #[arg(
        long,
        global = true,
        help_heading = "Plug-ins",
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath
    )]
    pub plugin: Vec<PathBuf>,
}

impl RunArgs {
    /// The files to write.
    pub fn outputs(&self) -> Vec<PathBuf> {
        let profile = self.profile.iter().flatten().map(|file| &file.path);
        profile.chain(&self.trace).cloned().collect()
    }
}

/// A file for a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its contents, by its ending.
    pub format: ProfileFormat,
}

/// The contents of a profile file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileFormat {
    /// The numbers of stages and locks.
    Json,
    /// A flame graph of samples.
    Svg,
    /// A page with a flame graph and tables of samples, and the numbers of stages.
    Html,
    /// Samples for pprof.
    Pprof,
}

impl ProfileFormat {
    /// Whether it shows the locks that threads waited for.
    pub fn has_locks(self) -> bool {
        matches!(self, ProfileFormat::Json | ProfileFormat::Html)
    }
}

const PROFILE_ENDINGS: [(&str, ProfileFormat); 4] = [
    (".json", ProfileFormat::Json),
    (".svg", ProfileFormat::Svg),
    (".html", ProfileFormat::Html),
    (".pb.gz", ProfileFormat::Pprof),
];

/// The name of a profile file.
fn profile_file(text: &str) -> Result<ProfileFile, String> {
    let found = PROFILE_ENDINGS
        .into_iter()
        .find(|(ending, _)| text.len() > ending.len() && text.ends_with(ending));
    match found {
        Some((_, format)) => Ok(ProfileFile {
            path: text.into(),
            format,
        }),
        None => {
            Err("a profile is written to a file that ends in .json, .svg, .html or .pb.gz".into())
        }
    }
}

/// The name of a trace file; its ending decides the format.
fn trace_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("html" | "json") => Ok(path),
        _ => Err("a trace is written to a file whose name ends in .html or .json".into()),
    }
}
