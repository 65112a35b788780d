//! The arguments of `refrain mount`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use refrain_server::Address;

use super::generations::GenerationArgs;
use super::opening::OpeningArgs;
use super::password::SecretArgs;
use super::report::ReportArgs;
use super::resources::ResourceArgs;
use super::serve::address;
use super::tiers::CachingArgs;

/// `refrain mount`
#[derive(Debug, Args)]
#[command(after_help = MOUNT_TEXT)]
pub struct MountArgs {
    /// The archive
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// The directory to mount it on
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Show this directory or tar member, MEMBER or MEMBER/PATH, in DIR itself, and nothing else
    #[arg(long, value_name = "PATH")]
    pub root: Option<OsString>,
    /// Show a directory for each generation of an archive that `add` has added to, and the link
    /// `latest`. DIR/NAME leads to a generation for every NAME that --generation takes
    #[arg(long, conflicts_with_all = ["generation", "scan"])]
    pub generations: bool,
    /// Allow access by other users, within the permissions of the files (unless you are root, this
    /// needs user_allow_other in /etc/fuse.conf)
    #[arg(long)]
    pub allow_other: bool,
    /// Show this user and group (numbers) as the owner of everything
    #[arg(long, value_name = "UID:GID")]
    pub owner: Option<OwnerNumbers>,
    /// Further mount options, as for mount(8): dev, suid, noexec and others
    #[arg(long, value_name = "OPTION", value_delimiter = ',')]
    pub options: Vec<String>,
    /// Also serve it over HTTP at this address, unix:PATH or HOST:PORT, including the statistics of
    /// the mounted directory for `refrain top`
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub http: Option<Address>,
    /// A name of this machine that HTTP clients may use for a loopback address. May be repeated
    #[arg(long, value_name = "NAME", requires = "http")]
    pub allow_host: Vec<String>,
    /// Check the archive in the background, while nothing else is to be done: read everything once
    /// a day and report what is damaged
    #[arg(long)]
    pub scrub: bool,
    /// Return to the shell when DIR is ready, and continue in the background
    #[arg(long)]
    pub daemon: bool,
    #[command(flatten)]
    pub opening: OpeningArgs,
    #[command(flatten)]
    pub generation: GenerationArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub caching: CachingArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const MOUNT_TEXT: &str = "\
DIR shows each member under its name: files, and directories with all their entries, also those of \
tar streams. Nothing is unpacked; what is read is decoded then. It can only be read.
Without --daemon the program stays in the foreground. It prints a line when DIR can be used. `fusermount3 -u DIR`, \
Ctrl-C or SIGTERM end it.
What is damaged in the archive is an input/output error for the programs that read it, and a line \
here says which file and where; all else can be read.";

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerNumbers {
    pub user: u32,
    pub group: u32,
}

impl FromStr for OwnerNumbers {
    type Err = String;

    fn from_str(text: &str) -> Result<OwnerNumbers, String> {
        let parts = text.split_once(':');
        let numbers =
            parts.and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
        let (user, group) = numbers.ok_or("write two numbers, such as 1000:1000")?;
        Ok(OwnerNumbers { user, group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_two_numbers() {
        let owner = OwnerNumbers { user: 0, group: 7 };
        assert_eq!("0:7".parse(), Ok(owner));
        for wrong in ["", "1", "1:", ":1", "a:b", "1:2:3", "-1:0", "4294967296:0"] {
            assert!(wrong.parse::<OwnerNumbers>().is_err(), "{wrong}");
        }
    }
}
