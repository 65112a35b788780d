//! Threads and memory.

use std::path::PathBuf;

use clap::Args;

use super::decoders::telling;
use super::size::Size;
use crate::memory_limit::{default_for_reading, prepare_allocator};
use crate::temporary;

/// The number of threads.
#[derive(Debug, Clone, Default, Args)]
pub struct ThreadArgs {
    /// Threads; 0 is one per processor (the default). They do not affect the output
    #[arg(
        short = 'T',
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub threads: usize,
}

impl ThreadArgs {
    /// The number of threads, never 0.
    pub fn count(&self) -> usize {
        match self.threads {
            0 => refrain_pool::processors(),
            threads => threads,
        }
    }
}

/// The resources that a run may use.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Resources")]
pub struct ResourceArgs {
    #[command(flatten)]
    pub threads: ThreadArgs,
    /// Memory budget (256M, 1GiB; powers of 1024). Default: set by the level for compressing, 1G
    /// for reading, or what the system's limits leave
    #[arg(short = 'M', long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Directory for data from pipes or URLs that does not fit into memory, or 'none'. Default:
    /// TMPDIR or /var/tmp, if on a disk
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub temporary: Option<PathBuf>,
}

impl ResourceArgs {
    /// The number of threads, never 0.
    pub fn thread_count(&self) -> usize {
        self.threads.count()
    }

    /// Options for reading an archive.
    pub fn read_options(&self) -> refrain::ReadOptions {
        let threads = self.thread_count();
        let asked = self.memory.map(|size| size.bytes);
        let memory_bytes = asked.unwrap_or_else(|| default_for_reading(threads));
        prepare_allocator(memory_bytes);
        refrain::ReadOptions {
            threads,
            memory_bytes,
            temporary: temporary::space(self.temporary.as_deref(), None)
                .map(|space| space.directory),
            decoder_listener: telling(),
            ..refrain::ReadOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_help_states_the_memory_budget_for_reading() {
        let bytes = refrain::ReadOptions::default().memory_bytes;
        let text = format!("{}G for reading", bytes >> 30);
        assert_eq!(bytes % (1 << 30), 0, "the help counts in whole units");
        let mut command = super::super::RefrainArgs::command();
        let test = command.find_subcommand_mut("test").unwrap();
        let help = test.render_help().to_string();
        let one_line = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(one_line.contains(&text), "{one_line}");
    }
}
