//! Puts file content into the kernel's cache without being asked.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, writev};

use crate::tree::NodeId;

/// The number of the notification (FUSE_NOTIFY_STORE of the kernel's `fuse.h`).
const NOTIFY_STORE: i32 = 4;
/// The length of its header: the common part of replies, then node, offset and length.
const HEAD_BYTES: usize = 16 + 24;

pub(super) struct PageCache {
    device: OwnedFd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Yes,
    /// The kernel does not know this file, or has forgotten it.
    FileIsUnknown,
}

impl PageCache {
    /// The cache of the mount served through a device.
    ///
    /// # Errors
    /// If the process has run out of descriptors.
    pub(super) fn for_device(device: impl AsFd) -> io::Result<PageCache> {
        Ok(PageCache {
            device: device.as_fd().try_clone_to_owned()?,
        })
    }

    pub(super) fn device(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    /// Puts bytes of a file into the cache. Waits while the kernel itself reads the same pages,
    /// which another thread has to answer.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn store(&self, node: NodeId, offset: u64, bytes: &[u8]) -> io::Result<Stored> {
        let head = head(node, offset, bytes.len())?;
        let message = [IoSlice::new(&head), IoSlice::new(bytes)];
        match writev(&self.device, &message) {
            Ok(_) => Ok(Stored::Yes),
            Err(Errno::NOENT) => Ok(Stored::FileIsUnknown),
            Err(error) => Err(error.into()),
        }
    }
}

/// The header of the notification.
fn head(node: NodeId, offset: u64, length_bytes: usize) -> io::Result<[u8; HEAD_BYTES]> {
    let too_long = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let length = u32::try_from(length_bytes).map_err(too_long)?;
    let all = u32::try_from(HEAD_BYTES + length_bytes).map_err(too_long)?;
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&all.to_ne_bytes());
    head[4..8].copy_from_slice(&NOTIFY_STORE.to_ne_bytes());
    // Bytes 8 to 16, the request that this answers, stay 0: none.
    head[16..24].copy_from_slice(&node.0.to_ne_bytes());
    head[24..32].copy_from_slice(&offset.to_ne_bytes());
    head[32..36].copy_from_slice(&length.to_ne_bytes());
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_has_the_lengths_and_the_file() {
        let head = head(NodeId(0x0102_0304_0506), 4096, 1000).unwrap();
        let number = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
        assert_eq!(
            [number(0), number(4)],
            [1040, 4],
            "all bytes, the notification"
        );
        assert_eq!([number(8), number(12)], [0, 0], "no request");
        assert_eq!(head[16..24], 0x0102_0304_0506_u64.to_ne_bytes());
        assert_eq!(head[24..32], 4096_u64.to_ne_bytes());
        assert_eq!([number(32), number(36)], [1000, 0]);
    }
}
