//! Header groups: everything that describes one entry, parsed.

use std::ops::Range;
use std::sync::Arc;

use crate::entry::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};
use crate::tar::pax::{decimal, decode_base64, parse_pax_time, split_pax, unescape_attribute_name};
use crate::tar::record::{
    DEVICE_MAJOR, DEVICE_MINOR, Field, GID, GROUP, LINK, MAGIC, MODE, MTIME, NAME, PREFIX,
    RECORD_BYTES, Record, SIZE, TYPE, UID, USER, USTAR_MAGIC, field, has_valid_checksum, number,
    padding_bytes, text, unsigned, until_nul,
};
use crate::tar::sparse::{self, MapBlock};

/// The limit for one extended header or one map, in bytes. Linux's paths have at most 4096.
pub(crate) const EXTENSION_BYTES_MAX: usize = 1 << 20;
/// The limit for the number of extended headers before a main header.
const EXTENSIONS_MAX: usize = 6;
pub(crate) const GROUP_BYTES_MAX: usize =
    (EXTENSIONS_MAX + 1) * (EXTENSION_BYTES_MAX + 2 * RECORD_BYTES);

/// The archive format's limit for paths, links, and names of owners and attributes, in bytes.
const TEXT_BYTES_MAX: usize = 65_535;
/// The limit for sizes of files and their data: half of the archive format's address space.
const SIZE_BYTES_MAX: u64 = 1 << 60;

/// What a tar stream has at a position.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Undecided until this many bytes are visible.
    NeedBytes(usize),
    Group(Box<Group>),
    /// A part of the stream of this length that is not an entry, for example a global header.
    Raw(u64),
    /// No valid header.
    Garbage,
}

#[derive(Debug)]
pub(crate) struct Group {
    /// What it describes.
    pub entry: Entry,
    /// The length of the group in bytes.
    pub header_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extension {
    /// Its type flag.
    pub flag: u8,
    /// Where its own record begins in the group.
    pub record_at: usize,
    /// Its data in the group, without padding.
    pub data: Range<usize>,
}

impl Extension {
    pub fn is_flag(flag: u8) -> bool {
        matches!(flag, b'x' | b'L' | b'K')
    }

    /// The offset after its padding.
    pub fn end(&self) -> usize {
        self.data.end.next_multiple_of(RECORD_BYTES)
    }
}

pub(crate) fn record_at(bytes: &[u8], at: usize) -> Option<&Record> {
    bytes.get(at..)?.first_chunk()
}

/// The extended header at an offset of a group; `None` if the record there is a main header. The
/// caller has checked the records, or does not rely on them.
pub(crate) fn extension_at(bytes: &[u8], at: usize) -> Option<Extension> {
    let record = record_at(bytes, at)?;
    let flag = *record.get(TYPE.0)?;
    if !Extension::is_flag(flag) {
        return None;
    }
    let size = usize::try_from(unsigned(field(record, SIZE))?).ok()?;
    let start = at + RECORD_BYTES;
    (size <= EXTENSION_BYTES_MAX).then(|| Extension {
        flag,
        record_at: at,
        data: start..start + size,
    })
}

/// The values of extended headers, and defaults from global ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size_bytes: Option<u64>,
    modified: Option<Timestamp>,
    uid: Option<u64>,
    gid: Option<u64>,
    user: Option<Vec<u8>>,
    group: Option<Vec<u8>>,
    attributes: Vec<ExtendedAttribute>,
    sparse: SparseKeys,
}

/// The records of GNU's pax forms of sparse files.
#[derive(Debug, Clone, Default)]
struct SparseKeys {
    is_version_1_0: bool,
    name: Option<Vec<u8>>,
    size_bytes: Option<u64>,
    /// The pairs of forms 0.0 and 0.1; `None` if neither was found.
    pairs: Option<Vec<(u64, u64)>>,
    /// An offset of form 0.0 that waits for its length.
    offset: Option<u64>,
    is_malformed: bool,
}

impl Overrides {
    /// Adds the records of a pax header. `None` if they are malformed.
    pub fn set_pax(&mut self, records: &[u8]) -> Option<()> {
        let mut rest = records;
        while !rest.is_empty() {
            let (key, value, after) = split_pax(rest)?;
            self.set(key, value)?;
            rest = after;
        }
        Some(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        // An empty value cancels an earlier record.
        let text = || (!value.is_empty()).then(|| value.to_vec());
        match key {
            b"path" => self.path = text(),
            b"linkpath" => self.link = text(),
            b"size" => self.size_bytes = Some(decimal(value)?),
            b"mtime" => self.modified = Some(parse_pax_time(value)?),
            b"uid" => self.uid = Some(decimal(value)?),
            b"gid" => self.gid = Some(decimal(value)?),
            b"uname" => self.user = text(),
            b"gname" => self.group = text(),
            _ => self.set_other(key, value),
        }
        Some(())
    }

    fn set_other(&mut self, key: &[u8], value: &[u8]) {
        if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
            self.set_attribute(unescape_attribute_name(name), value.to_vec());
        } else if let Some(name) = key.strip_prefix(b"LIBARCHIVE.xattr.") {
            // Equal to star's, which follows it.
            if let Some(value) = decode_base64(value) {
                self.set_attribute(unescape_attribute_name(name), value);
            }
        } else if let Some(key) = key.strip_prefix(b"GNU.sparse.") {
            let is_valid = self.sparse.set(key, value).is_some();
            self.sparse.is_malformed |= !is_valid;
        }
    }

