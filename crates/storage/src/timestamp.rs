//! Points in time as file systems keep them.

/// A point in time: seconds since 1970-01-01 UTC (may be negative) and nanoseconds on top.
///
/// The order of the fields makes the derived order the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// 0 to 999,999,999, always counted forward from `seconds`.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// Nanoseconds in a second: `nanoseconds` is below this.
    pub const NANOSECONDS_END: u32 = 1_000_000_000;

    /// Whether `nanoseconds` is in its range.
    pub fn is_valid(self) -> bool {
        self.nanoseconds < Self::NANOSECONDS_END
    }

    /// When the content of a file was last changed.
    pub fn modified(metadata: &std::fs::Metadata) -> Timestamp {
        use std::os::unix::fs::MetadataExt;
        Timestamp {
            seconds: metadata.mtime(),
            // Kernels keep it in range; a file system that lies is brought back into it.
            nanoseconds: u32::try_from(metadata.mtime_nsec())
                .unwrap_or(0)
                .min(Self::NANOSECONDS_END - 1),
        }
    }
}
