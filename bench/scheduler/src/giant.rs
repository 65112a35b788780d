//! Generates an archive that is too large for this machine: a real index, real lists of entries and
//! extents, and a sparse store, in which only the blocks of a few sample entries exist.
//!
//! It shows what opening, listing and reading cost when an archive has many millions of entries and
//! hundreds of terabytes. All frames except the absent blocks are sound; the hash of the content
//! and the length of the tar stream are wrong, because nothing could compute them.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use refrain_codec::{BlockPlan, CodecId, Workspace, encode_block};
use refrain_format::{
    ArchiveAssembler, ArchiveHeader, BlockHeader, Coding, ENTRIES_PER_BATCH, EntriesHasher,
    EntriesHeader, Entry, EntryKind, EpochSums, Extent, ExtentsHeader, FORMAT_MAJOR, FORMAT_MINOR,
    MemberEnd, MemberKind, MemberStart, REACH_UNLIMITED, Timestamp, checksum64, pack_entries,
    pack_extents,
};

/// Content bytes of an epoch, and raw bytes of a block.
const EPOCH_BYTES: u64 = 16 << 20;
/// The size of a block that does not exist.
const ABSENT_BLOCK_BYTES: u64 = 2 << 20;
/// Epochs whose extents come before their blocks: readers that cannot seek hold back this many.
const EPOCHS_AT_ONCE: u64 = 300_000;
/// The size of a sample entry.
const SAMPLE_BYTES: u64 = 4096;
const PIECE_BYTES: usize = 64 << 10;

/// Generates a giant archive with a sparse store.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The archive; its file system must support sparse files of an eighth of the store
    output: PathBuf,
    /// Entries of the tree, directories included
    #[arg(long, default_value_t = 10_000_000)]
    entries: u64,
    /// Bytes of the store
    #[arg(long, default_value_t = 100 << 40)]
    store_bytes: u64,
    /// Further members, empty files, before the tree
    #[arg(long, default_value_t = 0)]
    members: u64,
    /// Bytes of the names of these members
    #[arg(long, default_value_t = 1000)]
    name_bytes: usize,
    /// Entries that can be read
    #[arg(long, default_value_t = 10)]
    samples: u64,
}

/// Writes the archive and prints the entries that can be read.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let tree = TreePlan::new(arguments);
    let mut writer = GiantWriter::new(arguments)?;
    for id in 0..arguments.members {
        writer.empty_member(id, arguments.name_bytes)?;
    }
    writer.tree(arguments.members, &tree)?;
    writer.finish()?;
    for file in &tree.samples {
        let (path, offset) = (tree.path(*file), tree.content_offset(*file));
        println!("{path} {SAMPLE_BYTES} bytes at {offset} of the store");
    }
    Ok(())
}

/// Files per directory, and directories per directory of the first level.
const FAN_OUT: u64 = 100;

/// A tree of three levels: `d0000/s00/f00`.
struct TreePlan {
    files: u64,
    file_bytes: u64,
    /// The numbers of the files whose content exists.
    samples: BTreeSet<u64>,
}

impl TreePlan {
    fn new(arguments: &Arguments) -> Self {
        let per_directory = FAN_OUT + 1;
        let per_top = FAN_OUT * per_directory + 1;
        let directories = arguments.entries / per_top + 1 + arguments.entries / per_directory + 1;
        let files = arguments.entries.saturating_sub(directories).max(1);
        let step = (files / arguments.samples.max(1)).max(1);
        Self {
            files,
            file_bytes: arguments.store_bytes / files,
            samples: (0..arguments.samples).map(|at| at * step).collect(),
        }
    }

    fn path(&self, file: u64) -> String {
        let (top, sub) = (file / FAN_OUT / FAN_OUT, file / FAN_OUT % FAN_OUT);
        format!("d{top:06}/s{sub:02}/f{:02}", file % FAN_OUT)
    }

    fn size_bytes(&self, file: u64) -> u64 {
        if self.samples.contains(&file) {
            SAMPLE_BYTES.min(self.file_bytes)
        } else {
            self.file_bytes
        }
    }

    /// Every file begins at its own multiple, so that files need no list.
    fn content_offset(&self, file: u64) -> u64 {
        file * self.file_bytes
    }

    fn content_bytes(&self) -> u64 {
        self.files * self.file_bytes
    }

    fn present_blocks(&self) -> BTreeSet<u64> {
        let ranges = self.samples.iter().map(|&file| {
            let start = self.content_offset(file);
            start / EPOCH_BYTES..=(start + self.size_bytes(file).max(1) - 1) / EPOCH_BYTES
        });
        ranges.flatten().collect()
    }

