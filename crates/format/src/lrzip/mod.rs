//! The meaning of the bytes of an lrzip archive (`.lrz`): a second dialect beside the native
//! container.
//!
//! The format was derived from archives that lrzip's releases write, not from their sources;
//! `docs/lrzip.md` describes it. An archive is a header, chunks, and the MD5 of its content. A
//! chunk is an independent part of the content. It consists of records, which say which literal
//! bytes and which copies of earlier content make up the chunk, and of the literals. Both are
//! *streams*, cut into blocks that are compressed on their own. Blocks of both streams follow each
//! other in the order in which they were finished, and each states the position of the next block
//! of its stream.
//!
//! In terms of the native format the literals of all chunks are the store, and the records become
//! extents once copies of copies are resolved to the store (the engine does that).
//!
//! | file | what |
//! |---|---|
//! | [`header`] | the header, its versions and their differences |
//! | [`chunk`] | chunk headers, block headers, and the order of blocks |
//! | [`record`] | literals, matches, ends |
//! | `rounds` | how many rounds the first cipher's key derivation has |
//! | [`mod@write`] | writing all of these |

pub mod chunk;
pub mod header;
pub mod record;
mod rounds;
pub mod write;

#[cfg(any(test, feature = "property"))]
pub mod property;

pub use chunk::{
    BackEnd, BlockHeader, BlockWalk, CHUNK_HEADER_BYTES_MAX, ChunkHeader, EncryptionOverhead,
    FoundBlock, Prefilter, Stream,
};
pub use header::{Cipher, DigestKind, HEADER_BYTES_MAX, Header, LzmaProperties, Version, is_lrzip};
pub use record::{Record, RecordParser};
pub use write::{RecordWriter, chunk_header_bytes, width_bytes};
