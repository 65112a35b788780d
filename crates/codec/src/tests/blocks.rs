//! Tests that hold for all codecs.

use proptest::prelude::*;

use crate::codec::{Codec, OnIncompressible};
use crate::decode::{decode, decode_damaged, decode_prefix};
use crate::description::{BlockDescription, FallbackReason, UntrustedBlockDescription};
use crate::encode::{encode_block, encode_memory_bytes};
use crate::error::Error;
use crate::filter::chain::FilterChain;
use crate::filter::step::FilterStep;
use crate::host::Host;
use crate::id::CodecId;
use crate::plan::{BlockPlan, FilterPlan, TunedCodec};
use crate::property::{check_decode, check_round_trip};
use crate::registry::{by_id, codecs};
use crate::settings::Settings;
use crate::test_data;
use crate::workspace::Workspace;

fn plan(codec: CodecId, level: i32) -> BlockPlan {
    BlockPlan {
        rivals: [None; 2],
        filters: FilterPlan::Trial,
        ..BlockPlan::plain(codec, level)
    }
}

/// The running test binary, a real executable.
fn executable(length_bytes: usize) -> Vec<u8> {
    let path = std::env::current_exe().unwrap();
    let whole = std::fs::read(path).unwrap();
    let start = whole.len() / 3;
    whole[start..][..length_bytes].to_vec()
}

fn kinds(length_bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
    let period: Vec<u8> = test_data::random_bytes(777, 4);
    vec![
        ("random", test_data::random_bytes(length_bytes, 1)),
        ("zeros", vec![0; length_bytes]),
        ("text", test_data::text(length_bytes, 1)),
        ("coordinates", test_data::coordinates(length_bytes, 1)),
        (
            "period",
            period.iter().copied().cycle().take(length_bytes).collect(),
        ),
        ("wave", test_data::wave(length_bytes, 2)),
        ("x86", test_data::x86_code(length_bytes, 1)),
        ("x86-64", test_data::x86_64_code(length_bytes, 1)),
        ("arm64", test_data::arm64_code(length_bytes, 1)),
        ("executable", executable(length_bytes)),
    ]
}

/// Whether a megabyte takes a second.
fn is_slow(codec: &dyn Codec) -> bool {
    codec.is_slow_to_decode() || codec.describe().id == CodecId::LZ
}

#[test]
fn round_trips_at_every_level() {
    let mut workspace = Workspace::new();
    for codec in codecs() {
        let description = codec.describe();
        let length = if is_slow(codec) { 20_001 } else { 65_537 };
        for level in description.levels.clone() {
            for (_, raw) in kinds(length) {
                check_round_trip(&mut workspace, &raw, &plan(description.id, level));
            }
        }
    }
}

#[test]
fn round_trips_larger_blocks() {
    let mut workspace = Workspace::new();
    for codec in codecs() {
        let description = codec.describe();
        let length = if is_slow(codec) { 1 << 17 } else { 1 << 20 } + 17;
        for (_, raw) in kinds(length) {
            check_round_trip(
                &mut workspace,
                &raw,
                &plan(description.id, description.default_level),
            );
        }
    }
}

#[test]
fn round_trips_tiny_blocks() {
    let mut workspace = Workspace::new();
    for codec in codecs() {
        let description = codec.describe();
        for length in (1..40).chain([100, 255, 256, 1000, 5000]) {
            for raw in [vec![7; length], test_data::text(length, 2)] {
                check_round_trip(
                    &mut workspace,
                    &raw,
                    &plan(description.id, description.default_level),
                );
            }
        }
    }
}

#[test]
fn returns_an_error_for_empty_and_too_large_blocks() {
    let mut workspace = Workspace::new();
    let mut out = b"before".to_vec();
    let plan = BlockPlan::plain(CodecId::ZSTD, 3);
    let result = encode_block(&mut workspace, &[], &plan, &mut out);
    assert!(matches!(result, Err(Error::RawLength { .. })));
    assert_eq!(out, b"before");
    let stored = BlockDescription::stored(None);
    for length in [0, (1 << 30) + 1, u64::MAX] {
        let result = decode(&mut workspace, &stored, &[], length, &mut out);
        assert!(matches!(result, Err(Error::RawLength { .. })));
    }
}

#[test]
fn every_codec_stores_incompressible_blocks() {
    let raw = test_data::random_bytes(300_000, 9);
    for codec in codecs().skip(1) {
        let description = codec.describe();
        let (block, data) = check_round_trip(
            &mut Workspace::new(),
            &raw,
            &plan(description.id, description.default_level),
        );
        assert_eq!(block.codec, CodecId::NONE);
        let expected = match codec.on_incompressible(&Settings::default()) {
            OnIncompressible::Run => FallbackReason::NotSmaller,
            OnIncompressible::Store | OnIncompressible::Confirm => FallbackReason::Incompressible,
        };
        assert_eq!(block.fallback, Some(expected));
        assert_eq!(data.len(), raw.len());
    }
    let small = test_data::random_bytes(1000, 9);
    let (block, _) = check_round_trip(
        &mut Workspace::new(),
        &small,
        &BlockPlan::plain(CodecId::ZSTD, 19),
    );
    assert_eq!(block.fallback, Some(FallbackReason::NotSmaller));
}

