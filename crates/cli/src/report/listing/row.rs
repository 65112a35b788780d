//! A row of a list.

use refrain::{Entry, EntryKind, Member, MemberKind, Timestamp};

/// An entry of a directory, or a member other than a directory.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The archive's name in messages.
    pub archive: &'a str,
    /// The name of the member; empty if it has none.
    pub member: &'a [u8],
    /// The path for `cat`.
    pub path: &'a [u8],
    /// The entry or member.
    pub item: Item<'a>,
}

/// The subject of a row.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    Entry(&'a Entry),
    Member(&'a Member),
}

impl<'a> Row<'a> {
    /// The row of an entry.
    pub fn from_entry(
        archive: &'a str,
        member: &'a [u8],
        path: &'a [u8],
        entry: &'a Entry,
    ) -> Self {
        Row {
            archive,
            member,
            path,
            item: Item::Entry(entry),
        }
    }

    /// The row of a member other than a directory.
    pub fn from_member(archive: &'a str, name: &'a [u8], member: &'a Member) -> Self {
        Row {
            archive,
            member: name,
            path: name,
            item: Item::Member(member),
        }
    }

    pub fn entry(&self) -> Option<&'a Entry> {
        match self.item {
            Item::Entry(entry) => Some(entry),
            Item::Member(_) => None,
        }
    }

    /// The kind in one word.
    pub fn kind_name(&self) -> &'static str {
        match self.item {
            Item::Entry(entry) => entry_kind_name(entry.kind),
            Item::Member(member) => match member.kind {
                MemberKind::File => "file",
                MemberKind::Stream => "stream",
                MemberKind::Tree => "directory",
                MemberKind::Tar => "tar",
            },
        }
    }

    /// Permission bits, if known.
    pub fn mode(&self) -> Option<u32> {
        match self.item {
            Item::Entry(entry) => Some(entry.mode),
            Item::Member(member) => member.mode,
        }
    }

    /// The length of the data.
    pub fn size_bytes(&self) -> u64 {
        match self.item {
            Item::Entry(entry) => entry.size_bytes,
            Item::Member(member) => member.content_bytes,
        }
    }

    /// The modification time, if known.
    pub fn modified(&self) -> Option<Timestamp> {
        match self.item {
            Item::Entry(entry) => Some(entry.modified),
            Item::Member(member) => member.modified,
        }
    }
}

fn entry_kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Symlink => "symlink",
        EntryKind::Hardlink => "hardlink",
        EntryKind::CharacterDevice => "chardev",
        EntryKind::BlockDevice => "blockdev",
        EntryKind::Fifo => "fifo",
        EntryKind::Other | EntryKind::Raw | EntryKind::Removed => "other",
    }
}