    fn set_attribute(&mut self, name: Vec<u8>, value: Vec<u8>) {
        if !is_name(&name) {
            return;
        }
        let place = (self.attributes).binary_search_by(|held| held.name.as_slice().cmp(&name));
        match place {
            Ok(at) => {
                if let Some(held) = self.attributes.get_mut(at) {
                    held.value = value;
                }
            }
            Err(at) => (self.attributes).insert(at, ExtendedAttribute { name, value }),
        }
    }
}

impl SparseKeys {
    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key {
            b"major" => self.is_version_1_0 = decimal(value)? == 1,
            b"name" => self.name = Some(value.to_vec()),
            b"size" | b"realsize" => self.size_bytes = Some(decimal(value)?),
            b"map" => self.pairs = Some(sparse::parse_comma_list(value)?),
            b"offset" => self.offset = Some(decimal(value)?),
            b"numbytes" => {
                let pair = (self.offset.take()?, decimal(value)?);
                self.pairs.get_or_insert_default().push(pair);
            }
            _ => {}
        }
        Some(())
    }
}

/// The latest owners, which many entries share.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    recent: Vec<Arc<Owner>>,
    next: usize,
}

impl Owners {
    const RECENT_MAX: usize = 8;

    fn share(&mut self, uid: u64, gid: u64, user: &[u8], group: &[u8]) -> Arc<Owner> {
        let is_same = |owner: &&Arc<Owner>| {
            owner.uid == uid && owner.gid == gid && owner.user == user && owner.group == group
        };
        if let Some(owner) = self.recent.iter().find(is_same) {
            return Arc::clone(owner);
        }
        let owner = Arc::new(Owner {
            uid,
            gid,
            user: user.to_vec(),
            group: group.to_vec(),
        });
        match self.recent.get_mut(self.next) {
            Some(slot) => *slot = Arc::clone(&owner),
            None => self.recent.push(Arc::clone(&owner)),
        }
        self.next = (self.next + 1) % Self::RECENT_MAX;
        owner
    }
}

/// Parses the beginning of `window`. `globals` holds the values of global headers, and receives a
/// global header's values here.
pub(crate) fn parse(window: &[u8], globals: &mut Overrides, owners: &mut Owners) -> Parsed {
    let Some(first) = record_at(window, 0) else {
        return Parsed::NeedBytes(RECORD_BYTES);
    };
    if !is_header(first) {
        return Parsed::Garbage;
    }
    if first.get(TYPE.0) == Some(&b'g') {
        return parse_global(window, first, globals);
    }
    let mut overrides = globals.clone();
    let mut at = 0;
    for _ in 0..=EXTENSIONS_MAX {
        let Some(record) = record_at(window, at) else {
            return Parsed::NeedBytes(at + RECORD_BYTES);
        };
        if at > 0 && !is_header(record) {
            // The extended headers have no main header.
            return Parsed::Raw(at as u64);
        }
        if !Extension::is_flag(flag(record)) {
            return parse_main(window, at, record, overrides, owners);
        }
        let Some(extension) = extension_at(window, at) else {
            return Parsed::Raw((at + RECORD_BYTES) as u64);
        };
        let Some(data) = window.get(extension.data.clone()) else {
            return Parsed::NeedBytes(extension.end() + RECORD_BYTES);
        };
        if overrides.extend(extension.flag, data).is_none() {
            return Parsed::Raw(extension.end() as u64);
        }
        at = extension.end();
    }
    Parsed::Raw(at as u64)
}

impl Overrides {
    fn extend(&mut self, flag: u8, data: &[u8]) -> Option<()> {
        match flag {
            b'L' => self.path = Some(until_nul(data).to_vec()),
            b'K' => self.link = Some(until_nul(data).to_vec()),
            _ => self.set_pax(data)?,
        }
        Some(())
    }
}

