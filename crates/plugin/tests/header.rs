//! The header for C says the same as the declarations for Rust.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use refrain_codec::{CodecId, FilterStep};
use refrain_plugin::{ABI, Description, FilterDescription, NO_ROOM};

/// Fails to compile if something differs.
fn assertions() -> String {
    let mut source = "#include \"refrain_plugin.h\"\n".to_owned();
    let mut equal = |expression: String, value: u64| {
        let _ = writeln!(
            source,
            "_Static_assert(({expression}) == {value}, \"{value}\");"
        );
    };
    equal("REFRAIN_PLUGIN_ABI".to_owned(), ABI.into());
    equal("-REFRAIN_PLUGIN_NO_ROOM".to_owned(), NO_ROOM.unsigned_abs());
    equal(
        "REFRAIN_PLUGIN_NUMBER_FIRST".to_owned(),
        (*CodecId::PLUGINS.start()).into(),
    );
    equal(
        "REFRAIN_PLUGIN_NUMBER_LAST".to_owned(),
        (*CodecId::PLUGINS.end()).into(),
    );
    equal(
        "REFRAIN_FILTER_PLUGIN_NUMBER_FIRST".to_owned(),
        (*FilterStep::PLUGINS.start()).into(),
    );
    equal(
        "REFRAIN_FILTER_PLUGIN_NUMBER_LAST".to_owned(),
        (*FilterStep::PLUGINS.end()).into(),
    );
    equal(
        "sizeof(refrain_filter_plugin_description)".to_owned(),
        size_of::<FilterDescription>() as u64,
    );
    for (field, offset) in [
        ("abi", offset_of!(FilterDescription, abi)),
        ("number", offset_of!(FilterDescription, number)),
        ("name", offset_of!(FilterDescription, name)),
        (
            "parameter_min",
            offset_of!(FilterDescription, parameter_min),
        ),
        (
            "parameter_max",
            offset_of!(FilterDescription, parameter_max),
        ),
        ("memory_bytes", offset_of!(FilterDescription, memory_bytes)),
        ("encode", offset_of!(FilterDescription, encode)),
        ("decode", offset_of!(FilterDescription, decode)),
    ] {
        equal(
            format!("offsetof(refrain_filter_plugin_description, {field})"),
            offset as u64,
        );
    }
    equal(
        "sizeof(refrain_plugin_description)".to_owned(),
        size_of::<Description>() as u64,
    );
    for (field, offset) in [
        ("abi", offset_of!(Description, abi)),
        ("number", offset_of!(Description, number)),
        ("name", offset_of!(Description, name)),
        (
            "encode_memory_bytes",
            offset_of!(Description, encode_memory_bytes),
        ),
        (
            "decode_memory_bytes",
            offset_of!(Description, decode_memory_bytes),
        ),
        ("encode", offset_of!(Description, encode)),
        ("decode", offset_of!(Description, decode)),
    ] {
        equal(
            format!("offsetof(refrain_plugin_description, {field})"),
            offset as u64,
        );
    }
    source.push_str(
        "static int64_t (*encode)(const uint8_t *, size_t, uint8_t *, size_t, int32_t);\n\
         static int64_t (*decode)(const uint8_t *, size_t, uint8_t *, size_t);\n\
         static int64_t (*filter)(uint8_t *, size_t, uint32_t);\n\
         refrain_plugin_description d;\n\
         refrain_filter_plugin_description f;\n\
         void same(void) { d.encode = encode; d.decode = decode; f.encode = f.decode = filter; }\n",
    );
    source
}

#[test]
fn the_header_and_the_declarations_agree() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("assertions.c");
    std::fs::write(&source, assertions()).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut command = Command::new("cc");
    command.args([
        "-std=c11",
        "-Wall",
        "-Werror",
        "-Wno-unused",
        "-fsyntax-only",
        "-I",
    ]);
    let status = command.arg(include).arg(&source).status().unwrap();
    assert!(status.success(), "{}", assertions());
}
