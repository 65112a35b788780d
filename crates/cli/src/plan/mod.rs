//! Plans of runs: inputs, outputs, names and options.
//!
//! A plan is made from the arguments and the metadata of files, before any file is opened or
//! created. Everything that can be refused without reading content is refused here.
//!
//! | file | what |
//! |---|---|
//! | `inputs` | the inputs of every verb: files, streams, standard input |
//! | `output` | whether standard output may be written |
//!
//! `effects`, `decisions`
//! options without effect are refused; the decision for each
//!
//! `boot`
//! `boot`: the commands that create an overlay and run a guest
//! | `compress` | `compress`: archives, members, names, format |
//! | `decompress` | `decompress`: archives and where their members go |
//! | `read` | `test`, `info`, `list`, `cat` |
//! | `serve` | `serve`: one archive, or several under their names |
//! | `tiers` | caches in front of archives |
//!
//! `mount`
//! `mount`: the memory and threads of the mounted archive

mod boot;
mod compress;
#[cfg(test)]
mod decisions;
mod decompress;
mod effects;
mod inputs;
mod mount;
mod output;
mod read;
mod serve;
mod tiers;

pub use boot::{BootPlan, Guest};
pub use compress::{
    ArchiveFormat, ArchiveOutput, ArchivePlan, CompressInput, CompressPlan, LeftOut, is_in_volumes,
};
pub use decompress::{DecompressPlan, Destination, RestorePlan};
pub use effects::{check_list, check_owners, check_password, check_scan, check_serve};
pub use inputs::{ArchiveInput, SeekableInput, or_stdin};
pub use mount::{MountPlan, tree_options};
pub use output::writes_stdout;
pub use read::{CatPlan, InspectPlan, TestPlan};
pub use serve::{ServePlan, ServedInput, ServedOperand, SeveralInputs, archive_name};
