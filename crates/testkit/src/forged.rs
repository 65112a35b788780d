//! Valid archives made frame by frame, for tests of what an archive may cost its reader: a few
//! bytes may stand for any amount.

use refrain_format::{
    ArchiveAssembler, ArchiveHeader, BlockHeader, Coding, DecoderHeader, EntriesHasher,
    EntriesHeader, Entry, EpochSums, Extent, ExtentPacker, ExtentsHeader, FORMAT_MAJOR,
    FORMAT_MINOR, MemberEnd, MemberKind, MemberStart, REACH_UNLIMITED, checksum64,
    chunked_checksum64, entries_are_sorted, pack_entries,
};

/// Codes a block or a section: the coding and the coded bytes.
pub type Encode = fn(&[u8]) -> (Coding, Vec<u8>);

/// Leaves the bytes as they are.
#[must_use]
pub fn uncoded(raw: &[u8]) -> (Coding, Vec<u8>) {
    (Coding::none(), raw.to_vec())
}

const PIECE_BYTES: usize = 65_536;

/// The most entries of a frame here.
const ENTRIES_PER_FRAME: usize = 16_384;

/// An archive of a single member while it is being written.
pub struct ForgedArchive {
    assembler: ArchiveAssembler,
    bytes: Vec<u8>,
    encode: Encode,
    kind: MemberKind,
    epochs: u64,
    content_bytes: u64,
    introduced_bytes: u64,
    blocks: u64,
    store_bytes: u64,
}

impl ForgedArchive {
    /// Begins an archive with one member. Blocks and extents are coded by `encode`.
    #[must_use]
    pub fn new(kind: MemberKind, encode: Encode) -> ForgedArchive {
        Self::begin(kind, false, encode)
    }

    /// Begins an archive with one sparse file.
    #[must_use]
    pub fn sparse(encode: Encode) -> ForgedArchive {
        Self::begin(MemberKind::File, true, encode)
    }

    fn begin(kind: MemberKind, is_sparse: bool, encode: Encode) -> ForgedArchive {
        let header = ArchiveHeader {
            version: (FORMAT_MAJOR, FORMAT_MINOR),
            required_features: 0,
            level: 1,
            segment_bytes: 1 << 20,
            epoch_bytes: 1 << 50,
            block_bytes_max: 1 << 30,
            memory_budget_bytes: 1 << 30,
            reach_bytes: REACH_UNLIMITED,
            reference_window: 1 << 20,
        };
        let (mut assembler, mut bytes) =
            ArchiveAssembler::new(&header, 0x00f0_96ed).expect("valid settings");
        let start = MemberStart {
            member_id: 0,
            content_start: 0,
            kind,
            name: b"forged".to_vec(),
            mode: None,
            modified: None,
            content_bytes_hint: None,
            is_sparse,
            layers: None,
            extensions: Vec::new(),
        };
        bytes.extend(assembler.member_start(&start).expect("in order"));
        ForgedArchive {
            assembler,
            bytes,
            encode,
            kind,
            epochs: 0,
            content_bytes: 0,
            introduced_bytes: 0,
            blocks: 0,
            store_bytes: 0,
        }
    }

    /// The content so far, in bytes.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Adds a decoder that the archive carries.
    pub fn decoder(&mut self, header: &DecoderHeader, module: &[u8]) {
        let frame = self.assembler.decoder(header, module);
        self.bytes.extend(frame.expect("a small module"));
    }

    /// Adds an epoch. References must not refer to fills.
    pub fn extents(&mut self, extents: impl IntoIterator<Item = Extent>) {
        let mut packer = ExtentPacker::new(self.content_bytes, self.introduced_bytes);
        let mut sums = EpochSums::default();
        for extent in extents {
            packer.push(&extent).expect("a valid extent");
            sums.add(&match extent {
                Extent::Reference { length, .. } => Extent::Copy {
                    length,
                    offset_in_store: 0,
                },
                other => other,
            });
        }
        let packed = packer.finish().expect("a section within the limits");
        let (coding, data) = (self.encode)(&packed.raw);
        let header = packed.header(
            self.epochs,
            (self.content_bytes, self.introduced_bytes),
            coding,
        );
        let mut builder = ExtentsHeader::builder(Vec::new());
        builder.payload().extend_from_slice(&data);
        let mut frame = header.finish(builder).expect("a valid header");
        self.assembler
            .extents(&header, &sums, &mut frame)
            .expect("in order");
        self.bytes.extend_from_slice(&frame);
        self.epochs += 1;
        self.content_bytes += packed.content_bytes;
        self.introduced_bytes += packed.fresh_bytes;
    }

    /// Adds the next block of the store, whose bytes the extents have introduced.
    pub fn block(&mut self, raw: &[u8]) {
        let (coding, data) = (self.encode)(raw);
        let pieces: Vec<u64> = raw.chunks(PIECE_BYTES).map(checksum64).collect();
        let header = BlockHeader {
            block_id: self.blocks,
            store_start: self.store_bytes,
            raw_bytes: raw.len() as u64,
            raw_checksum: (!coding.is_uncoded()).then(|| chunked_checksum64(raw)),
            coding,
        };
        let mut builder = BlockHeader::builder(Vec::new(), header.raw_bytes);
        builder.payload().extend_from_slice(&data);
        let mut frame = header.finish(builder, &pieces).expect("a valid header");
        self.assembler
            .block(&header, &mut frame, 0)
            .expect("in order");
        self.bytes.extend_from_slice(&frame);
        self.blocks += 1;
        self.store_bytes += header.raw_bytes;
    }

    /// Ends the member, with these entries if it is a tree, and the archive. Returns its bytes.
    #[must_use]
    pub fn finish(mut self, blake3: [u8; 32], view_bytes: u64, entries: &[Entry]) -> Vec<u8> {
        let mut hasher = EntriesHasher::new();
        let mut first_entry = 0;
        for batch in entries.chunks(ENTRIES_PER_FRAME) {
            hasher.update(batch);
            let packed = pack_entries(batch).expect("valid entries");
            let (coding, data) = (self.encode)(&packed.raw);
            let header = EntriesHeader::new(0, first_entry, &packed, coding);
            let mut builder = EntriesHeader::builder(&packed, Vec::new());
            builder.payload().extend_from_slice(&data);
            let mut frame = header.finish(builder).expect("a valid header");
            self.assembler
                .entries(&header, &mut frame)
                .expect("in order");
            self.bytes.extend_from_slice(&frame);
            first_entry += packed.entry_count;
        }
        let end = MemberEnd {
            view_bytes,
            entry_count: first_entry,
            entries_hash: self.kind.has_entries().then(|| hasher.value()),
            blake3,
            entries_are_sorted: entries_are_sorted(entries),
            ..MemberEnd::of_content(0, self.content_bytes)
        };
        self.bytes
            .extend(self.assembler.member_end(&end).expect("in order"));
        let last = self
            .assembler
            .finish()
            .expect("a complete archive")
            .last_bytes;
        self.bytes.extend_from_slice(&last);
        self.bytes
    }
}
