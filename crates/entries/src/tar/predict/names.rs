//! How programs put paths into the fields of a header.

use std::borrow::Cow;

use crate::tar::record::{NAME, PREFIX};

/// Where a path that is too long for the name field is split into prefix and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// As late as the prefix allows: GNU tar, Go, git.
    Longest,
    /// As early as the name allows: Python, bsdtar.
    Shortest,
}

impl Split {
    pub fn apply(self, path: &[u8]) -> Option<(&[u8], &[u8])> {
        let is_slash = |at: &usize| path.get(*at) == Some(&b'/');
        let last = path.len().checked_sub(2)?.min(PREFIX.1);
        let first = path.len().saturating_sub(NAME.1 + 1).max(1);
        let at = match self {
            Split::Longest => (first..=last).rev().find(is_slash),
            Split::Shortest => (first..=last).find(is_slash),
        }?;
        Some((path.get(..at)?, path.get(at + 1..)?))
    }
}

/// What a program writes into a field of the plain header if the text is in a pax record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ascii {
    /// The text unchanged: GNU tar, bsdtar.
    Bytes,
    /// `?` for every character that is not ASCII: Python.
    QuestionMarks,
    /// Without non-ASCII characters: Go.
    Dropped,
}

impl Ascii {
    pub const ALL: [Ascii; 3] = [Ascii::Bytes, Ascii::QuestionMarks, Ascii::Dropped];

    pub fn apply(self, text: &[u8]) -> Cow<'_, [u8]> {
        if self == Ascii::Bytes || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut plain = Vec::with_capacity(text.len());
        for chunk in text.utf8_chunks() {
            for character in chunk.valid().chars() {
                match u8::try_from(character).ok().filter(u8::is_ascii) {
                    Some(byte) => plain.push(byte),
                    None => self.replace(&mut plain, 1),
                }
            }
            self.replace(&mut plain, chunk.invalid().len());
        }
        Cow::Owned(plain)
    }

    fn replace(self, plain: &mut Vec<u8>, count: usize) {
        if self == Ascii::QuestionMarks {
            plain.resize(plain.len() + count, b'?');
        }
    }
}

/// Names made by inserting a component before the last one of the entry's path, as in pax headers
/// (`dir/PaxHeaders.0/file`) and sparse files (`dir/GNUSparseFile.0/file`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inserted {
    component: Vec<u8>,
    /// Whether paths without a directory get `./` before the component.
    has_dot: bool,
    /// Whether the last component of a path that ends in a slash is empty.
    keeps_slash: bool,
}

impl Inserted {
    pub fn apply(&self, path: &[u8]) -> Vec<u8> {
        let (directory, base) = cut(path, self.keeps_slash);
        let mut name = Vec::with_capacity(NAME.1);
        match directory {
            Some(directory) => {
                name.extend_from_slice(directory);
                name.push(b'/');
            }
            None if self.has_dot => name.extend_from_slice(b"./"),
            None => {}
        }
        name.extend_from_slice(&self.component);
        if !base.is_empty() {
            name.push(b'/');
            name.extend_from_slice(base);
        }
        name
    }

    /// The form that makes `name` from `path`, if there is one.
    pub fn find(name: &[u8], path: &[u8]) -> Option<Inserted> {
        [false, true].into_iter().find_map(|keeps_slash| {
            let (directory, _) = cut(path, keeps_slash);
            let (has_dot, rest) = match directory {
                Some(directory) => (true, name.strip_prefix(directory)?.strip_prefix(b"/")?),
                None => match name.strip_prefix(b"./") {
                    Some(rest) => (true, rest),
                    None => (false, name),
                },
            };
            let component = rest.split(|byte| *byte == b'/').next()?.to_vec();
            let form = Inserted {
                component,
                has_dot,
                keeps_slash,
            };
            (!form.component.is_empty() && form.apply(path) == name).then_some(form)
        })
    }

    /// Learns what this form tells: a path with a directory says nothing about the dot, a path
    /// without a trailing slash nothing about slashes.
    pub fn refine(&self, found: Inserted, path: &[u8]) -> Inserted {
        let has_directory = cut(path, found.keeps_slash).0.is_some();
        Inserted {
            has_dot: if has_directory { self.has_dot } else { found.has_dot },
            keeps_slash: if path.ends_with(b"/") { found.keeps_slash } else { self.keeps_slash },
            component: found.component,
        }
    }
}

fn cut(path: &[u8], keeps_slash: bool) -> (Option<&[u8]>, &[u8]) {
    let path = match path.strip_suffix(b"/") {
        Some(rest) if !keeps_slash && !rest.is_empty() => rest,
        _ => path,
    };
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (path.get(..at), path.get(at + 1..).unwrap_or_default()),
        None => (None, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_where_both_parts_fit() {
        let path = [
            &b"a/"[..],
            &[b'b'; 60],
            b"/",
            &[b'c'; 60],
            b"/",
            &[b'd'; 20],
        ]
        .concat();
        let (prefix, name) = Split::Longest.apply(&path).unwrap();
        assert_eq!((prefix.len(), name.len()), (123, 20));
        let (prefix, name) = Split::Shortest.apply(&path).unwrap();
        assert_eq!((prefix.len(), name.len()), (62, 81));
        // A trailing slash is not a place to split.
        let directory = [&b"a/"[..], &[b'b'; 99], b"/"].concat();
        let (prefix, name) = Split::Longest.apply(&directory).unwrap();
        assert_eq!((prefix.len(), name.len()), (1, 100));
        assert_eq!(Split::Longest.apply(&[b'x'; 101]), None);
        assert_eq!(Split::Longest.apply(b""), None);
    }

    #[test]
    fn inserted_components_are_found_again() {
        for (name, path) in [
            (&b"./PaxHeaders/."[..], &b"./"[..]),
            (b"./PaxHeaders.77/a", b"a"),
            (b"d/PaxHeaders.77/a", b"d/a"),
            (b"d/PaxHeaders.0", b"d/"),
            (b"PaxHeader/a", b"a/"),
        ] {
            let form = Inserted::find(name, path).unwrap();
            assert_eq!(form.apply(path), name);
        }
        assert_eq!(Inserted::find(b"././@PaxHeader", b"d/a"), None);
    }

    #[test]
    fn ascii_forms_replace_characters_not_bytes() {
        let text = "gröb\u{10348}".as_bytes();
        assert_eq!(&*Ascii::QuestionMarks.apply(text), b"gr?b?");
        assert_eq!(&*Ascii::Dropped.apply(text), b"grb");
        assert_eq!(&*Ascii::Bytes.apply(text), text);
        assert_eq!(&*Ascii::QuestionMarks.apply(b"\xffx"), b"?x");
    }
}
