//! Writing archives of the native dialect.

pub(crate) mod archive_bytes;
pub(crate) mod assemble;
pub(crate) mod carried;
pub(crate) mod continuation;
pub(crate) mod copied;
mod copied_assembly;
pub(crate) mod extents;
pub(crate) mod generation;
pub(crate) mod holes;
mod kinds;
mod mask;
pub(crate) mod members;
pub(crate) mod output;
mod plugin_notices;
pub(crate) mod references;
pub(crate) mod written_blocks;
