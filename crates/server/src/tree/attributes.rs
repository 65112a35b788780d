//! Attributes of a file or directory of the tree.

use refrain::{EntryKind, Member, Timestamp};

/// The permissions of a directory without an entry.
const IMPLIED_DIRECTORY_MODE: u32 = 0o755;
/// The permissions of a member for which the archive states none.
const FILE_MODE: u32 = 0o644;

/// Attributes of a file or directory of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// Its type: file, directory, symbolic link, device or pipe. A hard link has the type of its
    /// target; unknown types in a tar stream count as files.
    pub kind: EntryKind,
    /// Permission bits, as in `st_mode & 0o7777`.
    pub mode: u32,
    /// The ids of user and group, if known.
    pub owner: Option<(u64, u64)>,
    /// The modification time.
    pub modified: Timestamp,
    /// The length of a file or of a symbolic link's target in bytes; otherwise 0.
    pub size_bytes: u64,
    /// The length without holes.
    pub stored_bytes: u64,
    /// The number of names of a file. 1 for directories, whose subdirectories are not counted.
    pub links: u64,
    /// Major and minor number of a device.
    pub device: (u32, u32),
}

impl Attributes {
    /// The attributes of a directory without an entry.
    pub(super) fn implied_directory(modified: Timestamp) -> Attributes {
        Attributes {
            kind: EntryKind::Directory,
            mode: IMPLIED_DIRECTORY_MODE,
            owner: None,
            modified,
            size_bytes: 0,
            stored_bytes: 0,
            links: 1,
            device: (0, 0),
        }
    }

    /// The attributes of a member: a file, or a directory if it has entries.
    pub(super) fn from_member(member: &Member, has_entries: bool) -> Attributes {
        let modified = member.modified.unwrap_or_default();
        if has_entries {
            Attributes {
                mode: member.mode.unwrap_or(IMPLIED_DIRECTORY_MODE) & 0o7777,
                ..Attributes::implied_directory(modified)
            }
        } else {
            Attributes {
                kind: EntryKind::File,
                mode: member.mode.unwrap_or(FILE_MODE) & 0o7777,
                owner: None,
                modified,
                size_bytes: member.content_bytes,
                // Programs look for holes only in files that take less space than their size. At
                // least an eighth of a sparse file is holes.
                stored_bytes: if member.is_sparse {
                    member.content_bytes - member.content_bytes / 8
                } else {
                    member.content_bytes
                },
                links: 1,
                device: (0, 0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain::MemberKind;

    use super::*;

    #[test]
    fn a_sparse_member_takes_less_room_than_its_size() {
        let stored_bytes = |is_sparse| {
            let member = Member {
                name: b"disk".to_vec(),
                kind: MemberKind::File,
                mode: None,
                modified: None,
                content_bytes: 8000,
                blake3: [0; 32],
                is_sparse,
                has_layers: false,
                digests: Vec::new(),
                entries: 0,
            };
            Attributes::from_member(&member, false).stored_bytes
        };
        assert_eq!((stored_bytes(true), stored_bytes(false)), (7000, 8000));
    }
}
