//! Checks content for which the archive only has digests of the whole.

use refrain_protect::{HASH_BYTES, HashKind, MemberHasher, MemberSegment};

use crate::archive_info::Member;
use crate::error::{Error, ErrorKind, Result};

/// Compares all content of a member with the archive's digests.
pub(crate) trait CheckContent: Send {
    /// Receives the next content.
    fn update(&mut self, bytes: &[u8]) -> Result<()>;
    /// The kind of the segment hashes, computed by any thread, that it accepts instead of the
    /// content; `None` if it accepts only content.
    fn segment_kind(&self) -> Option<HashKind> {
        None
    }
    /// Receives the hashes of the next segments.
    fn push(&mut self, _segments: &[MemberSegment]) -> Result<()> {
        Ok(())
    }

    /// Ends the content.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Compares all content of a member, which the caller reads from beginning to end, with the
/// archive's digests.
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

    /// The kind of the segment hashes that it accepts instead of content, if it does.
    pub(crate) fn segment_kind(&self) -> Option<HashKind> {
        self.0.segment_kind()
    }

    /// Adds the hashes of the next segments.
    pub(crate) fn push(&mut self, segments: &[MemberSegment]) -> Result<()> {
        self.0.push(segments)
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
    kind: HashKind,
    stated: [u8; HASH_BYTES],
    name: String,
}

impl HashCheck {
    /// Checks all content against this hash. Errors call it `name`.
    pub(crate) fn new(kind: HashKind, stated: [u8; HASH_BYTES], name: String) -> HashCheck {
        HashCheck {
            hash: MemberHasher::new(kind),
            kind,
            stated,
            name,
        }
    }

    /// Checks content that is only a part of the member with this name.
    pub(crate) fn of_content(stated: [u8; HASH_BYTES], name: &[u8]) -> HashCheck {
        let name = String::from_utf8_lossy(name).into_owned();
        HashCheck::new(HashKind::Plain, stated, name)
    }

    pub(crate) fn for_member(member: &Member) -> HashCheck {
        let name = String::from_utf8_lossy(&member.name).into_owned();
        HashCheck::new(member.hash_kind(), member.blake3, name)
    }
}

impl CheckContent for HashCheck {
    fn update(&mut self, bytes: &[u8]) -> Result<()> {
        let added = self.hash.push_bytes(bytes);
        added.map_err(|error| Error::new(ErrorKind::Internal, error))
    }

    fn segment_kind(&self) -> Option<HashKind> {
        Some(self.kind)
    }

    fn push(&mut self, segments: &[MemberSegment]) -> Result<()> {
        let mut pushed = segments.iter().map(|segment| self.hash.push(segment));
        (pushed.try_for_each(|pushed| pushed))
            .map_err(|error| Error::new(ErrorKind::Internal, error))
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
