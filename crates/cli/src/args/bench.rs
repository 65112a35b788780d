//! `refrain bench`: what to measure.

use std::path::PathBuf;

/// Compare Refrain with other programs on FILE, as whole processes, and print a table.
///
/// The runs of all contenders alternate (A B A B), after one warm-up run each; the table shows
/// medians. The first peer is the baseline of the column "of baseline".
#[derive(Debug, Clone, clap::Args)]
pub struct BenchArgs {
    /// Files to measure with; each gets its own table
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// A command line to compare with; may be repeated
    ///
    /// For zstd, lrzip, xz, 7zz, zpaq, gzip, bzip2, lz4 and similar programs, name and options are
    /// enough, for example 'zstd -3 --long=31 -T2'. For other programs, `{}` stands for the input
    /// file (default: the last argument), `{out}` for the output file (default: standard output),
    /// and the argument `<` redirects the input to standard input. A decompression command may
    /// follow after ':::', for example 'mytool -c < ::: mytool -d {} {out}'.
    #[arg(long = "peer", value_name = "COMMAND")]
    pub peer_commands: Vec<String>,

    /// Predefined peers with suitable options, by name: zstd, lrzip, xz, 7zz, zpaq, or 'default'
    /// for all of them
    ///
    /// Programs that are not installed are skipped with a note.
    #[arg(long = "peers", value_name = "NAMES", value_delimiter = ',')]
    pub peer_names: Vec<String>,

    /// Levels of Refrain to measure
    #[arg(
        long,
        value_name = "LEVELS",
        value_delimiter = ',',
        default_value = "1,3,6",
        value_parser = clap::value_parser!(u8).range(1..=9)
    )]
    pub levels: Vec<u8>,

    /// A further Refrain contender, given by its `compress` options; may be repeated
    ///
    /// For example '--codec none' or '--level 3 --memory 256M'.
    #[arg(long = "refrain", value_name = "OPTIONS", allow_hyphen_values = true)]
    pub refrain_options: Vec<String>,

    /// Measured runs per contender, after one warm-up run
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub runs: u32,

    /// Programs whose warm-up takes longer than this are not run again: it counts as their only run
    #[arg(
        long = "single-above",
        value_name = "SECONDS",
        conflicts_with = "discard"
    )]
    pub single_above_seconds: Option<u64>,

    /// Threads for Refrain and the predefined peers (default: one per processor)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,

    /// Also measure decompression, and compare its output with the input
    #[arg(long)]
    pub decompress: bool,

    /// Also measure `refrain test` on Refrain's archives
    #[arg(long)]
    pub test: bool,

    /// Also time N reads of 4 KiB at random offsets in each of Refrain's archives
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub reads: u32,

    /// Treat FILEs as archives: time the reads in this process and print JSON (used by `--reads`)
    #[arg(long, hide = true)]
    pub read_archive: bool,

    /// In measured runs, send output to /dev/null instead of a file (only for programs that write
    /// to standard output)
    #[arg(long)]
    pub discard: bool,

    /// Directory for the contenders' output (default: the system's temporary directory)
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,

    /// Print a Markdown table
    #[arg(long)]
    pub markdown: bool,
}

impl BenchArgs {
    /// The number of threads of every contender.
    pub fn thread_count(&self) -> u32 {
        self.threads.unwrap_or_else(|| {
            let available = refrain_pool::processors();
            u32::try_from(available).unwrap_or(u32::MAX)
        })
    }
}
