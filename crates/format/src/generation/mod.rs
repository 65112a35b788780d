//! Generations: what was added to an archive after its end, without changing an earlier byte.
//!
//! ```text
//! Magic … Index End Tail | Generation … Catalog Index End Tail | Generation …
//! ```
//!
//! A generation has members of its own; its extents may refer to the store of all generations
//! before it. Ids, addresses and the index go on, so its End frame leads to every frame of the
//! file. The [`Catalog`] lists the generations that are kept: to forget some, a generation without
//! members and a shorter catalog is written. Truncated to an earlier tail, the file is the earlier
//! archive.
//!
//! | file | what |
//! |---|---|
//! | [`start`] | the frame that begins a generation, and what its End frame states |
//! | [`catalog`] | the generations that are kept |
//! | [`pieces`] | digests of a member's pieces, by which a later one sees what did not change |
//! | [`anchors`] | fingerprints of the store, by which later generations find repeats |
//! | [`gone`] | the frames whose data was given back |

pub mod anchors;
pub mod catalog;
pub mod gone;
pub mod pieces;
pub mod start;

pub use anchors::{Anchor, AnchorsFrame};
pub use catalog::{AnchorsPlace, Catalog, GenerationInfo};
pub use gone::{GONE_RUN_BYTES_MAX, GoneFrames};
pub use pieces::{PIECE_BYTES, PIECES_DEPTH_MAX, PIECES_PER_FRAME_MAX, Piece, PiecesFrame};
pub use start::{GenerationEnd, GenerationStart};
