//! What the bytes of an archive mean: the native container, version 1.
//!
//! An archive is a magic and a sequence of frames, written strictly forward. The members' *content space* is mapped by
//! extents to the *store* of unique bytes, which is cut into blocks. The bytes are described for a stranger in
//! `docs/format.md`; the code follows it file by file:
//!
//! | file | what |
//! |---|---|
//! | [`frame`] | header, checksum, sequence; building, sealing, scanning |
//! | [`archive`], [`end`] | first and last frame |
//! | [`member`], [`entries`] | named contents, and what a tree holds |
//! | [`block`], [`extents`] | the store, and the map from content to it |
//! | [`index`] | where everything is |
//! | [`order`] | which frame may follow which |
//! | [`assemble`] | the writer's side of that: numbers, seals, keeps the index |
//! | [`limits`] | every size and count |
//!
//! Reading: [`UntrustedFrameHeader::parse`] → [`UntrustedFrameHeader::check`] → [`FrameHeader::check_payload`] →
//! [`Payload::parse`] → [`StreamChecker::feed`]. Everything is a pure function of bytes; nothing here decodes.
#![forbid(unsafe_code)]

pub mod archive;
pub mod assemble;
pub mod block;
mod bytes;
mod check;
pub mod coding;
mod columns;
pub mod end;
pub mod entries;
pub mod error;
pub mod extents;
pub mod frame;
pub mod generation;
pub mod index;
pub mod layout;
pub mod limits;
#[cfg(feature = "lrzip")]
pub mod lrzip;
pub mod member;
pub mod order;
pub mod payload;
pub mod sealed;
pub mod walk;

#[cfg(any(test, feature = "property"))]
pub mod property;

pub use archive::{ArchiveHeader, FORMAT_MAJOR, FORMAT_MINOR, REACH_UNLIMITED};
pub use assemble::ArchiveAssembler;
pub use block::BlockHeader;
pub use coding::{CODEC_NONE, Coding};
pub use end::ArchiveEnd;
pub use entries::{EntriesHeader, PackedEntries, entry_batches, pack_entries, unpack_entries};
pub use error::{ErrorClass, FormatError, Result};
pub use extents::{
    Extent, ExtentPacker, ExtentReader, ExtentsHeader, PackedExtents, Pattern, pack_extents,
    unpack_extents,
};
pub use frame::{
    FrameBuilder, FrameHeader, UntrustedFrameHeader, check_magic, complete_frame, find_frame,
    finish_header, payload_checksum,
};
pub use index::{Index, IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexTotals};
pub use layout::{
    BLOCK_HEADER_BYTES, END_FRAME_BYTES, ENTRIES_HEADER_BYTES, EXTENTS_HEADER_BYTES,
    FRAME_HEADER_BYTES, FrameKind, MAGIC, SYNC,
};
pub use limits::Limits;
pub use member::{Digest, MemberEnd, MemberKind, MemberStart};
pub use order::{EpochSums, StreamChecker};
pub use payload::{Payload, read_frame};
/// What the checksum and hash fields hold.
pub use refrain_protect::{checksum64, content_hash, pieces_checksum};
pub use refrain_tree::{Entry, EntryKind, Timestamp};
pub use walk::walk_archive;
