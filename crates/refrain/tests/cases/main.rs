//! Cases of the engine, in one binary: linking twenty would take longer than running them.
//!
//! | file | what |
//! |---|---|
//! | `cached` | a cache in front of an archive |
//! | `changed_pieces` | images and dumps that change from night to night |
//! | `codings` | blocks as other writers may code them |
//! | `compact` | what was forgotten is given back |
//!
//! `concatenation`
//! concatenated archives
//! | `decoders` | archives read by the decoders that they carry |
//! | `entry_lists` | entry lists that contradict something |
//! | `faults` | failing and full disks, sources that change |
//! | `generations` | archives that grow |
//! | `golden` | the archives of `golden/`, read and written again |
//! | `levels` | no slower level makes a larger archive |
//! | `lrzip` | archives of lrzip, read |
//! | `lrzip_write` | archives of lrzip, written |
//! | `merge` | archives made of several
//! | `pipes` | several pipes in one run |
//! | `reach` | how much a decoder of a stream retains |
//!
//! `recovery`
//! what is intact is restored, the rest is reported
//! | `repair` | recovery data, and what it heals |
//! | `repair_generations` | recovery data of archives that grow |
//! | `repeats` | extents that stand for earlier ones |
//! | `round_trip` | every kind of input, output and reading |
//! | `scan` | damaged archives, read by their frames |
//! | `second_reader` | the reader of `tools/reader` agrees |
//! | `signing` | signatures, and archives that nobody vouches for |
//! | `sparse` | holes of single files |
//! | `temporary` | temporary files change no content |
//! | `trees` | directories and tar streams |
//! | `golden_generations` | an archive with generations that must stay readable |
//! | `layered_trees` | trees of later generations |
//! | `view_ranges` | ranges of their tar streams |
//! | `whole` | small archives |
//!
//! Tests that count the heap (`bounds`, `damage`, `memory`) or run themselves again (`killed`) are
//! separate binaries.

// Helpers of tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod cached;
mod carried;
mod changed_pieces;
mod codings;
mod compact;
mod concatenation;
mod decoders;
mod encrypted_generations;
mod entry_lists;
mod faults;
mod generations;
mod golden;
mod golden_encrypted;
mod golden_generations;
mod layered_trees;
mod levels;
#[cfg(feature = "lrzip")]
mod lrzip;
#[cfg(feature = "lrzip")]
mod lrzip_write;
mod machine_code;
mod merge;
mod pipes;
mod reach;
mod recovery;
mod references;
mod repair;
mod repair_generations;
mod round_trip;
mod scan;
mod second_reader;
mod signed_generations;
mod signing;
mod sparse;
mod temporary;
mod trees;
mod view_ranges;
mod whole;
mod writer_state;
