//! The verbs of `refrain` and their arguments.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::bench::BenchArgs;
use super::boot::BootArgs;
use super::cache::CacheArgs;
use super::compression::CompressionArgs;
use super::decoders::DecoderArgs;
use super::encryption::EncryptionArgs;
use super::generations::{AddArgs, CompactArgs, DiffArgs, ForgetArgs, GenerationArgs, MergeArgs};
use super::hash::HashArgs;
use super::key::KeyArgs;
use super::lab::LabArgs;
use super::lrzip::LrzipArgs;
use super::manifest::ManifestArgs;
use super::map::MapArgs;
use super::mount::MountArgs;
use super::opening::OpeningArgs;
use super::output::OutputArgs;
use super::password::SecretArgs;
use super::plugin::PluginArgs;
use super::range::ByteRange;
use super::read_limits::ReadLimitArgs;
use super::recovery::{ProtectArgs, RepairArgs, parse_share};
use super::report::ReportArgs;
use super::resources::ResourceArgs;
use super::run::RunArgs;
use super::selection::{OwnerArgs, PATTERNS_TEXT, PatternArgs, WalkArgs};
use super::serve::ServeArgs;
use super::signing::{NewSignatureArgs, SignArgs, TrustArgs};
use super::tiers::CachingArgs;
use super::top::TopArgs;
use crate::exit::EXIT_CODES_TEXT;
use clap::{Args, Parser, Subcommand, ValueEnum};
use refrain::RecoveryShare;

/// Long-range archives: stores each passage that repeats anywhere in a large input once, and reads
/// any byte range back quickly.
#[derive(Debug, Parser)]
#[command(name = "refrain", version, after_help = EXIT_CODES_TEXT)]
pub struct Arguments<V: Subcommand> {
    /// What to do.
    #[command(subcommand)]
    pub verb: V,
    #[command(flatten)]
    pub run: RunArgs,
}

/// The arguments of the whole program.
pub type RefrainArgs = Arguments<Verb>;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Compress files, directories or a pipe
    #[command(visible_alias = "c")]
    Compress(CompressArgs),
    /// Add what changed to an archive, as a new generation
    Add(AddArgs),
    /// Show what changed between two generations of an archive
    Diff(DiffArgs),
    /// Forget generations of an archive
    Forget(ForgetArgs),
    /// Give back the space of what was forgotten
    Compact(CompactArgs),
    /// Make one archive of several, or a copy of one without what was forgotten
    Merge(MergeArgs),
    /// Restore the files and directories of archives
    #[command(visible_aliases = ["extract", "x"])]
    Decompress(DecompressArgs),
    /// `rfn -d`, with the operands of gzip
    #[command(skip)]
    Gunzip(DecompressArgs),
    /// Check every byte of archives without writing anything
    #[command(visible_alias = "verify")]
    Test(TestArgs),
    /// Add recovery data, so that damage can be healed
    Protect(ProtectArgs),
    /// Heal damaged archives by their recovery data, or merge damaged copies
    Repair(RepairArgs),
    /// Sign archives, so that others can verify who made them
    Sign(SignArgs),
    /// Show sizes, ratio, codecs and integrity of archives
    Info(InfoArgs),
    /// Show what repeats where, and what every folder costs: a table, a page or a picture
    Map(MapArgs),
    /// Write where the bytes of every file are, as references for other programs (kerchunk)
    Manifest(ManifestArgs),
    /// List members, and the entries of archived directories
    #[command(visible_aliases = ["ls", "l"])]
    List(ListArgs),
    /// Write a member, an entry or a range of it to standard output
    Cat(CatArgs),
    /// Serve archives to many clients, as block devices (NBD) or a web site (HTTP)
    Serve(ServeArgs),
    /// Watch the requests to a service, and how long they take
    Top(TopArgs),
    /// Run a virtual machine from a disk image in an archive (QEMU)
    Boot(BootArgs),
    /// Mount an archive as a directory, without unpacking it
    Mount(MountArgs),
    /// Compute and check digests of files, as md5sum, sha256sum and b3sum do
    Hash(HashArgs),
    /// Make keys, and change what opens an encrypted archive
    Key(KeyArgs),
    /// Make and try plug-ins: codecs in shared libraries
    Plugin(PluginArgs),
    /// Compare Refrain with other programs on your own files
    Bench(BenchArgs),
    /// Measure clients of a shared cache (memcached, Redis) while nodes stall, die or lie
    Cache(CacheArgs),
    /// Measure this machine, and explain the results
    Lab(LabArgs),
    /// Write manual pages or shell completions
    Generate(GenerateArgs),
}

/// Verbs that may finish faster than it takes to declare the flags of all verbs.
#[derive(Debug, Subcommand)]
pub enum ShortVerb {
    /// `refrain hash`
    Hash(HashArgs),
}

impl ShortVerb {
    /// Whether one of them has this name.
    pub fn has_name(name: &OsStr) -> bool {
        name.to_str().is_some_and(Self::has_subcommand)
    }
}

