//! Compares `docs/format.md` with the code: its example, byte by byte, and the names and numbers of
//! its tables. When the format changes on purpose, the failing test prints what the document must
//! show.
#![allow(clippy::unwrap_used, clippy::panic)]

use refrain_format::{
    ArchiveAssembler, ArchiveHeader, BlockHeader, Coding, EpochSums, Extent, ExtentsHeader,
    FORMAT_MAJOR, FORMAT_MINOR, FrameKind, Limits, MAGIC, MemberEnd, MemberKind, MemberStart,
    Pattern, REACH_UNLIMITED, TAIL_BYTES, Timestamp, UntrustedFrameHeader, checksum64,
    content_hash, pack_extents, walk_archive,
};
use std::fmt::Write;

const CONTENT: &[u8] = b"to be or not to be\n\0\0\0\0\0\0\0\0";
const STORE: &[u8] = b"to be or not \n";

#[derive(Debug, Clone, Copy)]
enum Size {
    /// A number of bytes.
    Bytes(usize),
    /// A variable-length number.
    Varint,
    /// As many bytes as the previous variable-length number states.
    Counted,
    /// All remaining bytes of the frame.
    Rest,
}

use Size::{Bytes, Counted, Rest, Varint};

/// The fields of each kind of frame in the example, as the document names them.
type Fields = &'static [(&'static str, Size)];

const HEADER: Fields = &[
    ("Sync", Bytes(4)),
    ("Archive_Id", Bytes(4)),
    ("Kind", Bytes(1)),
    ("Flags", Bytes(1)),
    ("Generation", Bytes(2)),
    ("Sequence", Bytes(4)),
    ("Payload_Bytes", Bytes(4)),
    ("Payload_Checksum", Bytes(8)),
    ("Header_Checksum", Bytes(4)),
];
const ARCHIVE: Fields = &[
    ("Head_Bytes", Varint),
    ("Format_Major", Varint),
    ("Format_Minor", Varint),
    ("Required_Features", Varint),
    ("Level", Varint),
    ("Block_Bytes_Max", Varint),
    ("Epoch_Bytes", Varint),
    ("Reference_Window", Varint),
    ("Reach_Bytes", Varint),
    ("Segment_Bytes", Varint),
    ("Memory_Budget_Bytes", Varint),
];
const MEMBER_START: Fields = &[
    ("Head_Bytes", Varint),
    ("Member_Id", Varint),
    ("Content_Start", Varint),
    ("Member_Kind", Varint),
    ("Present", Varint),
    ("Name_Bytes", Varint),
    ("Name", Counted),
    ("Mode", Varint),
    ("Modified_Seconds", Varint),
    ("Modified_Nanoseconds", Varint),
    ("Content_Bytes_Hint", Varint),
];
const CODING: Fields = &[("Codec", Varint), ("Coding_Flags", Varint)];
const BLOCK: Fields = &[
    ("Head_Bytes", Varint),
    ("Block_Id", Varint),
    ("Store_Start", Varint),
    ("Raw_Bytes", Varint),
    ("Codec", Varint),
    ("Coding_Flags", Varint),
    ("Data", Rest),
];
const EXTENTS: Fields = &[
    ("Head_Bytes", Varint),
    ("Epoch_Id", Varint),
    ("Content_Start", Varint),
    ("Content_Bytes", Varint),
    ("Store_Start", Varint),
    ("Fresh_Bytes", Varint),
    ("Extent_Count", Varint),
    ("Packed_Raw_Bytes", Varint),
    ("Codec", Varint),
    ("Coding_Flags", Varint),
    ("Data", Rest),
];
const MEMBER_END: Fields = &[
    ("Head_Bytes", Varint),
    ("Member_Id", Varint),
    ("Content_Bytes", Varint),
    ("Member_Flags", Varint),
    ("Content_Hash", Bytes(32)),
    ("Digest_Count", Varint),
];
const END: Fields = &[
    ("Head_Bytes", Varint),
    ("Content_Bytes", Varint),
    ("Store_Bytes", Varint),
    ("Frame_Count", Varint),
    ("Member_Count", Varint),
    ("Archive_Bytes", Varint),
    ("Matched_Bytes", Varint),
    ("Fill_Bytes", Varint),
    ("Fallback_Count", Varint),
    ("Reach_Needed_Bytes", Varint),
    ("Root_Hash", Bytes(32)),
    ("List", Varint),
    ("Depth", Varint),
    ("Row_Count", Varint),
    ("Rows_Bytes", Varint),
    ("Rows: blocks", Counted),
    ("List", Varint),
    ("Depth", Varint),
    ("Row_Count", Varint),
    ("Rows_Bytes", Varint),
    ("Rows: epochs", Counted),
    ("List", Varint),
    ("Depth", Varint),
    ("Row_Count", Varint),
    ("Rows_Bytes", Varint),
    ("Rows: members", Counted),
];
const TAIL: Fields = &[("Back_Bytes", Bytes(6)), ("Tail_Magic", Bytes(2))];

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
        reference_window: 0,
    };
    let (mut assembler, mut bytes) = ArchiveAssembler::new(&header, 0x1d1d_1d1d).unwrap();
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
        is_sparse: false,
        layers: None,
        extensions: Vec::new(),
    };
    bytes.extend(assembler.member_start(&start).unwrap());
    bytes.extend(extents_frame(&mut assembler));
    let end = MemberEnd {
        blake3: content_hash(CONTENT),
        ..MemberEnd::of_content(0, CONTENT.len() as u64)
    };
    bytes.extend(assembler.member_end(&end).unwrap());
    bytes.extend(block_frame(&mut assembler));
    bytes.extend(assembler.finish().unwrap().last_bytes);
    bytes
}

