//! Libraries made of `sources/numbers.c`: good ones, and some that lie.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use proptest::prelude::*;
use refrain_codec::{
    BlockPlan, CodecId, Error as CodecError, FallbackReason, FilterChain, FilterPlan, FilterStep,
    Host, Workspace, codecs, decode, encode_block,
};
use refrain_plugin::{Error, Kind, Plugin, check};

use support::Made;

const SOURCE: &str = "numbers.c";

fn numbers() -> Vec<u8> {
    let numbers = (0..20_000_u32).map(|at| at.wrapping_mul(70_001));
    numbers.flat_map(u32::to_le_bytes).collect()
}

/// Encodes and decodes with these filters. Returns those of the block and its fallback, and the
/// length of the data.
fn round_trip(
    raw: &[u8],
    codec: CodecId,
    filters: &str,
) -> (String, Option<FallbackReason>, usize) {
    let (mut workspace, mut data) = (Workspace::new(), Vec::new());
    let plan = BlockPlan {
        filters: FilterPlan::Fixed(filters.parse().unwrap()),
        ..BlockPlan::plain(codec, 1)
    };
    let block = encode_block(&mut workspace, raw, &plan, &mut data).unwrap();
    let (mut again, length) = (Vec::new(), raw.len() as u64);
    decode(&mut workspace, &block, &data, length, &mut again).unwrap();
    assert!(again == raw, "whatever it does, the data is safe");
    (block.filters.to_string(), block.fallback, data.len())
}

fn load(made: &Made, name: &str, number: u8, definitions: &[&str]) -> &'static Plugin {
    let (name, number) = (format!("NAME=\"{name}\""), format!("NUMBER={number}"));
    let definitions = [definitions, &[&name, &number]].concat();
    let path = made.library("filter.so", &definitions);
    Plugin::load(&path).unwrap().register().unwrap()
}

#[test]
fn a_good_plugin_is_a_filter() {
    let made = Made::of(SOURCE);
    let path = made.library("numbers.so", &[]);
    let checked = check(&path).unwrap();
    assert_eq!((checked.name.as_str(), checked.number), ("numbers", 224));
    assert_eq!(
        (checked.kind, checked.samples),
        (Kind::Filter { filtered: 6 }, 6)
    );
    let plugin = Plugin::load(&path).unwrap().register().unwrap();
    assert_eq!(plugin.name(), "numbers");
    let raw = numbers();
    for codec in codecs()
        .map(|codec| codec.describe().id)
        .filter(|&id| id != CodecId::NONE)
    {
        let (filters, fallback, bytes) = round_trip(&raw, codec, "numbers:1");
        assert_eq!((filters.as_str(), fallback), ("numbers:1", None), "{codec}");
        assert!(bytes < raw.len() / 20, "{codec}: {bytes}");
    }
    // The number, and the name, are taken.
    for definitions in [
        ["NAME=\"other\"", "NUMBER=224"],
        ["NAME=\"numbers\"", "NUMBER=225"],
        ["NAME=\"delta\"", "NUMBER=225"],
    ] {
        let other = made.library("other.so", &definitions);
        let error = Plugin::load(&other).unwrap().register().unwrap_err();
        assert!(matches!(error, Error::Taken(_)), "{error}");
    }
    // Replaced while it is in use: by itself, never by another.
    let again = made.library("again.so", &["MEMORY=5"]);
    let step = FilterStep::new(224, 1).unwrap();
    assert_eq!(step.memory_bytes(), 0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let mut bytes = raw.clone();
                    step.encode(Host::default(), &mut bytes).unwrap();
                    step.decode(Host::default(), &mut bytes).unwrap();
                    assert!(bytes == raw);
                }
            });
        }
        for _ in 0..20 {
            plugin.replace_by(&again).unwrap();
        }
    });
    assert_eq!(step.memory_bytes(), 5);
    let codecs = Made::of("runs.c");
    for other in [
        made.library("name.so", &["NAME=\"other\""]),
        made.library("parameters.so", &["LAST=254"]),
        codecs.library("codec.so", &["NAME=\"numbers\""]),
    ] {
        let error = plugin.replace_by(&other).unwrap_err();
        assert!(
            matches!(error, Error::Different { name: "numbers" }),
            "{error}"
        );
    }
}

