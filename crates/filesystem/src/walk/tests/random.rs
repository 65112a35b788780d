//! Random trees, compared with a naive reference: recursion, full paths, and a sort at the end.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode};

use super::*;
use refrain_entries::{EntryKind, Owner, Timestamp};

/// A step of building a tree. The numbers select among existing directories and files.
#[derive(Debug, Clone)]
enum Step {
    Directory(usize, String),
    File(usize, String, u8),
    Symlink(usize, String, String),
    Fifo(usize, String),
    HardLink(usize, String, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = || "[a-c!.\u{1}-]{0,3}[a-c]";
    let step = prop_oneof![
        3 => (any::<usize>(), name()).prop_map(|(at, name)| Step::Directory(at, name)),
        3 => (any::<usize>(), name(), any::<u8>())
            .prop_map(|(at, name, size)| Step::File(at, name, size)),
        1 => (any::<usize>(), name(), "[a-c./]{1,4}")
            .prop_map(|(at, name, target)| Step::Symlink(at, name, target)),
        1 => (any::<usize>(), name()).prop_map(|(at, name)| Step::Fifo(at, name)),
        2 => (any::<usize>(), name(), any::<usize>())
            .prop_map(|(at, name, of)| Step::HardLink(at, name, of)),
    ];
    prop::collection::vec(step, 0..40)
}

/// Builds a tree; steps whose name exists do nothing.
fn build(root: &Path, steps: &[Step]) {
    let mut directories = vec![root.to_path_buf()];
    let mut files: Vec<PathBuf> = Vec::new();
    for step in steps {
        let place = |at: &usize, name: &String| directories[at % directories.len()].join(name);
        match step {
            Step::Directory(at, name) => {
                let path = place(at, name);
                if fs::create_dir(&path).is_ok() {
                    directories.push(path);
                }
            }
            Step::File(at, name, size) => {
                let path = place(at, name);
                if !path.exists() && fs::write(&path, vec![1; (*size).into()]).is_ok() {
                    files.push(path);
                }
            }
            Step::Symlink(at, name, target) => {
                let path = place(at, name);
                if std::os::unix::fs::symlink(target, &path).is_ok() {
                    files.push(path);
                }
            }
            Step::Fifo(at, name) => {
                let path = place(at, name);
                if rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).is_ok() {
                    files.push(path);
                }
            }
            Step::HardLink(at, name, of) if !files.is_empty() => {
                let path = place(at, name);
                let _ = fs::hard_link(&files[of % files.len()], &path);
            }
            Step::HardLink(..) => {}
        }
    }
}

/// The components of each path, with the metadata.
fn collect(
    directory: &Path,
    prefix: &[Vec<u8>],
    all: &mut Vec<(Vec<Vec<u8>>, fs::Metadata, PathBuf)>,
) {
    for child in fs::read_dir(directory).unwrap() {
        let child = child.unwrap();
        let mut path = prefix.to_vec();
        path.push(child.file_name().as_bytes().to_vec());
        let metadata = fs::symlink_metadata(child.path()).unwrap();
        let is_directory = metadata.is_dir();
        all.push((path.clone(), metadata, child.path()));
        if is_directory {
            collect(&child.path(), &path, all);
        }
    }
}

fn reference(root: &Path) -> Vec<Entry> {
    let mut all = vec![(Vec::new(), fs::metadata(root).unwrap(), root.to_path_buf())];
    collect(root, &[], &mut all);
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let mut first: BTreeMap<(u64, u64), Vec<u8>> = BTreeMap::new();
    let mut entries = Vec::new();
    for (components, metadata, full) in all {
        let path = if components.is_empty() { b".".to_vec() } else { components.join(&b'/') };
        let owner = Owner {
            uid: metadata.uid().into(),
            gid: metadata.gid().into(),
            ..Owner::default()
        };
        let mut entry = Entry {
            path: path.clone(),
            mode: metadata.mode() & 0o7777,
            owner: std::sync::Arc::new(owner),
            modified: Timestamp {
                seconds: metadata.mtime(),
                nanoseconds: metadata.mtime_nsec() as u32,
            },
            ..Entry::default()
        };
        let kind = metadata.file_type();
        let id = (metadata.dev(), metadata.ino());
        if kind.is_dir() {
            entry.kind = EntryKind::Directory;
        } else if let Some(first) = first.get(&id) {
            entry.kind = EntryKind::Hardlink;
            entry.link_target = Some(first.clone());
        } else if kind.is_symlink() {
            entry.kind = EntryKind::Symlink;
            let target = fs::read_link(full).unwrap();
            entry.link_target = Some(target.as_os_str().as_bytes().to_vec());
        } else if kind.is_fifo() {
            entry.kind = EntryKind::Fifo;
        } else {
            entry.size_bytes = metadata.len();
        }
        if !kind.is_dir() {
            first.entry(id).or_insert(path);
        }
        entries.push(entry);
    }
    entries
}

/// Removes what the reference does not know.
fn without_names(mut entry: Entry) -> Entry {
    let owner = Owner {
        uid: entry.owner.uid,
        gid: entry.owner.gid,
        ..Owner::default()
    };
    entry.owner = std::sync::Arc::new(owner);
    entry.attributes.clear();
    entry
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn random_trees_are_listed_as_by_the_reference(steps in steps(), count in 1_usize..9) {
        let root = tempfile::tempdir().unwrap();
        build(root.path(), &steps);
        let mut walker =
            Walker::open(root.path(), Path::new(""), WalkOptions::default()).unwrap();
        let mut entries = Vec::new();
        loop {
            let next = walker.next_entries(count).unwrap();
            if next.is_empty() {
                break;
            }
            prop_assert!(next.len() <= count);
            entries.extend(next.into_iter().map(without_names));
        }
        prop_assert_eq!(walker.take_problems(), []);
        prop_assert_eq!(&entries, &reference(root.path()));
        let ordered = entries.windows(2).all(|pair| {
            refrain_entries::compare_paths(&pair[0].path, &pair[1].path).is_lt()
        });
        prop_assert!(ordered);
    }

    /// Listing paths gives the same entries, in the same order, as selecting them.
    #[test]
    fn listed_paths_are_those_that_a_selection_takes(
        steps in steps(), picks in prop::collection::vec(any::<usize>(), 0..6)
    ) {
        let root = tempfile::tempdir().unwrap();
        build(root.path(), &steps);
        let (all, _) = walk(root.path(), WalkOptions::default());
        let picked: Vec<Vec<u8>> = picks.iter().map(|pick| all[pick % all.len()].path.clone()).collect();
        let options = selecting(|builder| {
            builder.include_lines(b"");
            for path in &picked {
                builder.path(path);
            }
        });
        let by_selection = walk(root.path(), options);
        let listed = Walker::for_paths(root.path(), Path::new(""), picked, WalkOptions::default());
        prop_assert_eq!(read_all(listed.unwrap()), by_selection);
    }
}
