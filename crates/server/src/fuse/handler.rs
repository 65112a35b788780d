//! Answers the kernel's requests.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileType, Generation, INodeNo, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEntry, ReplyLseek, ReplyXattr,
};
use refrain::{Entry, EntryKind};
use refrain_pool::OnceValue;

use super::buffers::Buffers;
use super::convert::{errno, file_attributes, file_type};
use super::files_ahead::{Ahead, FilesAhead};
use super::page_cache::{PageCache, Stored};
use super::seek::{seek, seek_member};
use crate::error::{Error, Result};
use crate::service::Service;
use crate::share::Share;
use crate::statistics::{Operation, Outcome};
use crate::tree::{FileContent, NodeId, View, WalkedFile};

/// How long the kernel may cache a reply. The archive does not change.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Do not cache: for partial replies.
const ONCE: Duration = Duration::ZERO;

/// The offsets of `.` and `..` in a directory's list.
const OWN_OFFSETS: u64 = 2;

/// The longest name that a directory can hold, in bytes.
pub(super) const NAME_BYTES_MAX: u32 = 255;
pub(super) const STATFS_BLOCK_BYTES: u32 = 4096;

pub(super) struct Handler {
    pub service: Service,
    pub view: View,
    /// The owner of everything without an owner in the archive.
    pub owner: (u32, u32),
    /// The owner of everything.
    pub forced_owner: Option<(u32, u32)>,
    pub buffers: Buffers,
    /// Set once the file system is mounted.
    pub page_cache: Arc<OnceValue<PageCache>>,
    pub files_ahead: FilesAhead,
    /// The kernel is one client.
    pub share: Share,
    /// For files that are stored ahead.
    pub readahead: Share,
}

impl Handler {
    /// Does the work of a request and counts it.
    pub(super) fn counted<T>(
        &self,
        operation: Operation,
        work: impl FnOnce() -> Result<T>,
        bytes: impl FnOnce(&T) -> u64,
    ) -> Result<T> {
        self.share.install(|| self.measured(operation, work, bytes))
    }

    fn measured<T>(
        &self,
        operation: Operation,
        work: impl FnOnce() -> Result<T>,
        bytes: impl FnOnce(&T) -> u64,
    ) -> Result<T> {
        let statistics = self.service.statistics();
        let started_ns = statistics.now_ns();
        let done = work();
        let outcome = match &done {
            Ok(value) => Outcome::Bytes(bytes(value)),
            Err(_) => Outcome::Failed,
        };
        statistics.record(operation, started_ns, outcome);
        done
    }

    /// Reports a failure. Returns the error that the program sees.
    fn failed(&self, error: &Error, what: impl FnOnce() -> String) -> Errno {
        let what = what();
        let line = format!("{what}: {error}");
        self.service.journal().report_once(line.clone(), &line);
        errno(error)
    }

    /// The node with a number that the kernel uses: its root is the mounted directory.
    fn node(&self, number: INodeNo) -> NodeId {
        if number == INodeNo::ROOT { self.view.root() } else { NodeId(number.0) }
    }

    /// Reports that a range of a file cannot be read. Because of readahead, several ranges fail for
    /// one reason: only the first is reported.
    fn unread(&self, error: &Error, node: NodeId, range: std::ops::Range<u64>) -> Errno {
        let path = self.shown(node);
        let (start, end) = (range.start, range.end);
        let message = format!("{path}: cannot be read between {start} and {end}: {error}");
        let journal = self.service.journal();
        journal.report_once(format!("{path}: {error}"), &message);
        errno(error)
    }

    fn shown(&self, node: NodeId) -> String {
        let path = self.view.path(node).unwrap_or_default();
        String::from_utf8_lossy(&path).into_owned()
    }

    fn attributes(&self, node: NodeId) -> Result<FileAttr> {
        let found = self.view.attributes(node)?;
        Ok(file_attributes(node, &found, self.owner, self.forced_owner))
    }

    /// The attributes of a child, and how long the kernel may cache them.
    fn listed_attributes(&self, node: NodeId, kind: EntryKind) -> (FileAttr, Duration) {
        match self.view.attributes_at_once(node) {
            Ok((found, is_final)) => {
                let hold = if is_final { FOREVER } else { ONCE };
                let found = file_attributes(node, &found, self.owner, self.forced_owner);
                (found, hold)
            }
            // A lookup by name gets the error.
            Err(_) => (
                FileAttr {
                    kind: file_type(kind),
                    ..nothing(node)
                },
                ONCE,
            ),
        }
    }

