//! `refrain mount`: an archive and the directory to mount it on.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use refrain::ReadOptions;
use refrain_server::fuse::MountOptions;
use refrain_server::tree::TreeOptions;

use super::inputs::SeekableInput;
use super::tiers::tiers;
use crate::args::MountArgs;
use crate::failure::Result;
use crate::names;

/// The memory for entries in compact form, in bytes: enough for a quarter of a million.
const FRAME_BYTES_MAX: u64 = 32 << 20;
/// Tables of paths and entries may each take 1/8 of the memory budget.
const TREE_SHARE: u64 = 8;
/// With a small budget tables may take 1/4 of it, up to this many bytes: enough for a million
/// paths.
const SMALL_TABLE_BYTES: u64 = 64 << 20;

/// The memory for members and entries, of a budget of `memory_bytes`. `unnamed` is the name of a
/// member without one.
pub fn tree_options(memory_bytes: u64, unnamed: Vec<u8>) -> TreeOptions {
    let share_bytes = memory_bytes / TREE_SHARE;
    let table_bytes = (2 * share_bytes).min(SMALL_TABLE_BYTES);
    TreeOptions {
        frame_bytes: share_bytes.min(FRAME_BYTES_MAX) as usize,
        table_bytes: table_bytes.max(share_bytes) as usize,
        unnamed,
    }
}

/// An archive to mount.
#[derive(Debug)]
pub struct MountPlan {
    pub options: ReadOptions,
    pub mount: MountOptions,
    pub archive: SeekableInput,
    pub directory: PathBuf,
}

impl MountPlan {
    /// Plans a run of `mount`.
    ///
    /// # Errors
    /// `Usage` if the archive is a pipe; `Io` if the file does not exist.
    pub fn new(args: &MountArgs) -> Result<MountPlan> {
        let options = (args.generation).with(args.secrets.with(args.resources.read_options())?);
        let archive = SeekableInput::new(&args.archive, &options, &args.secrets)?
            .behind(tiers(&args.caching)?);
        let tree = tree_options(options.memory_bytes, names::of_member(&archive.path, b""));
        Ok(MountPlan {
            mount: MountOptions {
                tree,
                root: args
                    .root
                    .as_ref()
                    .map_or(vec![], |path| path.as_bytes().to_vec()),
                generations: args.generations,
                source_name: archive.label.clone(),
                allow_other: args.allow_other,
                owner: args.owner.map(|owner| (owner.user, owner.group)),
                extra: args.options.clone(),
                threads: options.threads.saturating_mul(2).clamp(2, 16),
            },
            options,
            archive,
            directory: args.directory.clone(),
        })
    }
}
