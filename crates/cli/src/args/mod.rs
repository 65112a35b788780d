//! The declaration of all verbs and flags, from which help, manual pages and completions are
//! generated.

mod bench;
mod boot;
mod cache;
mod completed;
mod compression;
mod decoders;
mod encryption;
mod generations;
mod hash;
mod key;
mod lab;
mod level;
#[cfg_attr(not(feature = "lrzip"), path = "lrzip_absent.rs")]
mod lrzip;
mod manifest;
mod map;
mod mount;
mod opening;
mod output;
mod password;
mod plugin;
mod range;
mod read_limits;
mod recovery;
mod report;
pub mod resources;
mod rfn;
mod run;
mod selection;
mod serve;
mod signing;
mod size;
mod tiers;
mod top;
mod verb;

pub use bench::BenchArgs;
pub use boot::BootArgs;
pub use cache::{CacheAction, CacheArgs, CacheClient, CacheEngine};
pub use compression::CompressionArgs;
pub use encryption::EncryptionArgs;
pub use generations::{AddArgs, CompactArgs, DiffArgs, ForgetArgs, MergeArgs};
pub use hash::HashArgs;
pub use key::{KeyAction, KeyArgs};
pub use lab::LabArgs;
pub use level::check_level_digits;
pub use lrzip::LrzipArgs;
pub use manifest::ManifestArgs;
pub use map::MapArgs;
pub use mount::MountArgs;
pub use opening::OpeningArgs;
pub use output::OutputArgs;
pub use password::SecretArgs;
pub use plugin::{PluginAction, PluginArgs};
pub use range::ByteRange;
pub use recovery::{ProtectArgs, RepairArgs};
pub use report::ReportArgs;
pub use rfn::{RfnArgs, RfnMode};
pub use run::{ProfileFile, ProfileFormat, RunArgs};
pub use selection::{OwnerArgs, PatternArgs, WalkArgs};
pub use serve::ServeArgs;
pub use signing::{NewSignatureArgs, SignArgs, all_signers};
pub use tiers::CachingArgs;
pub use top::TopArgs;
pub use verb::{
    Arguments, CatArgs, CompressArgs, DecompressArgs, GenerateArgs, GenerateWhat, InfoArgs,
    ListArgs, RefrainArgs, ShortVerb, TestArgs, Verb,
};
