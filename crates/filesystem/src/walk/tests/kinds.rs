//! Every kind of file, with everything that is recorded about it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

use super::*;
use refrain_entries::{EntryKind, ExtendedAttribute, Timestamp};

/// Creates a device; `false` where not permitted.
fn make_node(path: &Path, file_type: FileType, major: u32, minor: u32) -> bool {
    let device = rustix::fs::makedev(major, minor);
    rustix::fs::mknodat(CWD, path, file_type, Mode::from_raw_mode(0o640), device).is_ok()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn entry<'a>(entries: &'a [Entry], path: &str) -> &'a Entry {
    let found = entries.iter().find(|entry| entry.path == path.as_bytes());
    assert!(found.is_some(), "no entry {path}: {:?}", paths(entries));
    found.unwrap()
}

#[test]
fn modes_times_and_owners_are_recorded() {
    let root = tree(&["file", "dir/", "sticky/"]);
    let mode = |name: &str, mode| {
        fs::set_permissions(root.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("file", 0o6751);
    mode("dir", 0o2770);
    mode("sticky", 0o1777);
    for (name, seconds) in [("file", 1_234_567_890), ("dir", -5)] {
        let time = Timespec {
            tv_sec: seconds,
            tv_nsec: 123_456_789,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        rustix::fs::utimensat(
            CWD,
            root.path().join(name),
            &times,
            rustix::fs::AtFlags::empty(),
        )
        .unwrap();
    }
    if is_root() {
        std::os::unix::fs::chown(root.path().join("sticky"), Some(1), Some(4_000_000_000)).unwrap();
    }
    let (entries, _) = walk(root.path(), WalkOptions::default());
    let modes = ["dir", "file", "sticky"].map(|path| entry(&entries, path).mode);
    assert_eq!(modes, [0o2770, 0o6751, 0o1777]);
    let time = |seconds| Timestamp {
        seconds,
        nanoseconds: 123_456_789,
    };
    assert_eq!(entry(&entries, "file").modified, time(1_234_567_890));
    assert_eq!(entry(&entries, "dir").modified, time(-5));
    let own = fs::metadata(root.path()).unwrap();
    let owner = &entry(&entries, "file").owner;
    assert_eq!((owner.uid, owner.gid), (own.uid().into(), own.gid().into()));
    if is_root() {
        assert_eq!(
            (&owner.user[..], &owner.group[..]),
            (&b"root"[..], &b"root"[..])
        );
        let owner = &entry(&entries, "sticky").owner;
        assert_eq!((owner.uid, owner.gid), (1, 4_000_000_000));
        assert_eq!(owner.group, b"");
    }
}

#[test]
fn links_devices_and_fifos_are_recorded_and_sockets_are_named() {
    let root = tree(&["file"]);
    let at = |name: &str| root.path().join(name);
    symlink(OsStr::from_bytes(b"nowhere/\xff"), at("link")).unwrap();
    let long_target = "x".repeat(4000);
    symlink(&long_target, at("long")).unwrap();
    assert!(make_node(&at("fifo"), FileType::Fifo, 0, 0));
    let _socket = UnixListener::bind(at("socket")).unwrap();
    let has_devices = make_node(&at("char"), FileType::CharacterDevice, 1, 3)
        && make_node(&at("block"), FileType::BlockDevice, 259, 1_000_000);
    assert!(has_devices || !is_root(), "root can make devices");
    fs::write(root.path().join(OsStr::from_bytes(b"\xfe")), "").unwrap();

    let (entries, problems) = walk(root.path(), WalkOptions::default());
    assert_eq!(entry(&entries, "link").kind, EntryKind::Symlink);
    assert_eq!(
        entry(&entries, "link").link_target.as_deref(),
        Some(&b"nowhere/\xff"[..])
    );
    assert_eq!(entry(&entries, "link").size_bytes, 0);
    assert_eq!(
        entry(&entries, "long").link_target.as_deref(),
        Some(long_target.as_bytes())
    );
    assert_eq!(entry(&entries, "fifo").kind, EntryKind::Fifo);
    assert_eq!(entry(&entries, "file").device, (0, 0));
    assert_eq!(entries.last().unwrap().path, b"\xfe");
    if has_devices {
        let (char, block) = (entry(&entries, "char"), entry(&entries, "block"));
        assert_eq!(
            (char.kind, char.device),
            (EntryKind::CharacterDevice, (1, 3))
        );
        assert_eq!(
            (block.kind, block.device),
            (EntryKind::BlockDevice, (259, 1_000_000))
        );
    }
    let expected = Problem {
        path: b"socket".to_vec(),
        kind: ProblemKind::Skipped,
        text: "is a socket".to_string(),
    };
    assert!(!expected.is_failure());
    assert_eq!(problems, [expected]);
    // A socket alone is not an error.
    let options = WalkOptions {
        is_strict: true,
        ..WalkOptions::default()
    };
    assert_eq!(walk(root.path(), options).0, entries);
}

#[test]
fn of_hard_links_the_first_in_path_order_is_the_file() {
    let root = tree(&["z/first", "m", "a/"]);
    let at = |name: &str| root.path().join(name);
    symlink("target", at("z/symlink")).unwrap();
    assert!(make_node(&at("z/fifo"), FileType::Fifo, 0, 0));
    let has_device = make_node(&at("z/device"), FileType::CharacterDevice, 1, 5);
    let mut names = vec!["first", "symlink", "fifo"];
    names.extend(has_device.then_some("device"));
    for name in &names {
        for directory in ["a", "z"] {
            let link = at(directory).join(format!("{name}-link"));
            fs::hard_link(at("z").join(name), link).unwrap();
        }
    }
    let (entries, problems) =
        read_all(Walker::open(root.path(), Path::new("name"), WalkOptions::default()).unwrap());
    assert_eq!(problems, []);
    for name in names {
        let first = entry(&entries, &format!("name/a/{name}-link"));
        assert_ne!(first.kind, EntryKind::Hardlink);
        for path in [format!("name/z/{name}"), format!("name/z/{name}-link")] {
            let link = entry(&entries, &path);
            assert_eq!(link.kind, EntryKind::Hardlink);
            assert_eq!(link.link_target.as_deref(), Some(&first.path[..]));
            assert_eq!((link.size_bytes, link.device), (0, (0, 0)));
        }
    }
    assert_eq!(entry(&entries, "name/a/first-link").size_bytes, 7);
    assert_eq!(entry(&entries, "name/m").kind, EntryKind::File);
}

#[test]
fn a_hard_link_whose_first_name_is_excluded_is_the_file() {
    let root = tree(&["a", "dir/"]);
    fs::hard_link(root.path().join("a"), root.path().join("dir/b")).unwrap();
    fs::hard_link(root.path().join("a"), root.path().join("dir/c")).unwrap();
    let options = selecting(|builder| {
        builder.exclude(b"a");
    });
    let (entries, _) = walk(root.path(), options);
    assert_eq!(entry(&entries, "dir/b").kind, EntryKind::File);
    assert_eq!(
        entry(&entries, "dir/c").link_target.as_deref(),
        Some(&b"dir/b"[..])
    );
}

/// An access control list: version 2; user, user 1, group, mask, others.
fn acl() -> Vec<u8> {
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [
        (1_u16, 6_u16, u32::MAX),
        (2, 4, 1),
        (4, 4, u32::MAX),
        (16, 4, u32::MAX),
        (32, 0, u32::MAX),
    ] {
        acl.extend(tag.to_le_bytes());
        acl.extend(permissions.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    acl
}

#[test]
fn attributes_access_control_lists_and_capabilities_are_recorded() {
    let root = tree(&["file", "dir/", "plain", "zero"]);
    fs::write(root.path().join("zero"), "").unwrap();
    let at = |name: &str| root.path().join(name);
    symlink("file", at("link")).unwrap();
    assert!(make_node(&at("fifo"), FileType::Fifo, 0, 0));
    let capability = [&[1, 0, 0, 2, 0, 4, 0, 0][..], &[0; 12]].concat();
    let wide = vec![7; 2000];
    let candidates: [(&str, &str, &[u8]); 10] = [
        ("zero", "user.empty", b"but kept"),
        ("file", "user.z", b"last"),
        ("file", "user.a", b""),
        ("file", "user.wide", &wide),
        ("file", "security.capability", &capability),
        ("file", "system.posix_acl_access", &acl()),
        ("file", "trusted.t", b"1\0"),
        ("dir", "system.posix_acl_default", &acl()),
        ("link", "trusted.l", b"of the link"),
        ("fifo", "trusted.f", b"of the fifo"),
    ];
    let mut expected: Vec<(&str, ExtendedAttribute)> = Vec::new();
    for (path, name, value) in candidates {
        let set = rustix::fs::lsetxattr(at(path), name, value, XattrFlags::empty());
        // Not every file system and user can.
        if set.is_ok() {
            let (name, value) = (name.as_bytes().to_vec(), value.to_vec());
            expected.push((path, ExtendedAttribute { name, value }));
        }
    }
    let (entries, problems) = walk(root.path(), WalkOptions::default());
    assert_eq!(problems, []);
    for path in [".", "dir", "fifo", "file", "link", "plain", "zero"] {
        let own = expected.iter().filter(|(of, _)| *of == path);
        let mut own: Vec<_> = own.map(|(_, attribute)| attribute.clone()).collect();
        own.sort();
        assert_eq!(entry(&entries, path).attributes, own, "{path}");
    }
    let mut walker = Walker::open(root.path(), Path::new(""), WalkOptions::default()).unwrap();
    walker.do_without_proc();
    assert_eq!(read_all(walker).0, entries);
    let options = WalkOptions {
        attributes_when_opened: true,
        ..WalkOptions::default()
    };
    let (mut later, _) = walk(root.path(), options);
    assert_eq!(entry(&later, "file").attributes, []);
    for path in ["dir", "zero"] {
        assert_eq!(entry(&later, path), entry(&entries, path));
    }
    let files = FileRoot::open(root.path()).unwrap();
    for entry in later
        .iter_mut()
        .filter(|entry| entry.kind == EntryKind::File)
    {
        files
            .open_file(&entry.path)
            .unwrap()
            .refresh(entry)
            .unwrap();
    }
    assert_eq!(later, entries);
}