    fn for_each_entry(
        &self,
        each: &mut dyn FnMut(Entry) -> Result<(), String>,
    ) -> Result<(), String> {
        for file in 0..self.files {
            let path = self.path(file);
            if file % (FAN_OUT * FAN_OUT) == 0 {
                each(entry(&path[..7], EntryKind::Directory, 0, 0))?;
            }
            if file % FAN_OUT == 0 {
                each(entry(&path[..11], EntryKind::Directory, 0, 0))?;
            }
            let (bytes, offset) = (self.size_bytes(file), self.content_offset(file));
            each(entry(&path, EntryKind::File, bytes, offset))?;
        }
        Ok(())
    }
}

fn entry(path: &str, kind: EntryKind, size_bytes: u64, content_offset: u64) -> Entry {
    // Times that differ, like real files' times.
    let spread = checksum64(path.as_bytes());
    Entry {
        path: path.as_bytes().to_vec(),
        kind,
        mode: 0o644,
        modified: Timestamp {
            seconds: 1_700_000_000 + (spread % 30_000_000) as i64,
            nanoseconds: 0,
        },
        size_bytes,
        content_offset,
        ..Entry::default()
    }
}

struct GiantWriter {
    file: File,
    assembler: ArchiveAssembler,
    workspace: Workspace,
    /// Bytes to be written at `buffer_offset`.
    buffer: Vec<u8>,
    buffer_offset: u64,
}

