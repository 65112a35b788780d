//! Which frame may follow which: a pure state machine that is fed every frame of an archive in file order.
//!
//! It is the reader's guard against frames that are each in order but do not belong together: dropped, repeated, moved, or
//! forged with good checksums. It also compares the index with what was seen, by running checksums over the rows both ways
//! (so it needs no memory for them). A writer may feed it its own frames.
//!
//! After an error the checker's state means nothing; the archive is to be given up, or salvaged by scanning.

mod checker;
mod epoch_sums;
mod row_checksum;

pub use checker::StreamChecker;
pub use epoch_sums::EpochSums;
