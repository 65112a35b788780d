//! `refrain hash`: the flags of md5sum, sha256sum and b3sum.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use refrain::DigestAlgorithm;

use super::ReportArgs;
use super::resources::ThreadArgs;

/// `refrain hash`
#[derive(Debug, Args)]
#[command(after_help = "\
Lines are those of md5sum, sha256sum and b3sum, and these read each other's. With --check each FILE holds such lines, in
either form. Where no algorithm is asked for, a line with a tag says it itself; else 32 digits are MD5 and 64 are BLAKE3.
MD5 finds accidents, not forgery.

Exit codes are md5sum's: 0 when all was read (and all checksums matched), 1 when not; 130 when interrupted.")]
pub struct HashArgs {
    /// Files; '-' (or nothing, on a pipe) is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub function: AlgorithmArgs,
    /// Read checksums from FILEs and check them
    #[arg(short, long)]
    pub check: bool,
    /// Write lines that name the algorithm (BSD's form)
    #[arg(long, conflicts_with = "check")]
    pub tag: bool,
    /// Mark names as read in binary mode (no difference here)
    #[arg(short, long, overrides_with = "text")]
    pub binary: bool,
    /// Do not mark names (the default)
    #[arg(short, long, overrides_with = "binary")]
    pub text: bool,
    /// End lines with a zero byte and write names as they are
    #[arg(short, long, conflicts_with = "check")]
    pub zero: bool,
    #[command(flatten)]
    pub checking: CheckingArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    /// With --check: no line for files that match. No progress
    #[arg(short, long)]
    pub quiet: bool,
    /// One JSON document on standard output instead of lines
    #[arg(long)]
    pub json: bool,
}

/// Which function.
#[derive(Debug, Clone, Copy, Default, Args)]
#[group(multiple = false)]
pub struct AlgorithmArgs {
    /// The function; default: b3 (BLAKE3)
    #[arg(short, long, value_name = "NAME")]
    pub algorithm: Option<AlgorithmArg>,
    /// Short for --algorithm md5
    #[arg(long)]
    pub md5: bool,
    /// Short for --algorithm sha256
    #[arg(long)]
    pub sha256: bool,
    /// Short for --algorithm b3
    #[arg(long, alias = "blake3")]
    pub b3: bool,
}

/// What is told about what does not match.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Checking")]
pub struct CheckingArgs {
    /// Leave out files that are not there
    #[arg(long, requires = "check")]
    pub ignore_missing: bool,
    /// Write nothing; the exit code tells
    #[arg(long, requires = "check")]
    pub status: bool,
    /// Lines that are no checksums are failures too
    #[arg(long, requires = "check")]
    pub strict: bool,
    /// Tell each line that is no checksum
    #[arg(short, long, requires = "check")]
    pub warn: bool,
}

/// [`DigestAlgorithm`] as the command line has it.
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
    /// The engine's name for it.
    pub fn algorithm(self) -> DigestAlgorithm {
        match self {
            AlgorithmArg::Md5 => DigestAlgorithm::Md5,
            AlgorithmArg::Sha256 => DigestAlgorithm::Sha256,
            AlgorithmArg::B3 => DigestAlgorithm::Blake3,
        }
    }
}

impl AlgorithmArgs {
    /// The function that was asked for, if any.
    pub fn asked_for(&self) -> Option<DigestAlgorithm> {
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
    /// How much is told while it runs.
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
    fn algorithms_have_long_and_short_forms() {
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
            let asked_for = parse(line).map(|args| args.function.asked_for());
            assert_eq!(asked_for, Some(expected), "{line}");
        }
        assert!(parse("--md5 --b3").is_none());
        assert!(parse("--md5 -a md5").is_none());
    }

    #[test]
    fn what_belongs_to_checking_needs_it() {
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
