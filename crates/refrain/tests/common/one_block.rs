//! An archive of one block coded by the test.

use refrain_format::{
    ArchiveAssembler, ArchiveHeader, BlockHeader, Coding, EpochSums, Extent, ExtentsHeader,
    FORMAT_MAJOR, FORMAT_MINOR, MemberEnd, MemberKind, MemberStart, REACH_UNLIMITED, checksum64,
    chunked_checksum64, content_hash, pack_extents,
};

/// An archive of one member of this content, in one block with this coding and data.
pub fn archive_of_block(raw: &[u8], coding: Coding, data: &[u8]) -> Vec<u8> {
    let bytes = raw.len() as u64;
    let settings = ArchiveHeader {
        version: (FORMAT_MAJOR, FORMAT_MINOR),
        required_features: 0,
        level: 1,
        segment_bytes: bytes,
        epoch_bytes: bytes,
        block_bytes_max: bytes,
        memory_budget_bytes: bytes,
        reach_bytes: REACH_UNLIMITED,
        reference_window: 0,
    };
    let (mut assembler, mut archive) = ArchiveAssembler::new(&settings, 7).unwrap();
    archive.extend(assembler.member_start(&start()).unwrap());
    let packed = pack_extents(0, 0, &[Extent::Fresh { length: bytes }]).unwrap();
    let epoch = packed.header(0, (0, 0), Coding::none());
    let mut builder = ExtentsHeader::builder(Vec::new());
    builder.payload().extend(&packed.raw);
    let mut frame = epoch.finish(builder).unwrap();
    let sums = EpochSums::default();
    assembler.extents(&epoch, &sums, &mut frame).unwrap();
    archive.extend(frame);
    archive.extend(assembler.member_end(&end(raw)).unwrap());
    let block = BlockHeader {
        block_id: 0,
        store_start: 0,
        raw_bytes: bytes,
        raw_checksum: Some(chunked_checksum64(raw)),
        coding,
    };
    let pieces: Vec<u64> = raw.chunks(1 << 16).map(checksum64).collect();
    let mut builder = BlockHeader::builder(Vec::new(), bytes);
    builder.payload().extend(data);
    let mut frame = block.finish(builder, &pieces).unwrap();
    assembler.block(&block, &mut frame, 0).unwrap();
    archive.extend(frame);
    archive.extend(assembler.finish().unwrap().last_bytes);
    archive
}

fn start() -> MemberStart {
    MemberStart {
        member_id: 0,
        content_start: 0,
        kind: MemberKind::File,
        name: b"member".to_vec(),
        mode: None,
        modified: None,
        content_bytes_hint: None,
        is_sparse: false,
        layers: None,
        extensions: Vec::new(),
    }
}

fn end(raw: &[u8]) -> MemberEnd {
    MemberEnd {
        blake3: content_hash(raw),
        ..MemberEnd::of_content(0, raw.len() as u64)
    }
}
