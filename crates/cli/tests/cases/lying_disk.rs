//! A file system in memory that returns other bytes than were written, once the kernel's page cache
//! no longer hides it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, TimeOrNow,
    WriteFlags,
};

/// The kernel may remember names and attributes for this long.
const TTL: Duration = Duration::from_secs(60);

/// The byte at this offset of every file that has it is returned wrong.
pub const LIE_OFFSET: usize = 1000;

#[derive(Clone)]
struct Node {
    parent: u64,
    name: OsString,
    is_directory: bool,
    mode: u32,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct LyingDisk {
    nodes: Mutex<BTreeMap<u64, Node>>,
}

/// Mounts such a file system, until the session is dropped.
pub fn mount(directory: &Path) -> BackgroundSession {
    let disk = LyingDisk::default();
    disk.nodes()
        .insert(1, Node::new(0, "/".as_ref(), true, 0o755));
    let session = Session::new(disk, directory, &Config::default());
    session.unwrap().spawn().unwrap()
}

impl Node {
    fn new(parent: u64, name: &OsStr, is_directory: bool, mode: u32) -> Node {
        Node {
            parent,
            name: name.to_owned(),
            is_directory,
            mode,
            bytes: Vec::new(),
        }
    }

    fn attributes(&self, number: u64) -> FileAttr {
        let now = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino: INodeNo(number),
            size: self.bytes.len() as u64,
            blocks: self.bytes.len().div_ceil(512) as u64,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind: if self.is_directory { FileType::Directory } else { FileType::RegularFile },
            perm: (self.mode & 0o7777) as u16,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl LyingDisk {
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<u64, Node>> {
        self.nodes.lock().unwrap()
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> Option<(u64, Node)> {
        let nodes = self.nodes();
        let found = (nodes.iter()).find(|(_, node)| node.parent == parent.0 && node.name == name);
        found.map(|(number, node)| (*number, node.clone()))
    }

    fn add(&self, parent: INodeNo, name: &OsStr, is_directory: bool, mode: u32) -> FileAttr {
        let mut nodes = self.nodes();
        let number = nodes.last_key_value().map_or(1, |(last, _)| last + 1);
        let node = Node::new(parent.0, name, is_directory, mode);
        let attributes = node.attributes(number);
        nodes.insert(number, node);
        attributes
    }

    /// The node keeps its bytes for open descriptors.
    fn remove(&self, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.find(parent, name) {
            None => reply.error(Errno::ENOENT),
            Some((number, _)) => {
                self.nodes().get_mut(&number).unwrap().parent = 0;
                reply.ok();
            }
        }
    }
}

impl Filesystem for LyingDisk {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.find(parent, name) {
            None => reply.error(Errno::ENOENT),
            Some((number, node)) => reply.entry(&TTL, &node.attributes(number), Generation(0)),
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.nodes().get(&node.0) {
            None => reply.error(Errno::ENOENT),
            Some(found) => reply.attr(&TTL, &found.attributes(node.0)),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut nodes = self.nodes();
        let found = nodes.get_mut(&node.0).unwrap();
        if let Some(size) = size {
            found.bytes.resize(size as usize, 0);
        }
        found.mode = mode.unwrap_or(found.mode);
        reply.attr(&TTL, &found.attributes(node.0));
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        reply.entry(&TTL, &self.add(parent, name, true, mode), Generation(0));
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let attributes = self.add(parent, name, false, mode);
        let (handle, flags) = (FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
        reply.created(&TTL, &attributes, Generation(0), handle, flags);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut nodes = self.nodes();
        let bytes = &mut nodes.get_mut(&node.0).unwrap().bytes;
        let range = offset as usize..offset as usize + data.len();
        bytes.resize(bytes.len().max(range.end), 0);
        bytes[range].copy_from_slice(data);
        reply.written(data.len() as u32);
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = self.nodes().get(&node.0).unwrap().bytes.clone();
        if let Some(byte) = bytes.get_mut(LIE_OFFSET) {
            *byte ^= 0x20;
        }
        let start = bytes.len().min(offset as usize);
        let end = bytes.len().min(start + size as usize);
        reply.data(&bytes[start..end]);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let replaced = self.find(to, new_name);
        if replaced.is_some() && flags.contains(RenameFlags::RENAME_NOREPLACE) {
            return reply.error(Errno::EEXIST);
        }
        let Some((number, _)) = self.find(parent, name) else {
            return reply.error(Errno::ENOENT);
        };
        let mut nodes = self.nodes();
        if let Some((replaced, _)) = replaced {
            nodes.get_mut(&replaced).unwrap().parent = 0;
        }
        let node = nodes.get_mut(&number).unwrap();
        (node.parent, node.name) = (to.0, new_name.to_owned());
        reply.ok();
    }
}
