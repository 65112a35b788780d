//! Attributes and errors in the kernel's terms.

use std::time::SystemTime;

use fuser::{Errno, FileAttr, FileType, INodeNo};
use refrain::EntryKind;

use crate::error::Error;
use crate::tree::{Attributes, NodeId};

/// The preferred size of reads reported by `stat`, in bytes.
const BLOCK_BYTES: u32 = 1 << 17;
/// The unit in which `stat` counts a file's space, in bytes.
const SECTOR_BYTES: u64 = 512;
/// The id of `nobody`, for owners whose id the system cannot represent.
const NOBODY: u32 = 65_534;

/// The attributes of a node. `owner` applies if the archive states none; `forced` overrides it.
pub(super) fn file_attributes(
    node: NodeId,
    attributes: &Attributes,
    owner: (u32, u32),
    forced: Option<(u32, u32)>,
) -> FileAttr {
    let time = attributes.modified.to_system_time();
    let time = time.unwrap_or(SystemTime::UNIX_EPOCH);
    let number = |stated: u64| u32::try_from(stated).unwrap_or(NOBODY);
    let stated = attributes
        .owner
        .map(|(uid, gid)| (number(uid), number(gid)));
    let (uid, gid) = forced.or(stated).unwrap_or(owner);
    FileAttr {
        ino: INodeNo(node.0),
        size: attributes.size_bytes,
        blocks: attributes.stored_bytes.div_ceil(SECTOR_BYTES),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: file_type(attributes.kind),
        perm: (attributes.mode & 0o7777) as u16,
        nlink: u32::try_from(attributes.links).unwrap_or(u32::MAX),
        uid,
        gid,
        rdev: device_number(attributes.device),
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

pub(super) fn file_type(kind: EntryKind) -> FileType {
    match kind {
        EntryKind::Directory => FileType::Directory,
        EntryKind::Symlink => FileType::Symlink,
        EntryKind::CharacterDevice => FileType::CharDevice,
        EntryKind::BlockDevice => FileType::BlockDevice,
        EntryKind::Fifo => FileType::NamedPipe,
        EntryKind::File
        | EntryKind::Hardlink
        | EntryKind::Other
        | EntryKind::Raw
        | EntryKind::Removed => FileType::RegularFile,
    }
}

/// Major and minor number in the protocol's 32 bits.
fn device_number((major, minor): (u32, u32)) -> u32 {
    (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xf_ff00) << 12)
}

pub(super) fn errno(error: &Error) -> Errno {
    match error {
        Error::System(_, error) => error.raw_os_error().map_or(Errno::EIO, Errno::from_i32),
        Error::Archive(_) | Error::Refused(_) => Errno::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    #[test]
    fn device_numbers_are_those_of_the_system() {
        for (major, minor) in [(1, 3), (8, 255), (259, 70_000), (4095, 0xf_ffff)] {
            assert_eq!(
                u64::from(device_number((major, minor))),
                makedev(major, minor)
            );
        }
    }

    #[test]
    fn unknown_and_impossible_owners_have_a_number() {
        let mut attributes = Attributes {
            kind: EntryKind::File,
            mode: 0o4755,
            owner: None,
            modified: refrain::Timestamp::default(),
            size_bytes: 513,
            stored_bytes: 513,
            links: 1,
            device: (0, 0),
        };
        let of = |attributes: &Attributes, forced| {
            let found = file_attributes(NodeId(9), attributes, (5, 6), forced);
            assert_eq!((found.blocks, found.perm), (2, 0o4755));
            (found.uid, found.gid)
        };
        assert_eq!(of(&attributes, None), (5, 6));
        attributes.owner = Some((1000, 1 << 40));
        assert_eq!(of(&attributes, None), (1000, NOBODY));
        assert_eq!(of(&attributes, Some((7, 8))), (7, 8));
    }
}
