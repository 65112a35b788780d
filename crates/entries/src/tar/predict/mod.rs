//! The predictor: makes the header group of an entry from earlier groups.
//!
//! First it predicts the extended headers and their data ([`Predictor::sections`]), which a recipe
//! may change. Then it makes all records around the data ([`Predictor::assemble`]), each from the
//! last record of the same type, with new values in the same form.

mod names;
mod numbers;
mod pax;

use std::borrow::Cow;

use crate::entry::{Entry, EntryKind};
use crate::tar::canonical::type_flag;
use crate::tar::group::{extension_at, plain_path, prefix_field, record_at};
use crate::tar::pax::split_pax;
use crate::tar::predict::names::{Ascii, Inserted, Split};
use crate::tar::predict::numbers::{set_checksum, set_number, set_text};
use crate::tar::predict::pax::{Facts, PaxStyle};
use crate::tar::record::{
    DEVICE_MAJOR, DEVICE_MINOR, GID, GROUP, LINK, MAGIC, MODE, MTIME, NAME, OCTAL_7_MAX,
    OCTAL_11_MAX, PREFIX, RECORD_BYTES, Record, SIZE, TYPE, UID, USER, USTAR_MAGIC, field, number,
    put_text, text,
};
use crate::tar::sparse;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub flag: u8,
    pub data: Vec<u8>,
}

/// The number of types of main headers, whose latest records are remembered.
const CLASSES: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LongPath {
    /// GNU tar's long names.
    Gnu,
    /// Always as pax records.
    Pax,
    /// Split into prefix and name, and as pax records if that is not possible.
    Split(Split),
}

/// A header that carries an extended one.
#[derive(Debug, Clone)]
struct Carrier {
    record: Record,
    /// How its name follows from the entry's path; `None` for a fixed name.
    inserted: Option<Inserted>,
    follows: Vec<Followed>,
}

/// A field of a carrier that may have the value of the main header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    Mode,
    Uid,
    Gid,
    Modified,
    User,
    Group,
}

#[derive(Debug, Clone)]
pub(crate) struct Predictor {
    mains: [Option<Box<Record>>; CLASSES],
    last_class: usize,
    carriers: Vec<Carrier>,
    pax: PaxStyle,
    long_path: Option<LongPath>,
    ascii: Ascii,
    /// The longest name of a plain header.
    name_max: usize,
    has_directory_slash: bool,
    rounds_times: bool,
    /// Whether links in pax records leave a mark in the main header, as in libarchive.
    has_link_marks: bool,
    sparse_name: Option<Inserted>,
}

impl Default for Predictor {
    fn default() -> Self {
        Predictor {
            mains: [const { None }; CLASSES],
            last_class: 0,
            carriers: Vec::new(),
            pax: PaxStyle::default(),
            long_path: None,
            ascii: Ascii::Bytes,
            name_max: NAME.1,
            has_directory_slash: true,
            rounds_times: false,
            has_link_marks: false,
            sparse_name: None,
        }
    }
}

fn class(entry: &Entry) -> usize {
    match entry.kind {
        EntryKind::File if entry.data_ranges.is_some() => 1,
        EntryKind::File => 0,
        EntryKind::Directory => 2,
        EntryKind::Symlink => 3,
        EntryKind::Hardlink => 4,
        EntryKind::CharacterDevice => 5,
        EntryKind::BlockDevice => 6,
        EntryKind::Fifo => 7,
        EntryKind::Other | EntryKind::Raw | EntryKind::Removed => 8,
    }
}

/// The record that the first prediction starts from: GNU tar's.
fn first_record() -> Record {
    let mut record = [0; RECORD_BYTES];
    for (at, value) in [
        (MODE, &b"0000000"[..]),
        (UID, b"0000000"),
        (GID, b"0000000"),
        (SIZE, b"00000000000"),
        (MTIME, b"00000000000"),
        (crate::tar::record::CHECKSUM, b"000000\0 "),
        (TYPE, b"0"),
        (MAGIC, b"ustar  "),
    ] {
        put_text(&mut record, at, value);
    }
    record
}

