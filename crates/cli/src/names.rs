//! Names of archives and members: suffixes, and which member names may become paths.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::text::quoted;

/// The suffix of archives, without its dot.
pub const SUFFIX: &str = "rfn";

/// The member name of standard input.
pub const STDIN_MEMBER: &[u8] = b"stdin";

/// Whether a path names an open descriptor, as in a shell's `<(command)`: it says nothing about the
/// content.
pub fn is_descriptor(path: &Path) -> bool {
    let directories = ["/dev/fd", "/proc/self/fd"];
    path == Path::new("/dev/stdin") || directories.iter().any(|fd| path.starts_with(fd))
}

/// The member name of a pipe among others: the first unused of `stdin`, `stdin-2` and so on.
pub fn of_pipe(taken: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let numbered =
        (2..).map(|number: u64| [STDIN_MEMBER, format!("-{number}").as_bytes()].concat());
    let mut all = std::iter::once(STDIN_MEMBER.to_vec()).chain(numbered);
    let free = all.find(|name| !taken.contains(name));
    free.unwrap_or_else(|| STDIN_MEMBER.to_vec())
}

/// `FILE` -> `FILE.SUFFIX`.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.components().as_path().as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// The suffix of lrzip archives, without its dot.
pub const LRZIP_SUFFIX: &str = "lrz";

/// The suffix for a directory, which becomes a tar stream.
pub const TAR_LRZIP_SUFFIX: &str = "tar.lrz";

/// The suffixes of readable files, without their dot, and what replaces them: nothing, or the
/// suffix of the tar stream inside.
const READ_SUFFIXES: [(&str, &str); 17] = [
    (SUFFIX, ""),
    (LRZIP_SUFFIX, ""),
    ("gz", ""),
    ("xz", ""),
    ("zst", ""),
    ("bz2", ""),
    ("lz4", ""),
    ("zip", ""),
    ("tgz", "tar"),
    ("taz", "tar"),
    ("txz", "tar"),
    ("tzst", "tar"),
    ("tbz2", "tar"),
    ("tbz", "tar"),
    ("tb2", "tar"),
    ("tz2", "tar"),
    ("tlz4", "tar"),
];

/// What replaces the suffix of a readable file; `None` for other files.
fn replacement(path: &Path) -> Option<&'static str> {
    let suffix = path.extension()?.to_str()?;
    let mut known = READ_SUFFIXES.iter();
    known.find_map(|(known, inside)| (*known == suffix).then_some(*inside))
}

/// Whether the path has the suffix of a readable format.
pub fn has_archive_suffix(path: &Path) -> bool {
    replacement(path).is_some()
}

/// `FILE.rfn`, `FILE.gz` and the like -> `FILE`; `FILE.tgz` and the like -> `FILE.tar`.
pub fn without_suffix(path: &Path) -> Result<PathBuf> {
    match replacement(path) {
        Some(inside) => Ok(path.with_extension(inside)),
        None => Err(Failure::usage(
            path.to_string_lossy(),
            "has no suffix such as .rfn or .gz to remove: name the output with -o",
        )),
    }
}

/// The name of a member. An unnamed one, as in lrzip archives, gets the archive's name without
/// suffix.
pub fn of_member(archive: &Path, name: &[u8]) -> Vec<u8> {
    if !name.is_empty() {
        return name.to_owned();
    }
    let file_name = Path::new(archive.file_name().unwrap_or_default());
    let stem = without_suffix(file_name).unwrap_or_else(|_| file_name.to_path_buf());
    stem.into_os_string().into_vec()
}

/// The member name of a single input: its last component.
pub fn base_name(path: &Path) -> Result<Vec<u8>> {
    match path.file_name() {
        Some(name) => Ok(name.as_bytes().to_vec()),
        None => Err(Failure::usage(
            path.to_string_lossy(),
            "has no file name: name the output with -o, or write out the name of the directory",
        )),
    }
}

/// The member name of an archive's only input if the archive has an explicit name: as
/// [`base_name`], but a path like `.` yields the directory's own name.
pub fn own_name(path: &Path) -> Result<Vec<u8>> {
    let resolved = path.canonicalize();
    let name = base_name(path).or_else(|_| base_name(resolved.as_deref().unwrap_or(path)));
    // The root directory has no name.
    Ok(name.unwrap_or_else(|_| b"root".to_vec()))
}

/// The member name of one of several inputs: its path, made relative.
///
/// Removes a leading `/`, `.`, and everything up to the last `..`, so that the archive never has a
/// name that extraction would refuse.
pub fn relative_name(path: &Path) -> Result<Vec<u8>> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.as_bytes()),
            Component::ParentDir => parts.clear(),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    if !parts.is_empty() { Ok(parts.join(&b'/')) } else { base_name(path) }
}