#[test]
fn lies_are_found_and_cost_no_data() {
    let made = Made::of(SOURCE);
    let raw = numbers();
    let lies = [
        ("ENCODE=short_length", "it states 0 bytes for 1"),
        (
            "ENCODE=long_length",
            "it states 9223372036854775807 bytes for 1",
        ),
        ("ENCODE=behind", "it writes behind a buffer of 1 bytes"),
        (
            "ENCODE=other_every_time",
            "it filters the same bytes in two ways",
        ),
        ("DECODE=undoes_less", "it restores other bytes"),
        ("DECODE=undoes_nothing", "it does not undo what it did"),
        ("DECODE=undoes_long", "it states 2 bytes for 1"),
        ("DECODE=behind", "it writes behind a buffer of 1 bytes"),
    ];
    for (number, (lie, cause)) in (230..).zip(lies) {
        let name = format!("lie{number}");
        let definitions = [
            lie,
            &format!("NAME=\"{name}\""),
            &format!("NUMBER={number}"),
        ];
        let path = made.library("lie.so", &definitions);
        let error = check(&path).unwrap_err().to_string();
        assert!(
            error.contains(&format!("with parameter 1 {cause}")),
            "{lie}: {error}"
        );
        // What writes behind its buffer is not called without a guard.
        if lie.ends_with("behind") {
            continue;
        }
        load(&made, &name, number, &[lie]);
        for filters in [format!("{name}:1"), format!("delta:1|{name}:2")] {
            let (filters, fallback, _) = round_trip(&raw, CodecId::ZSTD, &filters);
            let found = (filters.as_str(), fallback);
            assert_eq!(found, ("", Some(FallbackReason::FilterFailed)), "{lie}");
        }
    }
    // One that takes nothing does no harm.
    let definitions = [
        "ENCODE=negative",
        "DECODE=negative",
        "NAME=\"never\"",
        "NUMBER=250",
    ];
    let refusing = made.library("never.so", &definitions);
    assert_eq!(check(&refusing).unwrap().kind, Kind::Filter { filtered: 0 });
    load(&made, "never", 250, &["ENCODE=negative"]);
    let (_, fallback, _) = round_trip(&raw, CodecId::ZSTD, "never:1");
    assert_eq!(fallback, Some(FallbackReason::FilterFailed));
}

#[test]
fn bytes_that_it_cannot_undo_are_an_error() {
    let made = Made::of(SOURCE);
    for (number, name, lie, cause) in [
        (
            251,
            "damage",
            "DECODE=undoes_nothing",
            "filter 251 'damage': the plug-in cannot undo it: the bytes are damaged",
        ),
        (
            252,
            "long",
            "DECODE=undoes_long",
            "filter 252 'long': the plug-in states another length than that of the bytes",
        ),
    ] {
        load(&made, name, number, &[lie]);
        let step = FilterStep::new(number, 1).unwrap();
        // Large ones are undone aside.
        for length in [1, 5_000_000] {
            let error = step
                .decode(Host::default(), &mut vec![1; length])
                .unwrap_err();
            assert!(matches!(error, CodecError::FilterFailed { .. }));
            assert_eq!(error.to_string(), cause);
        }
    }
}

#[test]
fn a_filter_without_a_parameter_takes_none() {
    let made = Made::of(SOURCE);
    load(&made, "plain", 253, &["FIRST=0", "LAST=0"]);
    let chain: FilterChain = "plain".parse().unwrap();
    assert_eq!(chain.to_string(), "plain");
    let error = "plain:0".parse::<FilterChain>().unwrap_err();
    assert_eq!(error.to_string(), "'plain:0' should be plain");
}

#[test]
fn what_is_no_filter_is_refused() {
    let made = Made::of(SOURCE);
    for (definition, cause) in [
        ("NOTHING", "it returns no description"),
        ("BOTH", "it has both a codec and a filter"),
        (
            "ABI=2",
            "has version 2 of the interface for plug-ins; this program has 1",
        ),
        ("ENCODE=0", "a function is missing"),
        ("DECODE=0", "a function is missing"),
        ("NAME=0", "it has no name"),
        ("NAME=\"a|b\"", "its name 'a|b' is not one for plug-ins"),
        (
            "NUMBER=223",
            "its number 223 is not one for filters of plug-ins: those are 224 to 255",
        ),
        ("NUMBER=65024", "its number 65024 is not one for filters"),
        (
            "MEMORY=(1ull<<50)",
            "it states that it needs 1125899906842624 bytes of memory",
        ),
        ("LAST=256", "a parameter is above 255"),
        ("LAST=0", "its last parameter is before the first"),
    ] {
        let path = made.library("no.so", &[definition]);
        let error = Plugin::load(&path).unwrap_err().to_string();
        assert!(error.contains(cause), "{definition}: {error}");
        assert_eq!(check(&path).unwrap_err().to_string(), error);
    }
    let path = made.library("delta.so", &["NAME=\"delta\"", "NUMBER=229"]);
    let error = check(&path).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot be added: its name 'delta' is another filter's"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_come_back(
        bytes in proptest::collection::vec(any::<u8>(), 1..5000),
        repeats in 1_usize..5,
        // Differences to the number itself, 0 before, are zeros and cannot be undone.
        parameter in 1_u8..,
        other in prop_oneof![Just(""), Just("delta:3"), Just("transpose:4"), Just("x86-64")],
        is_first: bool,
    ) {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            load(&Made::of(SOURCE), "any", 254, &[]);
        });
        let own = format!("any:{parameter}");
        let filters = match (other, is_first) {
            ("", _) => own,
            (_, true) => format!("{own}|{other}"),
            (_, false) => format!("{other}|{own}"),
        };
        let raw = bytes.repeat(repeats);
        let (_, fallback, _) = round_trip(&raw, CodecId::LZ4, &filters);
        prop_assert!(fallback.is_none_or(|reason| reason == FallbackReason::NotSmaller));
        // Anything may be undone: a filter has no wrong bytes.
        let chain: FilterChain = filters.parse().unwrap();
        let mut undone = raw.clone();
        chain.decode(Host::default(), &mut undone).unwrap();
        chain.encode(Host::default(), &mut undone).unwrap();
        prop_assert!(undone == raw || other == "x86-64");
    }
}
