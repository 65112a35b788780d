//! The one declaration of all verbs and flags; help, manual pages and completions come from it.

mod compression;
mod hash;
mod level;
#[cfg(feature = "lrzip")]
mod lrzip;
mod output;
mod password;
mod range;
mod report;
mod resources;
mod rfn;
mod size;
mod verb;

pub use compression::CompressionArgs;
pub use hash::HashArgs;
#[cfg(feature = "lrzip")]
pub use lrzip::LrzipArgs;
pub use output::OutputArgs;
pub use password::PasswordArgs;
pub use range::ByteRange;
pub use report::ReportArgs;
pub use resources::ResourceArgs;
#[cfg(feature = "lrzip")]
pub use resources::ThreadArgs;
pub use rfn::{RfnArgs, RfnMode};
pub use verb::{
    Arguments, CatArgs, CompressArgs, DecompressArgs, GenerateArgs, GenerateWhat, InfoArgs,
    ListArgs, LittleVerb, OpeningArgs, RefrainArgs, TestArgs, Verb,
};
