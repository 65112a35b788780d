//! Filters of plug-ins, which may fail, in blocks and by name.

use std::ops::RangeInclusive;

use proptest::prelude::*;

use crate::decode::{decode, decode_damaged, decode_memory_bytes};
use crate::description::{BlockDescription, FallbackReason, UntrustedBlockDescription};
use crate::encode::{encode_block, encode_memory_bytes};
use crate::error::{Error, PluginKind, Result};
use crate::filter::chain::FilterChain;
use crate::filter::expression::{check_plugin_filter, filter_name, register_plugin_filter};
use crate::filter::plugin::{FilterDescription, PluginFilter};
use crate::filter::step::FilterStep;
use crate::host::Host;
use crate::id::CodecId;
use crate::plan::{BlockPlan, FilterPlan};
use crate::property::{check_filters, check_round_trip};
use crate::test_data::{many_branches, random_bytes};
use crate::workspace::Workspace;

/// What each takes: more than a codec does for the blocks here.
const MEMORY_BYTES: u64 = 32 << 20;

/// Adds its parameter and the length to every byte, or does one of these instead.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Right,
    /// Fails behind 100 bytes.
    FailsToEncode,
    FailsToDecode,
    DecodesToOthers,
    /// Works, in all memory.
    TakesAllMemory,
}

struct Shift {
    id: u8,
    name: &'static str,
    parameters: RangeInclusive<u8>,
    does: Does,
}

const fn shift(id: u8, name: &'static str, parameters: RangeInclusive<u8>, does: Does) -> Shift {
    Shift {
        id,
        name,
        parameters,
        does,
    }
}

static RIGHT: Shift = shift(224, "shift", 1..=9, Does::Right);
static FAILS_TO_ENCODE: Shift = shift(225, "no-encode", 0..=0, Does::FailsToEncode);
static FAILS_TO_DECODE: Shift = shift(226, "no-decode", 0..=0, Does::FailsToDecode);
static DECODES_TO_OTHERS: Shift = shift(227, "others", 0..=0, Does::DecodesToOthers);
static TAKES_ALL_MEMORY: Shift = shift(255, "memory", 0..=0, Does::TakesAllMemory);

impl Shift {
    fn failed(&self) -> Result<()> {
        Err(Error::FilterFailed {
            id: self.id,
            name: self.name,
            cause: "it fails",
        })
    }
}

impl PluginFilter for Shift {
    fn describe(&self) -> FilterDescription {
        FilterDescription {
            id: self.id,
            name: self.name,
            parameters: self.parameters.clone(),
        }
    }

    fn encode(&self, _host: Host, param: u8, bytes: &mut [u8]) -> Result<()> {
        if self.does == Does::FailsToEncode && bytes.len() > 100 {
            bytes.fill(7);
            return self.failed();
        }
        let by = param.wrapping_add(bytes.len() as u8);
        bytes
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_add(by));
        Ok(())
    }

    fn decode(&self, _host: Host, param: u8, bytes: &mut [u8]) -> Result<()> {
        if self.does == Does::FailsToDecode {
            return self.failed();
        }
        let others = u8::from(self.does == Does::DecodesToOthers);
        let by = param.wrapping_add(bytes.len() as u8).wrapping_add(others);
        bytes
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_sub(by));
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        if self.does == Does::TakesAllMemory { u64::MAX } else { MEMORY_BYTES }
    }
}

/// Adds them all, once for the process.
fn register() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for filter in [
            &RIGHT,
            &FAILS_TO_ENCODE,
            &FAILS_TO_DECODE,
            &DECODES_TO_OTHERS,
            &TAKES_ALL_MEMORY,
        ] {
            register_plugin_filter(filter).unwrap();
        }
    });
}

fn plan(filters: &str) -> BlockPlan {
    BlockPlan {
        filters: FilterPlan::Fixed(filters.parse().unwrap()),
        ..BlockPlan::plain(CodecId::ZSTD, 3)
    }
}

fn raw() -> Vec<u8> {
    (0..100_000_u32).map(|at| (at / 500) as u8).collect()
}

#[test]
fn numbers_and_names_are_for_one_filter() {
    register();
    let kind = PluginKind::Filter;
    let no_number = |number| Error::PluginNumber { kind, number };
    let taken = |number, by| Error::PluginNumberTaken { kind, number, by };
    let no_name = |name| Error::PluginNameTaken { kind, name };
    for (id, name, error) in [
        (223, "low", no_number(223)),
        (3, "own", no_number(3)),
        (224, "number", taken(224, "shift")),
        (240, "shift", no_name("shift")),
        (240, "x86-64", no_name("x86-64")),
    ] {
        assert_eq!(check_plugin_filter(id, name), Err(error.clone()));
        let filter = shift(id, name, 0..=0, Does::Right);
        let refused = register_plugin_filter(Box::leak(Box::new(filter)));
        assert_eq!(refused, Err(error));
    }
    assert_eq!(filter_name(224), Some("shift"));
    assert_eq!((filter_name(3), filter_name(240)), (Some("delta"), None));
}

