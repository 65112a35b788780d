//! The check of content whose archive has digests of all of it only.

use refrain_protect::{HASH_BYTES, MemberHasher};

use crate::archive_info::Member;
use crate::error::{Error, ErrorKind, Result};

/// Compares all content of a member with what the archive states.
pub(crate) trait CheckContent: Send {
    /// Receives the next content.
    fn update(&mut self, bytes: &[u8]) -> Result<()>;

    /// Ends the content.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Compares all content of a member, which the caller reads from its beginning to its end, with
/// the digests that the archive states.
pub struct ContentCheck(pub(crate) Box<dyn CheckContent>);

impl std::fmt::Debug for ContentCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ContentCheck")
    }
}

impl ContentCheck {
    /// Adds the next content.
    ///
    /// # Errors
    /// `Damaged` if a digest of the content so far differs.
    pub fn update(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.update(bytes)
    }

    /// Compares the digests at the end of the content.
    ///
    /// # Errors
    /// `Damaged` if they differ.
    pub fn finish(self) -> Result<()> {
        self.0.finish()
    }
}

/// Compares content with its BLAKE3 hash.
pub(crate) struct HashCheck {
    hash: MemberHasher,
    stated: [u8; HASH_BYTES],
    name: String,
}

impl HashCheck {
    /// The check of all content of a member.
    pub(crate) fn new(member: &Member) -> HashCheck {
        HashCheck {
            hash: member.hasher(),
            stated: member.blake3,
            name: String::from_utf8_lossy(&member.name).into_owned(),
        }
    }
}

impl CheckContent for HashCheck {
    fn update(&mut self, bytes: &[u8]) -> Result<()> {
        let added = self.hash.push_bytes(bytes);
        added.map_err(|error| Error::new(ErrorKind::Internal, error))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        if self.hash.value() == self.stated {
            return Ok(());
        }
        let text =
            "the content does not match its BLAKE3 hash: what was written is not what was archived";
        Err(Error::damaged(text).in_file(self.name))
    }
}
