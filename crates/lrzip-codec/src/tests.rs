use std::io::Write;

use liblzma::stream::{Action, Filters, LzmaOptions, Status, Stream};
use proptest::prelude::*;

use crate::codec::LrzipCodec;
use crate::decoder::LrzipDecoder;
use crate::encoder::{LrzipPlan, encode_lrzip_block};
use crate::property::blocks::{decodes_arbitrary_bytes, plan, round_trips};
use crate::property::decode::{codec, decode_in_chunks};
use refrain_codec::Result;
use refrain_codec::property::{random_bytes, text};

const CHUNK_BYTES: [usize; 4] = [1, 13, 5000, 1 << 30];

fn assert_decodes(codec: LrzipCodec, data: &[u8], raw: &[u8]) {
    for input in CHUNK_BYTES {
        for output in CHUNK_BYTES {
            // Chunks of one byte are slow.
            let raw = match input.min(output) {
                1 => &raw[..raw.len().min(20_000)],
                _ => raw,
            };
            let found = decode_in_chunks(codec, data, raw.len(), input, output).expect("decodes");
            assert!(found == raw, "{codec:?} in chunks of {input} and {output}");
        }
    }
    let truncated = decode_in_chunks(codec, &data[..data.len() / 2], raw.len(), 4096, 4096);
    assert!(truncated.is_err(), "{codec:?}: half of the data");
}

fn contents() -> [Vec<u8>; 3] {
    [text(150_000, 1), random_bytes(30_000, 2), vec![0; 100_000]]
}

#[test]
fn decodes_stored_bzip2_and_zlib_blocks() {
    for raw in contents() {
        assert_decodes(LrzipCodec::Stored, &raw, &raw);
        let mut bzip2 = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::new(1));
        bzip2.write_all(&raw).unwrap();
        assert_decodes(LrzipCodec::Bzip2, &bzip2.finish().unwrap(), &raw);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
        zlib.write_all(&raw).unwrap();
        assert_decodes(LrzipCodec::Zlib, &zlib.finish().unwrap(), &raw);
    }
}

/// A frame, with or without a checksum and the length of its content in the header.
fn zstd(raw: &[u8], level: i32, has_checksum: bool, states_length: bool) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    for parameter in [
        zstd_safe::CParameter::CompressionLevel(level),
        zstd_safe::CParameter::ChecksumFlag(has_checksum),
        zstd_safe::CParameter::ContentSizeFlag(states_length),
    ] {
        context.set_parameter(parameter).unwrap();
    }
    let mut data = Vec::with_capacity(zstd_safe::compress_bound(raw.len()));
    context.compress2(&mut data, raw).unwrap();
    data
}

#[test]
fn decodes_zstd_blocks() {
    for raw in contents() {
        for (level, has_checksum, states_length) in
            [(1, false, true), (19, true, true), (3, true, false)]
        {
            let data = zstd(&raw, level, has_checksum, states_length);
            assert_decodes(LrzipCodec::Zstd, &data, &raw);
            let memory = LrzipCodec::Zstd.memory_bytes(&data).unwrap();
            assert!((512 << 10..4 << 20).contains(&memory), "{memory}");
            let check = |data: &[u8], raw_bytes| checked(LrzipCodec::Zstd, data, raw_bytes, 999).1;
            assert_eq!(check(&data, raw.len()), Ok(()));
            assert!(check(&data, raw.len() - 1).is_err(), "longer than stated");
            assert!(check(&data, raw.len() + 1).is_err(), "shorter than stated");
            let mut broken = data;
            *broken.last_mut().unwrap() ^= 1;
            assert!(!has_checksum || check(&broken, raw.len()).is_err());
        }
    }
}

#[test]
fn zstd_windows_larger_than_the_memory_are_refused() {
    let raw = random_bytes(3 << 20, 3);
    let data = zstd(&raw, 3, false, true);
    assert_eq!(
        LrzipCodec::Zstd.memory_bytes(&data),
        Ok((2 << 20) + (512 << 10))
    );
    let decode = |memory_bytes_max| {
        let mut decoder = LrzipDecoder::new(LrzipCodec::Zstd, raw.len() as u64, memory_bytes_max)?;
        decoder.step(&data, true, &mut vec![0; 1000])
    };
    assert!(decode(2 << 20).is_ok());
    assert!(decode(1 << 20).is_err());
}

