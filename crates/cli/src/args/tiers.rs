//! Options for caches in front of archives.

use std::path::PathBuf;

use clap::Args;
use refrain_cache::NodeList;

use super::size::Size;

/// Caches in front of the archives that are read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Caches")]
pub struct CachingArgs {
    /// Ask these nodes for frames before the archive, and store there what was read:
    /// memcached://HOST[:PORT],..., redis://..., memcached://@FILE (a node on each line), or
    /// memcached+dns://HOST (each address is a node). File and addresses are read again
    #[arg(long, value_name = "NODES", value_parser = node_list)]
    pub cache: Option<NodeList>,
    /// The largest frame that nodes get (default: 1023K, what memcached takes without -I)
    #[arg(long, value_name = "SIZE", requires = "cache")]
    pub cache_value_max: Option<Size>,
    /// Keep frames that were read in this directory, which several processes may share
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub cache_disk: Option<PathBuf>,
    /// How much that directory may hold (default: 10G)
    #[arg(long, value_name = "SIZE", requires = "cache_disk")]
    pub cache_disk_size: Option<Size>,
}

/// The nodes that a text names.
pub(super) fn node_list(text: &str) -> Result<NodeList, String> {
    NodeList::parse(text).map_err(|error| error.to_string())
}
