//! `rfn`: translates the options of gzip, xz and zstd to the verbs of `refrain`.

use std::path::PathBuf;

use clap::Parser;

use super::compression::CompressionArgs;
use super::decoders::DecoderArgs;
use super::encryption::EncryptionArgs;
use super::generations::GenerationArgs;
use super::lrzip::LrzipArgs;
use super::opening::OpeningArgs;
use super::output::OutputArgs;
use super::password::SecretArgs;
use super::read_limits::ReadLimitArgs;
use super::report::ReportArgs;
use super::resources::ResourceArgs;
use super::run::RunArgs;
use super::selection::{OwnerArgs, PatternArgs, WalkArgs};
use super::signing::{NewSignatureArgs, TrustArgs};
use super::verb::{CompressArgs, DecompressArgs, InfoArgs, RefrainArgs, TestArgs, Verb};
use crate::exit::EXIT_CODES_TEXT;
use crate::paths::is_dash;

const PIPES_TEXT: &str = "\
Without FILE, rfn reads standard input, writes standard output and prints no summary (-v does), so that
`tar -I rfn` works. Sources are kept. Called as `unrfn` it decompresses, as `rfncat` it
decompresses to standard output. Settings of compression (-9, --codec) have no effect on
decompression and limits of reading none on compression, so that one line serves both for tar.";

/// Compress or decompress files in place, as gzip, xz and zstd do; `refrain` has more verbs.
#[derive(Debug, Parser)]
#[command(name = "rfn", version, after_help = format!("{PIPES_TEXT}\n\n{EXIT_CODES_TEXT}"))]
pub struct RfnArgs {
    /// Files; '-' or nothing is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Compress (the default)
    #[arg(short = 'z', long, overrides_with_all = ["decompress", "test", "list"])]
    pub compress: bool,
    /// Decompress
    #[arg(short, long, visible_alias = "uncompress", overrides_with_all = ["compress", "test", "list"])]
    pub decompress: bool,
    /// Check archives without writing anything
    #[arg(short, long, overrides_with_all = ["compress", "decompress", "list"])]
    pub test: bool,
    /// One line per archive: sizes, ratio, name
    #[arg(short, long, overrides_with_all = ["compress", "decompress", "test"])]
    pub list: bool,
    /// Write to standard output
    #[arg(
        short = 'c',
        long = "stdout",
        visible_alias = "to-stdout",
        conflicts_with = "output"
    )]
    pub stdout: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub compression: CompressionArgs,
    #[command(flatten)]
    pub encryption: EncryptionArgs,
    /// Open encrypted archives with the secret key in FILE. May be repeated
    #[arg(long, value_name = "FILE")]
    pub identity: Vec<PathBuf>,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub limits: ReadLimitArgs,
    #[command(flatten)]
    pub report: ReportArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

/// What `rfn` does without a flag, by the name it was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RfnMode {
    /// Called as `rfn`.
    Compress,
    /// Called as `unrfn`.
    Decompress,
    /// Called as `rfncat`.
    Cat,
}

impl RfnArgs {
    /// Whether this is a filter from standard input to standard output.
    fn is_filter(&self) -> bool {
        let is_output = self.output.output.as_deref().is_none_or(is_dash);
        is_output && !self.test && !self.list && self.files.iter().all(|path| is_dash(path))
    }

    /// The equivalent arguments of `refrain`.
    ///
    /// # Errors
    /// A message for the user about an option without effect.
    pub fn into_arguments(self, mode: RfnMode) -> Result<RefrainArgs, String> {
        self.check(mode)?;
        Ok(RefrainArgs {
            run: self.run.clone(),
            verb: self.into_verb(mode),
        })
    }

    /// Refuses options without effect in this direction. Compression settings and reading limits
    /// stay allowed in the other one, as in gzip: `tar -I 'rfn -9'` runs the same command for both.
    fn check(&self, mode: RfnMode) -> Result<(), String> {
        let output = &self.output;
        if self.test || self.list {
            let writing = [
                (self.stdout, "-c (--stdout)"),
                (output.output.is_some(), "-o (--output)"),
                (output.rm, "--rm"),
                (output.sync, "--sync"),
                (output.check, "--check"),
            ];
            return match writing.iter().find(|(is_given, _)| *is_given) {
                Some((_, flag)) => Err(format!(
                    "{flag} concerns output, and -t and -l have none: leave it out"
                )),
                None => Ok(()),
            };
        }
        if !self.identity.is_empty() && !self.decompresses(mode) {
            return Err(
                "--identity opens archives that are read: to encrypt one, use --recipient".into(),
            );
        }
        Ok(())
    }

    fn decompresses(&self, mode: RfnMode) -> bool {
        self.decompress || (mode != RfnMode::Compress && !self.compress)
    }

    fn into_verb(mut self, mode: RfnMode) -> Verb {
        if self.stdout || mode == RfnMode::Cat {
            self.output.output.get_or_insert_with(|| PathBuf::from("-"));
        }
        // A filter in a pipe is silent, as gzip, xz and zstd are: its messages would be mistaken
        // for those of the program that started it.
        self.report.quiet |= self.is_filter() && self.report.verbose == 0;
        let decompresses = self.decompresses(mode);
        let (files, resources, report) = (self.files, self.resources, self.report);
        let (encryption, limits) = (self.encryption, self.limits);
        let secrets = SecretArgs {
            password: encryption.password.clone(),
            identity: self.identity,
        };
        if self.test {
            return Verb::Test(TestArgs {
                fast: false,
                member: Vec::new(),
                archives: files,
                generation: GenerationArgs::default(),
                secrets,
                trust: TrustArgs::default(),
                decoders: DecoderArgs::default(),
                resources,
                limits,
                report,
            });
        }
        if self.list {
            let archives = if files.is_empty() { vec![PathBuf::from("-")] } else { files };
            return Verb::Info(InfoArgs {
                opening: OpeningArgs::default(),
                archives,
                table: true,
                generation: GenerationArgs::default(),
                secrets,
                trust: TrustArgs::default(),
                resources,
                report,
            });
        }
        if decompresses {
            return Verb::Gunzip(DecompressArgs {
                operands: files,
                paths: Vec::new(),
                keep_broken: false,
                output: self.output,
                patterns: PatternArgs::default(),
                owners: OwnerArgs::default(),
                generation: GenerationArgs::default(),
                secrets,
                trust: TrustArgs::default(),
                decoders: DecoderArgs::default(),
                resources,
                limits,
                report,
            });
        }
        let (output, compression) = (self.output, self.compression);
        Verb::Compress(CompressArgs {
            files,
            unpack: false,
            name: Vec::new(),
            recovery: None,
            carry_decoders: false,
            output,
            compression,
            walk: WalkArgs::default(),
            lrzip: LrzipArgs::default(),
            encryption,
            signature: NewSignatureArgs::default(),
            resources,
            report,
        })
    }
}