#[test]
fn repeats_of_incompressible_data_are_compressed() {
    let half = test_data::random_bytes(1 << 19, 9);
    let raw = [&half[..], &half[..]].concat();
    for plan in [
        plan(CodecId::LZMA, 1),
        plan(CodecId::ZSTD, 1),
        plan(CodecId::ZSTD, 12),
    ] {
        let (block, data) = check_round_trip(&mut Workspace::new(), &raw, &plan);
        assert_eq!(block.codec, plan.codec);
        assert!(data.len() < raw.len() * 6 / 10);
    }
}

#[test]
fn uses_filters_that_help() {
    let expectations = [
        ("text", None),
        ("zeros", None),
        ("wave", Some(FilterStep::Delta { distance_bytes: 2 })),
        ("x86", Some(FilterStep::X86)),
        ("x86-64", Some(FilterStep::X86_64)),
        ("arm64", Some(FilterStep::Arm64 { phase_bytes: 0 })),
    ];
    for (name, raw) in kinds(1 << 20) {
        let Some(expected) = expectations.iter().find(|(kind, _)| *kind == name) else {
            continue;
        };
        let plan = plan(CodecId::ZSTD, 3);
        let (block, data) = check_round_trip(&mut Workspace::new(), &raw, &plan);
        assert_eq!(block.filters.steps().next(), expected.1, "{name}");
        let plain = BlockPlan {
            rivals: [None; 2],
            filters: FilterPlan::None,
            ..plan
        };
        let (unfiltered, unfiltered_data) = check_round_trip(&mut Workspace::new(), &raw, &plain);
        assert!(unfiltered.filters.is_empty());
        if expected.1.is_some() {
            assert!(data.len() < unfiltered_data.len(), "{name}");
        } else {
            assert_eq!(data, unfiltered_data, "{name}");
        }
    }
}

/// `bwt` saves some percent over `bwt2`: enough for code, not for other data.
#[test]
fn tables_are_transposed_where_codecs_are_compared_and_gain() {
    let raw = test_data::records(300_000, 24, 1);
    let alone = plan(CodecId::BWT2, 1);
    let competing = BlockPlan {
        rivals: [
            Some(TunedCodec {
                codec: CodecId::LZMA,
                settings: Settings::level(6),
            }),
            None,
        ],
        ..alone
    };
    let mut workspace = Workspace::new();
    let mut bytes_of = |plan: &BlockPlan, raw: &[u8]| {
        let mut out = Vec::new();
        let description = encode_block(&mut workspace, raw, plan, &mut out).unwrap();
        (description.filters, out.len())
    };
    let (filters, bytes) = bytes_of(&competing, &raw);
    let step = FilterStep::Transpose { record_bytes: 24 };
    assert_eq!(filters, FilterChain::single(step));
    assert!(bytes < bytes_of(&alone, &raw).1);
    // Code keeps the filter for its branches.
    let code = test_data::arm64_code(300_000, 1);
    let is_for_branches = bytes_of(&competing, &code)
        .0
        .steps()
        .any(FilterStep::is_for_branches);
    assert!(is_for_branches);
}

#[test]
fn any_saving_selects_the_rival_for_code() {
    let plan = BlockPlan {
        rivals: [
            Some(TunedCodec {
                codec: CodecId::BWT,
                settings: Settings::level(1),
            }),
            None,
        ],
        ..plan(CodecId::BWT2, 1)
    };
    let mut code = test_data::x86_64_code(2 << 20, 1);
    let noise = test_data::random_bytes(code.len() / 64, 2);
    let constants = code.iter_mut().skip(3).step_by(64);
    constants
        .zip(&noise)
        .for_each(|(byte, noise)| *byte ^= noise & 1);
    for (raw, codec) in [
        (code, CodecId::BWT),
        (test_data::text(2 << 20, 1), CodecId::BWT2),
    ] {
        let (block, _) = check_round_trip(&mut Workspace::new(), &raw, &plan);
        assert_eq!(block.codec, codec);
    }
}

