//! Opened archives: ranges of members and entries, and their lists.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain::{Archive, Dialect, Entry, EntryKind, ErrorKind, Member, MemberKind, Timestamp};
use refrain_sync::{Mutex, lock};

use crate::failure::{Failure, Result};
use crate::numbers::*;
use crate::types::{RefrainEntry, RefrainInfo};

/// An archive, and what it is.
#[derive(Clone)]
pub(crate) struct OpenArchive {
    pub archive: Arc<Archive>,
    pub dialect: Dialect,
}

impl OpenArchive {
    /// A number of the caller's, if there is such a member.
    pub(crate) fn member_number(&self, member: u64) -> Result<usize> {
        let count = self.archive.member_count();
        let number = usize::try_from(member).ok();
        number.filter(|number| *number < count).ok_or_else(|| {
            let text = format!("there is no member {member}; there are {count}");
            Failure::new(REFRAIN_ERROR_NOT_FOUND, text)
        })
    }

    /// The size of a member's content, which other formats do not state.
    fn member_bytes(&self, member: &Member) -> u64 {
        if matches!(self.dialect, Dialect::Foreign(_)) {
            REFRAIN_UNKNOWN
        } else {
            member.content_bytes
        }
    }
}

/// A file in an archive: a member, or an entry.
pub(crate) struct OpenFile {
    archive: Arc<Archive>,
    member: usize,
    entry: Option<Entry>,
    size_bytes: u64,
}

/// How many hard links may lead from one to the next.
const LINKS_MAX: usize = 16;

impl OpenFile {
    /// Opens the entry with this path, or all of a member if there is no path.
    pub(crate) fn open(opened: &OpenArchive, member: usize, path: &[u8]) -> Result<OpenFile> {
        let archive = &opened.archive;
        if path.is_empty() {
            return Ok(OpenFile {
                archive: Arc::clone(archive),
                member,
                entry: None,
                size_bytes: opened.member_bytes(&archive.member(member)?),
            });
        }
        let mut path = path.to_vec();
        for _ in 0..LINKS_MAX {
            let entry = archive.find_entry(member, &path)?.ok_or_else(|| {
                let text = format!("there is no entry {}", String::from_utf8_lossy(&path));
                Failure::new(REFRAIN_ERROR_NOT_FOUND, text)
            })?;
            match (entry.kind, entry.link_target) {
                (EntryKind::File, _) => {}
                (EntryKind::Hardlink, Some(target)) => {
                    path = target;
                    continue;
                }
                _ => return Err(Failure::usage("the entry is not a file")),
            }
            return Ok(OpenFile {
                archive: Arc::clone(archive),
                member,
                size_bytes: entry.size_bytes,
                entry: Some(Entry {
                    link_target: None,
                    ..entry
                }),
            });
        }
        Err(Failure::new(
            REFRAIN_ERROR_DAMAGED,
            "hard links lead in a circle",
        ))
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let place = (self.member, self.entry.as_ref());
        Ok(self.archive.read_at(place, offset, buffer)?)
    }
}

/// The number of the member with a name.
pub(crate) fn find_member(archive: &Archive, name: &[u8]) -> Result<usize> {
    archive.find_member(name)?.ok_or_else(|| {
        let text = format!("there is no member {}", String::from_utf8_lossy(name));
        Failure::new(REFRAIN_ERROR_NOT_FOUND, text)
    })
}

/// What an archive says about itself.
pub(crate) fn describe(opened: &OpenArchive) -> Result<RefrainInfo> {
    let archive = &opened.archive;
    let format = match opened.dialect {
        Dialect::Native => REFRAIN_FORMAT_NATIVE,
        Dialect::Lrzip => REFRAIN_FORMAT_LRZIP,
        _ => REFRAIN_FORMAT_FOREIGN,
    };
    let unknown = RefrainInfo {
        struct_bytes: size_of::<RefrainInfo>(),
        format,
        level: 0,
        version_major: 0,
        version_minor: 0,
        archive_bytes: archive.size_bytes()?,
        content_bytes: REFRAIN_UNKNOWN,
        store_bytes: REFRAIN_UNKNOWN,
        members: archive.member_count() as u64,
        block_bytes_max: REFRAIN_UNKNOWN,
        reach_bytes: REFRAIN_UNKNOWN,
        has_root_hash: 0,
        reserved: 0,
        root_hash: [0; 32],
    };
    if format == REFRAIN_FORMAT_FOREIGN {
        return Ok(unknown);
    }
    let info = archive.info()?;
    Ok(RefrainInfo {
        level: i32::from(info.level),
        version_major: u32::from(info.format_version.0),
        version_minor: u32::from(info.format_version.1),
        content_bytes: info.content_bytes,
        store_bytes: info.store_bytes,
        block_bytes_max: info.block_bytes_max,
        reach_bytes: info.reach_bytes,
        has_root_hash: u32::from(info.root_hash.is_some()),
        root_hash: info.root_hash.unwrap_or_default(),
        ..unknown
    })
}

/// A walk over the members of an archive, and the entries of each.
pub(crate) struct Listing {
    opened: OpenArchive,
    state: Mutex<Walk>,
}

#[derive(Default)]
struct Walk {
    /// The next member.
    member: usize,
    /// The next frame of entries of the member before that.
    frame: Option<usize>,
    entries: VecDeque<Entry>,
    /// What the last result points to.
    path: Vec<u8>,
    link_target: Vec<u8>,
}

