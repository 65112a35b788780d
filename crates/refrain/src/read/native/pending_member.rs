//! A member being read from front to back.

use refrain_format::{MemberEnd, MemberStart};
use refrain_protect::MemberHasher;

use crate::error::{Error, Result};
use crate::read::native::member_entries::MemberEntries;

/// A member whose content is being delivered or is still to be delivered.
pub(super) struct PendingMember {
    pub start: MemberStart,
    /// Of the delivered content.
    pub hasher: MemberHasher,
    pub is_started: bool,
    /// Whether some of its content was given back to the file system, so that the rest cannot be
    /// compared with its hash.
    pub is_given_back: bool,
    /// `None` for kinds of members without any.
    pub entries: Option<Box<MemberEntries>>,
}

impl PendingMember {
    /// For a reader with this memory.
    pub(super) fn new(start: MemberStart, memory_bytes: u64) -> PendingMember {
        PendingMember {
            entries: MemberEntries::for_kind(start.kind, memory_bytes),
            hasher: MemberHasher::new(start.hash_kind()),
            start,
            is_started: false,
            is_given_back: false,
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let entries = self.entries.as_ref();
        let own = size_of::<PendingMember>() + self.start.name.len();
        own as u64 + entries.map_or(0, |entries| entries.memory_bytes())
    }

    /// The name, for errors.
    pub(super) fn label(&self) -> String {
        String::from_utf8_lossy(&self.start.name).into_owned()
    }

    /// Compares the completely delivered content with what the end states.
    pub(super) fn compare(&self, end: &MemberEnd) -> Result<()> {
        if self.is_given_back {
            return Ok(());
        }
        let (found, stated) = (self.hasher.content_bytes(), end.content_bytes);
        let text = if found != stated {
            format!("the content has {found} bytes, the archive states {stated}")
        } else if self.hasher.value() != end.blake3 {
            "the content does not match its BLAKE3 hash".into()
        } else {
            return Ok(());
        };
        Err(Error::damaged(text).in_file(self.label()))
    }
}
