//! Refrain, the long-range archive engine: the public Rust API.
//!
//! One file per verb: [`compress`](compress()), [`extract`](extract()), [`verify`]; [`Archive`] reads any range.

#![forbid(unsafe_code)]

mod archive;
mod archive_info;
mod compress;
mod error;
mod extract;
mod levels;
mod options;
mod pipeline;
mod progress;
mod reading;
mod tree;

pub use refrain_storage as storage;

pub use archive::Archive;
pub use archive_info::{
    ArchiveInfo, BlockInfo, CodecUse, Entry, EntryKind, Member, MemberKind, MemberStart, Timestamp,
};
pub use compress::{CompressSummary, Content, MemberInput, compress};
pub use error::{Error, ErrorKind, Place, Result};
pub use extract::{ExtractSummary, Targets, extract, extract_stream, verify, verify_stream};
pub use levels::{LevelRow, MEMORY_BYTES_MIN, levels};
pub use options::{CodecChoice, CompressOptions, Level, ReadOptions, codec_names};
pub use progress::{Progress, Unwatched, Watch};
pub use tree::TreeSink;
#[cfg(feature = "property")]
pub use tree::property;