/// What the extended headers of a group hold, so that the plain header need not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Extended {
    path: bool,
    link: bool,
    size: bool,
    modified: bool,
    uid: bool,
    gid: bool,
    user: bool,
    group: bool,
    /// A sparse file in pax form 1.0, and in any pax form.
    sparse_1_0: bool,
    sparse_pax: bool,
}

impl Extended {
    fn add(&mut self, flag: u8, data: &[u8]) {
        match flag {
            b'L' => self.path = true,
            b'K' => self.link = true,
            _ => {
                let mut rest = data;
                while let Some((key, _, after)) = split_pax(rest) {
                    rest = after;
                    self.add_key(key);
                }
            }
        }
    }

    fn add_key(&mut self, key: &[u8]) {
        match key {
            b"path" => self.path = true,
            b"linkpath" => self.link = true,
            b"size" => self.size = true,
            b"mtime" => self.modified = true,
            b"uid" => self.uid = true,
            b"gid" => self.gid = true,
            b"uname" => self.user = true,
            b"gname" => self.group = true,
            b"GNU.sparse.major" => {
                self.sparse_1_0 = true;
                self.sparse_pax = true;
            }
            key => self.sparse_pax |= key.starts_with(b"GNU.sparse."),
        }
    }
}

impl Predictor {
    /// Forgets everything, so that the next prediction depends only on its entry.
    pub fn restart(&mut self) {
        *self = Predictor::default();
    }

    pub fn sections(&self, entry: &Entry) -> Vec<Section> {
        let path = self.header_path(entry);
        let link = entry.link_target.as_deref().unwrap_or_default();
        let is_posix = self.is_posix(entry);
        let is_gnu = !is_posix && self.long_path.is_none_or(|form| form == LongPath::Gnu);
        let is_long = path.len() > self.name_max;
        let is_link_long = link.len() > self.name_max;
        let mut sections = Vec::new();
        let mut push_long = |flag, text: &[u8]| {
            let data = [text, b"\0"].concat();
            sections.push(Section { flag, data });
        };
        if is_gnu && is_link_long {
            push_long(b'K', link);
        }
        if is_gnu && is_long {
            push_long(b'L', &path);
        }
        let needs_record = match self.long_path(is_posix) {
            LongPath::Gnu => false,
            LongPath::Pax => true,
            LongPath::Split(split) => is_long && split.apply(&path).is_none(),
        };
        let facts = Facts {
            path: &path,
            link,
            stored_bytes: self.stored_bytes(entry, is_posix),
            is_path_long: is_long && needs_record,
            is_link_long: is_link_long && !is_gnu,
            is_posix,
        };
        let data = self.pax.records(entry, facts);
        if !data.is_empty() {
            sections.push(Section { flag: b'x', data });
        }
        sections
    }

    pub fn assemble(&self, entry: &Entry, sections: &[Section]) -> Vec<u8> {
        let path = self.header_path(entry);
        let mut extended = Extended::default();
        for section in sections {
            extended.add(section.flag, &section.data);
        }
        let (main, tail) = self.main(entry, &path, extended);
        let mut group = Vec::with_capacity(RECORD_BYTES * (1 + 2 * sections.len()) + tail.len());
        for section in sections {
            let carrier = self.carrier(section, &path, &main);
            group.extend_from_slice(&carrier);
            group.extend_from_slice(&section.data);
            group.resize(group.len().next_multiple_of(RECORD_BYTES), 0);
        }
        group.extend_from_slice(&main);
        group.extend_from_slice(&tail);
        group
    }