impl Listing {
    pub(crate) fn new(opened: OpenArchive) -> Listing {
        Listing {
            opened,
            state: Mutex::default(),
        }
    }

    /// The next member or entry; `None` at the end. Its pointers lead into this listing, until the
    /// next call.
    pub(crate) fn next(&self) -> Result<Option<RefrainEntry>> {
        let archive = &self.opened.archive;
        let mut walk = lock(&self.state);
        loop {
            if let Some(entry) = walk.entries.pop_front() {
                if matches!(entry.kind, EntryKind::Raw | EntryKind::Removed) {
                    continue;
                }
                return Ok(Some(walk.entry(entry)));
            }
            if let Some(frame) = walk.frame {
                let next = walk.member - 1;
                self.read_frame(&mut walk, next, frame)?;
                continue;
            }
            if walk.member == archive.member_count() {
                return Ok(None);
            }
            // What cannot be read is an error once; the next call goes on behind it.
            walk.member += 1;
            let member = archive.member(walk.member - 1)?;
            if matches!(member.kind, MemberKind::Tree | MemberKind::Tar) {
                walk.frame = Some(0);
            }
            let size = self.opened.member_bytes(&member);
            return Ok(Some(walk.member(member, size)));
        }
    }

    /// Reads a frame of entries; `walk.frame` is `None` behind the last one.
    fn read_frame(&self, walk: &mut Walk, member: usize, frame: usize) -> Result<()> {
        let archive = &self.opened.archive;
        walk.frame = None;
        let list = match archive.entry_list(member) {
            // Another program's format has no frames.
            Err(error) if error.kind == ErrorKind::Unsupported && frame == 0 => {
                walk.entries = archive.entries(member)?.into();
                return Ok(());
            }
            list => list?,
        };
        if frame >= list.frame_count()? {
            return Ok(());
        }
        walk.frame = Some(frame + 1);
        walk.entries = list.with_frame(frame, VecDeque::from)?;
        Ok(())
    }
}

impl Walk {
    /// Keeps the texts of a result.
    fn keep(&mut self, path: Vec<u8>, link_target: Option<Vec<u8>>, result: &mut RefrainEntry) {
        let has_link = link_target.is_some();
        (self.path, self.link_target) = (path, link_target.unwrap_or_default());
        result.path_bytes = self.path.len();
        result.link_target_bytes = self.link_target.len();
        self.path.push(0);
        self.link_target.push(0);
        result.path = self.path.as_ptr().cast();
        if has_link {
            result.link_target = self.link_target.as_ptr().cast();
        }
    }

    fn member(&mut self, member: Member, size: u64) -> RefrainEntry {
        let kind = match member.kind {
            MemberKind::File => REFRAIN_TYPE_FILE,
            MemberKind::Stream => REFRAIN_TYPE_STREAM,
            MemberKind::Tree => REFRAIN_TYPE_DIRECTORY,
            MemberKind::Tar => REFRAIN_TYPE_TAR,
        };
        let mut result = RefrainEntry {
            is_member: 1,
            kind,
            size,
            mode: member.mode.unwrap_or(0),
            ..nothing(self.member - 1, member.modified)
        };
        self.keep(member.name, None, &mut result);
        result
    }

    fn entry(&mut self, entry: Entry) -> RefrainEntry {
        let mut result = RefrainEntry {
            kind: entry_type(entry.kind),
            size: entry.size_bytes,
            content_offset: if entry.stored_bytes() > 0 {
                entry.content_offset
            } else {
                REFRAIN_UNKNOWN
            },
            mode: entry.mode,
            uid: entry.owner.uid,
            gid: entry.owner.gid,
            ..nothing(self.member - 1, Some(entry.modified))
        };
        self.keep(entry.path, entry.link_target, &mut result);
        result
    }
}

fn nothing(member: usize, modified: Option<Timestamp>) -> RefrainEntry {
    RefrainEntry {
        struct_bytes: size_of::<RefrainEntry>(),
        member: member as u64,
        is_member: 0,
        kind: 0,
        path: std::ptr::null(),
        path_bytes: 0,
        link_target: std::ptr::null(),
        link_target_bytes: 0,
        size: 0,
        content_offset: REFRAIN_UNKNOWN,
        mode: 0,
        modified_nanoseconds: modified.map_or(0, |time| time.nanoseconds),
        modified_seconds: modified.map_or(i64::MIN, |time| time.seconds),
        uid: REFRAIN_UNKNOWN,
        gid: REFRAIN_UNKNOWN,
    }
}

fn entry_type(kind: EntryKind) -> i32 {
    match kind {
        EntryKind::File => REFRAIN_TYPE_FILE,
        EntryKind::Directory => REFRAIN_TYPE_DIRECTORY,
        EntryKind::Symlink => REFRAIN_TYPE_SYMLINK,
        EntryKind::Hardlink => REFRAIN_TYPE_HARDLINK,
        EntryKind::CharacterDevice => REFRAIN_TYPE_CHARACTER_DEVICE,
        EntryKind::BlockDevice => REFRAIN_TYPE_BLOCK_DEVICE,
        EntryKind::Fifo => REFRAIN_TYPE_FIFO,
        EntryKind::Other | EntryKind::Raw | EntryKind::Removed => REFRAIN_TYPE_OTHER,
    }
}
