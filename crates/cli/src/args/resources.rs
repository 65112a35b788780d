//! Threads and memory.

use clap::Args;

use super::size::Size;

/// Memory that reading an archive may use when nothing else is asked for.
const READ_MEMORY_BYTES_DEFAULT: u64 = 1 << 30;

/// What a run may use.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Resources")]
pub struct ResourceArgs {
    /// Threads; 0 is one per processor (the default). Archives do not depend on it
    #[arg(
        short = 'T',
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub threads: usize,
    /// Memory budget (256M, 1GiB; powers of 1024); for compression the default is the level's
    #[arg(short = 'M', long, value_name = "SIZE")]
    pub memory: Option<Size>,
}

impl ResourceArgs {
    /// The number of threads, never 0.
    pub fn thread_count(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            threads => threads,
        }
    }

    /// Options for reading an archive.
    pub fn read_options(&self) -> refrain::ReadOptions {
        refrain::ReadOptions {
            threads: self.thread_count(),
            memory_bytes: self
                .memory
                .map_or(READ_MEMORY_BYTES_DEFAULT, |size| size.bytes),
        }
    }
}
