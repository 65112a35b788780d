//! Random valid archives, built frame by frame and uncoded, so that no codec is needed to decode
//! them.

use crate::decoder::{SampleMember, stated_hash};
use crate::entry_lists::{entries_hash, tar_entries, tree_entries, view_bytes};
use crate::resolve::ResolvedExtents;
use crate::rng::Rng;
use crate::slices::slices_of;
use refrain_format::{
    ArchiveAssembler, ArchiveHeader, BlockHeader, Coding, Digest, EntriesHeader, Entry, EpochSums,
    Extent, ExtentsHeader, FORMAT_MAJOR, FORMAT_MINOR, FrameKind, IndexSlice, MemberEnd,
    MemberKind, MemberStart, Pattern, REACH_UNLIMITED, Timestamp, checksum64, entries_are_sorted,
    pack_entries, pack_extents,
};

/// An archive and its members.
#[derive(Debug, Clone)]
pub struct SampleArchive {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// The members that a reader must find.
    pub members: Vec<SampleMember>,
}

struct EpochPlan {
    extents: Vec<Extent>,
    content_end: usize,
    store_end: usize,
}

struct MemberPlan {
    start: MemberStart,
    content_end: usize,
    entries: Vec<Entry>,
}

#[derive(Default)]
struct ContentAndStore {
    content: Vec<u8>,
    store: Vec<u8>,
}

impl ContentAndStore {
    fn append(&mut self, extent: &Extent, rng: &mut Rng) {
        let from = self.content.len();
        if let Extent::Reference {
            length,
            offset_in_content,
        } = *extent
        {
            let source = offset_in_content as usize;
            self.content
                .extend_from_within(source..source + length as usize);
            return;
        }
        self.content.resize(from + extent.length() as usize, 0);
        let target = &mut self.content[from..];
        match extent {
            Extent::Fresh { .. } => {
                rng.fill(target);
                self.store.extend_from_slice(target);
            }
            Extent::Copy {
                offset_in_store, ..
            } => {
                let source = *offset_in_store as usize;
                target.copy_from_slice(&self.store[source..source + target.len()]);
            }
            Extent::Fill { pattern, .. } => pattern.fill(0, target),
            Extent::Reference { .. } => {}
        }
    }
}

/// Returns a valid archive: up to four members (some empty, some trees or tar streams) in up to
/// four epochs, with copies, fills and skippable frames.
#[must_use]
pub fn sample_archive(seed: u64) -> SampleArchive {
    let mut rng = Rng::new(seed);
    let member_count = rng.below(5) as usize;
    let mut spaces = ContentAndStore::default();
    let epochs = random_epochs(member_count, &mut spaces, &mut rng);
    let plans = random_members(seed, member_count, spaces.content.len(), &mut rng);
    let bytes = ArchiveWriter::new(seed, &spaces, &mut rng).write(&epochs, &plans);
    let members = plans
        .into_iter()
        .map(|plan| SampleMember {
            content: spaces.content[plan.start.content_start as usize..plan.content_end].to_vec(),
            name: plan.start.name,
            entries: plan.entries,
        })
        .collect();
    SampleArchive { bytes, members }
}

fn random_epochs(
    member_count: usize,
    spaces: &mut ContentAndStore,
    rng: &mut Rng,
) -> Vec<EpochPlan> {
    let epoch_count = match member_count {
        0 => 0,
        _ => rng.below(5),
    };
    (0..epoch_count)
        .map(|_| {
            let before = spaces.content.len();
            let extents = (0..rng.length(1, 10))
                .map(|_| {
                    let extent = random_extent(spaces.store.len(), before, rng);
                    spaces.append(&extent, rng);
                    extent
                })
                .collect();
            EpochPlan {
                extents,
                content_end: spaces.content.len(),
                store_end: spaces.store.len(),
            }
        })
        .collect()
}

fn random_extent(store_bytes: usize, content_start: usize, rng: &mut Rng) -> Extent {
    let length = 1 + rng.below(100);
    match rng.below(6) {
        5 if content_start > 0 => {
            let length = (length * 10).min(content_start as u64);
            Extent::Reference {
                length,
                offset_in_content: rng.below(content_start as u64 - length + 1),
            }
        }
        0 | 1 if store_bytes > 0 => {
            let length = length.min(store_bytes as u64);
            Extent::Copy {
                length,
                offset_in_store: rng.below(store_bytes as u64 - length + 1),
            }
        }
        2 => {
            let mut period = vec![0; rng.length(1, 64)];
            rng.fill(&mut period);
            let pattern = Pattern::new(&period).expect("a pattern of 1 to 64 bytes");
            Extent::Fill { length, pattern }
        }
        3 => Extent::Fill {
            length: length * 20,
            pattern: Pattern::ZERO,
        },
        _ => Extent::Fresh { length },
    }
}

