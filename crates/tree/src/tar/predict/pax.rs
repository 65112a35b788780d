//! Which pax records a program writes for an entry, in which order.

use std::ops::Range;

use crate::entry::{Entry, ExtendedAttribute};
use crate::tar::pax::{encode_base64, escape_attribute_name, pax_time, push_pax, split_pax};
use crate::tar::record::{GROUP, OCTAL_7_MAX, OCTAL_11_MAX, USER};

/// The most keys whose order is remembered.
const ORDER_MAX: usize = 64;

/// The keys of records. Values of all but the last are derived from the entry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    SparseMajor,
    SparseMinor,
    SparseName,
    SparseSize,
    Path,
    Link,
    User,
    Group,
    Uid,
    Gid,
    Size,
    Modified,
    /// All extended attributes, in one or two records each.
    Attributes,
    /// Any other key.
    Other(Vec<u8>),
}

/// The order of GNU tar, with the keys that others have.
const FIRST_ORDER: [Key; 13] = [
    Key::SparseMajor,
    Key::SparseMinor,
    Key::SparseName,
    Key::SparseSize,
    Key::Link,
    Key::Path,
    Key::User,
    Key::Group,
    Key::Uid,
    Key::Gid,
    Key::Size,
    Key::Modified,
    Key::Attributes,
];

impl Key {
    fn of(key: &[u8]) -> Key {
        match key {
            b"GNU.sparse.major" => Key::SparseMajor,
            b"GNU.sparse.minor" => Key::SparseMinor,
            b"GNU.sparse.name" => Key::SparseName,
            b"GNU.sparse.realsize" => Key::SparseSize,
            b"path" => Key::Path,
            b"linkpath" => Key::Link,
            b"uname" => Key::User,
            b"gname" => Key::Group,
            b"uid" => Key::Uid,
            b"gid" => Key::Gid,
            b"size" => Key::Size,
            b"mtime" => Key::Modified,
            _ if key.starts_with(STAR_ATTRIBUTE) || key.starts_with(LIBARCHIVE_ATTRIBUTE) => {
                Key::Attributes
            }
            _ => Key::Other(key.to_vec()),
        }
    }

    /// Whether a program may write it although the plain header can hold the value.
    fn is_kept(&self) -> bool {
        use Key::{Attributes, Other, SparseMajor, SparseMinor, SparseName, SparseSize};
        let is_special = matches!(self, Attributes | Other(_));
        !is_special && !matches!(self, SparseMajor | SparseMinor | SparseName | SparseSize)
    }

    fn name(&self) -> &[u8] {
        match self {
            Key::SparseMajor => b"GNU.sparse.major",
            Key::SparseMinor => b"GNU.sparse.minor",
            Key::SparseName => b"GNU.sparse.name",
            Key::SparseSize => b"GNU.sparse.realsize",
            Key::Path => b"path",
            Key::Link => b"linkpath",
            Key::User => b"uname",
            Key::Group => b"gname",
            Key::Uid => b"uid",
            Key::Gid => b"gid",
            Key::Size => b"size",
            Key::Modified => b"mtime",
            Key::Attributes => b"",
            Key::Other(key) => key,
        }
    }
}

const STAR_ATTRIBUTE: &[u8] = b"SCHILY.xattr.";
const LIBARCHIVE_ATTRIBUTE: &[u8] = b"LIBARCHIVE.xattr.";

/// What the records of an entry are made of, besides the entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    /// The path and the link as the header has them.
    pub path: &'a [u8],
    pub link: &'a [u8],
    /// The number of bytes of data and map.
    pub stored_bytes: u64,
    /// Whether the plain header cannot hold the path or the link.
    pub is_path_long: bool,
    pub is_link_long: bool,
    /// Whether the header is POSIX tar's, in which large numbers go into records.
    pub is_posix: bool,
}

/// A record whose value is not derived from the entry, as the last header had it.
#[derive(Debug, Clone)]
struct Other {
    key: Vec<u8>,
    value: Vec<u8>,
    /// Whether it was equal to the time of modification.
    is_modified: bool,
}

/// How a program writes pax records.
#[derive(Debug)]
pub(super) struct PaxStyle {
    order: Vec<Key>,
    /// Keys that are there also if the plain header can hold the value.
    always: Vec<Key>,
    others: Vec<Other>,
    /// Text that is not ASCII goes into records.
    has_non_ascii: bool,
    /// Whether there was a pax header.
    has_records: bool,
    /// Whole seconds end in `.0`.
    has_point: bool,
    /// Attributes are in libarchive's records, too.
    has_libarchive: bool,
    /// Attributes are in descending order.
    is_descending: bool,
}