/// A member name from an archive as a path that stays below the directory that it is joined to.
///
/// Archives are not trusted: absolute names, `..` and NUL are refused, not repaired, because a
/// repaired name could collide with another member.
///
/// # Errors
/// `Refused` for an unsafe name, `Usage` for a member without a name.
pub fn safe_member_path(archive: &str, name: &[u8]) -> Result<PathBuf> {
    let refuse = |why: &str| {
        let text = format!(
            "refused: member name {} {why}; name the output with -o FILE",
            quoted(name)
        );
        Err(Failure::refused(archive, text))
    };
    if name.is_empty() {
        let text = "the member has no name: name the output with -o FILE";
        return Err(Failure::usage(archive, text));
    }
    if name.ends_with(b"/") {
        return refuse("is not a file name");
    }
    if name.contains(&0) {
        return refuse("contains a NUL byte");
    }
    let mut path = PathBuf::new();
    for part in Path::new(OsStr::from_bytes(name)).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir => return refuse("leaves the output directory with .."),
            Component::RootDir | Component::Prefix(_) => return refuse("is absolute"),
        }
    }
    if path.as_os_str().is_empty() {
        refuse("is not a file name")
    } else {
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_added_and_removed() {
        assert_eq!(
            with_suffix(Path::new("a/x.tar"), SUFFIX),
            Path::new("a/x.tar.rfn")
        );
        assert_eq!(with_suffix(Path::new("dir/"), SUFFIX), Path::new("dir.rfn"));
        assert_eq!(
            without_suffix(Path::new("a/x.tar.rfn")).unwrap(),
            Path::new("a/x.tar")
        );
        assert_eq!(
            without_suffix(Path::new("a/x.tar.lrz")).unwrap(),
            Path::new("a/x.tar")
        );
        for (path, without) in [
            ("a/x.gz", "a/x"),
            ("x.tar.zst", "x.tar"),
            ("x.tgz", "x.tar"),
            ("a.b/x.tbz2", "a.b/x.tar"),
        ] {
            assert_eq!(without_suffix(Path::new(path)).unwrap(), Path::new(without));
        }
        assert!(without_suffix(Path::new("a/x.tar")).is_err());
        assert!(without_suffix(Path::new(".rfn")).is_err());
    }

    #[test]
    fn a_member_without_a_name_is_called_like_its_archive() {
        assert_eq!(of_member(Path::new("a/x.tar.lrz"), b""), b"x.tar");
        assert_eq!(of_member(Path::new("a/x"), b""), b"x");
        assert_eq!(of_member(Path::new("a/x.rfn"), b"na\xff"), b"na\xff");
    }

    #[test]
    fn relative_names_are_always_safe() {
        for path in ["a", "./a/b", "/etc/passwd", "../../x", "a/../../b/c", "d/"] {
            let name = relative_name(Path::new(path)).unwrap();
            assert!(safe_member_path("t", &name).is_ok(), "{path} -> {name:?}");
        }
        assert_eq!(
            relative_name(Path::new("/etc/passwd")).unwrap(),
            b"etc/passwd"
        );
        assert_eq!(relative_name(Path::new("../../x")).unwrap(), b"x");
        let odd = Path::new(OsStr::from_bytes(b"/a\xff/b\xfe"));
        assert_eq!(relative_name(odd).unwrap(), b"a\xff/b\xfe");
        assert!(relative_name(Path::new("..")).is_err());
    }

    #[test]
    fn pipes_are_numbered() {
        let mut taken = BTreeSet::from([b"stdin-3".to_vec()]);
        for name in ["stdin", "stdin-2", "stdin-4"] {
            assert_eq!(of_pipe(&taken), name.as_bytes());
            taken.insert(name.into());
        }
        for path in ["/dev/fd/63", "/proc/self/fd/4", "/dev/stdin"] {
            assert!(is_descriptor(Path::new(path)), "{path}");
        }
        assert!(!is_descriptor(Path::new("/dev/fdx")) && !is_descriptor(Path::new("fd/63")));
    }

    #[test]
    fn unsafe_member_names_are_refused() {
        for name in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/",
            ".",
            "a\0b",
            "a/..",
        ] {
            assert!(safe_member_path("t", name.as_bytes()).is_err(), "{name:?}");
        }
        assert_eq!(safe_member_path("t", b"a/./b").unwrap(), Path::new("a/b"));
        assert_eq!(safe_member_path("t", b"..a").unwrap(), Path::new("..a"));
    }
}
