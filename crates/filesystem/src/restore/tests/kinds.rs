//! Every kind of entry with every kind of metadata, as root and as an ordinary user.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use super::state::{State, states};
use super::users::{NOBODY, directory_of_body, is_root, run, skip};
use super::{TIME, entry, file, link};
use crate::restore::{LeftOut, OwnerPolicy, RestoreOptions, TreeRestore};
use refrain_entries::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};

const STRANGER: u64 = 4321;
const STRANGE_GROUP: u64 = 8765;

fn attribute(name: &str, value: &[u8]) -> ExtendedAttribute {
    ExtendedAttribute {
        name: name.as_bytes().to_vec(),
        value: value.to_vec(),
    }
}

/// An access control list: the owner, user 1234, the group, the mask, others.
fn acl(permissions: [u16; 5]) -> Vec<u8> {
    const NO_ID: u32 = u32::MAX;
    let tags = [
        (1_u16, NO_ID),
        (2, 1234),
        (4, NO_ID),
        (16, NO_ID),
        (32, NO_ID),
    ];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for ((tag, id), permissions) in tags.into_iter().zip(permissions) {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// `cap_net_raw`, permitted and effective, version 2.
fn capability() -> Vec<u8> {
    let words = [0x0200_0001_u32, 1 << 13, 0, 0, 0];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn of(entry: Entry, mode: u32, attributes: Vec<ExtendedAttribute>) -> Entry {
    Entry {
        mode,
        attributes,
        ..entry
    }
}

fn of_stranger(entry: Entry) -> Entry {
    let owner = Owner {
        uid: STRANGER,
        gid: STRANGE_GROUP,
        ..Owner::default()
    };
    Entry {
        owner: Arc::new(owner),
        ..entry
    }
}

/// Entries with their data or link target.
fn entries() -> Vec<(Entry, Vec<u8>)> {
    use EntryKind::{BlockDevice, CharacterDevice, Directory, Fifo, Symlink};
    let data = |path: &str| file(path, path.as_bytes());
    let old = Timestamp {
        seconds: -1_000_000_000,
        nanoseconds: 1,
    };
    let sparse = Entry {
        size_bytes: 1 << 20,
        data_ranges: Some(vec![4096..8192, 500_000..500_003]),
        ..entry("sparse", EntryKind::File)
    };
    let mut sparse_data = vec![0; 1 << 20];
    sparse_data[4096..8192].fill(7);
    sparse_data[500_000..500_003].fill(8);
    let default_acl = attribute("system.posix_acl_default", &acl([7, 7, 7, 7, 7]));
    let access_acl = attribute("system.posix_acl_access", &acl([4, 4, 4, 4, 0]));
    let user = || attribute("user.comment", b"kept\0as bytes");
    let plain = [
        of(entry(".", Directory), 0o711, vec![user()]),
        of(entry("read-only", Directory), 0o555, vec![user()]),
        data("read-only/file"),
        of(entry("gives-acl", Directory), 0o775, vec![default_acl]),
        data("gives-acl/file"),
        of(entry("gives-acl/below", Directory), 0o700, vec![]),
        of(entry("sticky", Directory), 0o1777, vec![]),
        of(entry("set-gid", Directory), 0o2755, vec![]),
        data("set-gid/file"),
        of(data("set-id"), 0o6755, vec![]),
        of_stranger(of(data("stranger's set-id"), 0o6755, vec![])),
        of_stranger(of(entry("stranger's", Directory), 0o750, vec![])),
        of_stranger(data("stranger's/file")),
        of(data("attributes"), 0o440, vec![access_acl.clone(), user()]),
        of(
            data("private"),
            0o000,
            vec![
                attribute("user.empty", b""),
                attribute("user.large", &[5; 2000]),
            ],
        ),
        of(
            data("capable"),
            0o755,
            vec![attribute("security.capability", &capability())],
        ),
        of(
            data("trusted"),
            0o600,
            vec![attribute("trusted.secret", b"x")],
        ),
        of(entry("fifo", Fifo), 0o622, vec![]),
        of_stranger(of(entry("stranger's fifo", Fifo), 0o4666, vec![])),
        Entry {
            modified: old,
            ..data("old")
        },
        data(&format!("{0}/{0}/name", "long".repeat(50))),
    ];
    let symlinks = [
        link("soft", Symlink, "nowhere"),
        of_stranger(link("stranger's soft", Symlink, "/etc/passwd")),
    ];
    let device = |path, kind, device| Entry {
        device,
        ..of(entry(path, kind), 0o640, vec![])
    };
    let devices = [
        device("null", CharacterDevice, (1, 3)),
        of_stranger(device("loop", BlockDevice, (7, 4000))),
    ];
    let content = |entry: &Entry| match entry.kind {
        EntryKind::File => entry.path.clone(),
        _ => entry.link_target.clone().unwrap_or_default(),
    };
    let all = plain.into_iter().chain(symlinks).chain(devices);
    let mut all: Vec<_> = all.map(|entry| (content(&entry), entry)).collect();
    all.push((sparse_data, sparse));
    let mut all: Vec<_> = all.into_iter().map(|(data, entry)| (entry, data)).collect();
    let name = [b'\xff', b'\n', b'"'].to_vec();
    let bytes = Entry {
        path: name.clone(),
        ..file("???", &name)
    };
    all.push((bytes, name));
    all
}

fn stored(entry: &Entry, data: &[u8]) -> Vec<u8> {
    match &entry.data_ranges {
        None => data.to_vec(),
        Some(ranges) => {
            let pieces = ranges
                .iter()
                .map(|range| &data[range.start as usize..range.end as usize]);
            pieces.collect::<Vec<_>>().concat()
        }
    }
}

/// Restores the entries, each file in two pieces, the second first.
fn restore(target: &Path, options: RestoreOptions, entries: &[(Entry, Vec<u8>)]) -> TreeRestore {
    let restore = TreeRestore::create(target, options).unwrap();
    restore.other(&link("another name", EntryKind::Hardlink, "set-id"));
    restore.other(&link("name of a link", EntryKind::Hardlink, "soft"));
    restore.other(&link("a third", EntryKind::Hardlink, "another name"));
    for (entry, data) in entries {
        match entry.kind {
            EntryKind::Directory => restore.directory(entry),
            EntryKind::File => {
                let stored = stored(entry, data);
                let (first, second) = stored.split_at(stored.len() / 2);
                let file = restore.file(entry).unwrap();
                file.write_at(first.len() as u64, second).unwrap();
                file.write_at(0, first).unwrap();
                file.finish().unwrap();
            }
            _ => restore.other(entry),
        }
    }
    restore
}

/// What the entries should look like if everything is permitted.
fn wanted(entries: &[(Entry, Vec<u8>)]) -> BTreeMap<Vec<u8>, State> {
    let state = |(entry, data): &(Entry, Vec<u8>)| {
        let path = entry.path.clone();
        (path, State::wanted(entry, data))
    };
    let mut states: BTreeMap<_, _> = entries.iter().map(state).collect();
    let parent = "long".repeat(50).into_bytes();
    let parents = [parent.clone(), [&parent[..], b"/", &parent].concat()];
    for path in parents {
        let path = String::from_utf8(path).unwrap();
        let state = State::wanted(&entry(&path, EntryKind::Directory), b"");
        states.insert(path.into_bytes(), state);
    }
    let groups: [&[&[u8]]; 2] = [
        &[b"a third", b"another name", b"set-id"],
        &[b"name of a link", b"soft"],
    ];
    for names in groups {
        let mut state = states[names[names.len() - 1]].clone();
        state.names = names.iter().map(|name| name.to_vec()).collect();
        states.extend(names.iter().map(|name| (name.to_vec(), state.clone())));
    }
    states
}

/// Compares everything except the times of parents without entries.
fn assert_equal(wanted: &BTreeMap<Vec<u8>, State>, root: &Path) {
    let found = states(root);
    let paths = |states: &BTreeMap<Vec<u8>, State>| states.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(wanted), paths(&found));
    for (path, mut state) in found {
        if path.starts_with(b"long") && state.kind == EntryKind::Directory {
            state.modified = (TIME.seconds, TIME.nanoseconds);
        }
        let text = String::from_utf8_lossy(&path);
        assert_eq!(wanted[&path], state, "{text}");
    }
}

/// Whether the file system has what the test needs.
fn is_suitable(directory: &Path) -> bool {
    let path = directory.join("probe");
    fs::write(&path, "x").unwrap();
    let set = |name, value: &[u8]| {
        rustix::fs::setxattr(&path, name, value, rustix::fs::XattrFlags::empty()).is_ok()
    };
    let suits = set("user.x", b"x") && set("system.posix_acl_access", &acl([6, 4, 4, 6, 0]));
    fs::remove_file(path).unwrap();
    suits
}

fn check_everything_as_root(directory: &Path) {
    let (root, entries) = (directory.join("root"), entries());
    let summary = restore(&root, RestoreOptions::default(), &entries)
        .finish()
        .unwrap();
    assert!(summary.problems.is_empty(), "{:?}", summary.problems);
    assert!(summary.left_out.is_empty(), "{}", summary.left_out);
    assert_equal(&wanted(&entries), &root);
    let blocks = fs::metadata(root.join("sparse")).unwrap().blocks();
    assert!(blocks <= 2 * 8, "{blocks} blocks of a sparse file");

    // Again over the restored tree: nothing changes unless asked for.
    let summary = restore_all(&root, false, &entries);
    let files = entries
        .iter()
        .filter(|(entry, _)| entry.kind != EntryKind::Directory);
    assert_eq!(summary.problem_count, files.count() as u64 + 3);
    assert!(summary.problems.iter().all(|problem| {
        let kind = problem.error.kind();
        matches!(
            kind,
            std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotFound
        )
    }));
    assert_eq!(summary.missing_targets.len(), 3);
    assert_equal(&wanted(&entries), &root);

    // Everything is replaced if asked for.
    for path in ["set-id", "attributes"] {
        fs::write(root.join(path), "changed").unwrap();
    }
    let summary = restore_all(&root, true, &entries);
    assert!(summary.problems.is_empty(), "{:?}", summary.problems);
    assert_equal(&wanted(&entries), &root);
}

/// Restores into a tree that may exist; existing files are problems.
fn restore_all(
    root: &Path,
    overwrite: bool,
    entries: &[(Entry, Vec<u8>)],
) -> crate::restore::RestoreSummary {
    let options = RestoreOptions {
        overwrite,
        ..RestoreOptions::default()
    };
    let restore = TreeRestore::create(root, options).unwrap();
    for (entry, data) in entries {
        match entry.kind {
            EntryKind::Directory => restore.directory(entry),
            EntryKind::File => {
                restore.write_file(entry, &stored(entry, data));
            }
            _ => restore.other(entry),
        }
    }
    restore.other(&link("another name", EntryKind::Hardlink, "set-id"));
    restore.other(&link("name of a link", EntryKind::Hardlink, "soft"));
    restore.other(&link("a third", EntryKind::Hardlink, "another name"));
    restore.finish().unwrap()
}

#[test]
fn root_restores_everything() {
    let temporary = tempfile::tempdir().unwrap();
    if !is_root() {
        return skip("only root may restore owners and devices");
    }
    if !is_suitable(temporary.path()) {
        return skip("the file system of temporary files has no access control lists");
    }
    check_everything_as_root(temporary.path());
}

/// What an ordinary user gets.
fn permitted(entries: &[(Entry, Vec<u8>)]) -> BTreeMap<Vec<u8>, State> {
    let mut states = wanted(entries);
    let user = u64::from(rustix::process::geteuid().as_raw());
    let group = u64::from(rustix::process::getegid().as_raw());
    states.retain(|_, state| state.device == (0, 0));
    for state in states.values_mut() {
        if state.owner != (user, group) {
            state.owner = (user, group);
            state.mode &= !0o6000;
        }
        state.attributes.remove(&b"security.capability"[..]);
        state.attributes.remove(&b"trusted.secret"[..]);
    }
    states
}

#[test]
fn an_ordinary_user_restores_what_is_permitted() {
    const NAME: &str = "restore::tests::kinds::an_ordinary_user_restores_what_is_permitted";
    if is_root() {
        return run(NAME, NOBODY, |directory| {
            if !is_suitable(directory) {
                return skip("the file system of temporary files has no access control lists");
            }
            // Root can see what the unprivileged user restored.
            let entries: Vec<_> = entries()
                .into_iter()
                .map(|(entry, data)| {
                    let is_own = entry.owner.uid != STRANGER;
                    let owner = Owner {
                        uid: if is_own { NOBODY.into() } else { STRANGER },
                        gid: if is_own { NOBODY.into() } else { STRANGE_GROUP },
                        ..Owner::default()
                    };
                    let owner = Arc::new(owner);
                    (Entry { owner, ..entry }, data)
                })
                .collect();
            let mut wanted = permitted(&entries);
            for state in wanted.values_mut() {
                state.owner = (NOBODY.into(), NOBODY.into());
                let names: [&[u8]; 2] = [b"set-id", b"set-gid"];
                if state.names.iter().any(|name| names.contains(&&name[..])) {
                    state.mode |= if state.kind == EntryKind::File { 0o6000 } else { 0o2000 };
                }
            }
            assert_equal(&wanted, &directory.join("root"));
        });
    }
    let temporary = tempfile::tempdir().unwrap();
    let directory = directory_of_body().unwrap_or_else(|| temporary.path().to_path_buf());
    if !is_suitable(&directory) {
        return skip("the file system of temporary files has no access control lists");
    }
    let (root, entries) = (directory.join("root"), entries());
    let summary = restore(&root, RestoreOptions::default(), &entries)
        .finish()
        .unwrap();
    assert!(summary.problems.is_empty(), "{:?}", summary.problems);
    let left_out = LeftOut {
        devices: 2,
        owners: 5,
        set_id_bits: 2,
        attributes: 2,
        ..LeftOut::default()
    };
    assert_eq!(summary.left_out, left_out);
    if directory_of_body().is_none() {
        let unreadable = root.join("private");
        fs::remove_file(unreadable).unwrap();
    }
    // If asked for explicitly, owners that cannot be set are problems.
    let options = RestoreOptions {
        owners: OwnerPolicy::Same,
        ..RestoreOptions::default()
    };
    let second = TreeRestore::create(&directory.join("second"), options).unwrap();
    assert!(!second.write_file(&of_stranger(file("theirs", b"x")), b"x"));
    assert!(second.write_file(&file("mine", b"x"), b"x"));
    let summary = second.finish().unwrap();
    assert_eq!(summary.problem_count, 1);
    assert_eq!(summary.problems[0].path, b"theirs");
    assert!(summary.left_out.is_empty());
    assert_eq!(fs::read(directory.join("second/theirs")).unwrap(), b"x");
}

#[test]
fn set_id_bits_are_kept_only_with_their_owner() {
    let temporary = tempfile::tempdir().unwrap();
    let options = RestoreOptions {
        owners: OwnerPolicy::Current,
        ..RestoreOptions::default()
    };
    let out = temporary.path().join("out");
    let restore = TreeRestore::create(&out, options).unwrap();
    let set_id = |path| of(file(path, b"x"), 0o6755, vec![]);
    assert!(restore.write_file(&of_stranger(set_id("theirs")), b"x"));
    assert!(restore.write_file(&set_id("mine"), b"x"));
    let summary = restore.finish().unwrap();
    assert_eq!(summary.left_out.to_string(), "1 set-id bit");
    let mode = |path| fs::metadata(out.join(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode("theirs"), mode("mine")), (0o755, 0o6755));
    let user = rustix::process::geteuid().as_raw();
    assert_eq!(fs::metadata(out.join("theirs")).unwrap().uid(), user);
}

#[test]
fn access_control_lists_of_an_existing_directory_do_not_leak() {
    let temporary = tempfile::tempdir().unwrap();
    if !is_suitable(temporary.path()) {
        return skip("the file system of temporary files has no access control lists");
    }
    for name in ["existing", "parent/deep"] {
        fs::create_dir_all(temporary.path().join(name)).unwrap();
    }
    for name in ["existing", "parent", "parent/deep"] {
        let (path, acl) = (temporary.path().join(name), acl([7, 7, 7, 7, 7]));
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&path, "system.posix_acl_default", &acl, flags).unwrap();
    }
    for name in ["existing", "parent/new", "parent/deep/new"] {
        let out = temporary.path().join(name);
        let restore = super::create(&out);
        let entries = [
            of(file("file", b"x"), 0o640, vec![]),
            of(file("made/deep/file", b"x"), 0o604, vec![]),
        ];
        for entry in &entries {
            assert!(restore.write_file(entry, b"x"));
        }
        restore.other(&of(entry("fifo", EntryKind::Fifo), 0o600, vec![]));
        let summary = restore.finish().unwrap();
        assert_eq!(summary.problem_count, 0, "{:?}", summary.problems);
        for (path, state) in states(&out) {
            if path == b"." && name == "existing" {
                continue;
            }
            let text = String::from_utf8_lossy(&path);
            assert!(state.attributes.is_empty(), "{name}: {text}: {state:?}");
        }
        let mode = |path| fs::metadata(out.join(path)).unwrap().mode() & 0o7777;
        assert_eq!((mode("file"), mode("made/deep/file")), (0o640, 0o604));
        assert_eq!(mode("made"), mode("made/deep"));
    }
}