    /// Calls `add` for the entries of a directory after `offset`, with the offset of each, until it
    /// returns that there is no room.
    fn list(
        &self,
        directory: NodeId,
        offset: u64,
        add: &mut dyn FnMut(NodeId, u64, &OsStr, EntryKind) -> bool,
    ) -> Result<()> {
        for (number, name) in (1..).zip([".", ".."]) {
            if offset < number && add(directory, number, OsStr::new(name), EntryKind::Directory) {
                return Ok(());
            }
        }
        let cookie = offset.saturating_sub(OWN_OFFSETS);
        self.view.children(directory, cookie, &mut |child| {
            let name = OsStr::from_bytes(child.name);
            // The kernel would treat a list with such a name as damaged.
            name.len() > NAME_BYTES_MAX as usize
                || !add(child.node, child.cookie + OWN_OFFSETS, name, child.kind)
        })
    }

    /// Records that a directory has no children after `offset`, unless that is its beginning.
    fn note_listed(&self, directory: NodeId, offset: u64) {
        let last = offset.checked_sub(OWN_OFFSETS).filter(|last| *last > 0);
        let last = last.and_then(|last| self.view.walk_position(directory, last));
        self.store_ahead(self.files_ahead.note_listed(last));
    }

    fn store_ahead(&self, ahead: Option<Ahead>) {
        if let (Some(ahead), Some(cache)) = (ahead, self.page_cache.get()) {
            let mut store = |file| self.store_file(cache, file);
            self.files_ahead.store(ahead, &self.view, &mut store);
        }
    }

    fn store_file(&self, cache: &PageCache, file: WalkedFile) -> Result<Stored> {
        let length_bytes = usize::try_from(file.entry.size_bytes).unwrap_or(usize::MAX);
        self.buffers.with(length_bytes, |buffer| {
            let store = || {
                let Some((tree, content)) = self.view.content(file.node)? else {
                    return Ok(Stored::FileIsUnknown);
                };
                let count = tree.read_at(&content, 0, buffer)?;
                let stored = cache.store(file.node, 0, buffer.get(..count).unwrap_or_default());
                stored.map_err(|error| Error::system("storing a file ahead", error))
            };
            let stored_bytes = |stored: &Stored| match stored {
                Stored::Yes => length_bytes as u64,
                Stored::FileIsUnknown => 0,
            };
            self.readahead
                .install(|| self.measured(Operation::FuseStore, store, stored_bytes))
        })
    }

    /// Calls `work` with a node's entry, including its extended attributes.
    fn with_entry<T>(&self, node: NodeId, work: impl FnOnce(Entry) -> T) -> Result<Option<T>> {
        let found = || Ok(self.view.entry(node)?.map(work));
        self.counted(Operation::FuseOther, found, |_| 0)
    }

    fn send_attribute(&self, size: u32, value: &[u8], reply: ReplyXattr) {
        match (u32::try_from(value.len()), size) {
            (Ok(length), 0) => reply.size(length),
            (Ok(length), room) if length <= room => reply.data(value),
            _ => reply.error(Errno::ERANGE),
        }
    }
}

/// Attributes of a node that cannot be described.
fn nothing(node: NodeId) -> FileAttr {
    let time = SystemTime::UNIX_EPOCH;
    FileAttr {
        ino: INodeNo(node.0),
        size: 0,
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: STATFS_BLOCK_BYTES,
        flags: 0,
    }
}

/// Answers to requests; [`Dispatcher`](super::dispatcher::Dispatcher) says on which threads.
impl Handler {
    pub(super) fn lookup(&self, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let look_up = || {
            let found = self.view.lookup(self.node(parent), name.as_bytes())?;
            found.map(|node| self.attributes(node)).transpose()
        };
        match self.counted(Operation::FuseLookup, look_up, |_| 0) {
            Ok(Some(found)) => reply.entry(&FOREVER, &found, Generation(0)),
            // The number 0 tells the kernel to cache that nothing exists.
            Ok(None) => reply.entry(&FOREVER, &nothing(NodeId(0)), Generation(0)),
            Err(error) => {
                let name = String::from_utf8_lossy(name.as_bytes());
                let what = || format!("{}/{name}", self.shown(self.node(parent)));
                reply.error(self.failed(&error, what));
            }
        }
    }

    pub(super) fn getattr(&self, node: INodeNo, reply: ReplyAttr) {
        let node = self.node(node);
        let find = || self.attributes(node);
        match self.counted(Operation::FuseAttributes, find, |_| 0) {
            Ok(found) => reply.attr(&FOREVER, &found),
            Err(error) => reply.error(self.failed(&error, || self.shown(node))),
        }
    }

    pub(super) fn readlink(&self, node: INodeNo, reply: ReplyData) {
        let find = || self.view.link_target(self.node(node));
        match self.counted(Operation::FuseOther, find, |_| 0) {
            Ok(Some(target)) => reply.data(&target),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(self.failed(&error, || self.shown(self.node(node)))),
        }
    }