fn parse_global(window: &[u8], record: &Record, globals: &mut Overrides) -> Parsed {
    let size = unsigned(field(record, SIZE)).and_then(|size| usize::try_from(size).ok());
    let Some(size) = size.filter(|size| *size <= EXTENSION_BYTES_MAX) else {
        return Parsed::Raw(RECORD_BYTES as u64);
    };
    let total = RECORD_BYTES + size.next_multiple_of(RECORD_BYTES);
    if window.len() < total {
        return Parsed::NeedBytes(total);
    }
    let mut changed = globals.clone();
    let data = window.get(RECORD_BYTES..RECORD_BYTES + size);
    if data.and_then(|data| changed.set_pax(data)).is_some() {
        *globals = changed;
    }
    Parsed::Raw(total as u64)
}

pub(crate) fn is_header(record: &Record) -> bool {
    // A header's checksum is never zero, as it counts its own field as spaces.
    has_valid_checksum(record)
}

fn flag(record: &Record) -> u8 {
    record.get(TYPE.0).copied().unwrap_or(0)
}

fn kind(flag: u8, path: &[u8]) -> EntryKind {
    match flag {
        // Before POSIX a directory was a file whose name ends in a slash.
        b'0' | 0 | b'7' if path.ends_with(b"/") => EntryKind::Directory,
        b'0' | 0 | b'7' | b'S' => EntryKind::File,
        b'1' => EntryKind::Hardlink,
        b'2' => EntryKind::Symlink,
        b'3' => EntryKind::CharacterDevice,
        b'4' => EntryKind::BlockDevice,
        b'5' => EntryKind::Directory,
        b'6' => EntryKind::Fifo,
        _ => EntryKind::Other,
    }
}

pub(crate) fn plain_path(record: &Record) -> Vec<u8> {
    let name = text(record, NAME);
    let prefix = if field(record, MAGIC).starts_with(USTAR_MAGIC) {
        text(record, prefix_field(record))
    } else {
        &[]
    };
    if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
}

/// The prefix field, whose last bytes hold times in star's headers.
pub(crate) fn prefix_field(record: &Record) -> Field {
    if record.ends_with(b"tar\0") { (PREFIX.0, 131) } else { PREFIX }
}

fn entry_path(mut path: Vec<u8>, kind: EntryKind) -> Vec<u8> {
    if kind == EntryKind::Directory {
        let end = path.iter().rposition(|byte| *byte != b'/');
        path.truncate(end.map_or(path.len(), |at| at + 1));
    }
    path
}

/// Parses the main header at `at`, whose checksum is valid, and what follows it.
fn parse_main(
    window: &[u8],
    at: usize,
    record: &Record,
    mut overrides: Overrides,
    owners: &mut Owners,
) -> Parsed {
    let flag = flag(record);
    let end = at + RECORD_BYTES;
    let stated = overrides.size_bytes.or(unsigned(field(record, SIZE)));
    let Some(stated) = stated.filter(|size| *size <= SIZE_BYTES_MAX) else {
        return Parsed::Raw(end as u64);
    };
    if flag == b'M' {
        // The continuation of a file from another volume is not a file itself.
        return Parsed::Raw(end as u64 + stated + padding_bytes(stated));
    }
    let path = (overrides.sparse.name.take()).or(overrides.path.take());
    let path = path.unwrap_or_else(|| plain_path(record));
    let kind = kind(flag, &path);
    let tail = match parse_tail(window, end, record, flag, stated, &overrides.sparse) {
        Ok(tail) => tail,
        Err(Some(needed)) => return Parsed::NeedBytes(needed),
        // The file's data is not examined: it is not part of the tar's structure.
        Err(None) => return Parsed::Raw(end as u64 + stated + padding_bytes(stated)),
    };
    let header_bytes = end + tail.header_bytes;
    let number_of = |at: Field| unsigned(field(record, at)).unwrap_or(0);
    let device_of = |at: Field| u32::try_from(number_of(at)).unwrap_or(0);
    let seconds = number(field(record, MTIME)).and_then(|value| i64::try_from(value).ok());
    let has_names = field(record, MAGIC).starts_with(b"ustar");
    let name_of = |at: Field| if has_names { text(record, at) } else { &[] };
    let link = || {
        overrides
            .link
            .take()
            .unwrap_or_else(|| text(record, LINK).to_vec())
    };
    let entry = Entry {
        path: entry_path(path, kind),
        kind,
        mode: (number_of(MODE) & 0o7777) as u32,
        owner: owners.share(
            overrides.uid.unwrap_or_else(|| number_of(UID)),
            overrides.gid.unwrap_or_else(|| number_of(GID)),
            overrides.user.as_deref().unwrap_or_else(|| name_of(USER)),
            overrides.group.as_deref().unwrap_or_else(|| name_of(GROUP)),
        ),
        modified: overrides.modified.unwrap_or(Timestamp {
            seconds: seconds.unwrap_or(0),
            nanoseconds: 0,
        }),
        size_bytes: if kind.has_data() { tail.size_bytes } else { 0 },
        content_offset: 0,
        data_ranges: tail.data_ranges,
        is_rebased: false,
        change_stamp: 0,
        link_target: kind.is_link().then(link),
        device: if kind.is_device() {
            (device_of(DEVICE_MAJOR), device_of(DEVICE_MINOR))
        } else {
            (0, 0)
        },
        attributes: overrides.attributes,
        header_recipe: Vec::new(),
    };
    if !has_valid_texts(&entry) {
        let stored_bytes = entry.stored_bytes();
        return Parsed::Raw(header_bytes as u64 + stored_bytes + padding_bytes(stored_bytes));
    }
    Parsed::Group(Box::new(Group {
        entry,
        header_bytes,
    }))
}

