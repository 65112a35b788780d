//! Libraries made of `sources/runs.c`: good ones, and some that lie.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use refrain_codec::{
    BlockPlan, CodecId, FallbackReason, Workspace, by_id, by_name, decode, encode_block,
};
use refrain_plugin::{Error, Kind, Plugin, check};

mod support;

use support::Made;

const SOURCE: &str = "runs.c";

fn runs() -> Vec<u8> {
    (0..100_000_u32).map(|at| (at / 500) as u8).collect()
}

/// Encodes with a plug-in that was registered under this number. Returns why it fell back.
fn fallback(number: u16) -> Option<FallbackReason> {
    let raw = runs();
    let (mut workspace, mut data) = (Workspace::new(), Vec::new());
    let plan = BlockPlan::plain(CodecId(number), 5);
    let block = encode_block(&mut workspace, &raw, &plan, &mut data).unwrap();
    let mut again = Vec::new();
    let length = raw.len() as u64;
    decode(&mut workspace, &block, &data, length, &mut again).unwrap();
    assert!(again == raw, "whatever it does, the data is safe");
    assert_eq!(block.fallback.is_none(), block.codec == CodecId(number));
    block.fallback
}

#[test]
fn a_good_plugin_is_a_codec() {
    let made = Made::of(SOURCE);
    let path = made.library("runs.so", &[]);
    let checked = check(&path).unwrap();
    assert_eq!((checked.name.as_str(), checked.number), ("runs", 65024));
    let Kind::Codec { smaller, .. } = checked.kind else { panic!("{checked:?}") };
    assert_eq!((smaller, checked.samples), (1, 6), "only zeros are runs");
    let plugin = Plugin::load(&path).unwrap().register().unwrap();
    assert_eq!(by_name("runs").unwrap().describe().id, CodecId(65024));
    assert_eq!(fallback(65024), None);
    // The number, and the name, are taken.
    for definitions in [
        ["NAME=\"other\"", "NUMBER=65024"],
        ["NAME=\"runs\"", "NUMBER=65025"],
    ] {
        let other = made.library("other.so", &definitions);
        let error = Plugin::load(&other).unwrap().register().unwrap_err();
        assert!(matches!(error, Error::Taken(_)), "{error}");
    }
    let zstd = made.library("zstd.so", &["NAME=\"zstd\"", "NUMBER=65026"]);
    assert!(Plugin::load(&zstd).unwrap().register().is_err());
    // Replaced while it is in use: by itself, never by another.
    let again = made.library("again.so", &["UNUSED_VALUE=1"]);
    let codec = by_id(CodecId(65024)).unwrap();
    let raw = runs();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let (mut workspace, mut data) = (Workspace::new(), Vec::new());
                    let settings = refrain_codec::Settings::level(1);
                    codec
                        .encode(&mut workspace, &raw, &settings, &mut data)
                        .unwrap();
                }
            });
        }
        for _ in 0..20 {
            plugin.replace_by(&again).unwrap();
        }
    });
    let other = made.library("other.so", &["NAME=\"other\""]);
    let error = plugin.replace_by(&other).unwrap_err();
    assert!(
        matches!(error, Error::Different { name: "runs" }),
        "{error}"
    );
    assert_eq!(fallback(65024), None);
}

#[test]
fn damaged_data_is_an_error() {
    let made = Made::of(SOURCE);
    let path = made.library("damage.so", &["NAME=\"damage\"", "NUMBER=65030"]);
    Plugin::load(&path).unwrap().register().unwrap();
    let codec = by_id(CodecId(65030)).unwrap();
    let mut out = [0; 10];
    let params = refrain_codec::Params::EMPTY;
    let mut workspace = Workspace::new();
    codec
        .decode(&mut workspace, &params, &[10, 7], &mut out)
        .unwrap();
    assert_eq!(out, [7; 10]);
    for data in [&[9, 7][..], &[11, 7], &[10], &[0, 7, 10, 7]] {
        let error = codec
            .decode(&mut workspace, &params, data, &mut out)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "damage: damaged data: the plug-in cannot decode it"
        );
    }
    let mut prefix = [0; 3];
    codec
        .decode_prefix(&mut workspace, &params, &[10, 8], 10, &mut prefix)
        .unwrap();
    assert_eq!(prefix, [8; 3]);
}

