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

use std::io;
use std::path::Path;
use std::sync::Arc;

use refrain::storage::{BucketFolder, HttpFolder, Location, RemoteOptions, RemoteSource, Source};
use refrain::volumes::{holds_archive, is_head_name};
use refrain_pool::Cancellation;
use refrain_storage::VolumePlace;

use self::store::Surroundings;
use crate::failure::{Failure, Result};
use crate::in_volumes::InVolumes;
use crate::paths::{ends_with_slash, label};
use crate::urls;

/// The source at a URL, in one object or in volumes. Data that does not fit into memory is kept in
/// a file in `temporary`. Once `cancellation` is cancelled, no request is repeated.
pub fn source(
    url: &Path,
    temporary: Option<&Path>,
    cancellation: &Cancellation,
) -> Result<Arc<dyn Source>> {
    let surroundings = Surroundings::from_process();
    let in_volumes = volumes(url, temporary, cancellation)?;
    let is_store = urls::bucket_and_key(url).is_some();
    if let Some(found) = &in_volumes {
        let holds = || is_store || holds_archive(&*found.place).unwrap_or(false);
        if found.head.is_some() || ends_with_slash(url) && holds() {
            return found.source(&label(url));
        }
    }
    let location = match urls::bucket_and_key(url) {
        Some((bucket, key)) => Location::s3(bucket, key, &surroundings.store_options()?),
        None => Location::http(&url.to_string_lossy()),
    };
    let location = location.map_err(refused(url))?;
    let options = options(&surroundings, temporary, cancellation)?;
    match RemoteSource::open(location, &options) {
        Ok(source) => Ok(Arc::new(source)),
        // What is no object may be a folder of them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => match in_volumes {
            Some(found) if holds_archive(&*found.place).unwrap_or(false) => {
                found.source(&label(url))
            }
            _ => Err(Failure::Storage(error)),
        },
        Err(error) => Err(Failure::Storage(error)),
    }
}

/// The volumes below a URL, or of the head at a URL, if there can be any: a URL of a server needs a
/// slash at its end, or a head.
pub fn volumes(
    url: &Path,
    temporary: Option<&Path>,
    cancellation: &Cancellation,
) -> Result<Option<InVolumes>> {
    let surroundings = Surroundings::from_process();
    let text = url.to_string_lossy();
    let (parent, name) = text.rsplit_once('/').unwrap_or(("", &text));
    let head = is_head_name(name).then(|| name.to_owned());
    let folder = if head.is_some() { parent } else { &*text };
    let options = || options(&surroundings, temporary, cancellation);
    let place: Arc<dyn VolumePlace> = match urls::bucket_and_key(Path::new(folder)) {
        Some((bucket, prefix)) => {
            let store = surroundings.store_options()?;
            let place = BucketFolder::new(bucket, prefix, &store, &options()?);
            Arc::new(place.map_err(refused(url))?)
        }
        None if head.is_some() || ends_with_slash(url) => {
            Arc::new(HttpFolder::new(folder, &options()?).map_err(refused(url))?)
        }
        None => return Ok(None),
    };
    Ok(Some(InVolumes { place, head }))
}

fn refused(url: &Path) -> impl Fn(io::Error) -> Failure {
    let label = label(url);
    move |error| Failure::usage(&*label, error.to_string())
}

fn options(
    surroundings: &Surroundings,
    temporary: Option<&Path>,
    cancellation: &Cancellation,
) -> Result<RemoteOptions> {
    Ok(RemoteOptions {
        certificates: certificates::load(surroundings)?,
        temporary: temporary.map(Path::to_path_buf),
        cancellation: cancellation.clone(),
        ..RemoteOptions::default()
    })
}
