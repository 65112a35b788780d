//! Replaces reading from URLs in a build without the feature `remote`.

use std::path::Path;
use std::sync::Arc;

use refrain::storage::Source;
use refrain_pool::Cancellation;

use crate::failure::{Failure, Result};
use crate::in_volumes::InVolumes;
use crate::paths::label;

/// Always fails: this build cannot read URLs.
pub fn source(
    url: &Path,
    _temporary: Option<&Path>,
    _cancellation: &Cancellation,
) -> Result<Arc<dyn Source>> {
    let text = "is a URL, which this build cannot read: it was compiled without the feature remote";
    Err(Failure::usage(label(url), text))
}

/// Always fails: this build cannot read URLs.
pub fn volumes(
    url: &Path,
    temporary: Option<&Path>,
    cancellation: &Cancellation,
) -> Result<Option<InVolumes>> {
    source(url, temporary, cancellation).map(|_| None)
}
