//! Determines the crate or library of a function.

/// Functions from the compiler and the standard library.
const STANDARD: &str = "std";

/// C libraries linked into programs, by the prefix of their functions or files.
const C_LIBRARIES: &[(&str, &[&str])] = &[
    (
        "zstd",
        &[
            "ZSTD", "HUF_", "FSE_", "HIST_", "COVER_", "_HUF_", "huf_", "zstd", "fse_", "hist",
        ],
    ),
    (
        "liblzma",
        &[
            "lzma_", "lz_", "rc_", "lzma2", "lzma", "block_", "stream_", "index_", "filter_",
        ],
    ),
    ("libsais", &["libsais"]),
    (
        "libdeflate",
        &["libdeflate", "deflate_", "crc32", "adler32"],
    ),
    ("blake3", &["blake3", "_blake3"]),
    (
        "ring",
        &[
            "ring_", "bn_", "ecp_", "aesni", "_aesni", "gcm_", "sha256", "sha512", "p256", "chacha",
        ],
    ),
    (
        "unwinder",
        &[
            "_Unwind",
            "__register_frame",
            "__deregister_frame",
            "uw_",
            "execute_cfa",
        ],
    ),
];

/// The crate of a demangled name: the first name in it.
pub(crate) fn of_rust(name: &str) -> String {
    let skipped = |c: char| "<&*[( ".contains(c);
    let mut rest = name.trim_start_matches(skipped);
    for word in ["mut ", "const ", "dyn "] {
        rest = rest
            .strip_prefix(word)
            .unwrap_or(rest)
            .trim_start_matches(skipped);
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let first = &rest[..end.unwrap_or(rest.len())];
    match first {
        "" | "core" | "alloc" | "std" | "hashbrown" | "u8" | "u16" | "u32" | "u64" | "usize"
        | "str" | "bool" | "f32" | "f64" | "T" | "F" | "compiler_builtins" => STANDARD.to_owned(),
        first if first.starts_with("__rust") || first.starts_with("__rdl") => STANDARD.to_owned(),
        first => first.to_owned(),
    }
}

/// The library of a C or assembly function in the program, from its name or file.
pub(crate) fn of_c(name: &str, file: Option<&str>) -> String {
    let begins = |text: &str| {
        let library = C_LIBRARIES
            .iter()
            .find(|(_, beginnings)| beginnings.iter().any(|begin| text.starts_with(begin)));
        library.map(|(library, _)| (*library).to_owned())
    };
    // For compilation units of Rust, the file names the crate: `blake3.ec3ee634-cgu.0`.
    let unit = |file: &str| {
        let (first, rest) = file.split_once('.')?;
        rest.contains("-cgu").then(|| of_rust(first))
    };
    begins(name)
        .or_else(|| file.and_then(begins))
        .or_else(|| file.and_then(unit))
        .unwrap_or_else(|| "C".to_owned())
}

/// The library at a path, without version: `libc` for `/lib/x86_64-linux-gnu/libc.so.6`.
pub(crate) fn of_library(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let end = name.find(".so").unwrap_or(name.len());
    name[..end].trim_matches(['[', ']']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crate_is_the_first_name() {
        for (name, expected) in [
            ("refrain_longmatch::find::extend", "refrain_longmatch"),
            (
                "<refrain_codec::Block as core::fmt::Debug>::fmt",
                "refrain_codec",
            ),
            ("<&mut [my::Type] as x::Y>::z", "my"),
            ("<alloc::vec::Vec<a::B> as core::ops::Drop>::drop", "std"),
            ("core::ptr::drop_in_place<refrain::Archive>", "std"),
            ("__rust_alloc", "std"),
            (
                "<(dyn other::Trait, u8) as std::any::Any>::type_id",
                "other",
            ),
            ("", "std"),
        ] {
            assert_eq!(of_rust(name), expected, "{name}");
        }
    }

    #[test]
    fn libraries_are_recognized() {
        assert_eq!(of_c("ZSTD_compressBlock_fast", None), "zstd");
        assert_eq!(of_c("bt_find_func", Some("lz_encoder_mf.c")), "liblzma");
        assert_eq!(of_c("hash_many", Some("blake3.ec3ee634-cgu.0")), "blake3");
        assert_eq!(of_c("main", None), "C");
        assert_eq!(of_library("/lib/x86_64-linux-gnu/libc.so.6"), "libc");
        assert_eq!(of_library("[vdso]"), "vdso");
    }
}