fn random_members(
    archive_seed: u64,
    count: usize,
    content_bytes: usize,
    rng: &mut Rng,
) -> Vec<MemberPlan> {
    // The archives of small seeds are older than sparse members, and some are golden.
    let may_be_sparse = archive_seed >> 16 != 0;
    let mut cuts: Vec<usize> = (1..count).map(|_| rng.length(0, content_bytes)).collect();
    cuts.extend([0, content_bytes]);
    cuts.sort_unstable();
    (0..count)
        .map(|id| {
            let kind = *rng.choose(&[
                MemberKind::File,
                MemberKind::Stream,
                MemberKind::Tree,
                MemberKind::Tar,
            ]);
            let (seed, count) = (rng.any(), rng.length(0, 9));
            let content_bytes = (cuts[id + 1] - cuts[id]) as u64;
            let entries = match kind {
                MemberKind::Tree | MemberKind::LayeredTree => {
                    tree_entries(seed, count, content_bytes)
                }
                MemberKind::Tar => tar_entries(seed, count, content_bytes),
                MemberKind::File | MemberKind::Stream => Vec::new(),
            };
            MemberPlan {
                start: MemberStart {
                    member_id: id as u64,
                    content_start: cuts[id] as u64,
                    kind,
                    name: format!("member-{id}").into_bytes(),
                    mode: rng.once_in(2).then_some(0o640),
                    modified: rng.once_in(2).then(|| Timestamp {
                        seconds: rng.below(1 << 33) as i64,
                        nanoseconds: rng.below(1_000_000_000) as u32,
                    }),
                    content_bytes_hint: rng.once_in(2).then_some(content_bytes),
                    is_sparse: may_be_sparse
                        && kind == MemberKind::File
                        && content_bytes.is_multiple_of(2),
                    layers: None,
                    extensions: Vec::new(),
                },
                content_end: cuts[id + 1],
                entries,
            }
        })
        .collect()
}

const FRAME_ENTRIES: usize = 4;

/// The promised window of references: more extents than a sample has.
const REFERENCE_WINDOW: u64 = 10_000;

struct ArchiveWriter<'a> {
    spaces: &'a ContentAndStore,
    rng: &'a mut Rng,
    assembler: ArchiveAssembler,
    bytes: Vec<u8>,
    content_covered: usize,
    introduced_bytes: usize,
    store_written: usize,
    block_count: u64,
    resolved: ResolvedExtents,
}

impl<'a> ArchiveWriter<'a> {
    fn new(seed: u64, spaces: &'a ContentAndStore, rng: &'a mut Rng) -> Self {
        let header = ArchiveHeader {
            version: (FORMAT_MAJOR, FORMAT_MINOR),
            required_features: 0,
            level: (seed % 10) as u8,
            segment_bytes: 1 << 10,
            epoch_bytes: 1 << 20,
            block_bytes_max: 1 << 10,
            memory_budget_bytes: 1 << 20,
            reach_bytes: *rng.choose(&[REACH_UNLIMITED, 1 << 40]),
            reference_window: REFERENCE_WINDOW,
        };
        let (assembler, bytes) =
            ArchiveAssembler::new(&header, seed as u32).expect("valid settings");
        // Deep indexes and flat ones.
        let node_bytes = *rng.choose(&[1, 100, 10_000]);
        let assembler = assembler.with_index_node_bytes(node_bytes);
        Self {
            spaces,
            rng,
            assembler,
            bytes,
            content_covered: 0,
            introduced_bytes: 0,
            store_written: 0,
            block_count: 0,
            resolved: ResolvedExtents::default(),
        }
    }

    fn write(mut self, epochs: &[EpochPlan], plans: &[MemberPlan]) -> Vec<u8> {
        let (mut started, mut ended) = (0, 0);
        for (id, epoch) in epochs.iter().enumerate() {
            while started < plans.len()
                && (plans[started].start.content_start as usize) < epoch.content_end
            {
                self.start(&plans[started]);
                started += 1;
            }
            self.extents(id as u64, epoch);
            if self.rng.once_in(2) {
                self.blocks(epoch.store_end);
            }
            // The last started member is known to end here only if no content follows.
            while ended < started && plans[ended].content_end <= self.content_covered {
                self.end(&plans[ended]);
                ended += 1;
            }
        }
        self.blocks(self.introduced_bytes);
        for plan in &plans[started..] {
            self.start(plan);
            self.end(plan);
        }
        let finished = self.assembler.finish().expect("a complete archive");
        self.bytes.extend_from_slice(&finished.last_bytes);
        self.bytes
    }

    fn start(&mut self, plan: &MemberPlan) {
        if self.rng.once_in(4) {
            // A head of two bytes: the frame concerns the archive.
            let mut bytes = vec![0; self.rng.length(3, 30)];
            self.rng.fill(&mut bytes);
            bytes[..3].copy_from_slice(&[2, 0, 0]);
            let kind = *self.rng.choose(&[
                FrameKind::Padding,
                FrameKind::Recovery,
                FrameKind::Unknown(77),
            ]);
            let frame = self.assembler.skippable(kind, &bytes).expect("skippable");
            self.bytes.extend_from_slice(&frame);
        }
        let frame = self.assembler.member_start(&plan.start).expect("in order");
        self.bytes.extend_from_slice(&frame);
    }