impl From<Arguments<ShortVerb>> for RefrainArgs {
    fn from(arguments: Arguments<ShortVerb>) -> RefrainArgs {
        let ShortVerb::Hash(args) = arguments.verb;
        RefrainArgs {
            verb: Verb::Hash(args),
            run: arguments.run,
        }
    }
}

/// `refrain compress`
#[derive(Debug, Args)]
#[command(after_help = format!("{COMPRESS_TEXT}\n\n{PATTERNS_TEXT}"))]
pub struct CompressArgs {
    /// Files or directories; '-' (or nothing, on a pipe) is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Compress the content of gzip, xz, zstd, bzip2 and lz4 files: x.tar.gz becomes x.tar.rfn.
    /// Other files, and files in directories, are compressed as they are
    #[arg(long)]
    pub unpack: bool,
    /// Name of a member, instead of its FILE's; once per FILE, in the same order. Pipes without one
    /// are called stdin, stdin-2 and so on
    #[arg(long, value_name = "NAME")]
    pub name: Vec<OsString>,
    /// Append recovery data: so much of the archive (10%) may be lost anywhere, and `repair` heals
    /// it
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub recovery: Option<RecoveryShare>,
    /// Carry a decoder for each codec and filter that the archive uses, as a WebAssembly module of
    /// 12 to 92 KiB: a reader that has none of these codecs can still open the archive
    #[arg(long)]
    pub carry_decoders: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub compression: CompressionArgs,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub lrzip: LrzipArgs,
    #[command(flatten)]
    pub encryption: EncryptionArgs,
    #[command(flatten)]
    pub signature: NewSignatureArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const COMPRESS_TEXT: &str = "\
Without -o each FILE becomes FILE.rfn, and with -o DIR/ DIR/FILE.rfn. A directory is stored with all its metadata: owners, modes, \
times, links, devices, holes, extended attributes. With -o PATH several inputs become several members of \
one archive. Sources are kept.
What cannot be read in a directory is left out, named and counted, and the exit code is 4; so is a \
file that changed while it was read. --strict stops at the first.
With --format lrz each FILE becomes FILE.lrz and a directory DIR.tar.lrz; these store no name, mode \
or time.";

/// `refrain decompress`
#[derive(Debug, Args)]
#[command(after_help = format!("{DECOMPRESS_TEXT}\n\n{FOREIGN_TEXT}\n\n{OPERANDS_TEXT}\n\n{PATTERNS_TEXT}"))]
pub struct DecompressArgs {
    /// Archives, or one archive and paths inside it; '-' (or nothing, on a pipe) is standard input
    #[arg(value_name = "ARCHIVE|PATH")]
    pub operands: Vec<PathBuf>,
    /// Paths inside a single archive, whatever they look like
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// If the archive is damaged, also restore incomplete files, with zeros for the missing parts
    #[arg(long, visible_alias = "salvage")]
    pub keep_broken: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub generation: GenerationArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub patterns: PatternArgs,
    #[command(flatten)]
    pub owners: OwnerArgs,
    #[command(flatten)]
    pub decoders: DecoderArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub limits: ReadLimitArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const DECOMPRESS_TEXT: &str = "\
Without -o a single file is restored beside its archive, without the suffix .rfn (or .lrz); a \
directory, a zip file, a part of a tar stream and several members below the current directory, \
under their own names. Standard input goes to standard output.
With -o DIR/ (with the slash) every member is restored below DIR by its name. With -o PATH a single \
member becomes PATH; a file goes below PATH if that is a directory, and a directory is merged into \
PATH if that exists. Several members go below PATH by their names. To standard output they are \
written one after the other, directories as tar streams.
A restored file appears under its name when it is complete and checked. Below the output directory \
no symbolic link is followed. The summary names the place.
With paths or patterns only a part is restored, in the same places. What cannot be restored in a \
directory is named and counted, and the exit code is 4; what the user may not restore, such as \
owners and devices, is summed up.
Of a damaged archive, and of one that is cut off, every file that is provably whole is restored; the \
others are named with the ranges that are missing, and the exit code is 2. A single file is restored \
up to the damage, unless one with its name exists. With --keep-broken all are restored, with zeros in \
the place of what is missing.";

/// The rule that tells archives from paths.
const FOREIGN_TEXT: &str = "\
Files of gzip, xz, zstd, bzip2 and lz4 are read as well, whatever they are called: x.gz becomes x, \
x.tgz x.tar, and paths are those inside a compressed tar stream. A zip file becomes a directory. The \
verbs test, info, list and cat read them, too.";

const OPERANDS_TEXT: &str = "\
The first operand is an archive. The others are paths inside it (of files, or of directories with \
all below them, as `list` prints them), unless they name files that are archives: then all are \
archives. After `--` every operand is a path. What could be both is refused: write `-- PATH` for a \
path, or name one archive at a time.";

/// `refrain test`
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Archives; '-' (or nothing, on a pipe) is standard input
    #[arg(value_name = "ARCHIVE")]
    pub archives: Vec<PathBuf>,
    /// Compare the checksums of stored parts only, without decoding: as fast as the disk reads, and
    /// enough against disks and transfers that alter bytes
    #[arg(long, conflicts_with_all = ["member", "signer", "signers_file", "root_hash"])]
    pub fast: bool,
    /// Check only the member or file called NAME, as `list` prints it; a file in a directory needs
    /// all of that. Reads little else of a remote archive. May be repeated
    #[arg(long, value_name = "NAME")]
    pub member: Vec<OsString>,
    #[command(flatten)]
    pub generation: GenerationArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub decoders: DecoderArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub limits: ReadLimitArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain info`
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Archives; '-' is standard input, which must be a file
    #[arg(value_name = "ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    /// One line per archive: sizes, ratio, name
    #[arg(long, conflicts_with = "json")]
    pub table: bool,
    #[command(flatten)]
    pub opening: OpeningArgs,
    #[command(flatten)]
    pub generation: GenerationArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain list`
#[derive(Debug, Args)]
#[command(after_help = format!("{LIST_TEXT}\n\n{LIST_OPERANDS_TEXT}\n\n{PATTERNS_TEXT}"))]
pub struct ListArgs {
    /// Archives, or one archive and patterns of entries to list; '-' is standard input, which must
    /// be a file
    #[arg(value_name = "ARCHIVE|PATTERN", required = true)]
    pub operands: Vec<PathBuf>,
    /// Patterns of entries to list in a single archive, whatever they look like
    #[arg(last = true, value_name = "PATTERN")]
    pub patterns: Vec<PathBuf>,
    /// Add type, mode, owner, group, size, modification time (UTC) and link target, like `ls -l`
    /// (also: -v)
    #[arg(short, long, conflicts_with_all = ["null", "json"])]
    pub long: bool,
    /// With -l: show owners and groups as numbers
    #[arg(long)]
    pub numeric_owner: bool,
    /// List the generations instead: number, time (UTC), members, size of the content, new bytes,
    /// host, tags, comment
    #[arg(long, conflicts_with_all = ["null", "long", "patterns", "generation"])]
    pub generations: bool,
    /// List the files of an archive in volumes that it needs: the newest head, the one on which
    /// that is based, and the volumes. Others can be deleted
    #[arg(long, conflicts_with_all = ["null", "long", "patterns", "generation", "generations"])]
    pub volumes: bool,
    /// End each path with NUL instead of a newline, and do not escape anything
    #[arg(short = '0', long, conflicts_with = "json")]
    pub null: bool,
    #[command(flatten)]
    pub opening: OpeningArgs,
    #[command(flatten)]
    pub generation: GenerationArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub selection: PatternArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const LIST_OPERANDS_TEXT: &str = "\
The first operand is an archive. The others are patterns (a path as `list` prints it is one), unless \
they name files that are archives: then all are archives. After `--` every operand is a pattern. \
What could be both is refused.";

const LIST_TEXT: &str = "\
Every line is a PATH for `refrain cat ARCHIVE PATH`, except that control characters and bytes that \
are not UTF-8 are written as \\ooo (three octal digits) and a backslash as two; -0 writes paths as \
they are.
With --json every line is a JSON object: an entry with all that is known of it, or an error.";

/// `refrain cat`
#[derive(Debug, Args)]
#[command(after_help = "\
PATH is a line of `refrain list`. Only the blocks that hold the range are read.")]
pub struct CatArgs {
    /// The archive; '-' is standard input, which must be a file
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Members, files in archived directories, patterns as for `list`, or a directory, which is
    /// written as a tar stream (default: the only member)
    #[arg(value_name = "PATH")]
    pub paths: Vec<OsString>,
    /// Write only the bytes from A up to but not including B (A..B, A.., ..B), or N bytes starting
    /// at A (A+N); sizes may have suffixes: 1000M..1001M, 10G+4K
    #[arg(long, value_name = "A..B|A+N")]
    pub range: Option<ByteRange>,
    /// Write to a terminal even if the bytes are binary
    #[arg(short, long)]
    pub force: bool,
    #[command(flatten)]
    pub opening: OpeningArgs,
    #[command(flatten)]
    pub generation: GenerationArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub decoders: DecoderArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub caching: CachingArgs,
    #[command(flatten)]
    pub limits: ReadLimitArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain generate`
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to write
    pub what: GenerateWhat,
    /// The directory to write to; it is created
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// What `refrain generate` writes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum GenerateWhat {
    /// Manual pages, one per program name and verb
    Man,
    /// Completions for bash, zsh and fish
    Completions,
    /// Links named lrzip, lrunzip, lrzcat, lrz, lrztar and lrzuntar, through which this program
    /// acts as lrzip
    LrzipLinks,
    /// Manual pages for these names
    LrzipMan,
}
