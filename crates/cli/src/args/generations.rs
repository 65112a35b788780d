//! Generations: adding, choosing and forgetting them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use refrain::{GenerationChoice, ReadOptions, RecoveryShare};

use super::encryption::EncryptionArgs;
use super::level::LevelFlags;
use super::password::SecretArgs;
use super::read_limits::ReadLimitArgs;
use super::recovery::parse_share;
use super::report::ReportArgs;
use super::resources::ResourceArgs;
use super::selection::{PATTERNS_TEXT, WalkArgs};
use super::size::Size;

/// The generation that is read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Generations")]
pub struct GenerationArgs {
    /// Read this generation of an archive that `add` has added to: its number, a tag, `latest` (the
    /// default), or a time in UTC (2026-11-27, 2026-11-27T10:30): the last one that is not newer
    #[arg(long, value_name = "N|TAG|TIME")]
    pub generation: Option<GenerationChoice>,
}

impl GenerationArgs {
    /// `options` for this generation.
    pub fn with(&self, options: ReadOptions) -> ReadOptions {
        ReadOptions {
            generation: self.generation.clone().unwrap_or_default(),
            ..options
        }
    }
}

/// `refrain add`
#[derive(Debug, Args)]
#[command(after_help = format!("{ADD_TEXT}\n\n{PATTERNS_TEXT}"))]
pub struct AddArgs {
    /// The archive; it is created if it does not exist
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Keep the archive in a folder, in files of at most SIZE that are never changed; needed when
    /// it is created, and later the size of new ones (default then: 4G)
    #[arg(long, value_name = "SIZE")]
    pub volume: Option<Size>,
    /// Files or directories; '-' (or nothing, on a pipe) is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Name of a member, instead of its FILE's; once per FILE, in the same order
    #[arg(long, value_name = "NAME")]
    pub name: Vec<OsString>,
    /// A name by which the generation is chosen and kept. May be repeated
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<OsString>,
    /// What to say about the generation
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<OsString>,
    /// The machine that the generation is of (default: this one)
    #[arg(long, value_name = "NAME")]
    pub host: Option<OsString>,
    /// The time of the generation, in UTC (2026-11-27T10:30:00), instead of now
    #[arg(long, value_name = "TIME")]
    pub time: Option<GenerationChoice>,
    /// Read all files of a directory, also those whose size, times and inode are as in the last
    /// generation of this host
    #[arg(long)]
    pub force_read: bool,
    /// Append recovery data for what has none: so much of it (10%) may be lost anywhere, and
    /// `repair` heals it. Without this, an archive that has some gets more of the same share
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub recovery: Option<RecoveryShare>,
    /// Carry a decoder for each codec and filter that the archive uses, also for those of earlier
    /// generations; an archive that carries some goes on with it
    #[arg(long)]
    pub carry_decoders: bool,
    #[command(flatten)]
    pub level: LevelFlags,
    #[command(flatten)]
    pub encryption: EncryptionArgs,
    /// Open an encrypted archive with the secret key in FILE: one made by `refrain key generate` or
    /// age, or a private key of OpenSSH (ed25519). May be repeated
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    pub identity: Vec<PathBuf>,
    /// Keep in DIRECTORY what this machine needs to add to an encrypted archive without a secret,
    /// and do that if none is named
    #[arg(long, value_name = "DIRECTORY", help_heading = "Encryption")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const ADD_TEXT: &str = "\
What is added is a new generation: its files refer to all earlier ones wherever something repeats, at \
any distance, and only what is new takes space. Earlier bytes of the archive never change: until the \
last new byte is on the disk, readers see what was there before, also after a crash. Every verb that \
reads takes --generation; without it, the last one is read.
With --volume the archive is a folder, and s3://BUCKET/PREFIX is always one: of files (objects) that are \
created, and never changed.
The level is the archive's unless one is given; a new archive has level 3. What is added to an archive \
with recovery data gets some as well, behind it. A signature stays that of its generation; `sign` signs \
the newest.
An encrypted archive is added to with one of its secrets: a password (typed, or --password-file and \
the like) or --identity; or, on a machine that has a --state of it as it is now, without: then what \
changed in files is found where it was, and not what repeats itself elsewhere. --encrypt and --recipient are for a new \
archive, so that the same line serves every night: of one that exists, --encrypt says that it must be \
encrypted, and a --recipient must be the public key of an --identity, if one is named.
What cannot be read in a directory is left out, named and counted, and the exit code is 4.";

/// `refrain diff`
#[derive(Debug, Args)]
#[command(after_help = "\
A line for each path that was added (+), removed (-) or changed (M, and what changed). Files of a \
directory with the same size and time count as unchanged; other members are compared by their hashes.")]
pub struct DiffArgs {
    /// The archive
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// The earlier generation: a number, a tag or a time
    #[arg(value_name = "A")]
    pub before: GenerationChoice,
    /// The later one
    #[arg(value_name = "B", default_value = "latest")]
    pub after: GenerationChoice,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub limits: ReadLimitArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain forget`
#[derive(Debug, Args)]
#[command(after_help = FORGET_TEXT)]
pub struct ForgetArgs {
    /// The archive
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Numbers or tags of generations to forget
    #[arg(value_name = "N|TAG", conflicts_with_all = RULES)]
    pub generations: Vec<GenerationChoice>,
    /// Keep the last N generations
    #[arg(long, value_name = "N")]
    pub keep_last: Option<u32>,
    /// Keep the last generation of each of the last N hours that have one
    #[arg(long, value_name = "N")]
    pub keep_hourly: Option<u32>,
    /// ... of each of the last N days
    #[arg(long, value_name = "N")]
    pub keep_daily: Option<u32>,
    /// ... of each of the last N weeks, which begin on Monday
    #[arg(long, value_name = "N")]
    pub keep_weekly: Option<u32>,
    /// ... of each of the last N months
    #[arg(long, value_name = "N")]
    pub keep_monthly: Option<u32>,
    /// ... of each of the last N years
    #[arg(long, value_name = "N")]
    pub keep_yearly: Option<u32>,
    /// Keep generations with this tag. May be repeated
    #[arg(long, value_name = "TAG")]
    pub keep_tag: Vec<String>,
    /// Keep generations made at most so long before the last one: 36h, 10d, 8w
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub keep_within: Option<u64>,
    /// Only say what would be forgotten
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain compact`
#[derive(Debug, Args)]
#[command(after_help = COMPACT_TEXT)]
pub struct CompactArgs {
    /// The archive
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Only say what would be given back
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `refrain merge`
#[derive(Debug, Args)]
#[command(after_help = MERGE_TEXT)]
pub struct MergeArgs {
    /// Archives: with generations, or as `compress` makes them
    #[arg(value_name = "ARCHIVE", num_args = 1.., required = true)]
    pub archives: Vec<PathBuf>,
    /// The new archive
    #[arg(
        short,
        long,
        value_name = "PATH",
        required = true,
        help_heading = "Output"
    )]
    pub output: PathBuf,
    /// Replace the output if it exists
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,
    /// Only say which generations the new archive would have
    #[arg(long)]
    pub dry_run: bool,
    /// Carry a decoder for each codec and filter that the new archive uses, even if none of the
    /// others carries any
    #[arg(long)]
    pub carry_decoders: bool,
    #[command(flatten)]
    pub level: LevelFlags,
    #[command(flatten)]
    pub encryption: EncryptionArgs,
    /// Open encrypted archives with the secret key in FILE: one made by `refrain key generate` or
    /// age, or a private key of OpenSSH (ed25519). May be repeated
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    pub identity: Vec<PathBuf>,
    /// Write an archive that is not encrypted although one of the others is
    #[arg(
        long,
        help_heading = "Encryption",
        conflicts_with_all = ["encrypt", "recipient", "recipients_file"]
    )]
    pub decrypt: bool,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const MERGE_TEXT: &str = "\
The new archive has the generations of all, in the order of their times, numbered from 1; names, times, \
tags, hosts and comments stay. What `refrain compress` made counts as one generation. What repeats is stored \
once, whichever archive has it. The archives stay as they are, and the new one appears when it is complete.
Of a single archive the new one has what is kept, and nothing of what was forgotten.
The level is that of the archive with the most data unless one is given. A password opens all encrypted \
archives, and with --encrypt it also encrypts the new one.";