    fn header_path<'a>(&self, entry: &'a Entry) -> Cow<'a, [u8]> {
        match entry.kind {
            EntryKind::Directory if self.has_directory_slash => {
                Cow::Owned([entry.path.as_slice(), b"/"].concat())
            }
            _ => Cow::Borrowed(&entry.path),
        }
    }

    /// The record from which an entry's main header is made, and whether it was of the same class.
    fn template(&self, entry: &Entry) -> (Option<&Record>, bool) {
        match self.mains.get(class(entry)).and_then(Option::as_deref) {
            Some(record) => (Some(record), true),
            None => (self.last_main(), false),
        }
    }

    fn last_main(&self) -> Option<&Record> {
        self.mains.get(self.last_class).and_then(Option::as_deref)
    }

    fn is_posix(&self, entry: &Entry) -> bool {
        let is_posix = |record: &Record| field(record, MAGIC).starts_with(USTAR_MAGIC);
        self.template(entry).0.is_some_and(is_posix)
    }

    fn long_path(&self, is_posix: bool) -> LongPath {
        let has_pax = self.carriers.iter().any(|carrier| carrier.flag() == b'x');
        match self.long_path {
            Some(form) => form,
            None if !is_posix => LongPath::Gnu,
            None if has_pax => LongPath::Pax,
            None => LongPath::Split(Split::Longest),
        }
    }

    /// The number of bytes after the main header, or after its old map.
    fn stored_bytes(&self, entry: &Entry, is_pax_sparse: bool) -> u64 {
        let map_bytes = match &entry.data_ranges {
            Some(ranges) if is_pax_sparse => sparse::map_block_bytes(ranges, entry.size_bytes),
            _ => 0,
        };
        entry.stored_bytes().saturating_add(map_bytes)
    }

    fn main(&self, entry: &Entry, path: &[u8], extended: Extended) -> (Record, Vec<u8>) {
        let (template, is_same_class) = self.template(entry);
        let mut record = template.copied().unwrap_or_else(first_record);
        let is_posix = field(&record, MAGIC).starts_with(USTAR_MAGIC);
        if !is_same_class {
            let flag = if entry.data_ranges.is_some() && !extended.sparse_pax {
                b'S'
            } else {
                type_flag(entry.kind)
            };
            put_text(&mut record, TYPE, &[flag]);
        }
        self.set_name(&mut record, path, extended, is_posix);
        let link = entry.link_target.as_deref().unwrap_or_default();
        match extended.link {
            true if self.has_link_marks => set_text(&mut record, LINK, link_mark(entry.kind)),
            true => set_text(
                &mut record,
                LINK,
                cut(&self.ascii.apply(link), self.name_max),
            ),
            false => set_text(&mut record, LINK, cut(link, LINK.1)),
        }
        let file_type = if is_same_class {
            number(field(&record, MODE)).unwrap_or(0) & !0o7777
        } else {
            0
        };
        set_number(&mut record, MODE, file_type | i128::from(entry.mode));
        self.set_owner(&mut record, entry, extended);
        let stored_bytes = if entry.kind.has_data() {
            self.stored_bytes(entry, extended.sparse_1_0)
        } else {
            0
        };
        let size = if extended.size && stored_bytes > OCTAL_11_MAX { 0 } else { stored_bytes };
        set_number(&mut record, SIZE, i128::from(size));
        set_number(&mut record, MTIME, self.seconds(entry, extended));
        set_number(&mut record, DEVICE_MAJOR, i128::from(entry.device.0));
        set_number(&mut record, DEVICE_MINOR, i128::from(entry.device.1));
        let tail = match &entry.data_ranges {
            Some(ranges) if extended.sparse_1_0 => sparse::map_block(ranges, entry.size_bytes),
            Some(ranges) if !extended.sparse_pax => {
                sparse::put_old_map(&mut record, ranges, entry.size_bytes)
            }
            _ => Vec::new(),
        };
        set_checksum(&mut record);
        (record, tail)
    }

    fn set_name(&self, record: &mut Record, path: &[u8], extended: Extended, is_posix: bool) {
        let (prefix, name): (&[u8], Cow<[u8]>) = if extended.sparse_pax {
            match &self.sparse_name {
                Some(form) => (b"", Cow::Owned(form.apply(path))),
                None => (b"", Cow::Borrowed(path)),
            }
        } else if extended.path {
            (b"", self.ascii.apply(path))
        } else {
            let split = match self.long_path(is_posix) {
                LongPath::Split(split) if path.len() > NAME.1 => split.apply(path),
                _ => None,
            };
            split.map_or((b"", Cow::Borrowed(path)), |(prefix, name)| {
                (prefix, Cow::Borrowed(name))
            })
        };
        set_text(
            record,
            NAME,
            cut(&name, if extended.path { self.name_max } else { NAME.1 }),
        );
        if is_posix {
            let at = prefix_field(record);
            set_text(record, at, cut(prefix, at.1));
        }
    }

    fn set_owner(&self, record: &mut Record, entry: &Entry, extended: Extended) {
        let owner = &entry.owner;
        let id = |id: u64, is_extended: bool| {
            if is_extended && id > OCTAL_7_MAX { 0 } else { i128::from(id) }
        };
        set_number(record, UID, id(owner.uid, extended.uid));
        set_number(record, GID, id(owner.gid, extended.gid));
        for (at, name, is_extended) in [
            (USER, &owner.user, extended.user),
            (GROUP, &owner.group, extended.group),
        ] {
            if is_extended {
                set_text(record, at, cut(&self.ascii.apply(name), at.1))
            } else {
                set_text(record, at, cut(name, at.1))
            }
        }
    }

    fn seconds(&self, entry: &Entry, extended: Extended) -> i128 {
        let time = entry.modified;
        let rounds_up = extended.modified && self.rounds_times && time.nanoseconds >= 500_000_000;
        let seconds = i128::from(time.seconds) + i128::from(rounds_up);
        let has_room = (0..=i128::from(OCTAL_11_MAX)).contains(&seconds);
        if has_room || !extended.modified { seconds } else { 0 }
    }

    fn set_carrier_name(&self, record: &mut Record, name: &[u8]) {
        if !field(record, MAGIC).starts_with(USTAR_MAGIC) {
            return set_text(record, NAME, cut(name, NAME.1));
        }
        let split = match self.long_path {
            Some(LongPath::Split(split)) if name.len() > NAME.1 => split.apply(name),
            _ => None,
        };
        let (prefix, name) = split.unwrap_or((b"", name));
        set_text(record, NAME, cut(name, NAME.1));
        set_text(record, PREFIX, prefix);
    }

    fn carrier(&self, section: &Section, path: &[u8], main: &Record) -> Record {
        let carrier = self
            .carriers
            .iter()
            .find(|carrier| carrier.flag() == section.flag);
        let mut record = match carrier {
            Some(carrier) => carrier.record,
            None => first_carrier(section.flag),
        };
        if let Some(carrier) = carrier {
            if let Some(inserted) = &carrier.inserted {
                self.set_carrier_name(&mut record, &inserted.apply(&self.ascii.apply(path)));
            }
            for followed in &carrier.follows {
                followed.set(&mut record, main);
            }
        }
        set_number(&mut record, SIZE, section.data.len() as i128);
        set_checksum(&mut record);
        record
    }
}

