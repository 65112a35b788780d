//! Compares `docs/format.md` with the code: its example, byte by byte, and the names and numbers of
//! its tables. When the format changes on purpose, the failing test prints what the document must
//! show.
#![allow(clippy::unwrap_used, clippy::panic)]

use refrain_format::{
    ArchiveAssembler, ArchiveHeader, BlockHeader, Coding, EpochSums, Extent, ExtentsHeader,
    FORMAT_MAJOR, FORMAT_MINOR, FRAME_HEADER_BYTES, FrameKind, Limits, MAGIC, MemberEnd,
    MemberKind, MemberStart, Pattern, REACH_UNLIMITED, Timestamp, UntrustedFrameHeader,
    chunked_checksum64, content_hash, pack_extents, walk_archive,
};
use std::fmt::Write;

const CONTENT: &[u8] = b"to be or not to be\n\0\0\0\0\0\0\0\0";
const STORE: &[u8] = b"to be or not \n";

/// The fields of each kind of frame as the document names them, with their sizes in bytes; 0 stands
/// for all remaining bytes.
const HEADER: &[(&str, usize)] = &[
    ("Sync", 4),
    ("Kind", 1),
    ("Flags", 1),
    ("Reserved", 2),
    ("Payload_Bytes", 8),
    ("Sequence", 8),
    ("Payload_Checksum", 8),
    ("Header_Checksum", 8),
];
const ARCHIVE: &[(&str, usize)] = &[
    ("Format_Major", 2),
    ("Format_Minor", 2),
    ("Required_Features", 8),
    ("Level", 1),
    ("Reserved", 3),
    ("Segment_Bytes", 8),
    ("Epoch_Bytes", 8),
    ("Block_Bytes_Max", 8),
    ("Memory_Budget_Bytes", 8),
    ("Reach_Bytes", 8),
    ("Repeat_Window", 8),
];
const MEMBER_START: &[(&str, usize)] = &[
    ("Member_Id", 8),
    ("Content_Start", 8),
    ("Member_Kind", 1),
    ("Present", 1),
    ("Name_Bytes", 2),
    ("Reserved", 4),
    ("Mode", 4),
    ("Modified_Nanoseconds", 4),
    ("Modified_Seconds", 8),
    ("Content_Bytes_Hint", 8),
    ("Name", 0),
];
const CODING: &[(&str, usize)] = &[
    ("Codec", 2),
    ("Fallback", 1),
    ("Filter_Count", 1),
    ("Filters", 4),
    ("Params_Bytes", 1),
    ("Reserved", 7),
    ("Params", 16),
    ("Data", 0),
];
const BLOCK: &[(&str, usize)] = &[
    ("Block_Id", 8),
    ("Store_Start", 8),
    ("Raw_Bytes", 8),
    ("Raw_Checksum", 8),
];
const EXTENTS: &[(&str, usize)] = &[
    ("Epoch_Id", 8),
    ("Content_Start", 8),
    ("Content_Bytes", 8),
    ("Store_Start", 8),
    ("Fresh_Bytes", 8),
    ("Extent_Count", 8),
    ("Packed_Raw_Bytes", 8),
    ("Packed_Checksum", 8),
];
const MEMBER_END: &[(&str, usize)] = &[
    ("Member_Id", 8),
    ("Content_Bytes", 8),
    ("View_Bytes", 8),
    ("Entry_Count", 8),
    ("Blake3", 32),
    ("Member_Flags", 1),
    ("Digest_Count", 1),
];
const INDEX: &[(&str, usize)] = &[("Lists and totals", 0)];
const END: &[(&str, usize)] = &[
    ("Index_Frame_Offset", 8),
    ("Index_Frame_Bytes", 8),
    ("Frame_Count", 8),
    ("Content_Bytes", 8),
    ("Store_Bytes", 8),
    ("Archive_Bytes", 8),
    ("Generation", 8),
];

