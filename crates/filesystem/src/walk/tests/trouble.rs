//! Files and directories that cannot be read.

use std::os::unix::fs::PermissionsExt;

use rustix::thread::{Gid, Uid};

use super::*;

const NOBODY: u32 = 65_534;

/// Runs `test` on a thread with the rights of `nobody`.
fn as_nobody<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
                rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            }
            test()
        });
        thread.join().unwrap()
    })
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn unreadable_directories_are_entries_without_contents_and_named() {
    let root = tree(&["a/x", "closed/secret", "locked/file", "z"]);
    set_mode(root.path(), 0o755);
    // One cannot be listed; the other can, but not its entries examined.
    set_mode(&root.path().join("closed"), 0o711);
    set_mode(&root.path().join("locked"), 0o744);
    if !rustix::process::geteuid().is_root() {
        set_mode(&root.path().join("closed"), 0o011);
        set_mode(&root.path().join("locked"), 0o444);
    }
    let (entries, problems) = as_nobody(|| walk(root.path(), WalkOptions::default()));
    assert_eq!(paths(&entries), [".", "a", "a/x", "closed", "locked", "z"]);
    let named: Vec<_> = problems.iter().map(|p| (&p.path[..], p.kind)).collect();
    let unreadable = ProblemKind::Unreadable;
    assert_eq!(
        named,
        [(&b"closed"[..], unreadable), (b"locked/file", unreadable)]
    );

    let options = WalkOptions {
        is_strict: true,
        ..WalkOptions::default()
    };
    let error = as_nobody(|| {
        let mut walker = Walker::open(root.path(), Path::new("name"), options).unwrap();
        walker.next_entries(usize::MAX).unwrap_err()
    });
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("name/closed"), "{error}");

    // Unwanted entries cause no problems.
    let options = selecting(|builder| {
        builder.exclude(b"closed").exclude(b"/locked/");
    });
    let (_, problems) = as_nobody(|| walk(root.path(), options));
    assert_eq!(problems, []);
    let options = selecting(|builder| {
        builder.include(b"/a/x");
    });
    let (entries, problems) = as_nobody(|| walk(root.path(), options));
    assert_eq!(paths(&entries), [".", "a", "a/x"]);
    assert_eq!(problems, []);
    set_mode(&root.path().join("closed"), 0o755);
    set_mode(&root.path().join("locked"), 0o755);
}

#[test]
fn unreadable_files_are_listed_and_cannot_be_opened() {
    let root = tree(&["mine", "open"]);
    set_mode(root.path(), 0o755);
    set_mode(
        &root.path().join("mine"),
        if rustix::process::geteuid().is_root() { 0o600 } else { 0 },
    );
    let (entries, kind, size) = as_nobody(|| {
        let (entries, problems) = walk(root.path(), WalkOptions::default());
        assert_eq!(problems, []);
        let files = FileRoot::open(root.path()).unwrap();
        let error = files.open_file(b"mine").unwrap_err();
        // Another user's file is opened although its access time changes.
        let size = files.open_file(b"open").unwrap().size_bytes();
        (entries, Problem::from_error(b"mine", &error).kind, size)
    });
    assert_eq!(paths(&entries), [".", "mine", "open"]);
    assert_eq!((kind, size), (ProblemKind::Unreadable, 4));
}