/// Decodes a block and its end, with input in chunks. Returns the number of raw bytes before the
/// checksum was compared, and the result of the comparison.
fn checked(codec: LrzipCodec, data: &[u8], raw_bytes: usize, chunk: usize) -> (usize, Result<()>) {
    let mut decoder = LrzipDecoder::new(codec, raw_bytes as u64, 1 << 30).unwrap();
    let mut raw = vec![0; raw_bytes];
    let (mut taken, mut produced) = (0, 0);
    let input = |taken: usize| &data[taken..data.len().min(taken + chunk)];
    while produced < raw.len() {
        let rest = input(taken);
        let is_last = taken + rest.len() == data.len();
        match decoder.step(rest, is_last, &mut raw[produced..]) {
            Ok(progress) => {
                taken += progress.consumed_bytes;
                produced += progress.produced_bytes;
            }
            Err(error) => return (produced, Err(error)),
        }
    }
    while !decoder.has_checked_end() {
        let rest = input(taken);
        match decoder.check_end(rest, taken + rest.len() == data.len()) {
            Ok(consumed) => taken += consumed,
            Err(error) => return (produced, Err(error)),
        }
    }
    (produced, Ok(()))
}

#[test]
fn the_end_of_a_block_shows_a_wrong_checksum() {
    for raw in contents() {
        let mut bzip2 = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::new(1));
        bzip2.write_all(&raw).unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
        zlib.write_all(&raw).unwrap();
        for (codec, data) in [
            (LrzipCodec::Bzip2, bzip2.finish().unwrap()),
            (LrzipCodec::Zlib, zlib.finish().unwrap()),
        ] {
            assert!(codec.has_checksum());
            for chunk in [1, 1000, 1 << 30] {
                let check = |data: &[u8], raw_bytes| checked(codec, data, raw_bytes, chunk).1;
                assert_eq!(check(&data, raw.len()), Ok(()), "{codec:?}");
                let longer = [&data[..], b"more"].concat();
                assert_eq!(check(&longer, raw.len()), Ok(()), "{codec:?}");
                for (what, raw_bytes, data) in [
                    ("too few raw bytes", raw.len() - 1, data.clone()),
                    ("too many raw bytes", raw.len() + 1, data.clone()),
                    ("a cut", raw.len(), data[..data.len() - 1].to_vec()),
                    ("a longer cut", raw.len(), data[..data.len() - 4].to_vec()),
                ] {
                    assert!(check(&data, raw_bytes).is_err(), "{codec:?}: {what}");
                }
                for back in 1..=4 {
                    let mut broken = data.clone();
                    // The last bits of a bzip2 stream may be padding.
                    *broken.iter_mut().nth_back(back - 1).unwrap() ^= 0x80;
                    assert!(check(&broken, raw.len()).is_err(), "{codec:?}: {back}");
                }
            }
        }
    }
}

fn lzma(raw: &[u8], dictionary_bytes: u32) -> Vec<u8> {
    let mut options = LzmaOptions::new_preset(1).unwrap();
    options.dict_size(dictionary_bytes);
    let mut filters = Filters::new();
    filters.lzma1(&options);
    let mut stream = Stream::new_raw_encoder(&filters).unwrap();
    let mut out = Vec::with_capacity(raw.len() * 2 + 1000);
    loop {
        let consumed = stream.total_in() as usize;
        let status = stream.process_vec(&raw[consumed..], &mut out, Action::Finish);
        if status.unwrap() == Status::StreamEnd {
            return out;
        }
    }
}

#[test]
fn decodes_lzma_and_needs_its_dictionary() {
    let lzma_codec = |dictionary_bytes| LrzipCodec::Lzma {
        properties: 0x5D,
        dictionary_bytes,
        filter: None,
    };
    for raw in contents() {
        assert_decodes(lzma_codec(1 << 20), &lzma(&raw, 1 << 20), &raw);
    }
    let far = [random_bytes(40_000, 1), random_bytes(40_000, 1)].concat();
    let data = lzma(&far, 1 << 20);
    assert!(decode_in_chunks(lzma_codec(4096), &data, far.len(), 4096, 4096).is_err());
    assert!(decode_in_chunks(lzma_codec(1 << 17), &data, far.len(), 4096, 4096).is_ok());
}

#[test]
fn decodes_what_the_encoders_produce() {
    for choice in (0..72).filter(|choice| choice % 6 != 5 || *choice < 32) {
        for raw in [
            &[][..],
            &[9],
            &text(40_000, 3),
            &random_bytes(3000, 4),
            &[0; 70_000],
        ] {
            round_trips(choice, raw);
        }
    }
    // Far matches and long runs of LZO: distances up to and beyond the limits of its instructions.
    for distance in [
        2047, 2048, 2049, 16_383, 16_384, 16_385, 32_767, 32_768, 32_769, 49_151, 49_152,
    ] {
        let start = random_bytes(distance, 5);
        for length in [4, 8, 9, 10, 33, 34, 300, 2000] {
            let raw = [
                &start[..],
                &start[..length.min(distance)],
                &random_bytes(20, 6),
            ]
            .concat();
            round_trips(3, &raw);
        }
    }
    for literals in [1, 3, 4, 18, 19, 237, 238, 239, 240, 500, 16_000] {
        let raw = [
            random_bytes(literals, 7),
            vec![1; 50],
            random_bytes(literals, 8),
            vec![1; 50],
        ]
        .concat();
        round_trips(3, &raw);
    }
}