fn example_archive() -> Vec<u8> {
    let header = ArchiveHeader {
        version: (FORMAT_MAJOR, FORMAT_MINOR),
        required_features: 0,
        level: 3,
        segment_bytes: 1 << 20,
        epoch_bytes: 1 << 28,
        block_bytes_max: 1 << 22,
        memory_budget_bytes: 1 << 29,
        reach_bytes: REACH_UNLIMITED,
        repeat_window: 0,
    };
    let (mut assembler, mut bytes) = ArchiveAssembler::new(&header).unwrap();
    let start = MemberStart {
        member_id: 0,
        content_start: 0,
        kind: MemberKind::File,
        name: b"be.txt".to_vec(),
        mode: Some(0o644),
        modified: Some(Timestamp {
            seconds: 1_000_000_000,
            nanoseconds: 0,
        }),
        content_bytes_hint: Some(CONTENT.len() as u64),
    };
    bytes.extend(assembler.member_start(&start).unwrap());
    bytes.extend(extents_frame(&mut assembler));
    let end = MemberEnd {
        member_id: 0,
        content_bytes: CONTENT.len() as u64,
        view_bytes: CONTENT.len() as u64,
        entry_count: 0,
        blake3: content_hash(CONTENT),
        entries_are_sorted: false,
        digests: Vec::new(),
    };
    bytes.extend(assembler.member_end(&end).unwrap());
    bytes.extend(block_frame(&mut assembler));
    bytes.extend(assembler.finish().unwrap().0);
    bytes
}

fn block_frame(assembler: &mut ArchiveAssembler) -> Vec<u8> {
    let header = BlockHeader {
        block_id: 0,
        store_start: 0,
        raw_bytes: STORE.len() as u64,
        raw_checksum: chunked_checksum64(STORE),
        coding: Coding::none(),
    };
    let mut builder = BlockHeader::builder(Vec::new());
    builder.payload().extend_from_slice(STORE);
    let mut frame = header.finish(builder).unwrap();
    assembler.block(&header, &mut frame, 0).unwrap();
    frame
}

fn extents_frame(assembler: &mut ArchiveAssembler) -> Vec<u8> {
    let extents = [
        Extent::Fresh { length: 13 },
        Extent::Copy {
            length: 5,
            offset_in_store: 0,
        },
        Extent::Fresh { length: 1 },
        Extent::Fill {
            length: 8,
            pattern: Pattern::ZERO,
        },
    ];
    let packed = pack_extents(0, 0, &extents).unwrap();
    let header = ExtentsHeader {
        epoch_id: 0,
        content_start: 0,
        content_bytes: packed.content_bytes,
        store_start: 0,
        fresh_bytes: packed.fresh_bytes,
        extent_count: packed.extent_count,
        packed_raw_bytes: packed.raw.len() as u64,
        packed_checksum: packed.checksum,
        coding: Coding::none(),
    };
    let mut builder = ExtentsHeader::builder(Vec::new());
    builder.payload().extend_from_slice(&packed.raw);
    let mut frame = header.finish(builder).unwrap();
    assembler
        .extents(&header, &EpochSums::of(&extents), &mut frame)
        .unwrap();
    frame
}

fn fields_of(kind: FrameKind) -> Vec<(&'static str, usize)> {
    let (own, coded) = match kind {
        FrameKind::Archive => (ARCHIVE, false),
        FrameKind::MemberStart => (MEMBER_START, false),
        FrameKind::Block => (BLOCK, true),
        FrameKind::Extents => (EXTENTS, true),
        FrameKind::MemberEnd => (MEMBER_END, false),
        FrameKind::Index => (INDEX, false),
        FrameKind::End => (END, false),
        other => panic!("{other} is not in the example"),
    };
    let coding = CODING.iter().filter(|_| coded);
    own.iter().chain(coding).copied().collect()
}

