//! The arguments of `refrain key`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use refrain::Recipient;

use super::password::SecretArgs;
use super::resources::ResourceArgs;

/// `refrain key`
#[derive(Debug, Args)]
#[command(after_help = "\
generate writes a new secret key to FILE (or standard output), with its public key in a comment; a FILE that exists is
kept. list shows what opens an archive. add and remove change that in place, without rewriting content, or by a copy if the
archive has recovery data, which is renewed; they need a secret that opens the archive. Removing a slot does not make anybody forget: who has an older copy of the archive, or has taken
the key from it, still reads it.")]
pub struct KeyArgs {
    /// What to do
    #[arg(value_enum)]
    pub action: KeyAction,
    /// The archive; for generate, the file to write
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// generate: a key that also resists quantum computers (X-Wing: X25519 and ML-KEM-768)
    #[arg(long)]
    pub post_quantum: bool,
    /// add: this public key, age1... or "ssh-ed25519 ...". May be repeated
    #[arg(long, value_name = "KEY")]
    pub recipient: Vec<Recipient>,
    /// add: all public keys in FILE, one a line
    #[arg(long, value_name = "FILE")]
    pub recipients_file: Vec<PathBuf>,
    /// add: a password, which is typed twice
    #[arg(long)]
    pub new_password: bool,
    /// add: the password in the first line of FILE
    #[arg(long, value_name = "FILE")]
    pub new_password_file: Option<PathBuf>,
    /// remove: the slot with this number, as list shows it. May be repeated
    #[arg(long, value_name = "NUMBER")]
    pub slot: Vec<usize>,
    /// add and remove: read back what was written, from the disk itself where the system allows it
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
}

/// What `refrain key` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyAction {
    /// Make a secret key
    Generate,
    /// Show what opens an archive
    List,
    /// Add a password or the key of a recipient to an archive
    Add,
    /// Remove one from an archive
    Remove,
}