#[test]
fn memory_limit_reduces_settings_then_falls_back() {
    let raw = test_data::text(1 << 20, 3);
    let whole = BlockPlan::plain(CodecId::LZMA, 6);
    let needed = encode_memory_bytes(raw.len() as u64, &whole).unwrap();
    let cases = [
        (needed, CodecId::LZMA, None),
        (
            needed - 1,
            CodecId::LZMA,
            Some(FallbackReason::SettingsReduced),
        ),
        (8 << 20, CodecId::ZSTD, Some(FallbackReason::MemoryLimit)),
        (1000, CodecId::NONE, Some(FallbackReason::MemoryLimit)),
    ];
    for (memory_limit_bytes, codec, fallback) in cases {
        let plan = BlockPlan {
            memory_limit_bytes,
            ..whole
        };
        let (block, _) = check_round_trip(&mut Workspace::new(), &raw, &plan);
        assert_eq!((block.codec, block.fallback), (codec, fallback));
    }
}

#[test]
fn estimates_the_lighter_codec_when_the_planned_one_does_not_fit() {
    let too_little = BlockPlan {
        memory_limit_bytes: 64 << 20,
        ..BlockPlan::plain(CodecId::CM, 9)
    };
    let lighter = BlockPlan::plain(CodecId::ZSTD, 12);
    let needed = encode_memory_bytes(8 << 20, &too_little).unwrap();
    assert_eq!(needed, encode_memory_bytes(8 << 20, &lighter).unwrap());
    assert!((1..64 << 20).contains(&needed));
}

#[test]
fn returns_an_error_for_a_wrong_length() {
    let raw = test_data::text(100_000, 5);
    let mut workspace = Workspace::new();
    for codec in codecs() {
        let description = codec.describe();
        let plan = BlockPlan::plain(description.id, description.default_level);
        let (block, data) = check_round_trip(&mut workspace, &raw, &plan);
        for forged in [1, 99_999, 100_001, 200_000, 10_000_000] {
            let mut out = Vec::new();
            let result = decode(&mut workspace, &block, &data, forged, &mut out);
            assert!(result.is_err(), "{} as {forged}", description.name);
            assert!(out.is_empty() && out.capacity() as u64 <= forged);
        }
    }
}

#[test]
fn returns_an_error_for_truncated_data() {
    let raw = test_data::text(20_000, 6);
    let mut workspace = Workspace::new();
    for codec in codecs() {
        let description = codec.describe();
        let plan = BlockPlan::plain(description.id, description.default_level);
        let (block, data) = check_round_trip(&mut workspace, &raw, &plan);
        let mut out = Vec::new();
        for length in (0..data.len()).step_by(1 + data.len() / 300) {
            let result = decode(&mut workspace, &block, &data[..length], 20_000, &mut out);
            assert!(result.is_err(), "{} cut to {length}", description.name);
        }
        let longer = [&data[..], &[0]].concat();
        let result = decode(&mut workspace, &block, &longer, 20_000, &mut out);
        assert!(result.is_err(), "{} with a byte more", description.name);
    }
}

#[test]
fn flipped_bits_never_panic() {
    let mut workspace = Workspace::new();
    for codec in codecs() {
        let description = codec.describe();
        for raw in [test_data::text(3000, 7), executable(3000)] {
            let plan = BlockPlan::plain(description.id, description.default_level);
            let (block, data) = check_round_trip(&mut workspace, &raw, &plan);
            let untrusted = UntrustedBlockDescription {
                codec: block.codec.0,
                filters: &[],
                params: block.params.as_bytes(),
                fallback: 0,
            };
            // Some clear tables of megabytes for each block.
            let step = if codec.is_slow_to_decode() { 67 } else { 7 };
            for bit in (0..data.len() * 8).step_by(step) {
                let mut flipped = data.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                check_decode(&mut workspace, &untrusted, &flipped, 3000, 500);
            }
        }
    }
}

#[test]
fn workspace_is_usable_after_damaged_data() {
    let raw = test_data::text(50_000, 8);
    let mut workspace = Workspace::new();
    for codec in codecs() {
        let description = codec.describe();
        let plan = BlockPlan::plain(description.id, description.default_level);
        let (block, data) = check_round_trip(&mut workspace, &raw, &plan);
        let mut out = Vec::new();
        let _ = decode(&mut workspace, &block, &data[..10], 50_000, &mut out);
        let _ = decode_prefix(&mut workspace, &block, &data[..10], 50_000, 999, &mut out);
        let result = decode(&mut workspace, &block, &data, 50_000, &mut out);
        assert_eq!(result, Ok(()));
        assert!(out == raw);
    }
}

#[test]
fn decodes_prefixes_of_filtered_blocks() {
    for step in [FilterStep::X86, FilterStep::X86_64] {
        decodes_prefixes_of_blocks_filtered_by(step);
    }
}

