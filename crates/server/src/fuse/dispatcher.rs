//! Decides on which thread a request of the kernel is answered.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use fuser::{
    AccessFlags, Errno, FileHandle, Filesystem, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};

use super::handler::{Handler, NAME_BYTES_MAX, STATFS_BLOCK_BYTES};
use super::read_ahead::READ_AHEAD_BYTES;
use super::spin::Spinner;
use crate::threads::run_on_thread_or_here;

/// The maximum that the kernel reads ahead or requests at once, in bytes.
const READ_BYTES_MAX: u32 = READ_AHEAD_BYTES;
/// How many requests the kernel may have in flight for readahead.
const BACKGROUND_REQUESTS: u16 = 64;

/// Requested from every kernel that supports them.
const CAPABILITIES: [InitFlags; 8] = [
    InitFlags::FUSE_ASYNC_READ,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_NO_OPEN_SUPPORT,
    InitFlags::FUSE_NO_OPENDIR_SUPPORT,
    InitFlags::FUSE_CACHE_SYMLINKS,
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
];

/// Receives the kernel's requests. One of the threads that receive them always remains free: it
/// hands requests over to other threads while the rest wait for data, perhaps of a slow server.
pub(super) struct Dispatcher {
    handler: Arc<Handler>,
    /// How many of the receiving threads may answer requests themselves.
    answering_max: usize,
    answering: AtomicUsize,
    spinner: Spinner,
    /// Whether other users have access, within the permissions of the files.
    is_shared: bool,
}

impl Dispatcher {
    /// For one more receiving thread than `answering_max`.
    pub(super) fn new(handler: Handler, answering_max: usize, is_shared: bool) -> Dispatcher {
        Dispatcher {
            handler: Arc::new(handler),
            answering_max,
            answering: AtomicUsize::new(0),
            spinner: Spinner::new(),
            is_shared,
        }
    }

    /// Answers a request.
    fn answer(&self, request: impl FnOnce(&Handler) + Send + 'static) {
        if self.answering.fetch_add(1, Relaxed) < self.answering_max {
            request(&self.handler);
            self.answering.fetch_sub(1, Relaxed);
            self.wait_for_next();
        } else {
            self.answering.fetch_sub(1, Relaxed);
            let handler = Arc::clone(&self.handler);
            run_on_thread_or_here(move || request(&handler));
        }
    }

    /// Waits a moment for the request that usually follows this reply.
    fn wait_for_next(&self) {
        if let Some(cache) = self.handler.page_cache.get() {
            self.spinner.wait(cache.device());
        }
    }
}

impl Filesystem for Dispatcher {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for capability in CAPABILITIES {
            // Older kernels without some of them are merely slower.
            let _ = config.add_capabilities(capability);
        }
        if self.is_shared {
            // Without it the mask of an access control list would count as the group's permissions.
            let _ = config.add_capabilities(InitFlags::FUSE_POSIX_ACL);
        }
        // If the value is too large, the error has the largest allowed one.
        if let Err(most) = config.set_max_readahead(READ_BYTES_MAX) {
            let _ = config.set_max_readahead(most);
        }
        // The kernel also derives the size of reads from it.
        let _ = config.set_max_write(READ_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_REQUESTS);
        let _ = config.set_congestion_threshold(BACKGROUND_REQUESTS);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = OsString::from(name);
        self.answer(move |handler| handler.lookup(parent, &name, reply));
    }

    fn getattr(
        &self,
        _request: &Request,
        node: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        self.answer(move |handler| handler.getattr(node, reply));
    }

    fn readlink(&self, _request: &Request, node: INodeNo, reply: ReplyData) {
        self.answer(move |handler| handler.readlink(node, reply));
    }

    /// Tells the kernel that opening files is not needed: it stops asking, and keeps its cache.
    fn open(&self, _request: &Request, _node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    /// As `open`, for directories.
    fn opendir(&self, _request: &Request, _node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn read(
        &self,
        _request: &Request,
        node: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.answer(move |handler| handler.read(node, offset, size, reply));
    }

    fn readdir(
        &self,
        _request: &Request,
        node: INodeNo,
        _handle: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        self.answer(move |handler| handler.readdir(node, offset, reply));
    }

    fn readdirplus(
        &self,
        _request: &Request,
        node: INodeNo,
        _handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.answer(move |handler| handler.readdirplus(node, offset, reply));
    }

    fn statfs(&self, _request: &Request, _node: INodeNo, reply: ReplyStatfs) {
        let (files, bytes) = self.handler.view.totals();
        let blocks = bytes.div_ceil(STATFS_BLOCK_BYTES.into());
        let size = STATFS_BLOCK_BYTES;
        reply.statfs(blocks, 0, 0, files, 0, size, NAME_BYTES_MAX, size);
    }

    fn getxattr(
        &self,
        _request: &Request,
        node: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let name = OsString::from(name);
        self.answer(move |handler| handler.getxattr(node, &name, size, reply));
    }

    fn listxattr(&self, _request: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        self.answer(move |handler| handler.listxattr(node, size, reply));
    }

    /// Tells the kernel not to ask: it checks permissions itself, or there are none.
    fn access(&self, _request: &Request, _node: INodeNo, _mask: AccessFlags, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn lseek(
        &self,
        _request: &Request,
        node: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        self.answer(move |handler| handler.lseek(node, offset, whence, reply));
    }
}
