//! The name of a directory's file system.

use std::path::Path;

/// The numbers of file systems in Linux (statfs(2)).
const NAMES: &[(u64, &str)] = &[
    (0xef53, "ext2/ext3/ext4"),
    (0x0102_1994, "tmpfs"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x794c_7630, "overlayfs"),
    (0x2fc1_2fc1, "zfs"),
    (0x6969, "nfs"),
    (0x6573_5546, "fuse"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0xf2f5_2010, "f2fs"),
    (0x0102_1997, "9p"),
    (0x4d44, "vfat"),
    (0xca45_1a4e, "bcachefs"),
    (0x8584_58f6, "ramfs"),
];

/// The name of the file system, or its number.
pub(crate) fn name_of(directory: &Path) -> String {
    #[cfg(target_os = "linux")]
    if let Ok(found) = rustix::fs::statfs(directory) {
        // The kernel's numbers have 32 bits; some architectures sign-extend them.
        return name_of_number(found.f_type as u64 & 0xffff_ffff);
    }
    let _ = directory;
    "an unknown file system".to_owned()
}

fn name_of_number(number: u64) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(
        || format!("file system 0x{number:x}"),
        |(_, name)| (*name).to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown_numbers_have_names() {
        assert_eq!(name_of_number(0x0102_1994), "tmpfs");
        assert_eq!(name_of_number(0x1234), "file system 0x1234");
        assert!(!name_of(Path::new("/")).is_empty());
    }
}
