//! Where bytes come from and go to: the traits [`Source`] and [`Sink`], and their implementations
//! for files, memory and streams, and for remote objects with the feature `remote`.

pub use refrain_storage::{
    AtomicFile, CachedRanges, Checking, DescriptorReader, FileSource, MemoryOutput, MemorySink,
    MemorySource, NamedRange, NullSink, OutputOptions, Overwrite, ReadBack, Sink, Source,
    StreamSink,
};
#[cfg(feature = "remote")]
pub use refrain_storage::{
    BucketFolder, HttpFolder, Location, RemoteOptions, RemoteSource, RemoteStatistics,
    S3Credentials, S3Options,
};
