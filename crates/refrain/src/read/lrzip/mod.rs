#![cfg(feature = "lrzip")]
//! Reads lrzip's archives as store, extents and blocks.
//!
//! The literals of all chunks form the store. Records become extents: a match is resolved through
//! the extents of its source to the store, as in the match stage of the writer, and a match that
//! overlaps itself becomes a fill. The result is the maps and the store of the native dialect, so
//! any range can be read, content is decoded in parallel, and memory holds pages of the store
//! instead of output. The literals of a block can only be decoded from its beginning, and blocks
//! are often larger than memory, so they are decoded as streams, a page at a time.
//!
//! | file | what |
//! |---|---|
//! | `input` | the archive's bytes, from a file or a pipe |
//! | `spool` | the history of a pipe |
//! | `item_decryption` | decryption |
//! | `chunk_layout` | chunks and blocks |
//! | `coded_bytes` | the bytes of one block in the archive, decrypted |
//! | `block_stream` | one block as a stream of raw bytes |
//! | `literals` | the store, in pages |
//! | `records` | the records of a chunk |
//! | `record_summary` | sums over the records of a chunk, and the last use of its content |
//! | `replay`, `retained` | records to bytes: sequential reading |
//! | `flatten` | records to extents: random access, and chunks that do not fit in memory |
//! | `epochs` | the whole archive in order, one piece or map after the other |
//! | `page_prefetch` | which pages are decoded next |
//! | `walk` | sequential reading of a whole archive |
//! | `random` | random access |
//! | `headers` | the structure of an archive, from its headers |
//! | `unfilter` | ranges of filtered chunks |
//! | `whole_check` | the digests of content that is read by ranges |
//! | `digest` | MD5 and CRC-32 of content |

mod block_stream;
mod chunk_layout;
mod coded_bytes;
mod digest;
mod epochs;
mod flatten;
pub(crate) mod headers;
mod input;
mod item_decryption;
mod literals;
mod map_building;
mod member;
mod page_access;
mod page_prefetch;
pub(crate) mod random;
mod reader_memory;
mod record_summary;
mod records;
mod replay;
mod replayed_piece;
mod retained;
mod spool;
mod unfilter;
pub(crate) mod walk;
mod whole_check;
