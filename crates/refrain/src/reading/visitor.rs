//! What walks over archives, of every dialect, give away.

#[cfg(feature = "lrzip")]
use std::sync::Arc;

use refrain_format::{MemberEnd, MemberStart};
#[cfg(feature = "lrzip")]
use refrain_storage::Source;

use crate::error::Result;

/// What the walk gives away, in the order of the archive.
pub(crate) trait Visitor {
    /// A member begins.
    fn start(&mut self, start: &MemberStart) -> Result<()>;
    /// Its next content.
    fn content(&mut self, bytes: &[u8]) -> Result<()>;
    /// Its next content is zeros.
    fn zeros(&mut self, length_bytes: u64) -> Result<()>;
    /// Reads back what was given of the member, if that can be.
    #[cfg(feature = "lrzip")]
    fn read_back(&self) -> Option<Arc<dyn Source>> {
        None
    }
    /// It is complete and its hash is right.
    fn end(&mut self, start: &MemberStart, end: &MemberEnd) -> Result<()>;
}
