//! `refrain VERB`: the verbs and what each takes.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand, ValueEnum};
use refrain::storage::Source;
use refrain::{Archive, ReadOptions};

use super::{
    ByteRange, CompressionArgs, HashArgs, OutputArgs, PasswordArgs, ReportArgs, ResourceArgs,
};
use crate::exit::EXIT_CODES_TEXT;

/// Long-range archives: finds what repeats anywhere in a big input, stores it once, and gives any
/// byte back fast.
#[derive(Debug, Parser)]
#[command(name = "refrain", version, after_help = EXIT_CODES_TEXT)]
pub struct Arguments<V: Subcommand> {
    /// What to do.
    #[command(subcommand)]
    pub verb: V,
    /// Tell at the end, on standard error, what each stage of the work took
    #[arg(long, global = true, help_heading = "Reporting")]
    pub profile: bool,
    /// Use processors and disks only while nothing else wants them (Linux: the idle classes)
    #[arg(long, global = true, help_heading = "Resources")]
    pub background: bool,
}

/// The whole program's.
pub type RefrainArgs = Arguments<Verb>;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Compress files, directories or a pipe
    Compress(CompressArgs),
    /// Restore what an archive holds
    Decompress(DecompressArgs),
    /// Check every byte of archives and write nothing
    Test(TestArgs),
    /// Tell what archives are made of
    Info(InfoArgs),
    /// List members, and the entries of packed directories
    List(ListArgs),
    /// Write a member, an entry or a range of it to standard output
    Cat(CatArgs),
    /// Digests of files, made and checked as md5sum, sha256sum and b3sum do
    Hash(HashArgs),
    /// Measure against other programs on your own files
    Bench(crate::bench::BenchArgs),
    /// Write manual pages or completions for shells
    Generate(GenerateArgs),
}

/// The verbs whose whole run may take less time than declaring all of them.
#[derive(Debug, Subcommand)]
pub enum LittleVerb {
    /// `refrain hash`
    Hash(HashArgs),
}

impl LittleVerb {
    /// Whether one of them is called so.
    pub fn has_name(name: &OsStr) -> bool {
        name.to_str().is_some_and(Self::has_subcommand)
    }
}

impl From<Arguments<LittleVerb>> for RefrainArgs {
    fn from(little: Arguments<LittleVerb>) -> RefrainArgs {
        let LittleVerb::Hash(args) = little.verb;
        RefrainArgs {
            verb: Verb::Hash(args),
            profile: little.profile,
            background: little.background,
        }
    }
}

/// `refrain compress`
#[derive(Debug, Args)]
#[command(after_help = "\
Without -o each FILE becomes FILE.rfn; a directory is packed as a tar stream with an entry list.
With -o several inputs become several members of one archive. Sources are kept.
With --format lrz each FILE becomes FILE.lrz, a directory DIR.tar.lrz, which keep neither name nor mode nor time.")]
pub struct CompressArgs {
    /// Files or directories; '-' (or nothing, on a pipe) is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub compression: CompressionArgs,
    #[cfg(feature = "lrzip")]
    #[command(flatten)]
    pub lrzip: super::LrzipArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain decompress`
#[derive(Debug, Args)]
#[command(after_help = "\
Without -o a single file is restored beside its archive without the suffix .rfn (or .lrz); a packed directory
beside its archive under its own name; several members below the current directory. Standard input
goes to standard output.
With -o PATH an only member becomes PATH: a file goes below PATH if that is a directory or ends
in '/', a packed directory is added to PATH if that is there. Several members go below PATH by their
names. To standard output they are written one after the other, packed directories as tar streams.
What is restored shows under its name when it is whole and checked.")]
pub struct DecompressArgs {
    /// Archives; '-' (or nothing, on a pipe) is standard input
    #[arg(value_name = "ARCHIVE")]
    pub archives: Vec<PathBuf>,
    /// What is no archive goes to standard output as it is: the habit of `zcat -f`.
    #[arg(skip)]
    pub passes_on: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub password: PasswordArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain test`
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Archives; '-' (or nothing, on a pipe) is standard input
    #[arg(value_name = "ARCHIVE")]
    pub archives: Vec<PathBuf>,
    #[command(flatten)]
    pub password: PasswordArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// How an archive is opened for reading parts of it
#[derive(Debug, Args, Default)]
pub struct OpeningArgs {
    /// Look for every frame that is whole instead of trusting the index: for a damaged archive; reads all of it
    #[arg(long)]
    pub scan: bool,
}

impl OpeningArgs {
    /// Opens `source` as asked.
    pub fn open(&self, source: Arc<dyn Source>, options: &ReadOptions) -> refrain::Result<Archive> {
        match self.scan {
            true => Archive::open_by_scan(source, options),
            false => Archive::open(source, options),
        }
    }
}

/// `refrain info`
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Archives; '-' is standard input, which must be a file
    #[arg(value_name = "ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    /// One line per archive: sizes, ratio, name
    #[arg(long)]
    pub table: bool,
    #[command(flatten)]
    pub opening: OpeningArgs,
    #[command(flatten)]
    pub password: PasswordArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain list`
#[derive(Debug, Args)]
#[command(after_help = "\
Every line names something that `refrain cat ARCHIVE PATH` can write. -v adds kind, mode, size and \
time of modification.")]
pub struct ListArgs {
    /// Archives; '-' is standard input, which must be a file
    #[arg(value_name = "ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    #[command(flatten)]
    pub opening: OpeningArgs,
    #[command(flatten)]
    pub password: PasswordArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain cat`
#[derive(Debug, Args)]
#[command(after_help = "\
PATH is as `refrain list` shows it. Only the blocks that hold the range are read.")]
pub struct CatArgs {
    /// The archive; '-' is standard input, which must be a file
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// A member, or a file of a packed directory; default: the only member
    #[arg(value_name = "PATH")]
    pub path: Option<OsString>,
    /// Only bytes A to B (B excluded) of it; A.. and ..B are open, sizes may have suffixes
    #[arg(long, value_name = "A..B")]
    pub range: Option<ByteRange>,
    /// Write to a terminal, whatever the bytes are
    #[arg(short, long)]
    pub force: bool,
    #[command(flatten)]
    pub opening: OpeningArgs,
    #[command(flatten)]
    pub password: PasswordArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain generate`
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to write
    pub what: GenerateWhat,
    /// Where to; the directory is made
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// What `refrain generate` writes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum GenerateWhat {
    /// Manual pages, one per face and verb
    Man,
    /// Completions for bash, zsh and fish
    Completions,
    /// Links named lrzip, lrunzip, lrzcat, lrz, lrztar and lrzuntar, by which this program takes lrzip's place
    #[cfg(feature = "lrzip")]
    LrzipLinks,
    /// Manual pages for these names
    #[cfg(feature = "lrzip")]
    LrzipMan,
}
