//! Where bytes come from and go to: the traits [`Source`] and [`Sink`], and their implementations
//! for files, memory and streams, and for remote objects with the feature `remote`.

pub use refrain_storage::{
    AtomicFile, Blocking, ConfinedDirectory, DescriptorReader, Durability, Failure, FileIdentity,
    FileSource, Leftover, MemoryOutput, MemorySink, MemorySource, NullSink, OutputOptions,
    Overwrite, ScratchFile, Sink, Source, StreamSink, Temporary, create_output, descriptor_output,
    in_zero_pieces, is_in_memory, remove_leftovers,
};
#[cfg(feature = "remote")]
pub use refrain_storage::{
    Location, RemoteOptions, RemoteSource, RemoteStatistics, S3Credentials, S3Options,
};
