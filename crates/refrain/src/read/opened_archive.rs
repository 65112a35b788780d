//! The interface of an opened archive, for every dialect.

use std::ops::Range;

use refrain_entries::Entry;
use refrain_filesystem::Problem;
use refrain_foreign::Description;
use refrain_protect::HASH_BYTES;
use refrain_storage::Sink;

use crate::archive_info::{ArchiveInfo, BlockInfo, Member};
use crate::damage::DamagedPlace;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Watch;
use crate::read::archive_layout::{ContentExtent, EachMemberContent, StoreBlock, no_extents};
use crate::read::content_check::ContentCheck;
use crate::read::decode_memory::StoreMemory;
use crate::read::generations::Generations;
use crate::read::proven_members::ProvenMembers;
use crate::read::read_control::{ReadControl, Run};
use crate::read::read_statistics::ReadStatistics;
use crate::read::tree::content::TreeContent;

pub(crate) fn no_member(member: usize, count: usize) -> Error {
    let message = format!("there is no member {member}; there are {count}");
    Error::new(ErrorKind::Usage, message)
}

/// The members of an archive opened for random access, usable by many threads at once.
pub(crate) trait Members: Send + Sync {
    fn member_count(&self) -> usize;

    /// A member by its number in archive order; `None` if there are fewer.
    fn member(&self, member: usize) -> Result<Option<Member>>;

    /// The first member with this name. By default there is at most one member.
    fn member_named(&self, name: &[u8]) -> Result<Option<usize>> {
        let only = self.member(0)?;
        Ok(only.and_then(|only| (only.name == name).then_some(0)))
    }

    /// Calls `each` for every member and its number, in archive order. By default there is at most
    /// one.
    fn for_each_member(&self, each: &mut dyn FnMut(usize, &Member) -> Result<()>) -> Result<()> {
        self.member(0)?.map_or(Ok(()), |only| each(0, &only))
    }

    /// Reads content of member `member` at `offset` into `buffer`. Returns the number of bytes
    /// read, less than the length of `buffer` only at the member's end.
    fn read(
        &self,
        member: usize,
        offset: u64,
        buffer: &mut [u8],
        control: &ReadControl,
    ) -> Result<usize>;

    /// The content and entries of a member with entries, for reads under this control; `None` for
    /// other members.
    fn content(
        &self,
        member: usize,
        control: &ReadControl,
    ) -> Result<Option<Box<dyn TreeContent + '_>>>;

    fn has_entries(&self, member: usize) -> Result<bool> {
        Ok(self.content(member, &ReadControl::default())?.is_some())
    }

    /// A check of all content of a member; `None` if [`Members::read`] verifies what it returns.
    fn content_check(&self, _member: usize) -> Option<ContentCheck> {
        None
    }

    /// How its only member is read instead, if there is no random access.
    fn passes(&self) -> Option<&dyn Passes> {
        None
    }
}

/// What an archive without random access can do, decoding its only member from front to back.
pub(crate) trait Passes {
    /// Calls `each` for every entry, in the order of the tar stream or of the zip file's directory.
    fn for_each_entry(&self, each: &mut dyn FnMut(&Entry) -> Result<()>) -> Result<()>;

    /// The parts that belong to no entry.
    fn problems(&self) -> Result<Vec<Problem>>;

    /// Writes a range of the content, or of an entry; an end of `u64::MAX` is the end. Returns the
    /// number of bytes written.
    fn write_range(
        &self,
        entry: Option<&Entry>,
        range: Range<u64>,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<u64>;

    /// Decodes everything and returns the number of bytes.
    fn measure(&self, watch: &dyn Watch) -> Result<u64>;

    /// What the file states about itself; nothing is decoded.
    fn describe(&self) -> Result<Description>;
}

/// For serving an archive to many: holes, and decoding ahead.
pub(crate) trait Serving {
    /// Calls `each` for the runs in a range of a member's content, in order, until it returns
    /// `false`. By default all is data.
    fn for_each_run(
        &self,
        _member: usize,
        range: Range<u64>,
        each: &mut dyn FnMut(Run) -> bool,
    ) -> Result<()> {
        each(Run {
            length_bytes: range.end - range.start,
            is_zero: false,
        });
        Ok(())
    }

    /// Decodes the blocks of a range of a member's content ahead of reads. Returns the number of
    /// bytes decoded.
    fn prefetch(&self, _member: usize, _range: Range<u64>, _control: &ReadControl) -> Result<u64> {
        Ok(0)
    }

    /// What reads found in memory and what they decoded, since the archive was opened.
    fn read_statistics(&self) -> ReadStatistics {
        ReadStatistics::default()
    }

    /// The bytes of the largest block, as the archive states; 0 if it has no such bound.
    fn block_bytes_max(&self) -> u64 {
        0
    }

    /// Decodes within memory that is shared with other archives, from now on.
    fn share_memory(&mut self, _memory: &StoreMemory) {}

