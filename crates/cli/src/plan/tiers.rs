//! Caches in front of archives.

use std::sync::Arc;

use refrain_cache::policy::Rules;
use refrain_cache::{DiskTier, SharedTier, Tiers};

use crate::args::CachingArgs;
use crate::failure::{Failure, Result};

/// What memcached takes without `-I` (1 MiB), with names and what it keeps of each value.
const VALUE_BYTES_MAX: u64 = 1023 << 10;

const DISK_BYTES: u64 = 10 << 30;
const DISK_BYTES_MIN: u64 = 1 << 20;

/// The caches that the options ask for.
///
/// # Errors
/// `Usage` for a size that is useless, or a directory that cannot be used.
pub fn tiers(args: &CachingArgs) -> Result<Option<Arc<Tiers>>> {
    if args.cache.is_none() && args.cache_disk.is_none() {
        return Ok(None);
    }
    let value_bytes_max = args
        .cache_value_max
        .map_or(VALUE_BYTES_MAX, |size| size.bytes);
    if value_bytes_max < 1024 {
        return Err(Failure::usage("", "--cache-value-max is at least 1K"));
    }
    let disk_bytes = args.cache_disk_size.map_or(DISK_BYTES, |size| size.bytes);
    if disk_bytes < DISK_BYTES_MIN {
        return Err(Failure::usage("", "--cache-disk-size is at least 1M"));
    }
    let disk = args.cache_disk.as_ref();
    let disk = disk.map(|directory| DiskTier::open(directory, disk_bytes));
    let disk = disk
        .transpose()
        .map_err(|error| Failure::usage("", format!("--cache-disk: {error}")))?;
    let value_bytes_max = usize::try_from(value_bytes_max).unwrap_or(usize::MAX);
    let shared = |list| SharedTier::new(list, value_bytes_max, Rules::default());
    let shared = args.cache.clone().map(shared);
    Ok(Some(Arc::new(Tiers::new(disk, shared))))
}