impl Default for PaxStyle {
    fn default() -> Self {
        PaxStyle {
            order: FIRST_ORDER.to_vec(),
            always: Vec::new(),
            others: Vec::new(),
            has_non_ascii: true,
            has_records: false,
            has_point: false,
            has_libarchive: false,
            is_descending: false,
        }
    }
}

impl PaxStyle {
    /// The predicted records of an entry; empty if there is no pax header.
    pub fn records(&self, entry: &Entry, facts: Facts) -> Vec<u8> {
        let mut records = Vec::new();
        if self.is_plain(entry, facts) {
            return records;
        }
        for key in &self.order {
            match key {
                Key::Attributes => self.push_attributes(&mut records, &entry.attributes),
                Key::Other(key) => {
                    let other = self.others.iter().find(|other| other.key == *key);
                    if let Some(other) = other {
                        match other.is_modified {
                            true => push_pax(&mut records, key, self.time(entry).as_bytes()),
                            false => push_pax(&mut records, key, &other.value),
                        }
                    }
                }
                _ if self.is_needed(key, entry, facts) || self.always.contains(key) => {
                    self.push_derived(&mut records, key, entry, facts);
                }
                _ => {}
            }
        }
        records
    }

    /// Whether it is plain without looking at each key that there are no records.
    fn is_plain(&self, entry: &Entry, facts: Facts) -> bool {
        self.others.is_empty()
            && self.always.is_empty()
            && entry.attributes.is_empty()
            && entry.modified.nanoseconds == 0
            && !facts.is_path_long
            && !facts.is_link_long
            && !self.has_records
            && !facts.is_posix
    }

    fn is_needed(&self, key: &Key, entry: &Entry, facts: Facts) -> bool {
        let owner = &entry.owner;
        let has_non_ascii = self.has_non_ascii && self.has_records && facts.is_posix;
        let is_odd = |text: &[u8]| has_non_ascii && !text.is_ascii();
        let is_sparse = entry.data_ranges.is_some() && facts.is_posix;
        match key {
            Key::SparseMajor | Key::SparseMinor | Key::SparseName | Key::SparseSize => is_sparse,
            Key::Path => !is_sparse && (facts.is_path_long || is_odd(facts.path)),
            Key::Link => facts.is_link_long || is_odd(facts.link),
            Key::User => (owner.user.len() > USER.1 && facts.is_posix) || is_odd(&owner.user),
            Key::Group => (owner.group.len() > GROUP.1 && facts.is_posix) || is_odd(&owner.group),
            Key::Uid => owner.uid > OCTAL_7_MAX && facts.is_posix,
            Key::Gid => owner.gid > OCTAL_7_MAX && facts.is_posix,
            Key::Size => facts.stored_bytes > OCTAL_11_MAX && facts.is_posix,
            Key::Modified => {
                let seconds = u64::try_from(entry.modified.seconds);
                let has_room = seconds.is_ok_and(|seconds| seconds <= OCTAL_11_MAX);
                entry.modified.nanoseconds != 0 || (!has_room && facts.is_posix)
            }
            Key::Attributes | Key::Other(_) => false,
        }
    }

    fn push_derived(&self, records: &mut Vec<u8>, key: &Key, entry: &Entry, facts: Facts) {
        let number = |records: &mut Vec<u8>, number: u64| {
            push_pax(records, key.name(), number.to_string().as_bytes());
        };
        match key {
            Key::SparseMajor => push_pax(records, key.name(), b"1"),
            Key::SparseMinor => push_pax(records, key.name(), b"0"),
            Key::SparseName | Key::Path => push_pax(records, key.name(), facts.path),
            Key::SparseSize => number(records, entry.size_bytes),
            Key::Link => push_pax(records, key.name(), facts.link),
            Key::User => push_pax(records, key.name(), &entry.owner.user),
            Key::Group => push_pax(records, key.name(), &entry.owner.group),
            Key::Uid => number(records, entry.owner.uid),
            Key::Gid => number(records, entry.owner.gid),
            Key::Size => number(records, facts.stored_bytes),
            Key::Modified => push_pax(records, key.name(), self.time(entry).as_bytes()),
            Key::Attributes | Key::Other(_) => {}
        }
    }

