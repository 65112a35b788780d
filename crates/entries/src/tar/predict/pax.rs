//! Which pax records a program writes for an entry, in which order.

use std::ops::Range;

use crate::entry::{Entry, ExtendedAttribute};
use crate::tar::pax::{encode_base64, escape_attribute_name, pax_time, push_pax, split_pax};
use crate::tar::record::{GROUP, OCTAL_7_MAX, OCTAL_11_MAX, USER};

const ORDER_MAX: usize = 64;

/// The keys of records whose values follow from the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

type KeySet = u32;

#[derive(Debug, Clone, PartialEq, Eq)]
enum RecordPlace {
    /// A key whose value follows from the entry.
    Derived(Key),
    /// Any other key.
    Other(Vec<u8>),
}

impl RecordPlace {
    fn new(key: Option<Key>, name: &[u8]) -> RecordPlace {
        key.map_or_else(|| RecordPlace::Other(name.to_vec()), RecordPlace::Derived)
    }

    fn is(&self, key: Option<Key>, name: &[u8]) -> bool {
        match self {
            RecordPlace::Derived(held) => key == Some(*held),
            RecordPlace::Other(held) => key.is_none() && held == name,
        }
    }
}

/// GNU tar's order, with the keys of other programs.
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
    fn from_bytes(key: &[u8]) -> Option<Key> {
        Some(match key {
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
            _ => return None,
        })
    }

    fn bit(self) -> KeySet {
        1 << self as u32
    }

    /// Whether a program may write it although the plain header can hold the value.
    fn is_kept(self) -> bool {
        use Key::{Attributes, SparseMajor, SparseMinor, SparseName, SparseSize};
        !matches!(
            self,
            Attributes | SparseMajor | SparseMinor | SparseName | SparseSize
        )
    }

    fn name(self) -> &'static [u8] {
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
        }
    }
}

const STAR_ATTRIBUTE: &[u8] = b"SCHILY.xattr.";
const LIBARCHIVE_ATTRIBUTE: &[u8] = b"LIBARCHIVE.xattr.";

/// What the records of an entry are made from, besides the entry.
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

/// A record whose value does not follow from the entry, as in the last header.
#[derive(Debug, Clone)]
struct Other {
    key: Vec<u8>,
    value: Vec<u8>,
    /// Whether it was equal to the modification time.
    is_modified: bool,
}