#[test]
fn they_have_names_and_parameters() {
    register();
    let chain: FilterChain = "delta:4|shift:9".parse().unwrap();
    assert_eq!(chain.to_string(), "delta4+shift:9");
    let plain: FilterChain = "others".parse().unwrap();
    assert_eq!(plain.to_string(), "others");
    let error = |text: &str| text.parse::<FilterChain>().unwrap_err().to_string();
    for text in ["shift", "shift:0", "shift:10", "shift:256"] {
        let wanted = format!("'{text}' should be shift:PARAMETER (1 to 9)");
        assert_eq!(error(text), wanted);
    }
    assert_eq!(error("others:0"), "'others:0' should be others");
    assert!(error("absent").contains("xor:DISTANCE (1 to 255), shift:PARAMETER (1 to 9)"));
    let check = |filters: &[(u8, u8)]| {
        let untrusted = UntrustedBlockDescription {
            codec: CodecId::ZSTD.0,
            filters,
            params: &[],
            fallback: 0,
        };
        untrusted.check(1).map(|found| found.filters)
    };
    assert_eq!(check(&[(3, 4), (224, 9)]), Ok(chain));
    assert!(matches!(
        check(&[(224, 0)]),
        Err(Error::Description { value: 0, .. })
    ));
    assert_eq!(check(&[(240, 0)]), Err(Error::UnsupportedFilter(240)));
}

#[test]
fn blocks_come_back_whole_and_by_prefixes() {
    register();
    for filters in [
        "shift:1",
        "delta:1|shift:2",
        "shift:3|transpose:4",
        "shift:4|memory",
    ] {
        let limit = if filters.ends_with("memory") { u64::MAX } else { 1 << 30 };
        let plan = BlockPlan {
            memory_limit_bytes: limit,
            ..plan(filters)
        };
        let (block, _) = check_round_trip(&mut Workspace::new(), &raw(), &plan);
        assert_eq!(FilterPlan::Fixed(block.filters), plan.filters);
        assert_eq!(block.fallback, None);
    }
}

#[test]
fn a_filter_that_fails_is_left_out() {
    register();
    for filters in [
        "no-encode",
        "no-decode",
        "others",
        "delta:1|others",
        "no-encode|delta:1",
    ] {
        let (block, _) = check_round_trip(&mut Workspace::new(), &raw(), &plan(filters));
        assert!(block.filters.is_empty(), "{filters}");
        assert_eq!(block.codec, CodecId::ZSTD);
        assert_eq!(block.fallback, Some(FallbackReason::FilterFailed));
    }
    // Stored blocks say so, too.
    let noise = random_bytes(1000, 1);
    let (block, _) = check_round_trip(&mut Workspace::new(), &noise, &plan("others"));
    let stored = BlockDescription::stored(Some(FallbackReason::FilterFailed));
    assert_eq!(block, stored);
    // It takes short blocks.
    let (block, _) = check_round_trip(&mut Workspace::new(), &[5; 100], &plan("no-encode"));
    assert_eq!(block.fallback, None);
}

#[test]
fn a_filter_that_takes_more_memory_than_the_plan_allows_is_left_out() {
    register();
    let raw = raw();
    let length = raw.len() as u64;
    let limited = |filters, memory_limit_bytes| BlockPlan {
        memory_limit_bytes,
        ..plan(filters)
    };
    let enough = encode_memory_bytes(length, &limited("delta:1", u64::MAX)).unwrap();
    let all = limited("memory", 1 << 40);
    let (block, _) = check_round_trip(&mut Workspace::new(), &raw, &all);
    assert_eq!(block.fallback, Some(FallbackReason::MemoryLimit));
    assert!(block.filters.is_empty());
    assert_eq!(encode_memory_bytes(length, &all), Ok(enough));
    let unlimited = limited("memory", u64::MAX);
    assert_eq!(encode_memory_bytes(length, &unlimited), Ok(u64::MAX));
    let (block, _) = check_round_trip(&mut Workspace::new(), &raw, &unlimited);
    assert_eq!(decode_memory_bytes(&block, length), Ok(u64::MAX));
    // Its own memory, and the block that is undone for comparison.
    let needed = length + MEMORY_BYTES;
    for (limit, wanted) in [
        (needed - 1, Some(FallbackReason::MemoryLimit)),
        (needed, None),
    ] {
        let plan = BlockPlan {
            codec: CodecId::LZ4,
            ..limited("shift:1", limit)
        };
        let block = encode_block(&mut Workspace::new(), &raw, &plan, &mut Vec::new());
        let block = block.unwrap();
        assert_eq!(block.filters.is_empty(), wanted.is_some());
        assert_eq!(block.fallback.filter(|_| wanted.is_some()), wanted);
    }
}

#[test]
fn a_filter_that_cannot_undo_a_block_is_an_error() {
    register();
    let (mut workspace, mut data) = (Workspace::new(), Vec::new());
    let raw = raw();
    let length = raw.len() as u64;
    let plain = BlockPlan::plain(CodecId::ZSTD, 3);
    let block = encode_block(&mut workspace, &raw, &plain, &mut data).unwrap();
    // As a plug-in that was right once may be.
    let block = BlockDescription {
        filters: "no-decode".parse().unwrap(),
        ..block
    };
    let mut out = vec![1];
    let error = decode(&mut workspace, &block, &data, length, &mut out).unwrap_err();
    assert_eq!(error.to_string(), "filter 226 'no-decode': it fails");
    assert!(out.is_empty());
    let error = crate::decode_prefix(&mut workspace, &block, &data, length, 5, &mut out);
    assert!(matches!(error, Err(Error::FilterFailed { id: 226, .. })) && out.is_empty());
    decode_damaged(&mut workspace, &block, &data, length, &mut out).unwrap();
    assert!(out == raw, "the filter changed nothing");
    let absent = FilterStep::Plugin { id: 250, param: 0 };
    let refused = absent.decode(Host::default(), &mut out);
    assert_eq!(refused, Err(Error::UnsupportedFilter(250)));
}

proptest! {
    #[test]
    fn chains_with_plugins_are_reversible(
        bytes in many_branches(),
        own in (1_u8..7, 0_u8..18),
        param in 0_u8..11,
        is_first: bool,
    ) {
        register();
        let plugin = (224, param);
        let steps = if is_first { [plugin, own] } else { [own, plugin] };
        check_filters(&bytes, &steps);
    }
}
