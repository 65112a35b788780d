//! Archives read by the decoders that they carry.

use std::sync::{Arc, Mutex};

use crate::common::*;
use crate::generations::{add_to, label};
use refrain::storage::MemorySink;
use refrain::{
    Archive, CodecChoice, CompressOptions, DecoderChoice, DecoderListener, DecoderRole, Error,
    ErrorKind, Level, Merge, MergeSource, ReadOptions, Unwatched,
};
use refrain_carried::{Role, decoder};
use refrain_codec::{CodecId, FilterStep, Host, Settings, Workspace, by_id};
use refrain_format::{
    Coding, DecoderHeader, Extent, FrameKind, Limits, MemberKind, content_hash, walk_archive,
};
use refrain_testkit::{ForgedArchive, data, uncoded};

fn by(decoders: DecoderChoice) -> ReadOptions {
    ReadOptions {
        decoders,
        // The module of cm states 601 MiB, and codecs get half of it.
        memory_bytes: 2 << 30,
        ..read_options(2)
    }
}

/// The results of every way of reading.
fn every_way(archive: &[u8], options: &ReadOptions) -> [refrain::Result<Vec<Published>>; 3] {
    [
        extracted(archive, options),
        extracted_from_pipe(archive, options),
        read_by_index(archive, options),
    ]
}

fn is_same(read: &[Published], expected: &[Published]) -> bool {
    let pair = |one: &Published| (one.name.clone(), one.content.clone());
    read.iter().map(pair).eq(expected.iter().map(pair))
}

#[test]
fn golden_archives_give_the_same_bytes_by_both() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/carried");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let archive = std::fs::read(file.unwrap().path()).unwrap();
        let own = extracted(&archive, &by(DecoderChoice::Own)).unwrap();
        for carried in every_way(&archive, &by(DecoderChoice::Carried)) {
            assert!(is_same(&carried.unwrap(), &own));
        }
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn every_codec_gives_the_same_bytes_by_both() {
    let content = [data::text(9_000, 1), data::executable(9_000, 2)].concat();
    for codec in refrain::codec_names() {
        let options = CompressOptions {
            codec: Some(CodecChoice {
                name: codec.into(),
                level: None,
            }),
            carry_decoders: true,
            block_bytes: Some(64 << 10),
            ..options(1, 2)
        };
        let (archive, _) = archive_of(vec![file("member", &content)], &options);
        for read in every_way(&archive, &by(DecoderChoice::Carried)) {
            let read = read.unwrap_or_else(|error| panic!("{codec}: {error}"));
            assert!(is_same(&read, &[as_published("member", &content)]));
        }
    }
}

