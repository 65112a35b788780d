//! Everything visible of a restored tree.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use refrain_entries::{Entry, EntryKind};

/// The state of one entry, comparable with its archive entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) kind: EntryKind,
    pub(super) mode: u32,
    pub(super) owner: (u64, u64),
    pub(super) modified: (i64, u32),
    pub(super) content: Vec<u8>,
    pub(super) device: (u32, u32),
    pub(super) attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The paths with the same inode, in ascending order.
    pub(super) names: Vec<Vec<u8>>,
}

impl State {
    /// The expected state of an entry with this content (data or link target).
    pub(super) fn wanted(entry: &Entry, content: &[u8]) -> State {
        let attributes = entry.attributes.iter().cloned();
        State {
            kind: entry.kind,
            // Links do not have a mode of their own.
            mode: match entry.kind {
                EntryKind::Symlink => 0o777,
                _ => entry.mode,
            },
            owner: (entry.owner.uid, entry.owner.gid),
            modified: (entry.modified.seconds, entry.modified.nanoseconds),
            content: content.to_vec(),
            device: entry.device,
            attributes: attributes.map(|item| (item.name, item.value)).collect(),
            names: vec![entry.path.clone()],
        }
    }

    fn read(path: &Path) -> State {
        let found = fs::symlink_metadata(path).unwrap();
        let (kind, content) = match found.file_type() {
            kind if kind.is_dir() => (EntryKind::Directory, Vec::new()),
            kind if kind.is_file() => (EntryKind::File, fs::read(path).unwrap()),
            kind if kind.is_symlink() => {
                let target = fs::read_link(path).unwrap();
                (EntryKind::Symlink, target.as_os_str().as_bytes().to_vec())
            }
            kind if kind.is_fifo() => (EntryKind::Fifo, Vec::new()),
            kind if kind.is_char_device() => (EntryKind::CharacterDevice, Vec::new()),
            kind if kind.is_block_device() => (EntryKind::BlockDevice, Vec::new()),
            kind => panic!("{}: {kind:?}", path.display()),
        };
        let device = found.rdev();
        State {
            kind,
            mode: found.mode() & 0o7777,
            owner: (found.uid().into(), found.gid().into()),
            modified: (found.mtime(), found.mtime_nsec() as u32),
            content,
            device: (rustix::fs::major(device), rustix::fs::minor(device)),
            attributes: attributes(path),
            names: Vec::new(),
        }
    }
}

fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut buffer = vec![0; 64 << 10];
    let length = rustix::fs::llistxattr(path, &mut buffer[..]).unwrap();
    let names = buffer[..length].split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec);
    let value = |name: Vec<u8>| {
        let mut value = vec![0; 64 << 10];
        let length = rustix::fs::lgetxattr(path, &name[..], &mut value[..]).unwrap();
        value.truncate(length);
        (name, value)
    };
    names.map(value).collect()
}

/// The states of everything below `root`, by path; the root is `.`.
pub(super) fn states(root: &Path) -> BTreeMap<Vec<u8>, State> {
    let mut states = BTreeMap::new();
    let mut names: BTreeMap<(u64, u64), Vec<Vec<u8>>> = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let state = State::read(&path);
        if state.kind == EntryKind::Directory {
            let children = fs::read_dir(&path).unwrap();
            open.extend(children.map(|child| child.unwrap().path()));
        }
        let relative = path.strip_prefix(root).unwrap().as_os_str();
        let relative = if relative.is_empty() { OsStr::new(".") } else { relative };
        let found = fs::symlink_metadata(&path).unwrap();
        let inode = (found.dev(), found.ino());
        let relative = relative.as_bytes().to_vec();
        names.entry(inode).or_default().push(relative.clone());
        states.insert(relative, (inode, state));
    }
    let with_names = |(path, (inode, state)): (Vec<u8>, ((u64, u64), State))| {
        let mut names = names[&inode].clone();
        names.sort();
        (path, State { names, ..state })
    };
    states.into_iter().map(with_names).collect()
}