    /// Sets the memory for decoded blocks, in bytes, and how much of it maps of extents may take
    /// beyond their own share.
    fn set_cache_bytes(&self, _bytes: u64, _maps_bytes_max: u64) {}

    /// Gives back what decoded blocks take beyond their limit. Otherwise that happens when the next
    /// block is decoded, which may be never.
    fn trim_cache(&self) {}
}

/// The contents of an archive.
pub(crate) trait Layout {
    /// The properties of the archive. Decodes no block.
    fn info(&self) -> Result<ArchiveInfo>;

    /// Calls `each` for every block of the store, from their headers.
    fn for_each_block(&self, each: &mut dyn FnMut(BlockInfo) -> Result<()>) -> Result<()>;

    /// Calls `each` for the extents of all content, in order.
    fn for_each_extent(&self, _each: &mut dyn FnMut(ContentExtent) -> Result<()>) -> Result<()> {
        Err(no_extents())
    }

    /// Calls `each` for every block of the store, from the index.
    fn for_each_store_block(&self, _each: &mut dyn FnMut(StoreBlock) -> Result<()>) -> Result<()> {
        Err(no_extents())
    }

    /// Calls `each` for every member, its number and its range of content.
    fn for_each_member_content(&self, _each: &mut EachMemberContent<'_>) -> Result<()> {
        Err(no_extents())
    }

    /// The generations, if something was added to the archive.
    fn generations(&self) -> Option<&Generations> {
        None
    }

    /// Whether a member of a kept generation is a layered tree.
    ///
    /// # Errors
    /// From the index.
    fn has_layers(&self) -> Result<bool> {
        Ok(false)
    }

    /// Whether the data of the frame that begins here was given back to the file system.
    fn is_frame_given_back(&self, _archive_offset: u64) -> bool {
        false
    }

    /// The archive with another generation shown, sharing what was read and decoded. `None` if
    /// nothing was ever added.
    fn at_generation(&self, _number: u16) -> Result<Option<Box<dyn OpenedArchive>>> {
        Ok(None)
    }

    /// Reads the store at an offset; returns the number of bytes read.
    fn read_store(&self, _offset_in_store: u64, _buffer: &mut [u8]) -> Result<usize> {
        Err(no_extents())
    }
}

/// What is left of a damaged archive.
pub(crate) trait Remains: Members {
    /// Reads the whole index, and checks its consistency.
    fn check_index(&self) -> Result<()> {
        Ok(())
    }

    /// What is known to be damaged or missing, from a scan and from reads.
    fn damaged_places(&self) -> Vec<DamagedPlace> {
        Vec::new()
    }

    /// What is missing after the known content of a member without entries whose end is lost; up to
    /// the largest number if its length is unknown.
    fn lost_end(&self, _member: usize) -> Result<Option<Range<u64>>> {
        Ok(None)
    }

    /// Fills `buffer`, a range inside the member, with its readable content at `offset`, and with
    /// zeros elsewhere. Returns the missing ranges of its content, ascending. By default it reads
    /// up to the first damage.
    fn read_remains(
        &self,
        member: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Vec<Range<u64>>> {
        let (mut right, mut wanted) = (0, buffer.len());
        while right < buffer.len() {
            let rest = &mut buffer[right..];
            wanted = wanted.min(rest.len());
            let (at, part) = (offset + right as u64, &mut rest[..wanted]);
            match self.read(member, at, part, &ReadControl::default()) {
                Ok(0) => break,
                Ok(count) => right += count,
                Err(error) if error.kind == ErrorKind::Damaged && wanted > 1 => wanted /= 2,
                Err(error) if error.kind == ErrorKind::Damaged => break,
                Err(error) => return Err(error),
            }
        }
        buffer[right..].fill(0);
        let missing = offset + right as u64..offset + buffer.len() as u64;
        Ok(if missing.is_empty() { vec![] } else { vec![missing] })
    }

    /// The number of bytes that belong to no recognized part of the archive.
    fn skipped_bytes(&self) -> u64 {
        0
    }
}

/// What proves that members are those of a root hash.
pub(crate) trait Provable {
    /// The root hash that the archive states; `None` if it has none, or several.
    fn root_hash(&self) -> Option<[u8; HASH_BYTES]> {
        None
    }

    /// The root hash of the generation before, which the root hash covers, too.
    fn previous_root_hash(&self) -> Option<[u8; HASH_BYTES]> {
        None
    }

    /// The hashes of members, as the index states them.
    fn member_hashes(&self, _members: Range<u64>) -> Result<Vec<[u8; HASH_BYTES]>> {
        Ok(Vec::new())
    }

    /// Compares members with these whenever they are read from now on.
    fn expect_members(&self, _proven: ProvenMembers) {}

    /// Whether members are compared with what somebody vouched for.
    fn expects_members(&self) -> bool {
        false
    }
}

/// An archive opened for random access. Each dialect has its own.
pub(crate) trait OpenedArchive: Members + Serving + Layout + Remains + Provable {}

impl<A: Members + Serving + Layout + Remains + Provable> OpenedArchive for A {}
