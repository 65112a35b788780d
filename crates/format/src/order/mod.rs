//! Checks which frame may follow which: a pure state machine that is fed every frame of an archive
//! in file order.
//!
//! It detects frames that are valid alone but do not belong together: dropped, repeated, moved, or
//! forged with valid checksums. It also compares the index with the frames before it, by running
//! checksums over the rows of both, so it does not store the rows. A writer may feed it its own
//! frames.
//!
//! Extents come before the blocks with their fresh bytes; [`HeldFrames`] delays them until a reader
//! can use them.
//!
//! After an error the state of the checker is undefined. The reader must stop, or salvage the
//! archive by scanning.

mod checker;
mod epoch_sums;
mod held_frames;
mod index_check;
mod reach;
mod row_checksum;
mod slice_check;

pub use checker::{GenerationBase, StreamChecker};
pub use epoch_sums::EpochSums;
pub use held_frames::HeldFrames;