impl GiantWriter {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let header = ArchiveHeader {
            version: (FORMAT_MAJOR, FORMAT_MINOR),
            required_features: 0,
            level: 3,
            segment_bytes: 1 << 20,
            epoch_bytes: EPOCH_BYTES,
            block_bytes_max: EPOCH_BYTES,
            memory_budget_bytes: 1 << 30,
            reach_bytes: REACH_UNLIMITED,
            reference_window: 0,
        };
        let (assembler, bytes) = ArchiveAssembler::new(&header, 7).map_err(text)?;
        Ok(Self {
            file: File::create(&arguments.output).map_err(text)?,
            assembler,
            workspace: Workspace::new(),
            buffer: bytes,
            buffer_offset: 0,
        })
    }

    /// Writes a frame at the end of the archive, without its last `absent_bytes` bytes.
    fn put(&mut self, frame: &[u8], absent_bytes: u64) -> Result<(), String> {
        let offset = self.assembler.archive_bytes() - absent_bytes - frame.len() as u64;
        if offset != self.buffer_offset + self.buffer.len() as u64 || self.buffer.len() > 8 << 20 {
            self.flush()?;
            self.buffer_offset = offset;
        }
        self.buffer.extend_from_slice(frame);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        self.file
            .write_all_at(&self.buffer, self.buffer_offset)
            .map_err(text)?;
        self.buffer.clear();
        Ok(())
    }

    fn empty_member(&mut self, id: u64, name_bytes: usize) -> Result<(), String> {
        let mut name = format!("member-{id:08}-").into_bytes();
        name.resize(name_bytes.max(name.len()), b'n');
        self.start(id, MemberKind::File, name)?;
        let end = MemberEnd {
            member_id: id,
            content_bytes: 0,
            view_bytes: 0,
            entry_count: 0,
            tree_entry_count: None,
            entries_hash: None,
            blake3: [0; 32],
            entries_are_sorted: false,
            digests: Vec::new(),
            extensions: Vec::new(),
        };
        let frame = self.assembler.member_end(&end).map_err(text)?;
        self.put(&frame, 0)
    }

    fn start(&mut self, id: u64, kind: MemberKind, name: Vec<u8>) -> Result<(), String> {
        let start = MemberStart {
            member_id: id,
            content_start: 0,
            kind,
            name,
            mode: None,
            modified: None,
            content_bytes_hint: None,
            is_sparse: false,
            layers: None,
            extensions: Vec::new(),
        };
        let frame = self.assembler.member_start(&start).map_err(text)?;
        self.put(&frame, 0)
    }

    fn tree(&mut self, id: u64, tree: &TreePlan) -> Result<(), String> {
        self.start(id, MemberKind::Tree, b"giant".to_vec())?;
        let present = tree.present_blocks();
        let epochs = tree.content_bytes().div_ceil(EPOCH_BYTES);
        let bytes_of = |epoch: u64| EPOCH_BYTES.min(tree.content_bytes() - epoch * EPOCH_BYTES);
        for first in (0..epochs).step_by(EPOCHS_AT_ONCE as usize) {
            let batch = first..(first + EPOCHS_AT_ONCE).min(epochs);
            for epoch in batch.clone() {
                self.extents(epoch, bytes_of(epoch))?;
            }
            for block in batch {
                if present.contains(&block) {
                    self.present_block(block, bytes_of(block))?
                } else {
                    self.absent_block(block, bytes_of(block))?
                }
            }
        }
        let (entry_count, entries_hash) = self.entries(id, tree)?;
        let end = MemberEnd {
            member_id: id,
            content_bytes: tree.content_bytes(),
            view_bytes: tree.content_bytes(),
            entry_count,
            tree_entry_count: None,
            entries_hash: Some(entries_hash),
            blake3: [0; 32],
            entries_are_sorted: true,
            digests: Vec::new(),
            extensions: Vec::new(),
        };
        let frame = self.assembler.member_end(&end).map_err(text)?;
        self.put(&frame, 0)
    }

    fn extents(&mut self, epoch_id: u64, bytes: u64) -> Result<(), String> {
        let start = epoch_id * EPOCH_BYTES;
        let extents = [Extent::Fresh { length: bytes }];
        let packed = pack_extents(start, start, &extents).map_err(text)?;
        let header = packed.header(epoch_id, (start, start), Coding::none());
        let mut builder = ExtentsHeader::builder(Vec::new());
        builder.payload().extend_from_slice(&packed.raw);
        let mut frame = header.finish(builder).map_err(text)?;
        let sums = EpochSums::from_extents(&extents);
        self.assembler
            .extents(&header, &sums, &mut frame)
            .map_err(text)?;
        self.put(&frame, 0)
    }

    /// A block whose frame is a hole.
    fn absent_block(&mut self, block_id: u64, raw_bytes: u64) -> Result<(), String> {
        let header = BlockHeader {
            block_id,
            store_start: block_id * EPOCH_BYTES,
            raw_bytes,
            raw_checksum: Some(0),
            coding: Coding::new(CodecId::ZSTD.0, &[], &[], 0).map_err(text)?,
        };
        let sums = vec![0; raw_bytes.div_ceil(PIECE_BYTES as u64) as usize];
        let mut builder = BlockHeader::builder(Vec::new(), raw_bytes);
        builder.payload().push(0);
        let mut frame = header.finish(builder, &sums).map_err(text)?;
        let payload_bytes = frame.len() as u64 - 32 + ABSENT_BLOCK_BYTES;
        frame[16..20].copy_from_slice(&(payload_bytes as u32).to_le_bytes());
        self.assembler
            .block(&header, &mut frame, ABSENT_BLOCK_BYTES)
            .map_err(text)
    }

    /// A block whose content states its position in the store.
    fn present_block(&mut self, block_id: u64, raw_bytes: u64) -> Result<(), String> {
        let start = block_id * EPOCH_BYTES;
        let lines = (start..start + raw_bytes).step_by(16);
        let raw: Vec<u8> = lines
            .flat_map(|at| format!("{at:015x}\n").into_bytes())
            .collect();
        let raw = &raw[..raw_bytes as usize];
        let sums: Vec<u64> = raw.chunks(PIECE_BYTES).map(checksum64).collect();
        let all: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        let mut builder = BlockHeader::builder(Vec::new(), raw_bytes);
        let plan = BlockPlan::plain(CodecId::ZSTD, 3);
        let description =
            encode_block(&mut self.workspace, raw, &plan, builder.payload()).map_err(text)?;
        let header = BlockHeader {
            block_id,
            store_start: start,
            raw_bytes,
            raw_checksum: Some(checksum64(&all)),
            coding: Coding::new(description.codec.0, &[], description.params.as_bytes(), 0)
                .map_err(text)?,
        };
        let mut frame = header.finish(builder, &sums).map_err(text)?;
        self.assembler.block(&header, &mut frame, 0).map_err(text)?;
        self.put(&frame, 0)
    }

    fn entries(&mut self, member_id: u64, tree: &TreePlan) -> Result<(u64, [u8; 32]), String> {
        let mut batch = Vec::with_capacity(ENTRIES_PER_BATCH);
        let mut written = 0;
        let mut hasher = EntriesHasher::new();
        tree.for_each_entry(&mut |entry| {
            batch.push(entry);
            if batch.len() == ENTRIES_PER_BATCH {
                hasher.update(&batch);
                written += self.batch(member_id, written, &batch)?;
                batch.clear();
            }
            Ok(())
        })?;
        if !batch.is_empty() {
            hasher.update(&batch);
            written += self.batch(member_id, written, &batch)?;
        }
        Ok((written, hasher.value()))
    }

    fn batch(&mut self, member: u64, first: u64, entries: &[Entry]) -> Result<u64, String> {
        let packed = pack_entries(entries).map_err(text)?;
        let mut builder = EntriesHeader::builder(&packed, Vec::new());
        let plan = BlockPlan::plain(CodecId::ZSTD, 9);
        let description = encode_block(&mut self.workspace, &packed.raw, &plan, builder.payload())
            .map_err(text)?;
        let params = description.params.as_bytes();
        let coding = Coding::new(description.codec.0, &[], params, 0).map_err(text)?;
        let header = EntriesHeader::new(member, first, &packed, coding);
        let mut frame = header.finish(builder).map_err(text)?;
        self.assembler.entries(&header, &mut frame).map_err(text)?;
        self.put(&frame, 0)?;
        Ok(packed.entry_count)
    }

    fn finish(mut self) -> Result<(), String> {
        self.flush()?;
        let offset = self.assembler.archive_bytes();
        let finished = self.assembler.finish().map_err(text)?;
        self.file
            .write_all_at(&finished.last_bytes, offset)
            .map_err(text)
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
