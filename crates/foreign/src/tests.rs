//! Files of every format, made by libraries: whole, in pieces, joined, cut and changed.

use std::io::Write;

use proptest::prelude::*;
use refrain_testkit::{Rng, scaled};

use crate::property::{STREAM_FORMATS, decode, pieces_do_not_matter, zip_survives};
use crate::{Format, describe};

/// Text that compresses a little, different for each seed.
fn content(seed: u64, length_bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut bytes = Vec::with_capacity(length_bytes);
    while bytes.len() < length_bytes {
        match rng.below(5) {
            0 => bytes.extend_from_slice(b"the same words again and again, "),
            _ => bytes.extend_from_slice(&rng.any().to_le_bytes()[..3]),
        }
    }
    bytes.truncate(length_bytes);
    bytes
}

/// A file with every checksum that the format has.
fn encode(format: Format, content: &[u8]) -> Vec<u8> {
    match format {
        Format::Gzip => {
            let mut encoder = flate2::GzBuilder::new()
                .filename("a name")
                .comment("a comment")
                .extra(vec![1; 20])
                .write(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        Format::Xz => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        Format::Zstd => {
            let mut context = zstd_safe::CCtx::create();
            let checksum = zstd_safe::CParameter::ChecksumFlag(true);
            context.set_parameter(checksum).unwrap();
            let mut file = Vec::with_capacity(zstd_safe::compress_bound(content.len()));
            context.compress2(&mut file, content).unwrap();
            file
        }
        Format::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        Format::Lz4 => lz4(content, lz4_flex::frame::BlockMode::Linked),
        _ => panic!("{format} is not a stream"),
    }
}

fn lz4(content: &[u8], blocks: lz4_flex::frame::BlockMode) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new()
        .block_mode(blocks)
        .block_size(lz4_flex::frame::BlockSize::Max64KB)
        .block_checksums(true)
        .content_checksum(true);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

const SKIPPABLE: &[u8] = b"\x5a\x2a\x4d\x18\x05\0\0\0hello";

#[test]
fn files_are_read_whole_in_pieces_and_by_several_threads() {
    for format in STREAM_FORMATS {
        for length_bytes in [0, 1, 5_000, 300_000] {
            let content = content(1, length_bytes);
            let file = encode(format, &content);
            assert_eq!(Format::from_prefix(&file), Some(format));
            for (piece_bytes, threads) in [(usize::MAX, 1), (1, 1), (1000, 3)] {
                let (found, end) = decode(format, &file, piece_bytes, threads);
                assert_eq!(end, None, "{format}, {length_bytes} bytes");
                assert!(found == content, "{format}, {length_bytes} bytes");
            }
        }
    }
    let content = content(2, 300_000);
    let file = lz4(&content, lz4_flex::frame::BlockMode::Independent);
    assert_eq!(decode(Format::Lz4, &file, 777, 1), (content, None));
}

#[test]
fn joined_files_are_read_as_one() {
    for format in STREAM_FORMATS {
        let parts = [content(3, 70_000), Vec::new(), content(4, 1_000)];
        let mut file = Vec::new();
        for part in &parts {
            if matches!(format, Format::Zstd | Format::Lz4) {
                file.extend_from_slice(SKIPPABLE);
            }
            file.extend(encode(format, part));
            if format == Format::Xz {
                file.extend_from_slice(&[0; 8]);
            }
        }
        for threads in [1, 2] {
            let (found, end) = decode(format, &file, 4096, threads);
            assert_eq!(end, None, "{format}");
            assert!(found == parts.concat(), "{format}");
        }
    }
}

#[test]
fn what_follows_the_end_is_refused_or_remarked() {
    let content = content(5, 1_000);
    for format in STREAM_FORMATS {
        let file = encode(format, &content);
        let (found, end) = decode(format, &[&file, &b"garbage"[..]].concat(), 4096, 1);
        assert!(found == content, "{format}");
        let end = end.unwrap();
        assert!(end.contains("the data after the"), "{format}: {end}");
    }
    let padded = [encode(Format::Gzip, &content), vec![0; 2000]].concat();
    assert_eq!(
        decode(Format::Gzip, &padded, 100, 1),
        (content.clone(), None)
    );
    let odd = [encode(Format::Xz, &content), vec![0; 3]].concat();
    let (_, end) = decode(Format::Xz, &odd, 100, 1);
    assert_eq!(end.unwrap(), "3 bytes of padding, not a multiple of four");
}

#[test]
fn no_cut_is_taken_for_the_whole() {
    let content = content(6, 3_000);
    for format in STREAM_FORMATS {
        let file = encode(format, &content);
        for length in 0..file.len() {
            for threads in [1, 2] {
                let (found, end) = decode(format, &file[..length], 4096, threads);
                assert!(end.is_some(), "{format}, cut at {length} of {}", file.len());
                assert!(content.starts_with(&found), "{format}, cut at {length}");
            }
        }
    }
}

#[test]
fn no_change_of_a_bit_gives_other_content_without_an_error() {
    let content = content(7, 600);
    for format in STREAM_FORMATS {
        let file = encode(format, &content);
        for bit in 0..file.len() * 8 {
            let mut changed = file.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let (found, end) = decode(format, &changed, usize::MAX, 1);
            // Some bits do not affect the content, such as the time in a header.
            assert!(end.is_some() || found == content, "{format}, bit {bit}");
        }
    }
}

#[test]
fn windows_larger_than_the_memory_are_refused() {
    // A frame whose header states a window of 2 GiB; the memory of the property is 16 MiB.
    let mut frame = b"\x28\xb5\x2f\xfd\x00\xa8".to_vec();
    frame.extend_from_slice(&[1, 0, 0]);
    let (_, end) = decode(Format::Zstd, &frame, 10, 1);
    assert_eq!(
        end.unwrap(),
        "the zstd frame has a window of 2048 MiB, and 16 MiB are allowed: raise the memory limit"
    );
    // 64 MiB of dictionary, which xz -9 states.
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 9);
    encoder.write_all(b"a few bytes").unwrap();
    let file = encoder.finish().unwrap();
    for threads in [1, 2] {
        let (_, end) = decode(Format::Xz, &file, 10, threads);
        let end = end.unwrap();
        assert!(end.ends_with("raise the memory limit"), "{end}");
    }
}

#[test]
fn dictionaries_and_unknown_checks_are_not_supported() {
    let (_, end) = decode(Format::Zstd, b"\x28\xb5\x2f\xfd\x01\x00\x07\x01\0\0", 9, 1);
    assert!(end.unwrap().contains("dictionary 7"));
    let mut file = encode(Format::Xz, b"x");
    file[7] = 2;
    let crc = crc32fast::hash(&file[6..8]).to_le_bytes();
    file[8..12].copy_from_slice(&crc);
    let (_, end) = decode(Format::Xz, &file, 9, 1);
    assert_eq!(
        end.unwrap(),
        "the integrity check 2 of the xz stream is not supported"
    );
}

#[test]
fn lz4_files_of_the_first_version_are_read() {
    let content = content(8, 9 << 20);
    let mut file = Vec::new();
    for blocks in [&content[..], &content[..100]] {
        file.extend_from_slice(&0x184c_2102_u32.to_le_bytes());
        for block in blocks.chunks(8 << 20) {
            let block = lz4_flex::block::compress(block);
            file.extend_from_slice(&u32::try_from(block.len()).unwrap().to_le_bytes());
            file.extend_from_slice(&block);
        }
    }
    // The property examines the first MiB.
    let (found, _) = decode(Format::Lz4, &file, 100_000, 1);
    assert!(content.starts_with(&found) && found.len() >= 1 << 20);
    let short = &file[file.len() - lz4_flex::block::compress(&content[..100]).len() - 8..];
    assert_eq!(
        decode(Format::Lz4, short, 7, 1),
        (content[..100].to_vec(), None)
    );
}

#[test]
fn files_are_described_without_decoding() {
    let parts = [content(9, 200_000), content(10, 1_000)];
    for format in STREAM_FORMATS {
        let mut file: Vec<u8> = parts.iter().flat_map(|part| encode(format, part)).collect();
        if matches!(format, Format::Zstd | Format::Lz4) {
            file.extend_from_slice(SKIPPABLE);
        }
        let found = describe(format, &file.as_slice()).unwrap();
        assert_eq!(found.file_bytes, file.len() as u64);
        assert!(!found.checks.is_empty(), "{format}");
        let states_parts = !matches!(format, Format::Gzip | Format::Bzip2);
        assert_eq!(found.parts, states_parts.then_some(2), "{format}");
        assert_eq!(found.blocks.is_some(), states_parts, "{format}");
        let states_content = matches!(format, Format::Xz | Format::Zstd);
        assert_eq!(
            found.content_bytes,
            states_content.then_some(201_000),
            "{format}"
        );
        match format {
            Format::Gzip => {
                assert_eq!(found.name.as_deref(), Some(&b"a name"[..]));
                assert_eq!(found.last_member_bytes, Some(1_000));
            }
            Format::Bzip2 => assert_eq!(found.block_bytes_max, Some(100_000)),
            Format::Zstd | Format::Lz4 => assert_eq!(found.skipped_frames, 1),
            _ => {}
        }
    }
}

#[test]
fn cut_and_changed_files_are_described_or_refused() {
    for format in STREAM_FORMATS {
        let file = encode(format, &content(11, 3_000));
        for length in 0..file.len() {
            let _ = describe(format, &&file[..length]);
        }
        for index in 0..file.len() {
            let mut changed = file.clone();
            changed[index] = 0xff;
            let _ = describe(format, &changed.as_slice());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(64)))]

    #[test]
    fn any_bytes_are_content_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300), piece in 1_usize..20) {
        pieces_do_not_matter(&bytes, piece);
        zip_survives(&bytes);
        zip_survives(&[&b"PK\x05\x06"[..], &bytes].concat());
    }

    #[test]
    fn changed_files_are_content_or_an_error(
        format in 0..STREAM_FORMATS.len(),
        seed in any::<u64>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        piece in 1_usize..200,
    ) {
        let content = content(seed, (seed % 5_000) as usize);
        let mut file = encode(STREAM_FORMATS[format], &content);
        for (index, value) in changes {
            let index = index.index(file.len());
            file[index] = value;
        }
        pieces_do_not_matter(&file, piece);
    }
}
