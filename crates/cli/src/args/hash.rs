//! The arguments of `refrain hash`: the flags of md5sum, sha256sum and b3sum.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use refrain::DigestAlgorithm;

use super::report::ReportArgs;
use super::resources::ThreadArgs;

/// `refrain hash`
#[derive(Debug, Args)]
#[command(after_help = "\
Output lines have the format of md5sum, sha256sum and b3sum, which can check them. With --check each FILE holds such lines,
in either form. Without an algorithm option, a tagged line names its own algorithm; otherwise 32 digits are MD5 and 64 are
BLAKE3. MD5 detects accidental changes only, not forgery.

Exit codes are those of md5sum: 0 if every file was read (and every checksum matched), 1 if not; 128 plus the number of the
signal that ended the run.")]
pub struct HashArgs {
    /// Files; '-' (or nothing, on a pipe) is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub function: AlgorithmArgs,
    /// Read checksums from FILEs and verify them
    #[arg(short, long)]
    pub check: bool,
    /// Write the name of the algorithm in each line (BSD format)
    #[arg(long, conflicts_with_all = ["check", "json"])]
    pub tag: bool,
    /// Mark files as read in binary mode (the digest is the same)
    #[arg(short, long, overrides_with = "text", conflicts_with_all = ["check", "json"])]
    pub binary: bool,
    /// Do not mark files (the default)
    #[arg(short, long, overrides_with = "binary", conflicts_with_all = ["check", "json"])]
    pub text: bool,
    /// End lines with a NUL byte and do not escape names
    #[arg(short, long, conflicts_with_all = ["check", "json"])]
    pub zero: bool,
    #[command(flatten)]
    pub checking: CheckingArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    /// No progress; with --check, no line for files that match
    #[arg(short, long)]
    pub quiet: bool,
    /// One JSON document on standard output instead of lines
    #[arg(long)]
    pub json: bool,
}

/// The hash function.
#[derive(Debug, Clone, Copy, Default, Args)]
#[group(multiple = false)]
pub struct AlgorithmArgs {
    /// The hash function (default: b3, which is BLAKE3)
    #[arg(short, long, value_name = "NAME")]
    pub algorithm: Option<AlgorithmArg>,
    /// Same as --algorithm md5
    #[arg(long)]
    pub md5: bool,
    /// Same as --algorithm sha256
    #[arg(long)]
    pub sha256: bool,
    /// Same as --algorithm b3
    #[arg(long, alias = "blake3")]
    pub b3: bool,
}

/// The reports of `--check`.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Checking")]
pub struct CheckingArgs {
    /// Skip files that do not exist
    #[arg(long, requires = "check")]
    pub ignore_missing: bool,
    /// Write nothing; only the exit code reports the result
    #[arg(long, requires = "check")]
    pub status: bool,
    /// Fail for malformed lines too
    #[arg(long, requires = "check")]
    pub strict: bool,
    /// Warn about each malformed line
    #[arg(short, long, requires = "check")]
    pub warn: bool,
}

/// [`DigestAlgorithm`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AlgorithmArg {
    /// MD5 (RFC 1321)
    Md5,
    /// SHA-256 (FIPS 180-4)
    Sha256,
    /// BLAKE3
    #[value(alias = "blake3")]
    B3,
}

impl AlgorithmArg {
    /// The engine's value.
    pub fn algorithm(self) -> DigestAlgorithm {
        match self {
            AlgorithmArg::Md5 => DigestAlgorithm::Md5,
            AlgorithmArg::Sha256 => DigestAlgorithm::Sha256,
            AlgorithmArg::B3 => DigestAlgorithm::Blake3,
        }
    }
}

impl AlgorithmArgs {
    /// The function selected by the options, if any.
    pub fn requested(&self) -> Option<DigestAlgorithm> {
        let short = [
            (self.md5, DigestAlgorithm::Md5),
            (self.sha256, DigestAlgorithm::Sha256),
            (self.b3, DigestAlgorithm::Blake3),
        ];
        let short = short
            .iter()
            .find_map(|&(given, algorithm)| given.then_some(algorithm));
        short.or_else(|| self.algorithm.map(AlgorithmArg::algorithm))
    }
}

impl HashArgs {
    /// What is reported during the run.
    pub fn report(&self) -> ReportArgs {
        ReportArgs {
            quiet: self.quiet || self.checking.status,
            verbose: 0,
            json: self.json,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{RefrainArgs, Verb};

    fn parse(line: &str) -> Option<HashArgs> {
        let arguments = ["refrain", "hash"]
            .into_iter()
            .chain(line.split_whitespace());
        match RefrainArgs::try_parse_from(arguments).ok()?.verb {
            Verb::Hash(args) => Some(args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn algorithms_have_long_and_short_options() {
        use DigestAlgorithm::{Blake3, Md5, Sha256};
        for (line, expected) in [
            ("", None),
            ("--algorithm md5", Some(Md5)),
            ("-a sha256", Some(Sha256)),
            ("-a blake3", Some(Blake3)),
            ("-a b3", Some(Blake3)),
            ("--md5 x", Some(Md5)),
            ("--sha256", Some(Sha256)),
            ("--b3", Some(Blake3)),
        ] {
            let requested = parse(line).map(|args| args.function.requested());
            assert_eq!(requested, Some(expected), "{line}");
        }
        assert!(parse("--md5 --b3").is_none());
        assert!(parse("--md5 -a md5").is_none());
    }

    #[test]
    fn options_of_checking_require_check() {
        for flag in ["--ignore-missing", "--status", "--strict", "-w"] {
            assert!(parse(flag).is_none(), "{flag}");
            assert!(parse(&format!("-c {flag} sums")).is_some(), "{flag}");
        }
        for flag in ["--tag", "-z"] {
            assert!(parse(flag).is_some(), "{flag}");
            assert!(parse(&format!("-c {flag}")).is_none(), "{flag}");
        }
        assert!(parse("-b -t").is_some_and(|args| !args.binary));
    }
}
