//! Entry lists of trees and tar streams that keep the format's rules, and archives of one member
//! with any list, even an invalid one.

use crate::rng::Rng;
use crate::slices::slices_of;
use refrain_entries::tar::TarView;
use refrain_format::property::entries_from_seed;
use refrain_format::{
    ArchiveAssembler, ArchiveHeader, BlockHeader, Coding, EntriesHasher, EntriesHeader, Entry,
    EntryKind, EpochSums, Extent, ExtentsHeader, FORMAT_MAJOR, FORMAT_MINOR, MemberEnd,
    MemberStart, REACH_UNLIMITED, checksum64, compare_paths, content_hash, entries_are_sorted,
    pack_entries, pack_extents,
};

pub use refrain_format::MemberKind;

/// Returns at most `count` entries of a valid tree whose content has `content_bytes` bytes.
#[must_use]
pub fn tree_entries(seed: u64, count: usize, content_bytes: u64) -> Vec<Entry> {
    let mut entries = entries_from_seed(seed, count);
    entries.retain(|entry| entry.kind != EntryKind::Raw);
    entries.sort_by(|left, right| compare_paths(&left.path, &right.path));
    entries.dedup_by(|right, left| left.path == right.path);
    let mut file: Option<Vec<u8>> = None;
    for entry in &mut entries {
        entry.header_recipe.clear();
        put_inside(entry, content_bytes);
        match (entry.kind, &file) {
            (EntryKind::Hardlink, Some(file)) => entry.link_target = Some(file.clone()),
            (EntryKind::Hardlink, None) => {
                entry.kind = EntryKind::Fifo;
                entry.link_target = None;
            }
            (EntryKind::Directory, _) => {}
            _ => file = Some(entry.path.clone()),
        }
    }
    entries
}

/// Returns `count` entries of a valid tar stream whose content has `content_bytes` bytes.
#[must_use]
pub fn tar_entries(seed: u64, count: usize, content_bytes: u64) -> Vec<Entry> {
    let mut entries = entries_from_seed(seed, count);
    for entry in &mut entries {
        put_inside(entry, content_bytes);
        if entry.kind == EntryKind::Raw {
            entry.header_recipe.clear();
        } else if !entry.header_recipe.is_empty() {
            // "The rest is the header group, and no zeros follow the data."
            entry.header_recipe.splice(..1, [3]);
        }
    }
    entries
}

/// Moves and shortens the data of an entry so that it is inside the content.
fn put_inside(entry: &mut Entry, content_bytes: u64) {
    if entry.stored_bytes() > content_bytes {
        entry.data_ranges = None;
        entry.size_bytes %= content_bytes + 1;
    }
    entry.content_offset %= content_bytes - entry.stored_bytes() + 1;
}

/// Returns the length of the tar stream that these frames of entries give. An entry with an invalid
/// recipe counts as nothing.
#[must_use]
pub fn view_bytes<'a>(kind: MemberKind, frames: impl IntoIterator<Item = &'a [Entry]>) -> u64 {
    let view = || match kind {
        MemberKind::Tar => TarView::recorded(),
        _ => TarView::canonical(),
    };
    let entries: u64 = frames
        .into_iter()
        .flat_map(|frame| {
            let mut view = view();
            let items = frame.iter().map(move |entry| view.entry(entry));
            items.map(|item| item.map_or(0, |item| item.view_bytes()))
        })
        .sum();
    entries + view().end().view_bytes()
}

/// Returns the hash of entries.
#[must_use]
pub fn entries_hash(entries: &[Entry]) -> [u8; 32] {
    let mut hasher = EntriesHasher::new();
    hasher.update(entries);
    hasher.value()
}

/// A tree or a tar stream to be written as the only member of an archive.
#[derive(Debug, Clone)]
pub struct EntryListMember {
    /// [`MemberKind::Tree`] or [`MemberKind::Tar`].
    pub kind: MemberKind,
    /// The entries of each Entries frame.
    pub frames: Vec<Vec<Entry>>,
    /// The content; at least one byte.
    pub content: Vec<u8>,
}

impl EntryListMember {
    /// Returns the archive, uncoded, in which the list may break any rule that concerns several
    /// entries. `change` changes the end of the member, which otherwise agrees with the list.
    ///
    /// # Panics
    /// If a single entry breaks a rule, or the first paths of the frames do.
    #[must_use]
    pub fn archive(&self, change: impl FnOnce(&mut MemberEnd)) -> Vec<u8> {
        let (mut assembler, mut bytes) =
            ArchiveAssembler::new(&settings(), 7).expect("valid settings");
        let start = member_start(self.kind);
        bytes.extend(assembler.member_start(&start).expect("in order"));
        self.put_content(&mut assembler, &mut bytes);
        let mut first_entry = 0;
        for entries in &self.frames {
            let mut frame = entries_frame(first_entry, entries);
            let appended = assembler.entries(&frame.0, &mut frame.1);
            appended.expect("in order");
            bytes.extend(frame.1);
            first_entry += entries.len() as u64;
        }
        let mut end = self.end();
        change(&mut end);
        if self.kind.has_slices(&end) {
            let slices = assembler.slices(slices_of(&self.frames));
            slices.expect("in path order");
        }
        bytes.extend(assembler.member_end(&end).expect("in order"));
        let last = assembler.finish().expect("a complete archive").last_bytes;
        bytes.extend(last);
        bytes
    }

