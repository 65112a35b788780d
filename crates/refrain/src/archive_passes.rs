//! What an opened archive offers if it has no random access: a file of another format.

use refrain_foreign::Description;

use crate::archive::Archive;
use crate::error::Result;
use crate::progress::Watch;
use crate::read::opened_archive::{Passes, no_member};

impl Archive {
    /// How a member is read if there is no random access.
    pub(crate) fn passes(&self, member: usize) -> Result<Option<&dyn Passes>> {
        match self.opened.passes() {
            Some(_) if member >= self.member_count() => Err(no_member(member, self.member_count())),
            passes => Ok(passes),
        }
    }

    /// Decodes all of a member whose length only that tells, a compressed stream of another format,
    /// and returns the length in bytes. `None` if
    /// [`Member::content_bytes`](crate::Member::content_bytes) states it.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit` and `Io` for the content; `Usage` for a zip file;
    /// `Cancelled`.
    pub fn measure(&self, member: usize, watch: &dyn Watch) -> Result<Option<u64>> {
        let passes = self.passes(member)?;
        passes.map(|passes| passes.measure(watch)).transpose()
    }

    /// What a file of another format states about itself, instead of [`Archive::info`]; `None` for
    /// other archives. Decodes nothing.
    ///
    /// # Errors
    /// `Damaged` and `Io` for its headers.
    pub fn description(&self) -> Result<Option<Description>> {
        self.opened.passes().map(Passes::describe).transpose()
    }
}
