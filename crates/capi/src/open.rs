//! The handles that are open, by type.

use std::ffi::c_void;
use std::sync::Arc;

use refrain_sync::Mutex;

use crate::archive::{Listing, OpenArchive, OpenFile};
use crate::failure::{Failure, Result};
use crate::handles::{Handle, Handles, Token, no_handle};
use crate::progress::Callback;
use crate::settings::Settings;
use crate::stream::Stream;

/// Options, and whom to call meanwhile.
#[derive(Default)]
pub(crate) struct Options {
    pub settings: Mutex<Settings>,
    pub callback: Mutex<Option<Callback>>,
}

pub(crate) static OPTIONS: Handles<Options> = Handles::new(1);
pub(crate) static STREAMS: Handles<Stream> = Handles::new(2);
pub(crate) static ARCHIVES: Handles<OpenArchive> = Handles::new(3);
pub(crate) static FILES: Handles<OpenFile> = Handles::new(4);
pub(crate) static LISTINGS: Handles<Listing> = Handles::new(5);

/// The number of open handles of all types.
pub(crate) fn count() -> usize {
    OPTIONS.count() + STREAMS.count() + ARCHIVES.count() + FILES.count() + LISTINGS.count()
}

/// The message of the last call that failed with this handle.
pub(crate) fn message(handle: *const c_void) -> Result<String> {
    fn of<T>(handles: &Handles<T>, token: Token) -> Result<Option<String>> {
        if !handles.is_of_type(token) {
            return Ok(None);
        }
        Ok(Some(handles.get(token)?.message()))
    }
    let token = handle.addr();
    let mut found = of(&OPTIONS, token)?;
    found = found.or(of(&STREAMS, token)?);
    found = found.or(of(&ARCHIVES, token)?);
    found = found.or(of(&FILES, token)?);
    found = found.or(of(&LISTINGS, token)?);
    found.ok_or_else(no_handle)
}

/// Runs a call with a handle, which keeps the message if it fails.
pub(crate) fn with<T, N>(
    handles: &Handles<T>,
    token: Token,
    work: impl FnOnce(&T) -> Result<N>,
) -> Result<N> {
    let handle = handles.get(token)?;
    let keep = |handle: &Arc<Handle<T>>, failure: &Failure| handle.set_message(&failure.message);
    work(&handle.value).inspect_err(|failure| keep(&handle, failure))
}
