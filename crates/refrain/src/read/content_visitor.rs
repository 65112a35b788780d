//! The callback for an archive's content, for every dialect.

use std::sync::Arc;

use refrain_format::{MemberEnd, MemberStart};
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::store::decoders::Decoders;

/// A frame of entries.
#[derive(Clone)]
pub(crate) struct EntriesPayload {
    pub bytes: Arc<Vec<u8>>,
    /// What decodes it.
    pub decoders: Arc<Decoders>,
}

/// Why a visitor that takes one generation reads no archive with several from front to back.
pub(crate) const ONLY_FROM_A_FILE: &str =
    "the archive has generations: to choose one, it must be a file";

/// Receives content in archive order.
pub(crate) trait ContentVisitor {
    /// Begins a member. Returns a source that reads back its delivered content, if possible.
    fn start(&mut self, start: &MemberStart) -> Result<Option<Arc<dyn Source>>>;
    /// Receives the member's next content.
    fn content(&mut self, bytes: &[u8]) -> Result<()>;
    /// Receives the member's next content as a number of zero bytes.
    fn zeros(&mut self, length_bytes: u64) -> Result<()>;
    /// The member's next content is gone: it was given back to the file system. Its hash cannot be
    /// compared.
    ///
    /// # Errors
    /// The visitor needs all content.
    fn given_back(&mut self, _length_bytes: u64) -> Result<()> {
        Err(Error::given_back())
    }
    /// Completes the member, whose hash is correct. `entries` are its entries, still coded.
    fn end(
        &mut self,
        start: &MemberStart,
        end: &MemberEnd,
        entries: Vec<EntriesPayload>,
    ) -> Result<()>;
    /// Whether it takes the members of all generations, one after the other.
    fn takes_generations(&self) -> bool {
        false
    }
    /// Whether members cut short by damage are passed to [`ContentVisitor::broken`]. Otherwise
    /// nothing follows the damage, and the open member stays open.
    fn takes_broken(&self) -> bool {
        false
    }
    /// The member ends here because of damage. All earlier content was received, and `entries` are
    /// those found so far. Another member may follow, of which nothing was received.
    fn broken(&mut self, _start: &MemberStart, _entries: Vec<EntriesPayload>) -> Result<()> {
        Ok(())
    }
}

/// The totals of a pass over an archive.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct WalkTotals {
    pub content_bytes: u64,
    /// Bytes of all members; a directory counts as a tar stream.
    pub view_bytes: u64,
    pub archive_bytes: u64,
    pub members: usize,
    pub entries: u64,
}
