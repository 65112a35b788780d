//! Shared by writing and reading: pages, appendices, compressed copies of blocks, workspaces, the
//! coding of blocks, frame input.

pub(crate) mod appendix;
pub(crate) mod block;
pub(crate) mod carried_modules;
pub(crate) mod coded;
pub(crate) mod coding;
pub(crate) mod complete_end;
pub(crate) mod compressed_copy;
pub(crate) mod decoders;
pub(crate) mod ending;
pub(crate) mod envelope;
pub(crate) mod exact_read;
pub(crate) mod frames;
pub(crate) mod lrzip;
pub(crate) mod machine_code;
pub(crate) mod memory;
pub(crate) mod named_block;
pub(crate) mod opened_code;
pub(crate) mod page;
pub(crate) mod pipe_copy;
pub(crate) mod recovery_chain;
pub(crate) mod sections;
pub(crate) mod source_stream;
pub(crate) mod workspaces;
