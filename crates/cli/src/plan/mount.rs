//! `refrain mount`: an archive and the directory to mount it on.

use std::path::PathBuf;

use refrain::ReadOptions;
use refrain_server::fuse::MountOptions;
use refrain_server::tree::TreeOptions;

use super::inputs::SeekableInput;
use crate::args::MountArgs;
use crate::failure::Result;
use crate::names;

/// The memory for entries in compact form, in bytes: enough for a quarter of a million.
const FRAME_BYTES_MAX: u64 = 32 << 20;
/// Tables of paths may take 1/8 of the memory budget, and entries at most as much.
const TREE_SHARE: u64 = 8;

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
        let mut options = args.password.with(args.resources.read_options());
        let archive = SeekableInput::new(&args.archive, &options, &args.password)?;
        let table_bytes = options.memory_bytes / TREE_SHARE;
        let frame_bytes = table_bytes.min(FRAME_BYTES_MAX);
        options.memory_bytes -= table_bytes + frame_bytes;
        let tree = TreeOptions {
            frame_bytes: frame_bytes as usize,
            table_bytes: table_bytes as usize,
            unnamed: names::of_member(&archive.path, b""),
        };
        Ok(MountPlan {
            mount: MountOptions {
                tree,
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