/// The carrier that the first prediction starts from: GNU tar's.
fn first_carrier(flag: u8) -> Record {
    let mut record = first_record();
    put_text(&mut record, TYPE, &[flag]);
    put_text(&mut record, MODE, b"0000644");
    if flag == b'x' {
        put_text(&mut record, MAGIC, b"ustar\x0000");
    } else {
        put_text(&mut record, NAME, b"././@LongLink");
        put_text(&mut record, USER, b"root");
        put_text(&mut record, GROUP, b"root");
    }
    record
}

/// What libarchive writes into the main header for a link that is in a pax record.
fn link_mark(kind: EntryKind) -> &'static [u8] {
    match kind {
        EntryKind::Hardlink => b"././@LongHardLink",
        _ => b"././@LongSymLink",
    }
}

fn cut(text: &[u8], length: usize) -> &[u8] {
    text.get(..length).unwrap_or(text)
}

impl Carrier {
    fn flag(&self) -> u8 {
        self.record.get(TYPE.0).copied().unwrap_or(0)
    }
}

impl Followed {
    const ALL: [Followed; 6] = [
        Followed::Mode,
        Followed::Uid,
        Followed::Gid,
        Followed::Modified,
        Followed::User,
        Followed::Group,
    ];

    fn field(self) -> crate::tar::record::Field {
        match self {
            Followed::Mode => MODE,
            Followed::Uid => UID,
            Followed::Gid => GID,
            Followed::Modified => MTIME,
            Followed::User => USER,
            Followed::Group => GROUP,
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Followed::User | Followed::Group)
    }

