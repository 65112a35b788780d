//! What walks over archives, of every dialect, deliver.

use std::sync::Arc;

use refrain_format::{MemberEnd, MemberStart};
use refrain_storage::Source;

use crate::error::Result;

/// Receives content in the order of the archive.
pub(crate) trait ContentVisitor {
    /// A member begins. Returns a source that reads back what is delivered of it, if that is possible.
    fn start(&mut self, start: &MemberStart) -> Result<Option<Arc<dyn Source>>>;
    /// The member's next content.
    fn content(&mut self, bytes: &[u8]) -> Result<()>;
    /// The member's next content, which is zeros.
    fn zeros(&mut self, length_bytes: u64) -> Result<()>;
    /// The member is complete and its hash is correct.
    fn end(&mut self, start: &MemberStart, end: &MemberEnd) -> Result<()>;
}

/// What a walk counted.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct WalkTotals {
    pub content_bytes: u64,
    pub archive_bytes: u64,
    pub members: usize,
    pub entries: u64,
}