/// Whether an archive can hold the texts of an entry; pax records may have any bytes.
fn has_valid_texts(entry: &Entry) -> bool {
    let link = entry.link_target.as_deref().unwrap_or_default();
    let may_be_empty = [link, &entry.owner.user, &entry.owner.group];
    is_name(&entry.path) && (may_be_empty.iter()).all(|text| text.is_empty() || is_name(text))
}

fn is_name(text: &[u8]) -> bool {
    !text.is_empty() && text.len() <= TEXT_BYTES_MAX && !text.contains(&0)
}

struct Tail {
    header_bytes: usize,
    size_bytes: u64,
    data_ranges: Option<Vec<Range<u64>>>,
}

/// Parses the map of a sparse file after the main header. An error is the number of bytes needed,
/// or `None` for a malformed map.
fn parse_tail(
    window: &[u8],
    end: usize,
    record: &Record,
    flag: u8,
    stated: u64,
    keys: &SparseKeys,
) -> Result<Tail, Option<usize>> {
    let is_pax_sparse = keys.is_version_1_0 || keys.pairs.is_some();
    let (header_bytes, size_bytes, pairs) = match flag {
        b'S' => parse_old_map(window, end, record)?,
        b'0' | 0 | b'7' if is_pax_sparse || keys.is_malformed => {
            parse_pax_map(window, end, stated, keys)?
        }
        _ => {
            return Ok(Tail {
                header_bytes: 0,
                size_bytes: stated,
                data_ranges: None,
            });
        }
    };
    let is_possible = size_bytes <= SIZE_BYTES_MAX;
    let data_ranges = sparse::data_ranges(pairs, size_bytes).filter(|_| is_possible);
    let data_ranges = data_ranges.ok_or(None)?;
    let stored_bytes: u64 = (data_ranges.iter())
        .map(|range| range.end - range.start)
        .sum();
    let stated_data = match flag {
        b'S' => Some(stated),
        _ => stated.checked_sub(header_bytes as u64),
    };
    if stated_data != Some(stored_bytes) {
        return Err(None);
    }
    Ok(Tail {
        header_bytes,
        size_bytes,
        data_ranges: Some(data_ranges),
    })
}

type Map = (usize, u64, Vec<(u64, u64)>);

fn parse_old_map(window: &[u8], end: usize, record: &Record) -> Result<Map, Option<usize>> {
    let mut at = end;
    let mut is_extended = sparse::is_extended(record);
    while is_extended {
        if at - end >= EXTENSION_BYTES_MAX {
            return Err(None);
        }
        let extension = window.get(at..at + RECORD_BYTES);
        let extension = extension.ok_or(Some(at + RECORD_BYTES))?;
        is_extended = sparse::continues(extension);
        at += RECORD_BYTES;
    }
    let extensions = window.get(end..at).unwrap_or_default();
    let pairs = sparse::old_pairs(record, extensions).ok_or(None)?;
    let size_bytes = sparse::old_size_bytes(record).ok_or(None)?;
    Ok((at - end, size_bytes, pairs))
}

fn parse_pax_map(
    window: &[u8],
    end: usize,
    stated: u64,
    keys: &SparseKeys,
) -> Result<Map, Option<usize>> {
    let size_bytes = keys.size_bytes.filter(|_| !keys.is_malformed).ok_or(None)?;
    if !keys.is_version_1_0 {
        return Ok((0, size_bytes, keys.pairs.clone().unwrap_or_default()));
    }
    let limit = usize::try_from(stated)
        .unwrap_or(usize::MAX)
        .min(EXTENSION_BYTES_MAX);
    let available = window.get(end..).unwrap_or_default();
    let available = available.get(..limit).unwrap_or(available);
    match sparse::parse_map_block(available, limit) {
        MapBlock::Map { pairs, block_bytes } => Ok((block_bytes, size_bytes, pairs)),
        MapBlock::Malformed => Err(None),
        MapBlock::Cut if available.len() >= limit => Err(None),
        // Doubling, so that long maps are not parsed too often.
        MapBlock::Cut => Err(Some(
            end + (2 * available.len()).max(RECORD_BYTES).min(limit),
        )),
    }
}