const COMPACT_TEXT: &str = "\
What `refrain forget` left, and no generation that is kept refers to, becomes holes in the file, which take \
no space on the disk; its length remains. Nothing is copied, and a run that is interrupted is finished by \
the next. Needs a file system with holes: btrfs, ext4, tmpfs, XFS, ZFS. What stays in blocks that are needed \
in part is not in a new archive: `refrain merge ARCHIVE -o NEW`.";

const RULES: [&str; 8] = [
    "keep_last",
    "keep_hourly",
    "keep_daily",
    "keep_weekly",
    "keep_monthly",
    "keep_yearly",
    "keep_tag",
    "keep_within",
];

const FORGET_TEXT: &str = "\
Without rules the named generations are forgotten; with rules all that no rule keeps. Days, weeks, \
months and years are those of UTC. The last generation is always kept, and so are generations without \
a time. A small record is appended to the archive: what was forgotten is no longer listed, and its \
bytes remain.";

/// A time span: a number of hours, days or weeks.
fn parse_seconds(text: &str) -> Result<u64, String> {
    let error = || format!("'{text}' is not a number with h, d or w: 36h, 10d, 8w");
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(error)?;
    let seconds = match unit {
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(error()),
    };
    let number: u64 = number.parse().map_err(|_| error())?;
    number.checked_mul(seconds).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        assert_eq!(parse_seconds("36h"), Ok(36 * 3600));
        assert_eq!(parse_seconds("2w"), Ok(14 * 86_400));
        for wrong in [
            "",
            "h",
            "5",
            "5x",
            "-1d",
            "99999999999999999999d",
            "1\u{e9}",
        ] {
            assert!(parse_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