    /// All entries in the order in which they are hashed.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.frames.concat();
        if self.kind == MemberKind::Tree {
            entries.sort_by(|a, b| compare_paths(&a.path, &b.path));
        }
        entries
    }

    fn end(&self) -> MemberEnd {
        let entries = self.entries();
        MemberEnd {
            view_bytes: view_bytes(self.kind, self.frames.iter().map(Vec::as_slice)),
            entry_count: entries.len() as u64,
            entries_hash: Some(entries_hash(&entries)),
            blake3: content_hash(&self.content),
            entries_are_sorted: entries_are_sorted(&self.frames.concat()),
            ..MemberEnd::of_content(0, self.content.len() as u64)
        }
    }

    fn put_content(&self, assembler: &mut ArchiveAssembler, bytes: &mut Vec<u8>) {
        let length = self.content.len() as u64;
        let extents = [Extent::Fresh { length }];
        let packed = pack_extents(0, 0, &extents).expect("valid extents");
        let header = ExtentsHeader {
            epoch_id: 0,
            content_start: 0,
            content_bytes: length,
            store_start: 0,
            fresh_bytes: length,
            extent_count: 1,
            packed_raw_bytes: packed.raw.len() as u64,
            packed_checksum: packed.checksum,
            coding: Coding::none(),
        };
        let mut builder = ExtentsHeader::builder(Vec::new());
        builder.payload().extend_from_slice(&packed.raw);
        let mut frame = header.finish(builder).expect("a valid header");
        let appended = assembler.extents(&header, &EpochSums::from_extents(&extents), &mut frame);
        appended.expect("in order");
        bytes.extend(frame);
        let header = BlockHeader {
            block_id: 0,
            store_start: 0,
            raw_bytes: length,
            raw_checksum: None,
            coding: Coding::none(),
        };
        let mut builder = BlockHeader::builder(Vec::new(), length);
        builder.payload().extend_from_slice(&self.content);
        let sums: Vec<u64> = self.content.chunks(1 << 16).map(checksum64).collect();
        let mut frame = header.finish(builder, &sums).expect("a valid header");
        let appended = assembler.block(&header, &mut frame, 0);
        appended.expect("in order");
        bytes.extend(frame);
    }
}

fn entries_frame(first_entry: u64, entries: &[Entry]) -> (EntriesHeader, Vec<u8>) {
    let packed = pack_entries(entries).expect("valid entries");
    let header = EntriesHeader::new(0, first_entry, &packed, Coding::none());
    let mut builder = EntriesHeader::builder(&packed, Vec::new());
    builder.payload().extend_from_slice(&packed.raw);
    let frame = header.finish(builder).expect("a valid header");
    (header, frame)
}

fn member_start(kind: MemberKind) -> MemberStart {
    MemberStart {
        member_id: 0,
        content_start: 0,
        kind,
        name: b"listed".to_vec(),
        mode: None,
        modified: None,
        content_bytes_hint: None,
        is_sparse: false,
        layers: None,
        extensions: Vec::new(),
    }
}

fn settings() -> ArchiveHeader {
    ArchiveHeader {
        version: (FORMAT_MAJOR, FORMAT_MINOR),
        required_features: 0,
        level: 1,
        segment_bytes: 1 << 20,
        epoch_bytes: 1 << 30,
        block_bytes_max: 1 << 30,
        memory_budget_bytes: 1 << 20,
        reach_bytes: REACH_UNLIMITED,
        reference_window: 0,
    }
}

/// Returns a valid member of this kind with entries in several frames.
///
/// # Panics
/// If the kind has no entries.
#[must_use]
pub fn sample_list(kind: MemberKind, seed: u64) -> EntryListMember {
    let mut rng = Rng::new(seed);
    let mut content = vec![0; rng.length(1, 5000)];
    rng.fill(&mut content);
    let length = content.len() as u64;
    let (seed, count) = (rng.any(), rng.length(0, 40));
    let entries = match kind {
        MemberKind::Tree | MemberKind::LayeredTree => tree_entries(seed, count, length),
        MemberKind::Tar => tar_entries(seed, count, length),
        MemberKind::File | MemberKind::Stream => panic!("a kind without entries"),
    };
    let frame_entries = rng.length(1, 9);
    EntryListMember {
        kind,
        frames: entries.chunks(frame_entries).map(<[_]>::to_vec).collect(),
        content,
    }
}