    fn set(self, record: &mut Record, main: &Record) {
        let at = self.field();
        if self.is_text() {
            set_text(record, at, text(main, at))
        } else {
            set_number(record, at, self.number(main))
        }
    }

    /// A number of the main header as carriers have it: permissions without set-id bits.
    fn number(self, main: &Record) -> i128 {
        let value = number(field(main, self.field())).unwrap_or(0);
        match self {
            Followed::Mode => value & 0o777,
            _ => value,
        }
    }

    fn is_equal(self, record: &Record, main: &Record) -> bool {
        let at = self.field();
        if self.is_text() {
            text(record, at) == text(main, at)
        } else {
            number(field(record, at)) == Some(self.number(main))
        }
    }
}

// ------------------------------------------------------------------------------------- learning

impl Predictor {
    /// Learns from the actual header group of an entry.
    pub fn learn(&mut self, entry: &Entry, group: &[u8]) {
        let mut extended = Extended::default();
        let mut records = &[][..];
        let mut long_name = None;
        let mut at = 0;
        while let Some(extension) = extension_at(group, at) {
            let data = group.get(extension.data.clone()).unwrap_or_default();
            extended.add(extension.flag, data);
            match extension.flag {
                b'x' => records = data,
                b'L' => long_name = Some(data),
                _ => {}
            }
            at = extension.end();
        }
        let Some(main) = record_at(group, at) else {
            return;
        };
        self.learn_path(entry, main, extended, records, long_name);
        let mut carrier_at = 0;
        let path = self.header_path(entry);
        while let Some(extension) = extension_at(group, carrier_at) {
            if let Some(record) = record_at(group, extension.record_at) {
                learn_carrier(&mut self.carriers, record, &self.ascii.apply(&path), main);
            }
            carrier_at = extension.end();
        }
        if extended.sparse_pax {
            let found = Inserted::find(text(main, NAME), &path);
            self.sparse_name = refined(self.sparse_name.take(), found, &path);
        }
        self.learn_main(entry, main, extended, records);
    }

    fn learn_main(&mut self, entry: &Entry, main: &Record, extended: Extended, records: &[u8]) {
        let class = class(entry);
        match self.mains.get_mut(class) {
            Some(Some(held)) => **held = *main,
            Some(slot) => *slot = Some(Box::new(*main)),
            None => {}
        }
        self.last_class = class;
        if extended.link {
            self.has_link_marks = text(main, LINK) == link_mark(entry.kind);
        }
        if extended.modified && entry.modified.nanoseconds >= 500_000_000 {
            let seconds = number(field(main, MTIME));
            self.rounds_times = seconds == Some(i128::from(entry.modified.seconds) + 1);
        }
        let path = self.header_path(entry);
        let is_posix = field(main, MAGIC).starts_with(USTAR_MAGIC);
        let facts = Facts {
            path: &path,
            link: entry.link_target.as_deref().unwrap_or_default(),
            stored_bytes: self.stored_bytes(entry, extended.sparse_1_0),
            is_path_long: path.len() > self.name_max && extended.path,
            is_link_long: extended.link,
            is_posix,
        };
        self.pax.learn(entry, facts, records);
    }