#[test]
fn an_archive_without_decoders_is_refused_by_them() {
    let (archive, _) = archive_of(vec![file("m", &data::text(50_000, 1))], &options(1, 1));
    for read in every_way(&archive, &by(DecoderChoice::Carried)) {
        let error = read.map(|_| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
        let text = error.to_string();
        assert!(
            text.contains("the archive carries no decoder for codec 2 (zstd)"),
            "{text}"
        );
    }
}

/// A codec that nobody has.
const CODEC: u16 = 300;
/// A filter that nobody has.
const FILTER: u8 = 200;
const RAW_BYTES: usize = 100_000;
/// What our modules need for it.
const AMPLE: (u64, u64) = (1000, 1 << 14);

/// Coded by lz under another number, of bytes filtered by a delta under another number.
fn strange(raw: &[u8]) -> (Coding, Vec<u8>) {
    if raw.len() < RAW_BYTES {
        return uncoded(raw);
    }
    let mut filtered = raw.to_vec();
    let delta = FilterStep::Delta { distance_bytes: 4 };
    delta.encode(Host::default(), &mut filtered).unwrap();
    let lz = by_id(CodecId::LZ).unwrap();
    let (mut workspace, mut data) = (Workspace::new(), Vec::new());
    let settings = Settings::default();
    let params = lz.encode(&mut workspace, &filtered, &settings, &mut data);
    let params = params.unwrap();
    let coding = Coding::new(CODEC, &[(FILTER, 4)], params.as_bytes(), 0);
    (coding.unwrap(), data)
}

/// An archive of one block that `strange` coded, with these modules: their pages, and their steps
/// for each byte.
fn strange_archive(raw: &[u8], modules: &[(DecoderRole, &[u8], (u64, u64))]) -> Vec<u8> {
    let mut archive = ForgedArchive::new(MemberKind::File, strange);
    for &(role, module, (memory_pages_max, steps_per_byte_max)) in modules {
        let header = DecoderHeader {
            back_bytes: 0,
            role,
            memory_pages_max,
            steps_per_byte_max,
            module_hash: content_hash(module),
        };
        archive.decoder(&header, module);
    }
    let length = raw.len() as u64;
    archive.extents([Extent::Fresh { length }]);
    archive.block(raw);
    archive.finish(content_hash(raw), length, &[])
}

fn numbers() -> Vec<u8> {
    let numbers = (0..RAW_BYTES as u32 / 4).map(|i| i.wrapping_mul(65_599));
    numbers.flat_map(u32::to_le_bytes).collect()
}

#[test]
fn unknown_codecs_and_filters_are_undone_by_the_modules_of_the_archive() {
    let raw = numbers();
    let lz = decoder(Role::Codec, CodecId::LZ.0).unwrap().module;
    let delta = decoder(Role::Filter, 3).unwrap().module;
    let roles = [DecoderRole::Codec(CODEC), DecoderRole::Filter(FILTER)];
    let archive = strange_archive(&raw, &[(roles[0], lz, AMPLE), (roles[1], delta, AMPLE)]);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let options = ReadOptions {
        decoder_listener: DecoderListener::new(move |role| heard.lock().unwrap().push(role)),
        ..by(DecoderChoice::Own)
    };
    for read in every_way(&archive, &options) {
        assert!(is_same(&read.unwrap(), &[as_published("forged", &raw)]));
    }
    let told = std::mem::take(&mut *told.lock().unwrap());
    assert_eq!(told, roles.repeat(3), "each way says it once");
    // A part of the block, and an archive without its end.
    let opened = Archive::open(source(&archive), &by(DecoderChoice::Own)).unwrap();
    let mut part = [0; 100];
    assert_eq!(opened.read_at(0, 5000, &mut part).unwrap(), 100);
    assert!(part == raw[5000..5100]);
    let cut = &archive[..archive.len() - 60];
    let scanned = Archive::open_by_scan(source(cut), &by(DecoderChoice::Own)).unwrap();
    assert_eq!(scanned.read_at(0, 5000, &mut part).unwrap(), 100);
    assert!(part == raw[5000..5100]);
}

#[test]
fn an_absent_decoder_is_named() {
    let delta = decoder(Role::Filter, 3).unwrap().module;
    let archive = strange_archive(&numbers(), &[(DecoderRole::Filter(FILTER), delta, AMPLE)]);
    for error in failures(&archive, &by(DecoderChoice::Own)) {
        assert_eq!(error.kind, ErrorKind::Unsupported);
        let text = error.to_string();
        let expected = "block 0: the archive carries no decoder for codec 300; this build has none";
        assert!(text.contains(expected), "{text}");
    }
}

/// The errors of every way of reading.
fn failures(archive: &[u8], options: &ReadOptions) -> Vec<Error> {
    let results = every_way(archive, options);
    let error = |result: refrain::Result<_>| result.map(|_: Vec<Published>| ()).unwrap_err();
    results.into_iter().map(error).collect()
}

/// A module whose `place` returns 16, and whose `decode` has this body.
fn module_with(body: &[u8]) -> Vec<u8> {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    let types = [2, 0x60, 3, 0x7F, 0x7F, 0x7F, 1, 0x7F, 0x60, 0, 1, 0x7F];
    let mut exports = vec![3];
    for (name, kind, index) in [("memory", 2, 0), ("place", 0, 0), ("decode", 0, 1)] {
        exports.push(name.len() as u8);
        exports.extend_from_slice(name.as_bytes());
        exports.extend([kind, index]);
    }
    let mut code = vec![2, 4, 0, 0x41, 16, 0x0B, body.len() as u8 + 2, 0];
    code.extend_from_slice(body);
    code.push(0x0B);
    let memory = [1, 0, 4];
    for (number, content) in [
        (1, &types[..]),
        (3, &[2, 0, 1]),
        (5, &memory),
        (7, &exports),
        (10, &code),
    ] {
        module.extend([number, content.len() as u8]);
        module.extend_from_slice(content);
    }
    module
}

#[test]
fn hostile_modules_are_errors_that_say_what_they_did() {
    let delta = decoder(Role::Filter, 3).unwrap().module;
    // loop br 0 end; memory.grow by 4096 pages; an address behind the memory; unreachable; 0.
    let cases: [(&[u8], ErrorKind, &str); 5] = [
        (
            &[0x03, 0x40, 0x0C, 0, 0x0B, 0x41, 1],
            ErrorKind::Limit,
            "it needs more than 270035456 instructions",
        ),
        (
            &[0x41, 0x80, 0x20, 0x40, 0],
            ErrorKind::Limit,
            "it needs more than 655360 bytes of memory",
        ),
        (
            &[0x41, 0xFF, 0xFF, 0x0F],
            ErrorKind::Damaged,
            "it returned address 262143, where there are no 100000 bytes",
        ),
        (&[0x00], ErrorKind::Damaged, "it was stopped"),
        (&[0x41, 0], ErrorKind::Damaged, "it finds the data damaged"),
    ];
    for (body, kind, cause) in cases {
        let module = module_with(body);
        let modules = [
            (DecoderRole::Codec(CODEC), &module[..], (10, 16)),
            (DecoderRole::Filter(FILTER), delta, AMPLE),
        ];
        let archive = strange_archive(&numbers(), &modules);
        // Not by every way: one of them takes seconds.
        let error = extracted(&archive, &by(DecoderChoice::Own)).map(|_| ());
        let error = error.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        let text = error.to_string();
        let expected = format!("block 0: the archive's decoder for codec 300: {cause}");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn invalid_modules_and_those_that_want_too_much_are_errors() {
    let lz = decoder(Role::Codec, CodecId::LZ.0).unwrap().module;
    for (module, pages, kind, cause) in [
        (&b"no module"[..], 16, ErrorKind::Damaged, "not a module"),
        (
            lz,
            1 << 16,
            ErrorKind::Limit,
            "needs 4096 MiB of memory, the limit is 2048 MiB",
        ),
    ] {
        let archive = strange_archive(
            &numbers(),
            &[(DecoderRole::Codec(CODEC), module, (pages, 1))],
        );
        for error in failures(&archive, &by(DecoderChoice::Own)) {
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.to_string().contains(cause), "{error}");
        }
    }
    // Its hash is that of another.
    let mut archive = strange_archive(&numbers(), &[(DecoderRole::Codec(CODEC), lz, AMPLE)]);
    let hash = content_hash(lz);
    let at = archive.windows(32).position(|bytes| bytes == hash).unwrap();
    archive[at] ^= 1;
    for error in failures(&archive, &by(DecoderChoice::Own)) {
        assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
    }
}

#[test]
fn more_modules_than_a_reader_keeps_are_a_limit() {
    let module = vec![0; 1 << 20];
    let modules: Vec<_> = (0..9)
        .map(|number| (DecoderRole::Codec(CODEC + number), &module[..], (1, 1)))
        .collect();
    let archive = strange_archive(&numbers(), &modules);
    for error in failures(&archive, &by(DecoderChoice::Own)) {
        assert_eq!(error.kind, ErrorKind::Limit, "{error}");
        assert!(error.to_string().contains("more than 8 MiB of decoders"));
    }
}

/// An archive of one file coded by lz, to which another is added, coded by bzip2.
fn grown(carries: [bool; 2]) -> Vec<u8> {
    let file_of = |seed| data::text(30_000, seed);
    let options = |codec: &str, carry_decoders| CompressOptions {
        codec: Some(CodecChoice {
            name: codec.into(),
            level: None,
        }),
        carry_decoders,
        ..options(1, 2)
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rfn");
    for (number, codec) in ["lz", "bzip2"].into_iter().enumerate() {
        let members = vec![file(codec, &file_of(number as u64))];
        let options = options(codec, carries[number]);
        add_to(&path, members, &options, label(number as i64, &[])).unwrap();
    }
    std::fs::read(&path).unwrap()
}

/// The codecs for which an archive carries decoders, which read it alone.
fn carried_codecs(archive: &[u8]) -> Vec<u16> {
    // Of all generations.
    let options = by(DecoderChoice::Carried);
    let read = refrain::verify(source(archive), &options, &Unwatched).unwrap();
    let own = refrain::verify(source(archive), &read_options(2), &Unwatched).unwrap();
    assert_eq!(read.content_bytes, own.content_bytes);
    let mut codecs = Vec::new();
    walk_archive(archive, &Limits::default(), |offset, header, _| {
        if header.kind == FrameKind::Decoder {
            let start = offset as usize + refrain_format::FRAME_HEADER_BYTES;
            let payload = &archive[start..start + header.payload_bytes as usize];
            if let (_, Some((head, _))) = DecoderHeader::parse(payload)?
                && let DecoderRole::Codec(number) = head.role
            {
                codecs.push(number);
            }
        }
        Ok(())
    })
    .unwrap();
    codecs
}

#[test]
fn what_is_added_has_its_decoders_too() {
    let [none, begun, later, both] =
        [[false, false], [true, false], [false, true], [true, true]].map(grown);
    let error = read_by_index(&none, &by(DecoderChoice::Carried)).map(|_| ());
    assert_eq!(error.unwrap_err().kind, ErrorKind::Unsupported);
    for archive in [&begun, &both] {
        let codecs = carried_codecs(archive);
        assert!(
            codecs.starts_with(&[9]) && codecs.contains(&4),
            "{codecs:?}"
        );
    }
    assert_eq!(begun, both);
    let codecs = carried_codecs(&later);
    assert!(codecs.contains(&9) && codecs.contains(&2) && codecs.contains(&4));
}

#[test]
fn merged_and_compacted_archives_keep_their_decoders() {
    let sources = |archives: &[&Vec<u8>]| -> Vec<MergeSource> {
        let source_of = |archive: &&Vec<u8>| MergeSource {
            name: "a".into(),
            source: source(archive),
            options: ReadOptions::default(),
        };
        archives.iter().map(source_of).collect()
    };
    let [plain, carrying] = [[false, false], [true, false]].map(grown);
    for (archives, wanted, level) in [
        (vec![&plain, &carrying], false, None),
        (vec![&plain], true, None),
        (vec![&carrying], false, Some(Level(1))),
    ] {
        let options = CompressOptions {
            carry_decoders: wanted,
            ..options(1, 2)
        };
        let mut sink = MemorySink::new();
        let output = sink.output();
        let merge = Merge::open(sources(&archives), level, &options).unwrap();
        let _ = merge.run(&mut sink, &options, &Unwatched).unwrap();
        assert!(!carried_codecs(&output.published().unwrap()).is_empty());
    }
}