#[test]
fn lies_are_found_and_cost_no_data() {
    let made = Made::of(SOURCE);
    let lies = [
        ("ENCODE=long_length", "it encodes to"),
        ("ENCODE=no_length", "it encodes to 0 bytes"),
        ("ENCODE=short_length", "it does not decode its own data"),
        ("ENCODE=behind", "it writes behind a buffer"),
        ("DECODE=decodes_less", "it decodes to"),
        (
            "DECODE=decodes_more",
            "it decodes to 9223372036854775807 bytes",
        ),
        ("DECODE=believes", "passes for that of"),
    ];
    for (number, (lie, cause)) in (65100..).zip(lies) {
        let definitions = [
            lie,
            &format!("NAME=\"lie{number}\""),
            &format!("NUMBER={number}"),
        ];
        let path = made.library("lie.so", &definitions);
        let error = check(&path).unwrap_err();
        assert!(error.to_string().contains(cause), "{lie}: {error}");
        // What writes behind its buffer is not called without a guard, and one that believes
        // everything is right about its own data.
        if lie.ends_with("behind") || lie.ends_with("believes") {
            continue;
        }
        Plugin::load(&path).unwrap().register().unwrap();
        assert_eq!(fallback(number), Some(FallbackReason::CodecFailed), "{lie}");
    }
    let path = made.library(
        "never.so",
        &["ENCODE=negative", "NAME=\"never\"", "NUMBER=65200"],
    );
    let checked = check(&path).unwrap();
    assert!(matches!(checked.kind, Kind::Codec { smaller: 0, .. }));
    Plugin::load(&path).unwrap().register().unwrap();
    assert_eq!(fallback(65200), Some(FallbackReason::CodecFailed));
    // That there is no room is no failure, and another codec may do with it.
    let definitions = ["ENCODE=no_room", "NAME=\"room\"", "NUMBER=65202"];
    let path = made.library("room.so", &definitions);
    Plugin::load(&path).unwrap().register().unwrap();
    assert_eq!(fallback(65202), Some(FallbackReason::NotSmaller));
}

#[test]
fn what_is_no_plugin_is_refused() {
    let made = Made::of(SOURCE);
    for (definition, cause) in [
        ("NOTHING", "it returns no description"),
        (
            "ABI=2",
            "has version 2 of the interface for plug-ins; this program has 1",
        ),
        ("ENCODE=0", "a function is missing"),
        ("DECODE=0", "a function is missing"),
        ("NAME=0", "it has no name"),
        ("NAME=\"\"", "its name '' is not one for plug-ins"),
        (
            "NAME=\"No\"",
            "its name 'No' is not one for plug-ins, which have 1 to 31 of a to z, 0 to 9, - and _",
        ),
        (
            "NAME=\"a-name-of-more-than-31-characters\"",
            "its name 'a-name-of-more-than-31-characters' is not one for plug-ins",
        ),
        (
            "NUMBER=1000000",
            "its number 1000000 is not one for codecs of plug-ins: those are 65024 to 65279",
        ),
        ("NUMBER=3", "its number 3 is not one for codecs"),
        (
            "MEMORY=(1ull<<50)",
            "it states that it needs 1125899906842624 bytes of memory",
        ),
    ] {
        let path = made.library("no.so", &[definition]);
        let error = Plugin::load(&path).unwrap_err().to_string();
        assert!(error.contains(cause), "{definition}: {error}");
        assert_eq!(check(&path).unwrap_err().to_string(), error);
    }
    // What is right by itself, and another's.
    let path = made.library("zstd.so", &["NAME=\"zstd\"", "NUMBER=65201"]);
    let refused = Plugin::load(&path).unwrap().register().unwrap_err();
    let wanted = "cannot be added: its name 'zstd' is another codec's";
    assert_eq!(refused.to_string(), wanted);
    assert_eq!(check(&path).unwrap_err().to_string(), wanted);
    let text = made.folder.path().join("text.so");
    std::fs::write(&text, "no library").unwrap();
    let error = Plugin::load(&text).unwrap_err();
    assert!(matches!(error, Error::Load { .. }));
    assert!(!error.to_string().contains("/refrain-plugin-"), "{error}");
    assert!(matches!(
        Plugin::load(Path::new("/nowhere.so")),
        Err(Error::Io(_))
    ));
}