    fn learn_path(
        &mut self,
        entry: &Entry,
        main: &Record,
        extended: Extended,
        records: &[u8],
        long_name: Option<&[u8]>,
    ) {
        if entry.kind == EntryKind::Directory {
            self.has_directory_slash = match long_name {
                Some(name) => name.ends_with(b"/\0"),
                None if extended.path => find_value(records, b"path").ends_with(b"/"),
                None => text(main, NAME).ends_with(b"/"),
            };
        }
        let path = self.header_path(entry);
        if extended.path && !extended.sparse_pax && !path.is_ascii() {
            let name = text(main, NAME);
            let fits = |form: &&Ascii| cut(&form.apply(&path), NAME.1) == name;
            self.ascii = Ascii::ALL.iter().find(fits).copied().unwrap_or(self.ascii);
        }
        if path.len() == NAME.1 {
            self.name_max = if extended.path { NAME.1 - 1 } else { NAME.1 };
        } else if long_name.is_some() && path.len() > NAME.1 {
            let is_short = path.get(..NAME.1 - 1) == Some(text(main, NAME));
            self.name_max = if is_short { NAME.1 - 1 } else { NAME.1 };
        }
        if path.len() <= NAME.1 || extended.sparse_pax {
            return;
        }
        let is_split = |split: &Split| {
            let parts = (text(main, prefix_field(main)), text(main, NAME));
            split.apply(&path) == Some(parts)
        };
        let other = match self.long_path {
            Some(LongPath::Split(split)) => split,
            _ => Split::Longest,
        };
        let splits = [other, Split::Longest, Split::Shortest];
        self.long_path = match long_name {
            Some(_) => Some(LongPath::Gnu),
            None if !extended.path => splits.iter().copied().find(is_split).map(LongPath::Split),
            None if Split::Longest.apply(&path).is_some() => Some(LongPath::Pax),
            None => self.long_path,
        };
    }
}

fn find_value<'a>(records: &'a [u8], wanted: &[u8]) -> &'a [u8] {
    let mut rest = records;
    while let Some((key, value, after)) = split_pax(rest) {
        if key == wanted {
            return value;
        }
        rest = after;
    }
    &[]
}

fn learn_carrier(carriers: &mut Vec<Carrier>, record: &Record, path: &[u8], main: &Record) {
    let flag = record.get(TYPE.0).copied().unwrap_or(0);
    let plain_name = plain_path(record);
    let name = plain_name.as_slice();
    // A name that fills the field may be cut.
    let find = || {
        let is_cut = text(record, NAME).len() == NAME.1;
        (!is_cut).then(|| Inserted::find(name, path)).flatten()
    };
    let Some(carrier) = carriers.iter_mut().find(|carrier| carrier.flag() == flag) else {
        carriers.push(Carrier {
            record: *record,
            inserted: find(),
            follows: (Followed::ALL.into_iter())
                .filter(|followed| followed.is_equal(record, main))
                .collect(),
        });
        return;
    };
    if carrier.inserted.is_some() || text(&carrier.record, NAME) != text(record, NAME) {
        carrier.inserted = refined(carrier.inserted.take(), find(), path);
    }
    for followed in Followed::ALL {
        let is_equal = followed.is_equal(record, main);
        let at = followed.field();
        let is_fixed = field(&carrier.record, at) == field(record, at);
        let place = carrier.follows.iter().position(|held| *held == followed);
        match (is_equal, is_fixed, place) {
            (true, false, None) => carrier.follows.push(followed),
            (false, _, Some(place)) => {
                carrier.follows.remove(place);
            }
            _ => {}
        }
    }
    carrier.record = *record;
}

/// The form of names after another one was found.
fn refined(held: Option<Inserted>, found: Option<Inserted>, path: &[u8]) -> Option<Inserted> {
    match (held, found) {
        (Some(held), Some(found)) => Some(held.refine(found, path)),
        // A name without a form was cut, or is an exception.
        (held, None) => held,
        (None, found) => found,
    }
}
