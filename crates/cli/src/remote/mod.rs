//! Opens URLs, with the certificates and credentials of this machine and user.
//!
//! | file | what |
//! |---|---|
//!
//! `certificates`
//! trusted authorities
//! | `profile` | the files of Amazon's command line |
//! | `store` | credentials and address of an S3-compatible store |

mod certificates;
mod profile;
mod store;

use std::path::Path;
use std::sync::Arc;

use refrain::storage::{Location, RemoteOptions, RemoteSource, Source};
use refrain_pool::Cancellation;

use self::store::Surroundings;
use crate::failure::{Failure, Result};
use crate::paths::label;
use crate::urls;

/// The source at a URL. Data that does not fit into memory is kept in a file in `temporary`. Once
/// `cancellation` is cancelled, no request is repeated.
pub fn source(
    url: &Path,
    temporary: Option<&Path>,
    cancellation: &Cancellation,
) -> Result<Arc<dyn Source>> {
    let surroundings = Surroundings::from_process();
    let refuse = |error: std::io::Error| Failure::usage(label(url), error.to_string());
    let location = match urls::bucket_and_key(url) {
        Some((bucket, key)) => {
            let options = surroundings.store_options()?;
            Location::s3(bucket, key, &options)
        }
        None => Location::http(&url.to_string_lossy()),
    };
    let options = RemoteOptions {
        certificates: certificates::load(&surroundings)?,
        temporary: temporary.map(Path::to_path_buf),
        cancellation: cancellation.clone(),
        ..RemoteOptions::default()
    };
    let source = RemoteSource::open(location.map_err(refuse)?, &options);
    Ok(Arc::new(source.map_err(Failure::Storage)?))
}
