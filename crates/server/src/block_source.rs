//! One file of an archive as a block device: what the NBD handler needs of it.

use std::ops::Range;

use refrain::{Archive, Entry, EntryKind, MemberKind, Place, ReadControl, Result, Run};

use crate::etag;
use crate::service::Service;

/// Immutable bytes at offsets, served to many clients at once.
pub trait BlockSource: Send + Sync {
    /// The length in bytes.
    fn size_bytes(&self) -> u64;

    /// Fills `buffer`, whose range is inside the source, under `control`.
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    fn read(&self, offset: u64, buffer: &mut [u8], control: &ReadControl) -> Result<()>;

    /// Calls `each` for the runs of zeros and data in a range, until it returns `false`.
    ///
    /// # Errors
    /// As [`Archive::for_each_run`].
    fn runs(&self, range: Range<u64>, each: &mut dyn FnMut(Run) -> bool) -> Result<()>;

    /// Decodes what a range needs, ahead of reads.
    ///
    /// # Errors
    /// As [`Archive::prefetch`].
    fn prefetch(&self, range: Range<u64>, control: &ReadControl) -> Result<()>;
}

/// A member of an archive, or a file in a directory member.
pub struct FileOfArchive {
    service: Service,
    member: usize,
    entry: Option<Box<Entry>>,
    size_bytes: u64,
}

impl FileOfArchive {
    /// The file with this name: a member, or `MEMBER/PATH`. `None` if it does not exist or is not a
    /// file.
    ///
    /// # Errors
    /// As [`Archive::find_entry`].
    pub fn find(service: &Service, name: &[u8]) -> Result<Option<FileOfArchive>> {
        let archive = service.archive();
        if let Some(member) = archive.find_member(name)? {
            return FileOfArchive::from_member(service, member);
        }
        let slashes = (name.iter().enumerate()).filter(|(_, byte)| **byte == b'/');
        for (at, _) in slashes {
            let (member, path) = (&name[..at], &name[at + 1..]);
            if let Some(member) = archive.find_member(member)?
                && let Some(entry) = file_at(archive, member, path)?
            {
                let size_bytes = entry.size_bytes;
                return Ok(Some(FileOfArchive {
                    service: service.clone(),
                    member,
                    entry: Some(Box::new(entry)),
                    size_bytes,
                }));
            }
        }
        Ok(None)
    }

    /// A whole member; `None` if it is a directory or a tar stream.
    ///
    /// # Errors
    /// As [`Archive::member`].
    pub fn from_member(service: &Service, member: usize) -> Result<Option<FileOfArchive>> {
        let found = service.archive().member(member)?;
        if matches!(found.kind, MemberKind::Tree | MemberKind::Tar) {
            return Ok(None);
        }
        Ok(Some(FileOfArchive {
            service: service.clone(),
            member,
            entry: None,
            size_bytes: found.content_bytes,
        }))
    }

    /// What tells this content from any other, as HTTP's entity tags do: a text with part of a
    /// hash, the same in any archive that stores the member with the same bytes. `None` if the
    /// archive has no hash of it.
    ///
    /// # Errors
    /// As [`Archive::member`].
    pub fn content_tag(&self) -> Result<Option<String>> {
        let member = self.service.archive().member(self.member)?;
        Ok(match &self.entry {
            Some(entry) => etag::of_entry(&member, entry),
            None => etag::of_content(&member),
        })
    }

    fn place(&self) -> Place<'_> {
        Place {
            member: self.member,
            entry: self.entry.as_deref(),
        }
    }
}

/// The file at a path of a directory member, following a hard link.
fn file_at(archive: &Archive, member: usize, path: &[u8]) -> Result<Option<Entry>> {
    let mut found = archive.find_entry(member, path)?;
    if let Some(link) = &found
        && link.kind == EntryKind::Hardlink
        && let Some(target) = &link.link_target
    {
        found = archive.find_entry(member, target)?;
    }
    Ok(found.filter(|entry| entry.kind == EntryKind::File))
}

impl BlockSource for FileOfArchive {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read(&self, offset: u64, buffer: &mut [u8], control: &ReadControl) -> Result<()> {
        let archive = self.service.archive();
        archive.read_controlled(self.place(), offset, buffer, control)?;
        Ok(())
    }

    fn runs(&self, range: Range<u64>, each: &mut dyn FnMut(Run) -> bool) -> Result<()> {
        self.service
            .archive()
            .for_each_run(self.place(), range, each)
    }

    fn prefetch(&self, range: Range<u64>, control: &ReadControl) -> Result<()> {
        let archive = self.service.archive();
        archive.prefetch(self.place(), range, control)?;
        Ok(())
    }
}
