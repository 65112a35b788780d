#![doc = include_str!("../README.md")]
//!
//! # Traits
//!
//! Two small traits separate the engine from files, pipes and memory. A [`Source`] is bytes that
//! can be read at any offset, from several threads at once. A [`Sink`] is bytes written strictly
//! forward.
//!
//! | module | contents |
//! |---|---|
//! | [`file`](mod@file) | [`FileSource`]: a regular file or block device, with its holes |
//! | [`atomic_file`] | [`AtomicFile`]: a file that appears complete or not at all |
//! | [`confined`] | [`ConfinedDirectory`]: a directory that nothing created through it leaves |
//! | [`output`] | [`create_output`]: an [`AtomicFile`], or a device or pipe written directly |
//! | [`redirected`] | [`descriptor_output`]: standard output, read back where it is a file |
//! | [`growing_file`](mod@growing_file) | [`GrowingFile`]: appends to a file, whole or not at all |
//! | [`growing`] | [`GrowingSink`]: what such a file and a folder of volumes have in common |
//! | [`volumes`] | files in a folder that are created and deleted, never changed |
//! | [`growing_holes`] | gives parts of one back to the file system |
//! | [`ranged_file`] | [`RangedFile`]: several threads, whole reads and whole writes |
//! | [`scratch_file`] | [`ScratchFile`]: a temporary file that nobody else sees |
//! | [`blocking`] | [`Blocking`]: a descriptor in non-blocking mode, as if it were not |
//! | [`read_back`](mod@read_back) | whether the disk returns what was written to it |
//! | [`stream`] | [`StreamSink`] over any writer, [`NullSink`] that only counts |
//! | [`memory`] | [`MemorySource`], [`MemorySink`] |
//! | [`descriptor_reader`] | [`DescriptorReader`]: a pipe that lets other jobs run |
//! | `remote` | with the feature `remote`: an object on an HTTP server or in a store as a source |
//! | [`latch`] | [`Latch`]: after one failure everything fails |
//! | [`faulty`] | [`FaultySource`], [`FaultySink`], [`FaultyStream`]: simulated failures |
//!
//! All errors are [`std::io::Error`]. They retain the kind of the first cause, and contain a
//! [`Failure`] with the operation and the path.

pub mod atomic_file;
pub mod blocking;
pub mod confined;
pub mod descriptor_reader;
pub mod faulty;
pub mod file;
pub mod latch;
pub mod memory;
pub mod output;
#[cfg(any(test, feature = "property"))]
pub mod property;
pub mod ranged_file;
pub mod read_back;
pub mod redirected;
#[cfg(feature = "remote")]
pub mod remote;
pub mod scratch_file;
pub mod sink;
pub mod source;
pub mod stream;

mod appender;
mod checked_device;
mod directory;
mod disk_reader;
mod failure;
pub mod growing;
pub mod growing_file;
pub mod growing_holes;
mod leftovers;
mod open_at;
mod page_residency;
mod pages_behind;
mod remove_tree;
mod transfer;
pub mod volumes;
mod written_digests;

pub use atomic_file::{AtomicFile, Checking, Durability, OutputOptions, Overwrite, Temporary};
pub use blocking::Blocking;
pub use confined::ConfinedDirectory;
pub use descriptor_reader::DescriptorReader;
pub use failure::Failure;
pub use faulty::{FaultPlan, FaultySink, FaultySource, FaultyStream};
pub use file::{FileIdentity, FileSource};
pub use growing::{GivesBack, GrowingSink};
pub use growing_file::GrowingFile;
pub use growing_holes::{HOLE_BYTES, whole_blocks};
pub use latch::Latch;
pub use leftovers::{Leftover, remove_leftovers};
pub use memory::{MemoryOutput, MemorySink, MemorySource};
pub use open_at::open_at;
pub use output::{create_output, temporary_content};
pub use ranged_file::{Positional, RangedFile, Sharing};
pub use read_back::{NotAsWritten, ReadBack, read_back, read_back_parts};
pub use redirected::descriptor_output;
#[cfg(feature = "remote")]
pub use remote::{
    BucketFolder, HttpFolder, Location, RemoteOptions, RemoteSource, RemoteStatistics,
    S3Credentials, S3Options,
};
pub use remove_tree::remove_tree;
pub use scratch_file::{ScratchFile, is_in_memory};
pub use sink::Sink;
pub use source::{CachedRanges, NamedRange, Source};
pub use stream::{NullSink, StreamSink};
pub use transfer::{in_zero_pieces, read_full};
pub use volumes::{Alone, JoinedVolume, VolumeFolder, VolumeLock, VolumePlace};
pub use written_digests::WrittenDigests;
