//! What the bytes of an lrzip archive (`.lrz`) mean: a second dialect beside the native container.
//!
//! The format was learned from archives that lrzip's releases write, not from its sources; `docs/lrzip.md` describes what is read.
//! An archive is a header, chunks, and the MD5 of its content. A chunk is a window of content, on its own: records that
//! say which literal bytes and which copies of earlier content it is made of, and the literals. Both are *streams*, cut
//! into blocks that are squeezed on their own; blocks of both follow each other in the order they were finished in, and each
//! names the place of the next one of its stream.
//!
//! In the words of the native format the literals of all chunks are the store, and the records become extents, once copies of
//! copies are followed to the store (the engine does that).
//!
//! | file | what |
//! |---|---|
//! | [`header`] | the header, its versions and what they changed |
//! | [`chunk`] | chunk headers, block heads, and how blocks follow each other |
//! | [`record`] | literals, matches, ends |
//! | [`mod@write`] | all of these, the other way |

pub mod chunk;
pub mod header;
pub mod record;
pub mod write;

#[cfg(any(test, feature = "property"))]
pub mod property;

pub use chunk::{
    BackEnd, BlockHeader, BlockWalk, CHUNK_HEADER_BYTES_MAX, ChunkHeader, FoundBlock, Overhead,
    Prefilter, Stream,
};
pub use header::{Cipher, DigestKind, HEADER_BYTES_MAX, Header, LzmaProperties, Version, is_lrzip};
pub use record::{Record, RecordParser};
pub use write::{RecordWriter, chunk_header_bytes, width_bytes};