/// Formats rows of at most 16 bytes: offset, bytes, field.
fn dump(bytes: &[u8]) -> String {
    let mut out = String::new();
    row(&mut out, 0, &bytes[..MAGIC.len()], "Magic");
    let mut at = MAGIC.len();
    while at < bytes.len() {
        let header = UntrustedFrameHeader::parse(&bytes[at..])
            .unwrap()
            .check(&Limits::default(), None)
            .unwrap();
        writeln!(out, "\n{} frame", header.kind).unwrap();
        let end = at + header.frame_bytes() as usize;
        let mut fields = HEADER.to_vec();
        fields.extend(fields_of(header.kind));
        assert_eq!(
            HEADER.iter().map(|field| field.1).sum::<usize>(),
            FRAME_HEADER_BYTES
        );
        for (name, length) in fields {
            let length = if length == 0 { end - at } else { length };
            row(&mut out, at, &bytes[at..at + length], name);
            at += length;
        }
        assert_eq!(
            at, end,
            "the fields of {} do not add up to the frame",
            header.kind
        );
    }
    out
}

fn row(out: &mut String, at: usize, bytes: &[u8], name: &str) {
    for (index, part) in bytes.chunks(16).enumerate() {
        let hex: Vec<String> = part.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = if index == 0 { name } else { "" };
        writeln!(
            out,
            "{}",
            format!("{:04x}  {:<47}  {name}", at + 16 * index, hex.join(" ")).trim_end()
        )
        .unwrap();
    }
}

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_example_is_a_valid_archive() {
    walk_archive(&example_archive(), &Limits::default(), |_, _, _| Ok(())).unwrap();
}

#[test]
fn the_document_shows_the_bytes_that_the_code_writes() {
    let shown = dump(&example_archive());
    assert!(
        document().contains(&shown),
        "docs/format.md must show this example:\n{shown}"
    );
}

#[test]
fn the_document_names_every_field_and_kind() {
    let document = document();
    let fields = [
        HEADER,
        ARCHIVE,
        MEMBER_START,
        BLOCK,
        EXTENTS,
        MEMBER_END,
        END,
        CODING,
    ];
    for (name, _) in fields.concat() {
        assert!(document.contains(name), "field {name}");
    }
    for kind in FrameKind::NAMED {
        let row = format!("| {} | {kind} |", kind.id());
        assert!(document.contains(&row), "missing table row: {row}");
    }
}

#[test]
fn the_document_states_every_limit() {
    use refrain_format::limits;
    let document = document();
    let rows = [
        ("ADDRESS_BYTES_MAX", limits::ADDRESS_BYTES_MAX),
        ("BLOCK_RAW_BYTES_MAX", limits::BLOCK_RAW_BYTES_MAX),
        ("PACKED_RAW_BYTES_MAX", limits::PACKED_RAW_BYTES_MAX),
        ("EXTENTS_PER_FRAME_MAX", limits::EXTENTS_PER_FRAME_MAX),
        ("REPEAT_WINDOW_MAX", limits::REPEAT_WINDOW_MAX),
        ("REPEAT_DEPTH_MAX", u64::from(limits::REPEAT_DEPTH_MAX)),
        ("EPOCH_BYTES_MAX", limits::EPOCH_BYTES_MAX),
        ("PATTERN_BYTES_MAX", limits::PATTERN_BYTES_MAX as u64),
        ("NAME_BYTES_MAX", limits::NAME_BYTES_MAX as u64),
        ("MEMBERS_MAX", limits::MEMBERS_MAX),
        ("DIGESTS_MAX", limits::DIGESTS_MAX as u64),
        ("DIGEST_BYTES_MAX", limits::DIGEST_BYTES_MAX as u64),
        ("ENTRIES_PER_FRAME_MAX", limits::ENTRIES_PER_FRAME_MAX),
        ("PATH_BYTES_MAX", limits::PATH_BYTES_MAX as u64),
        ("FIRST_PATH_BYTES_MAX", limits::FIRST_PATH_BYTES_MAX as u64),
        (
            "ENTRY_BYTES_PER_FRAME_MAX",
            limits::ENTRY_BYTES_PER_FRAME_MAX as u64,
        ),
        ("INDEX_BYTES_MAX", limits::INDEX_BYTES_MAX),
        ("FILTERS_MAX", limits::FILTERS_MAX as u64),
        ("PARAMS_BYTES_MAX", limits::PARAMS_BYTES_MAX as u64),
    ];
    for (name, value) in rows {
        let row = format!("| {name} | {value} |");
        assert!(document.contains(&row), "missing table row: {row}");
    }
}
