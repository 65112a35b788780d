//! Archives read by the decoders that they carry.

use refrain_format::{Coding, DecoderHeader, DecoderRole, Extent, MemberKind, content_hash};
use refrain_testkit::ForgedArchive;

use crate::support::{Case, incompressible, json, mixture};

#[test]
fn an_archive_opens_by_its_own_decoders_alone() {
    let case = Case::new();
    let content = mixture(100_000);
    case.write("file", &content);
    case.ok("compress -q file -o carries.rfn --carry-decoders");
    case.ok("compress -q file -o plain.rfn");
    case.ok("test -q --decoders carried carries.rfn");
    let cat = case.ok("cat --decoders carried carries.rfn");
    assert!(cat.stdout == content);
    assert!(cat.stderr.is_empty(), "they were asked for");
    case.ok("decompress -q --decoders carried carries.rfn -o copy");
    assert!(case.read("copy") == content);
    let info = String::from_utf8(case.ok("info carries.rfn").stdout).unwrap();
    assert!(info.contains("(zstd) carried, "), "{info}");
    let plain = json(&case.ok("info --json plain.rfn").stdout);
    assert_eq!(plain["results"][0]["decoders"], serde_json::json!([]));
    let told = case.fails("test --decoders carried plain.rfn", 3);
    assert!(told.contains("carries no decoder for codec"), "{told}");
    case.write("file.gz", b"\x1f\x8b\x08\x00");
    let told = case.fails("test --decoders carried file.gz", 3);
    assert!(told.contains("only archives of Refrain"), "{told}");
}

const RAW: &[u8] = &[7; 5000];

/// lz4: a literal, and a match that repeats it to the end.
fn under_another_number(raw: &[u8]) -> (Coding, Vec<u8>) {
    if raw.len() < RAW.len() {
        return refrain_testkit::uncoded(raw);
    }
    let mut data = vec![0x1F, 7, 1, 0];
    // The last five bytes are literals.
    let left = raw.len() - 1 - 5 - 19;
    data.extend(vec![255; left / 255]);
    data.push((left % 255) as u8);
    data.extend([0x50, 7, 7, 7, 7, 7]);
    (Coding::new(300, &[], &[], 0).unwrap(), data)
}

/// As [`under_another_number`], of other bytes.
fn wrong_under_another_number(raw: &[u8]) -> (Coding, Vec<u8>) {
    let (coding, mut data) = under_another_number(raw);
    if raw.len() >= RAW.len() {
        data[1] = 8;
    }
    (coding, data)
}

/// An archive of one block, with lz4's module for codec 300.
fn with_decoder_of_300(raw: &[u8], code: fn(&[u8]) -> (Coding, Vec<u8>)) -> Vec<u8> {
    let module = include_bytes!("../../../carried/modules/lz4.wasm");
    let header = DecoderHeader {
        back_bytes: 0,
        role: DecoderRole::Codec(300),
        memory_pages_max: 100,
        steps_per_byte_max: 1000,
        module_hash: content_hash(module),
    };
    let mut archive = ForgedArchive::new(MemberKind::File, code);
    archive.decoder(&header, module);
    let length = raw.len() as u64;
    archive.extents([Extent::Fresh { length }]);
    archive.block(raw);
    archive.finish(content_hash(raw), length, &[])
}

#[test]
fn a_part_of_a_block_is_read_only_if_the_whole_is_right() {
    let case = Case::new();
    // Of blocks so large others decode parts.
    let raw = vec![7; 600_000];
    for (name, code) in [
        ("right.rfn", under_another_number as fn(&[u8]) -> _),
        ("wrong.rfn", wrong_under_another_number),
    ] {
        case.write(name, &with_decoder_of_300(&raw, code));
    }
    assert_eq!(case.ok("cat --range 0..100 right.rfn").stdout, [7; 100]);
    let told = case.fails("cat --range 0..100 wrong.rfn", 2);
    assert!(told.contains("0 bytes were written before"), "{told}");
}

#[test]
fn a_codec_that_this_version_lacks_is_told_once() {
    let case = Case::new();
    case.write("a.rfn", &with_decoder_of_300(RAW, under_another_number));
    let cat = case.ok("cat a.rfn");
    assert!(cat.stdout == RAW);
    let told = String::from_utf8(cat.stderr).unwrap();
    let expected = "this version lacks codec 300: the decoder that the archive carries is used";
    assert_eq!(told.matches(expected).count(), 1, "{told}");
    let quiet = case.ok("test -q a.rfn");
    assert!(quiet.stderr.is_empty());
    let listed = case.ok("info a.rfn");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("#300"));
}

#[test]
fn an_archive_that_grows_keeps_its_decoders_complete() {
    let case = Case::new();
    for night in 0..3 {
        case.write("disk", &incompressible(night, 300_000));
        case.write("text", &mixture(50_000 + night as usize));
        let carries = if night == 1 { "--carry-decoders" } else { "" };
        let line = format!("add -q a.rfn disk text --time 2026-11-2{night} {carries}");
        case.ok(line.trim_end());
    }
    case.ok("test -q --decoders carried a.rfn");
    case.ok("merge -q a.rfn -o merged.rfn");
    case.ok("test -q --decoders carried merged.rfn");
    case.ok("forget -q a.rfn 1 2");
    case.ok("test -q --decoders carried a.rfn");
    case.ok("compact a.rfn");
    case.ok("test -q --decoders carried a.rfn");
    let decoded = case.ok("cat --decoders carried a.rfn text").stdout;
    assert!(decoded == case.read("text"));
}