    /// Writes blocks until the store is written up to about `end`.
    fn blocks(&mut self, end: usize) {
        let end = if end == self.spaces.store.len() {
            end
        } else {
            end - self.rng.length(0, 20).min(end - self.store_written)
        };
        while self.store_written < end {
            let length = self.rng.length(1, 200).min(end - self.store_written);
            let raw = &self.spaces.store[self.store_written..self.store_written + length];
            let header = BlockHeader {
                block_id: self.block_count,
                store_start: self.store_written as u64,
                raw_bytes: length as u64,
                raw_checksum: None,
                coding: Coding::new(0, &[], &[], u8::from(self.rng.once_in(5)))
                    .expect("no filters"),
            };
            let mut builder = BlockHeader::builder(Vec::new(), length as u64);
            builder.payload().extend_from_slice(raw);
            let mut frame = header
                .finish(builder, &[checksum64(raw)])
                .expect("a valid header");
            self.assembler
                .block(&header, &mut frame, 0)
                .expect("in order");
            self.bytes.extend_from_slice(&frame);
            self.store_written += length;
            self.block_count += 1;
        }
    }

    fn extents(&mut self, epoch_id: u64, epoch: &EpochPlan) {
        let (content_start, store_start) =
            (self.content_covered as u64, self.introduced_bytes as u64);
        let packed =
            pack_extents(content_start, store_start, &epoch.extents).expect("valid extents");
        let header = packed.header(epoch_id, (content_start, store_start), Coding::none());
        let mut builder = ExtentsHeader::builder(Vec::new());
        builder.payload().extend_from_slice(&packed.raw);
        let mut frame = header.finish(builder).expect("a valid header");
        let resolved = self
            .resolved
            .epoch(content_start, &epoch.extents, REFERENCE_WINDOW)
            .expect("references within the limits");
        let sums = EpochSums::from_extents(&resolved);
        self.assembler
            .extents(&header, &sums, &mut frame)
            .expect("in order");
        self.bytes.extend_from_slice(&frame);
        self.content_covered = epoch.content_end;
        self.introduced_bytes = epoch.store_end;
    }

    /// The entries of a member's frames, and the path order of frames that are not in it.
    fn frames(&mut self, plan: &MemberPlan) -> (Vec<Vec<Entry>>, Vec<IndexSlice>) {
        let is_tree = plan.start.kind == MemberKind::Tree;
        let chunks = plan.entries.chunks(FRAME_ENTRIES).map(<[Entry]>::to_vec);
        if !is_tree || self.rng.once_in(2) {
            return (chunks.collect(), vec![]);
        }
        let runs: Vec<_> = (plan.entries.iter())
            .map(|_| self.rng.length(0, 2))
            .collect();
        let mut frames: Vec<Vec<Entry>> = Vec::new();
        for run in 0..=2 {
            let numbers: Vec<_> = (0..runs.len())
                .filter(|&number| runs[number] == run)
                .collect();
            for chunk in numbers.chunks(FRAME_ENTRIES) {
                let entries = chunk.iter().map(|&number| plan.entries[number].clone());
                frames.push(entries.collect());
            }
        }
        if entries_are_sorted(&frames.concat()) || plan.entries.is_empty() {
            return (frames, vec![]);
        }
        let slices = slices_of(&frames);
        (frames, slices)
    }

    fn entries(&mut self, plan: &MemberPlan, frames: &[Vec<Entry>]) {
        let mut first_entry = 0;
        for batch in frames {
            let packed = pack_entries(batch).expect("valid entries");
            let member_id = plan.start.member_id;
            let header = EntriesHeader::new(member_id, first_entry, &packed, Coding::none());
            let mut builder = EntriesHeader::builder(&packed, Vec::new());
            builder.payload().extend_from_slice(&packed.raw);
            let mut frame = header.finish(builder).expect("a valid header");
            self.assembler
                .entries(&header, &mut frame)
                .expect("in order");
            self.bytes.extend_from_slice(&frame);
            first_entry += packed.entry_count;
        }
    }

    fn end(&mut self, plan: &MemberPlan) {
        let (frames, slices) = self.frames(plan);
        self.entries(plan, &frames);
        let content = &self.spaces.content[plan.start.content_start as usize..plan.content_end];
        let digests = if self.rng.once_in(2) {
            vec![Digest {
                id: 200,
                bytes: vec![9; 5],
            }]
        } else {
            Vec::new()
        };
        let kind = plan.start.kind;
        let end = MemberEnd {
            member_id: plan.start.member_id,
            content_bytes: content.len() as u64,
            view_bytes: if kind.has_entries() {
                view_bytes(kind, plan.entries.chunks(FRAME_ENTRIES))
            } else {
                content.len() as u64
            },
            entry_count: plan.entries.len() as u64,
            tree_entry_count: None,
            entries_hash: kind.has_entries().then(|| entries_hash(&plan.entries)),
            blake3: stated_hash(&plan.start, content),
            entries_are_sorted: entries_are_sorted(&frames.concat()),
            digests,
            extensions: Vec::new(),
        };
        self.assembler.slices(slices).expect("in path order");
        let frame = self.assembler.member_end(&end).expect("in order");
        self.bytes.extend_from_slice(&frame);
    }
}
