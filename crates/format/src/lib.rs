#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! An archive is a magic number and a sequence of frames, written strictly forward. Extents map the
//! members' *content space* to the *store* of unique bytes, and the store is cut into blocks.
//! The code is organized like `docs/format.md`:
//!
//! | file | what |
//! |---|---|
//! | [`constants`] | magic, sync word, kinds of frames, fixed sizes |
//! | [`limits`] | the largest sizes and counts |
//! | [`frame`] | the frame header: building, checking, scanning |
//! | [`archive`], [`end`] | the first and the last frame |
//! | [`member`], [`entries`] | named contents, and the entries of a tree |
//! | [`coding`], [`block`], [`extents`] | the store, and the map from content to it |
//! | [`index`] | the locations of all frames |
//! | [`generation`] | what was added to an archive later |
//! | [`identity`] | the id of an archive, and the mask of data that looks like its frames |
//! | [`order`] | which frame may follow which |
//! | [`assemble`] | the writer's side of the order: sequence numbers and the index |
//! | [`whole`] | small archives as a single frame |
//! | [`recovery`] | frames with parity and digests of the archive's bytes |
//! | [`signature`], [`member_tree`] | who vouches for the archive, and proofs of single members |
//! | [`volumes`] | heads that list the files of an archive in volumes |
//!
//! A reader goes [`UntrustedFrameHeader::parse`] → [`UntrustedFrameHeader::check`] →
//! [`FrameHeader::check_payload`] → [`Payload::parse`] → [`StreamChecker::feed`].

#![forbid(unsafe_code)]

pub mod archive;
pub mod assemble;
pub mod block;
pub mod block_hash;
mod bytes;
mod check;
pub mod coding;
mod columns;
pub mod constants;
pub mod decoder;
pub mod end;
pub mod entries;
pub mod envelope;
pub mod error;
pub mod extents;
pub mod frame;
pub mod generation;
pub mod head;
pub mod identity;
pub mod index;
mod layers;
pub mod limits;
#[cfg(feature = "lrzip")]
pub mod lrzip;
pub mod member;
pub mod member_tree;
pub mod order;
pub mod parity;
pub mod payload;
pub mod payload_hasher;
pub mod recovery;
pub mod root_hash;
pub mod signature;
pub mod volumes;
pub mod walk;
pub mod whole;

#[cfg(any(test, feature = "property"))]
pub mod property;

pub use archive::{ArchiveHeader, FORMAT_MAJOR, FORMAT_MINOR, REACH_UNLIMITED};
pub use assemble::{ArchiveAssembler, FinishedArchive, GenerationBase};
pub use block::{BlockHeader, PieceChecksums, block_frame_overhead_max};
pub use block_hash::BlockHash;
pub use coding::{CODEC_NAMED, CODEC_NONE, Coding};
pub use constants::{FRAME_HEADER_BYTES, FrameKind, MAGIC, SYNC, TAIL_BYTES, TAIL_MAGIC};
pub use decoder::{
    DECODERS_MAX, DecoderHeader, DecoderRole, MODULE_BYTES_MAX, PLUGIN_NAME_BYTES_MAX,
    is_plugin_name,
};
pub use end::{ArchiveEnd, ExtentTotals, Tail};
pub use entries::{
    ENTRIES_PER_BATCH, EntriesHeader, EntryListChecker, LinkTargets, PackedEntries, check_storable,
    entries_are_sorted, entry_batches, entry_bytes, pack_entries, unpack_entries,
    unpack_entries_within,
};
pub use error::{ErrorClass, FormatError, Result};
pub use extents::{
    Extent, ExtentPacker, ExtentPosition, ExtentReader, ExtentsHeader, PackedExtents, Pattern,
    pack_extents, unpack_extents,
};
pub use frame::{
    FLAG_KEEP, FLAG_SKIPPABLE, FrameBuilder, FrameHeader, UntrustedFrameHeader, check_magic,
    complete_frame, find_frame, finish_header, payload_checksum,
};
pub use generation::{
    Anchor, AnchorsFrame, AnchorsPlace, Catalog, GONE_RUN_BYTES_MAX, GenerationEnd, GenerationInfo,
    GenerationStart, GoneFrames, PIECE_BYTES, PIECES_DEPTH_MAX, PIECES_PER_FRAME_MAX, Piece,
    PiecesFrame,
};
pub use head::{HEAD_SIZE_BYTES_MAX, SplitPayload, head_bytes};
pub use identity::{FirstBlock, archive_id, contains_sync, mask_for};
pub use index::{
    Index, IndexBlock, IndexBuilder, IndexEntries, IndexEpoch, IndexList, IndexMember, IndexNode,
    IndexSlice, IndexTree, NodeRows, NodeSource,
};
pub use layers::{TreeLayer, TreeLayers};
pub use limits::{ARCHIVES_MAX, Limits, REFERENCE_DEPTH_MAX, REFERENCE_WINDOW_MAX};
pub use member::{Digest, MemberEnd, MemberKind, MemberStart};
pub use member_tree::MemberTree;
pub use order::{EpochSums, HeldFrames, StreamChecker};
pub use parity::{frame_with_parity, header_by_parity, mended_payload};
pub use payload::{Payload, read_frame};
pub use payload_hasher::PayloadHasher;
pub use recovery::{LaterBytes, RECOVERY_HEAD_BYTES, RecoveryPart, RecoveryPlace, RecoverySet};
pub use refrain_entries::{Entry, EntryKind, Timestamp, compare_paths};
/// The functions behind the checksum and hash fields.
pub use refrain_protect::{ContentHash, checksum64, chunked_checksum64, content_hash};
pub use root_hash::{EntriesHasher, RootHasher, member_hash};
pub use signature::{
    SIGNATURE_PAYLOAD_BYTES_MAX, SIGNATURES_MAX, SignaturePart, StoredSignature, signed_statement,
};
pub use walk::walk_archive;