#[derive(Debug, Clone)]
pub(super) struct PaxStyle {
    order: Vec<RecordPlace>,
    /// Keys that occur even if the plain header can hold the value.
    always: KeySet,
    others: Vec<Other>,
    /// Text that is not ASCII goes into records.
    has_non_ascii: bool,
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
            order: FIRST_ORDER.map(RecordPlace::Derived).to_vec(),
            always: 0,
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
        for slot in &self.order {
            match slot {
                RecordPlace::Derived(Key::Attributes) => {
                    self.push_attributes(&mut records, &entry.attributes);
                }
                RecordPlace::Derived(key) => {
                    let is_kept = self.always & key.bit() != 0;
                    if is_kept || self.is_needed(*key, entry, facts) {
                        self.push_derived(&mut records, *key, entry, facts);
                    }
                }
                RecordPlace::Other(name) => self.push_other(&mut records, name, entry),
            }
        }
        records
    }

    fn push_other(&self, records: &mut Vec<u8>, name: &[u8], entry: &Entry) {
        let other = self.others.iter().find(|other| other.key == name);
        match other {
            Some(other) if other.is_modified => push_pax(records, name, &self.time(entry)),
            Some(other) => push_pax(records, name, &other.value),
            None => {}
        }
    }

    /// Whether it is obvious, without looking at each key, that there are no records.
    fn is_plain(&self, entry: &Entry, facts: Facts) -> bool {
        self.others.is_empty()
            && self.always == 0
            && entry.attributes.is_empty()
            && entry.modified.nanoseconds == 0
            && !facts.is_path_long
            && !facts.is_link_long
            && !self.has_records
            && !facts.is_posix
    }

    fn is_needed(&self, key: Key, entry: &Entry, facts: Facts) -> bool {
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
            Key::Attributes => false,
        }
    }

    fn push_derived(&self, records: &mut Vec<u8>, key: Key, entry: &Entry, facts: Facts) {
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
            Key::Modified => push_pax(records, key.name(), &self.time(entry)),
            Key::Attributes => {}
        }
    }

    fn time(&self, entry: &Entry) -> Vec<u8> {
        let mut text = pax_time(entry.modified);
        if self.has_point && entry.modified.nanoseconds == 0 {
            text.extend_from_slice(b".0");
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
        if self.is_descending {
            attributes.iter().rev().for_each(&mut push)
        } else {
            attributes.iter().for_each(&mut push)
        }
    }

    /// Learns from the records of an entry, which are empty if it has no pax header.
    pub fn learn(&mut self, entry: &Entry, facts: Facts, records: &[u8]) {
        if records.is_empty() && self.always == 0 && !self.has_records {
            return;
        }
        let modified = self.time(entry);
        let mut keys = 0;
        let mut others = 0;
        let mut places = 0;
        let mut at = 0;
        let mut last: &[u8] = &[];
        let mut rest = records;
        while let Some((name, value, after)) = split_pax(rest) {
            rest = after;
            let key = Key::from_bytes(name);
            match key {
                Some(Key::Modified) if entry.modified.nanoseconds == 0 => {
                    self.has_point = value.ends_with(b".0");
                }
                Some(_) => {}
                None => {
                    self.learn_other(others, name, value, value == modified);
                    others += 1;
                }
            }
            let is_repeated = match key {
                Some(key) => Key::from_bytes(last) == Some(key),
                None => name == last,
            };
            if !is_repeated {
                at = self.learn_place(at, key, name);
                places += 1;
            }
            keys |= key.map_or(0, Key::bit);
            last = name;
            if places > ORDER_MAX {
                // No real program writes this many; they would make each prediction slow.
                *self = PaxStyle::default();
                return;
            }
        }
        self.others.truncate(others);
        self.learn_attributes(records, &entry.attributes);
        self.learn_presence(keys, entry, facts);
        if self.order.len() > 2 * ORDER_MAX {
            let others = &self.others;
            let is_other = |name: &[u8]| others.iter().any(|other| other.key == name);
            (self.order).retain(|slot| match slot {
                RecordPlace::Derived(_) => true,
                RecordPlace::Other(name) => is_other(name),
            });
        }
    }

    fn learn_other(&mut self, number: usize, key: &[u8], value: &[u8], is_modified: bool) {
        match self.others.get_mut(number) {
            Some(held) => {
                held.key.clear();
                held.key.extend_from_slice(key);
                held.value.clear();
                held.value.extend_from_slice(value);
                held.is_modified = is_modified;
            }
            None => self.others.push(Other {
                key: key.to_vec(),
                value: value.to_vec(),
                is_modified,
            }),
        }
    }

    /// Gives a key a place at or after `at` in the order. Returns the place after it.
    fn learn_place(&mut self, at: usize, key: Option<Key>, name: &[u8]) -> usize {
        let is_key = |slot: &RecordPlace| slot.is(key, name);
        let later = self.order.iter().skip(at).position(is_key);
        if let Some(distance) = later {
            return at + distance + 1;
        }
        let mut at = at;
        if let Some(place) = self.order.iter().position(is_key) {
            self.order.remove(place);
            at -= 1;
        }
        self.order.insert(at, RecordPlace::new(key, name));
        at + 1
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

    fn learn_presence(&mut self, keys: KeySet, entry: &Entry, facts: Facts) {
        self.has_records = true;
        let has = |key: Key| keys & key.bit() != 0;
        let texts = [
            (Key::Path, facts.path),
            (Key::Link, facts.link),
            (Key::User, &entry.owner.user),
            (Key::Group, &entry.owner.group),
        ];
        for (key, text) in texts {
            let is_elsewhere = key == Key::Path && has(Key::SparseName);
            if !text.is_ascii() && !is_elsewhere {
                self.has_non_ascii = has(key);
            }
        }
        for key in FIRST_ORDER.into_iter().filter(|key| key.is_kept()) {
            if !self.is_needed(key, entry, facts) {
                self.always = self.always & !key.bit() | keys & key.bit();
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<Range<usize>> {
    let at = (haystack.windows(needle.len())).position(|window| window == needle)?;
    Some(at..at + needle.len())
}