fn decodes_prefixes_of_blocks_filtered_by(step: FilterStep) {
    let raw = test_data::x86_code(90_000, 2);
    let mut workspace = Workspace::new();
    let mut chain = FilterChain::single(step);
    chain.push(FilterStep::Delta { distance_bytes: 4 }).unwrap();
    let mut filtered = raw.clone();
    chain.encode(Host::default(), &mut filtered).unwrap();
    for codec in codecs() {
        let mut data = Vec::new();
        let settings = Settings::default();
        let params = codec
            .encode(&mut workspace, &filtered, &settings, &mut data)
            .unwrap();
        let block = BlockDescription {
            codec: codec.describe().id,
            filters: chain,
            params,
            fallback: None,
        };
        let mut out = Vec::new();
        for want in [1_u64, 4096, 4099, 70_000, 89_997, 90_000] {
            decode_prefix(&mut workspace, &block, &data, 90_000, want, &mut out).unwrap();
            assert!(out == raw[..want as usize]);
        }
    }
}

/// The number of bytes at the start that are equal.
fn equal_bytes(one: &[u8], other: &[u8]) -> usize {
    let mut pairs = one.iter().zip(other);
    pairs
        .position(|(one, other)| one != other)
        .unwrap_or(one.len())
}

#[test]
fn damaged_blocks_are_decoded_up_to_the_damage() {
    let whole = test_data::text(2_000_000, 3);
    let mut workspace = Workspace::new();
    for codec in codecs() {
        let described = codec.describe();
        // bzip2 and bwt need more than one of their blocks.
        let length = if described.name == "cm" { 300_000 } else { 2_000_000 };
        let raw = &whole[..length];
        let mut data = Vec::new();
        let plan = BlockPlan::plain(described.id, described.default_level);
        let block = encode_block(&mut workspace, raw, &plan, &mut data).unwrap();
        // The share of the bytes before the damage, in percent, that is recovered.
        let least = match described.name {
            "bwt" | "bwt2" => 0,
            "bzip2" => 50,
            // Literals of a chunk of 1 MiB come before its commands.
            "lz" => 60,
            _ => 90,
        };
        let middle = data.len() / 2;
        let mut wrong = data.clone();
        wrong[middle..middle + 1000].fill(0x5a);
        for damaged in [&data[..middle], &wrong[..]] {
            let mut out = vec![7; 10];
            let length = raw.len() as u64;
            decode_damaged(&mut workspace, &block, damaged, length, &mut out).unwrap();
            assert_eq!(out.len(), raw.len());
            let recovered = equal_bytes(&out, raw);
            let percent = recovered * 200 / raw.len();
            assert!(percent >= least, "{}: {percent} %", described.name);
        }
        let mut out = vec![];
        decode_damaged(&mut workspace, &block, &data, raw.len() as u64, &mut out).unwrap();
        assert!(out[..] == *raw, "{}", described.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn round_trips_arbitrary_bytes(
        raw in proptest::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 1..3000),
        id in 0..codecs().count() as u16,
    ) {
        let description = by_id(CodecId(id)).unwrap().describe();
        check_round_trip(&mut Workspace::new(), &raw, &plan(description.id, description.default_level));
    }

    #[test]
    fn arbitrary_data_never_panics(
        data in proptest::collection::vec(any::<u8>(), 0..600),
        id in 0..codecs().count() as u16,
        params in prop_oneof![
            Just(Vec::new()),
            proptest::collection::vec(0_u8..3, 1..2),
            Just(vec![6, 0, 0, 1, 0]),
            (1_u8..4, 0_u8..8, 1_u8..40).prop_map(|(a, b, c)| vec![a, b, c, 0, 0, 0]),
            proptest::collection::vec(any::<u8>(), 0..18),
        ],
        filters in test_data::filter_ids(),
        raw_length in prop_oneof![1_u64..40, 0_u64..5000],
        want in 0_u64..6000,
    ) {
        let untrusted = UntrustedBlockDescription {
            codec: id,
            filters: &filters,
            params: &params,
            fallback: 3,
        };
        check_decode(&mut Workspace::new(), &untrusted, &data, raw_length, want);
    }

    #[test]
    fn damaged_data_never_panics(
        seed in 0_u64..50,
        id in 1..codecs().count() as u16,
        at in any::<proptest::sample::Index>(),
        garbage in proptest::collection::vec(any::<u8>(), 1..40),
        want in 0_u64..9000,
    ) {
        let raw = test_data::text(8000, seed);
        let description = by_id(CodecId(id)).unwrap().describe();
        let mut workspace = Workspace::new();
        let plan = BlockPlan::plain(description.id, description.default_level);
        let mut data = Vec::new();
        let block = encode_block(&mut workspace, &raw, &plan, &mut data).unwrap();
        let start = at.index(data.len());
        for (byte, garbage) in data[start..].iter_mut().zip(&garbage) {
            *byte = *garbage;
        }
        let untrusted = UntrustedBlockDescription {
            codec: block.codec.0,
            filters: &[],
            params: block.params.as_bytes(),
            fallback: 0,
        };
        check_decode(&mut workspace, &untrusted, &data, 8000, want);
    }
}