#[test]
fn higher_zpaq_levels_compress_better() {
    let raw = text(60_000, 9);
    let mut sizes = Vec::new();
    for choice in [5, 5 + 24] {
        let mut encoded = Vec::new();
        encode_lrzip_block(plan(choice), &raw, &mut encoded).unwrap();
        sizes.push(encoded.len());
    }
    assert!(sizes[1] < sizes[0] && sizes[0] < raw.len() / 2, "{sizes:?}");
}

proptest! {
    #[test]
    fn any_content_round_trips(choice: u8, raw in prop::collection::vec(any::<u8>(), 0..2000), copies in 0..3_usize) {
        let raw = raw.repeat(1 + copies);
        // The larger models of ZPAQ allocate tens of megabytes for each block.
        if choice % 6 != 5 || choice < 32 {
            round_trips(choice, &raw);
        }
    }

    #[test]
    fn arbitrary_bytes_decode_or_fail(choice: u8, data in prop::collection::vec(any::<u8>(), 0..3000), length in 0..20_000_usize) {
        decodes_arbitrary_bytes(choice, &data, length);
    }

    #[test]
    fn damaged_blocks_decode_or_fail(choice in 1..6_u8, at: prop::sample::Index, bit in 0..8_u32, seed: u64) {
        let raw = text(3000, seed);
        let mut data = match codec(choice) {
            LrzipCodec::Lzma { .. } => lzma(&raw, 1 << 20),
            _ => raw,
        };
        let at = at.index(data.len());
        data[at] ^= 1_u8 << bit;
        decodes_arbitrary_bytes(choice, &data, 3000);
    }
}

/// Found by the fuzz target: with all of the input available, liblzma and the LZO decoder read past
/// the last byte of the block.
#[test]
fn bytes_after_the_block_do_not_affect_decoding() {
    decodes_arbitrary_bytes(240, &[0, 0, 78, 255, 255, 255, 0, 16, 0, 0], 1);
    let lzo = [
        2, 255, 233, 0, 0, 255, 120, 5, 0, 2, 255, 233, 0, 0, 255, 252,
    ];
    decodes_arbitrary_bytes(120, &lzo, 5);
}

/// Each plan with less memory is another one, needs no more, and the last one stores. All of them
/// encode what a reader with the archive's LZMA properties decodes.
#[test]
fn plans_with_less_memory_end_with_storing() {
    let raw = text(30_000, 3);
    for plan in [
        LrzipPlan::Lzma {
            level: 9,
            dictionary_bytes: 32 << 20,
        },
        LrzipPlan::Zpaq { level: 7 },
        LrzipPlan::Zlib { level: 9 },
        LrzipPlan::Bzip2 { level: 9 },
        LrzipPlan::Lzo,
    ] {
        let archive_codec = plan.codec();
        let mut plans = vec![plan];
        while let Some(next) = plans[plans.len() - 1].with_less_memory() {
            let before = plans[plans.len() - 1];
            assert!(
                next.memory_bytes() <= before.memory_bytes(),
                "{before:?}, {next:?}"
            );
            assert!(!plans.contains(&next), "{next:?}");
            plans.push(next);
        }
        assert_eq!(plans.last(), Some(&LrzipPlan::Stored));
        // ZPAQ has few models.
        plans.dedup_by_key(|plan| (plan.codec(), plan.memory_bytes()));
        for plan in plans {
            let mut coded = Vec::new();
            encode_lrzip_block(plan, &raw, &mut coded).unwrap();
            let codec = match plan {
                LrzipPlan::Lzma { .. } => archive_codec,
                _ => plan.codec(),
            };
            let mut decoder = LrzipDecoder::new(codec, raw.len() as u64, 1 << 30).unwrap();
            let (mut decoded, mut taken, mut made) = (vec![0; raw.len()], 0, 0);
            while made < raw.len() {
                let step = decoder.step(&coded[taken..], true, &mut decoded[made..]);
                let step = step.unwrap();
                taken += step.consumed_bytes;
                made += step.produced_bytes;
            }
            assert!(decoded == raw, "{plan:?}");
        }
    }
}