    pub(super) fn read(&self, node: INodeNo, offset: u64, size: u32, reply: ReplyData) {
        let node = self.node(node);
        self.buffers.with(size as usize, |buffer| {
            let read = || match self.view.content(node)? {
                Some((tree, content)) => tree.read_at(&content, offset, buffer),
                None => Ok(0),
            };
            match self.counted(Operation::FuseRead, read, |count| *count as u64) {
                Ok(count) => reply.data(buffer.get(..count).unwrap_or_default()),
                Err(error) => {
                    let range = offset..offset.saturating_add(size.into());
                    reply.error(self.unread(&error, node, range));
                }
            }
        });
        if offset == 0 {
            self.store_ahead(self.files_ahead.note_read(self.view.walk_position(node, 0)));
        }
    }

    pub(super) fn readdir(&self, node: INodeNo, offset: u64, mut reply: ReplyDirectory) {
        let mut is_end = true;
        let mut add = |node: NodeId, offset, name: &OsStr, kind| {
            is_end = false;
            reply.add(INodeNo(node.0), offset, file_type(kind), name)
        };
        let list = || self.list(self.node(node), offset, &mut add);
        match self.counted(Operation::FuseReadDirectory, list, |()| 0) {
            Ok(()) => {
                if is_end {
                    self.note_listed(self.node(node), offset);
                }
                reply.ok();
            }
            Err(error) => reply.error(self.failed(&error, || self.shown(self.node(node)))),
        }
    }

    pub(super) fn readdirplus(&self, node: INodeNo, offset: u64, mut reply: ReplyDirectoryPlus) {
        let mut is_end = true;
        let mut add = |node: NodeId, offset, name: &OsStr, kind| {
            is_end = false;
            let (found, hold) = if offset <= OWN_OFFSETS {
                (
                    FileAttr {
                        kind: FileType::Directory,
                        ..nothing(node)
                    },
                    ONCE,
                )
            } else {
                self.listed_attributes(node, kind)
            };
            reply.add(INodeNo(node.0), offset, name, &hold, &found, Generation(0))
        };
        let list = || self.list(self.node(node), offset, &mut add);
        match self.counted(Operation::FuseReadDirectory, list, |()| 0) {
            Ok(()) => {
                if is_end {
                    self.note_listed(self.node(node), offset);
                }
                reply.ok();
            }
            Err(error) => reply.error(self.failed(&error, || self.shown(self.node(node)))),
        }
    }

    pub(super) fn getxattr(&self, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if self.view.has_no_attributes() {
            // The kernel then stops asking, for all files.
            return reply.error(Errno::ENOSYS);
        }
        let wanted = name.as_bytes();
        let value = |entry: Entry| {
            let mut attributes = entry.attributes.into_iter();
            attributes.find(|each| each.name == wanted)
        };
        match self.with_entry(self.node(node), value) {
            Ok(Some(Some(found))) => self.send_attribute(size, &found.value, reply),
            Ok(_) => reply.error(Errno::ENODATA),
            Err(error) => reply.error(self.failed(&error, || self.shown(self.node(node)))),
        }
    }

    pub(super) fn listxattr(&self, node: INodeNo, size: u32, reply: ReplyXattr) {
        let names = |entry: Entry| {
            let named = entry.attributes.into_iter();
            named.fold(vec![], |list, each| [&list[..], &each.name, b"\0"].concat())
        };
        match self.with_entry(self.node(node), names) {
            Ok(names) => self.send_attribute(size, &names.unwrap_or_default(), reply),
            Err(error) => reply.error(self.failed(&error, || self.shown(self.node(node)))),
        }
    }

    pub(super) fn lseek(&self, node: INodeNo, offset: i64, whence: i32, reply: ReplyLseek) {
        let node = self.node(node);
        let find = |offset| {
            let size_bytes = self.view.attributes(node)?.size_bytes;
            match self.view.content(node)? {
                Some((tree, FileContent::Member(member))) => {
                    seek_member(&tree, member, size_bytes, offset, whence)
                }
                Some((_, FileContent::Entry(_, entry))) => Ok(seek(
                    entry.data_ranges.as_deref(),
                    size_bytes,
                    offset,
                    whence,
                )),
                None => Ok(seek(None, size_bytes, offset, whence)),
            }
        };
        let Ok(offset) = u64::try_from(offset) else {
            return reply.error(Errno::ENXIO);
        };
        match self.counted(Operation::FuseOther, || find(offset), |_| 0) {
            Ok(found) => match found.and_then(|found| i64::try_from(found).ok()) {
                Some(found) => reply.offset(found),
                None => reply.error(Errno::ENXIO),
            },
            Err(error) => reply.error(self.failed(&error, || self.shown(node))),
        }
    }
}