fn block_frame(assembler: &mut ArchiveAssembler) -> Vec<u8> {
    let header = BlockHeader {
        block_id: 0,
        store_start: 0,
        raw_bytes: STORE.len() as u64,
        raw_checksum: None,
        coding: Coding::none(),
    };
    let mut builder = BlockHeader::builder(Vec::new(), header.raw_bytes);
    builder.payload().extend_from_slice(STORE);
    let mut frame = header.finish(builder, &[checksum64(STORE)]).unwrap();
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
    let header = packed.header(0, (0, 0), Coding::none());
    let mut builder = ExtentsHeader::builder(Vec::new());
    builder.payload().extend_from_slice(&packed.raw);
    let mut frame = header.finish(builder).unwrap();
    assembler
        .extents(&header, &EpochSums::from_extents(&extents), &mut frame)
        .unwrap();
    frame
}

fn fields_of(kind: FrameKind) -> Fields {
    match kind {
        FrameKind::Archive => ARCHIVE,
        FrameKind::MemberStart => MEMBER_START,
        FrameKind::Block => BLOCK,
        FrameKind::Extents => EXTENTS,
        FrameKind::MemberEnd => MEMBER_END,
        FrameKind::End => END,
        other => panic!("{other} is not in the example"),
    }
}

fn dump(bytes: &[u8]) -> String {
    let mut out = String::new();
    row(&mut out, 0, &bytes[..MAGIC.len()], "Magic");
    let mut at = MAGIC.len();
    let tail_at = bytes.len() - TAIL_BYTES;
    while at < tail_at {
        let header = UntrustedFrameHeader::parse(&bytes[at..])
            .unwrap()
            .check(&Limits::default(), None)
            .unwrap();
        writeln!(out, "\n{} frame", header.kind).unwrap();
        let end = at + header.frame_bytes() as usize;
        let fields = [HEADER, fields_of(header.kind)].concat();
        at = dump_fields(&mut out, bytes, at, end, &fields);
        assert_eq!(
            at, end,
            "the fields of {} do not add up to the frame",
            header.kind
        );
    }
    writeln!(out, "\nTail").unwrap();
    assert_eq!(
        dump_fields(&mut out, bytes, at, bytes.len(), TAIL),
        bytes.len()
    );
    out
}

fn dump_fields(
    out: &mut String,
    bytes: &[u8],
    mut at: usize,
    end: usize,
    fields: &[(&str, Size)],
) -> usize {
    let mut number = 0;
    for (name, size) in fields {
        let length = match size {
            Bytes(length) => *length,
            Varint => 1 + bytes[at..].iter().take_while(|byte| **byte >= 0x80).count(),
            Counted => number,
            Rest => end - at,
        };
        let field = &bytes[at..at + length];
        if let Varint = size {
            let digits = field.iter().rev();
            number = digits.fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
        }
        row(out, at, field, name);
        at += length;
    }
    at
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
        TAIL,
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
        ("REFERENCE_WINDOW_MAX", limits::REFERENCE_WINDOW_MAX),
        (
            "REFERENCE_DEPTH_MAX",
            u64::from(limits::REFERENCE_DEPTH_MAX),
        ),
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
        ("OPEN_MEMBERS_MAX", limits::OPEN_MEMBERS_MAX as u64),
        ("INDEX_BYTES_MAX", limits::INDEX_BYTES_MAX),
        ("INDEX_DEPTH_MAX", u64::from(limits::INDEX_DEPTH_MAX)),
        ("ARCHIVES_MAX", limits::ARCHIVES_MAX as u64),
        ("FRAMES_MAX", limits::FRAMES_MAX),
        ("HEAD_BYTES_MAX", limits::HEAD_BYTES_MAX as u64),
        ("HELD_BYTES_MAX", limits::HELD_BYTES_MAX),
        ("CATALOG_BYTES_MAX", limits::CATALOG_BYTES_MAX),
        ("TAGS_MAX", limits::TAGS_MAX as u64),
        ("TREE_LAYERS_MAX", limits::TREE_LAYERS_MAX as u64),
        ("WHOLE_BYTES_MAX", limits::WHOLE_BYTES_MAX as u64),
        ("PARAMS_BYTES_MAX", limits::PARAMS_BYTES_MAX as u64),
    ];
    for (name, value) in rows {
        let row = format!("| {name} | {value} |");
        assert!(document.contains(&row), "missing table row: {row}");
    }
}
