//! The callback for the content of an archive, of every dialect.

use std::sync::Arc;

use refrain_format::{MemberEnd, MemberStart};
use refrain_storage::Source;

use crate::error::Result;

/// The payload of an Entries frame.
pub(crate) type EntriesPayload = Arc<Vec<u8>>;

/// Receives content in the order of the archive.
pub(crate) trait ContentVisitor {
    /// Begins a member. Returns a source that reads back its delivered content, if that is
    /// possible.
    fn start(&mut self, start: &MemberStart) -> Result<Option<Arc<dyn Source>>>;
    /// Receives the member's next content.
    fn content(&mut self, bytes: &[u8]) -> Result<()>;
    /// Receives the member's next content as a number of zero bytes.
    fn zeros(&mut self, length_bytes: u64) -> Result<()>;
    /// Completes the member, whose hash is correct. `entries` are its entries, still coded.
    fn end(
        &mut self,
        start: &MemberStart,
        end: &MemberEnd,
        entries: Vec<EntriesPayload>,
    ) -> Result<()>;
    /// Whether members that damage ends are passed to [`ContentVisitor::broken`]. Otherwise nothing
    /// follows the damage, and the member that is open remains so.
    fn takes_broken(&self) -> bool {
        false
    }
    /// The member ends here because of damage. All of its content before that was received, and
    /// `entries` are those that were found so far. Another member may follow, of which nothing was
    /// received.
    fn broken(&mut self, _start: &MemberStart, _entries: Vec<EntriesPayload>) -> Result<()> {
        Ok(())
    }
}

/// The totals of a pass over an archive.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct WalkTotals {
    pub content_bytes: u64,
    /// Bytes of all members, of directories as tar streams.
    pub view_bytes: u64,
    pub archive_bytes: u64,
    pub members: usize,
    pub entries: u64,
}
