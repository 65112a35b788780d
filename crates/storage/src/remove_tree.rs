//! Removes a directory with its contents, however deep.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use crate::open_at::open_at;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How many names are tried for a moved directory.
const NAMES_MAX: u32 = 1000;

/// Removes a directory with its contents.
///
/// The contents of a directory are moved up, so that neither the depth of the tree nor the length
/// of its paths matters: three directories are open at a time. Symbolic links are not followed.
///
/// # Errors
///
/// The first error of the operating system.
pub fn remove_tree(parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<()> {
    let top = open_for_removal(parent, name)?;
    let mut moved = 0;
    loop {
        let children = children(&top)?;
        if children.is_empty() {
            return rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
        for child in children {
            if child.is_directory {
                flatten(&top, &child.name, &mut moved)?;
                rustix::fs::unlinkat(&top, &child.name, AtFlags::REMOVEDIR)?;
            } else {
                rustix::fs::unlinkat(&top, &child.name, AtFlags::empty())?;
            }
        }
    }
}

struct Child {
    name: OsString,
    is_directory: bool,
}

/// Removes the files of a directory and moves its directories to `top`.
fn flatten(top: &OwnedFd, name: &OsStr, moved: &mut u64) -> rustix::io::Result<()> {
    let directory = open_for_removal(top.as_fd(), name)?;
    for child in children(&directory)? {
        if child.is_directory {
            // Moving a directory changes it too.
            drop(open_for_removal(directory.as_fd(), &child.name)?);
            move_up(&directory, &child.name, top, moved)?;
        } else {
            rustix::fs::unlinkat(&directory, &child.name, AtFlags::empty())?;
        }
    }
    Ok(())
}

fn move_up(from: &OwnedFd, name: &OsStr, top: &OwnedFd, moved: &mut u64) -> rustix::io::Result<()> {
    let mut result = Ok(());
    for _ in 0..NAMES_MAX {
        *moved += 1;
        result = rustix::fs::renameat(from, name, top, format!(".removed-{moved}"));
        // The name is in use.
        if !matches!(
            result,
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR)
        ) {
            break;
        }
    }
    result
}

/// Opens a directory and allows its owner to change it.
fn open_for_removal(parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let open = || open_at(parent, name, DIRECTORY_FLAGS, Mode::empty());
    let opened = match open() {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
            open()?
        }
        opened => opened?,
    };
    // If it fails, so does the removal.
    let _ = rustix::fs::fchmod(&opened, Mode::RWXU);
    Ok(opened)
}

fn children(directory: &OwnedFd) -> rustix::io::Result<Vec<Child>> {
    let mut children = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode)
            }
            kind => kind,
        };
        children.push(Child {
            name,
            is_directory: kind == FileType::Directory,
        });
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn removes_deep_trees_and_forbidding_directories_and_follows_no_link() {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("precious"), "x").unwrap();
        let root = temporary.path().join("root");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        for name in [".removed-1", ".removed-2/x", ".removed-3/y/z"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join(".removed-4"), "in the way").unwrap();
        fs::write(root.join("a/file"), "x").unwrap();
        symlink("../..", root.join("a/b/up")).unwrap();
        symlink("../precious", root.join("link")).unwrap();
        for name in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        let parent = fs::File::open(temporary.path()).unwrap();
        // Deeper than the limit of open files, with paths that are too long.
        let mut directory = OwnedFd::from(fs::File::open(&root).unwrap());
        for _ in 0..3000 {
            rustix::fs::mkdirat(&directory, "d", Mode::RWXU).unwrap();
            directory = open_at(&directory, "d", DIRECTORY_FLAGS, Mode::empty()).unwrap();
        }
        remove_tree(parent.as_fd(), OsStr::new("root")).unwrap();
        let left: Vec<_> = fs::read_dir(temporary.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(fs::read(temporary.path().join("precious")).unwrap(), b"x");
    }
}