    fn time(&self, entry: &Entry) -> String {
        let mut text = pax_time(entry.modified);
        if self.has_point && entry.modified.nanoseconds == 0 {
            text.push_str(".0");
        }
        text
    }

    fn push_attributes(&self, records: &mut Vec<u8>, attributes: &[ExtendedAttribute]) {
        let mut push = |attribute: &ExtendedAttribute| {
            let name = escape_attribute_name(&attribute.name);
            if self.has_libarchive {
                let key = [LIBARCHIVE_ATTRIBUTE, &name].concat();
                push_pax(records, &key, &encode_base64(&attribute.value));
            }
            push_pax(records, &[STAR_ATTRIBUTE, &name].concat(), &attribute.value);
        };
        match self.is_descending {
            true => attributes.iter().rev().for_each(&mut push),
            false => attributes.iter().for_each(&mut push),
        }
    }

    /// Takes note of the records of an entry; none if it has no pax header.
    pub fn learn(&mut self, entry: &Entry, facts: Facts, records: &[u8]) {
        let mut keys = Vec::new();
        self.others.clear();
        let mut rest = records;
        while let Some((key, value, after)) = split_pax(rest) {
            rest = after;
            let key = Key::of(key);
            self.learn_value(&key, value, entry);
            if keys.last() != Some(&key) {
                keys.push(key);
            }
            if keys.len() > ORDER_MAX {
                // No program writes that many; they would make each prediction slow.
                *self = PaxStyle::default();
                return;
            }
        }
        self.learn_attributes(records, &entry.attributes);
        self.learn_presence(&keys, entry, facts);
        self.learn_order(&keys);
    }

    fn learn_value(&mut self, key: &Key, value: &[u8], entry: &Entry) {
        match key {
            Key::Modified if entry.modified.nanoseconds == 0 => {
                self.has_point = value.ends_with(b".0");
            }
            Key::Other(key) => self.others.push(Other {
                key: key.clone(),
                value: value.to_vec(),
                is_modified: value == self.time(entry).as_bytes(),
            }),
            _ => {}
        }
    }

    fn learn_attributes(&mut self, records: &[u8], attributes: &[ExtendedAttribute]) {
        let place = |wanted: &[u8]| find(records, wanted);
        let (Some(first), Some(last)) = (attributes.first(), attributes.last()) else {
            return;
        };
        self.has_libarchive = place(LIBARCHIVE_ATTRIBUTE).is_some();
        let key = |attribute: &ExtendedAttribute| {
            [
                STAR_ATTRIBUTE,
                &escape_attribute_name(&attribute.name),
                b"=",
            ]
            .concat()
        };
        if attributes.len() > 1 {
            self.is_descending = place(&key(last)).is_some_and(|range| {
                place(&key(first)).is_some_and(|first| range.start < first.start)
            });
        }
    }

    fn learn_presence(&mut self, keys: &[Key], entry: &Entry, facts: Facts) {
        if keys.is_empty() && self.always.is_empty() && !self.has_records {
            return;
        }
        self.has_records = true;
        let texts = [
            (Key::Path, facts.path),
            (Key::Link, facts.link),
            (Key::User, &entry.owner.user),
            (Key::Group, &entry.owner.group),
        ];
        for (key, text) in texts {
            let is_elsewhere = key == Key::Path && keys.contains(&Key::SparseName);
            if !text.is_ascii() && !is_elsewhere {
                self.has_non_ascii = keys.contains(&key);
            }
        }
        for key in FIRST_ORDER.iter().filter(|key| key.is_kept()) {
            if self.is_needed(key, entry, facts) {
                continue;
            }
            let place = self.always.iter().position(|held| held == key);
            match (place, keys.contains(key)) {
                (None, true) => self.always.push(key.clone()),
                (Some(place), false) => {
                    self.always.remove(place);
                }
                _ => {}
            }
        }
    }

    fn learn_order(&mut self, keys: &[Key]) {
        let mut at = 0;
        for key in keys {
            let place = self.order.iter().position(|held| held == key);
            match place {
                Some(place) if place >= at => at = place + 1,
                Some(place) => {
                    self.order.remove(place);
                    self.order.insert(at - 1, key.clone());
                }
                None => {
                    self.order.insert(at, key.clone());
                    at += 1;
                }
            }
        }
        if self.order.len() > ORDER_MAX {
            (self.order).retain(|key| !matches!(key, Key::Other(_)) || keys.contains(key));
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<Range<usize>> {
    let at = (haystack.windows(needle.len())).position(|window| window == needle)?;
    Some(at..at + needle.len())
}
