//! Links the unwinder into the program statically, so that it starts faster.
//!
//! Rust's standard library links to the shared library `libgcc_s`, which the dynamic loader must
//! find, map and relocate at every start: a quarter of the time of a short `refrain hash`. GCC
//! provides the same code as a static library, `libgcc_eh`, under the same license exception (the
//! GCC Runtime Library Exception). This script puts a file named `libgcc_s.so` into a directory
//! that the linker searches first: a linker script that names the static libraries, as the C
//! library's own `libc.so` is.
//!
//! In any other environment (another system or C library, cross-compiling, no GCC) it does nothing,
//! and the program is linked as usual.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CC");
    if !is_plain_linux() || !has_unwinder_archive() {
        return;
    }
    let Some(directory) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        return;
    };
    if std::fs::write(directory.join("libgcc_s.so"), "GROUP ( -lgcc_eh -lgcc )\n").is_ok() {
        println!("cargo::rustc-link-search=native={}", directory.display());
    }
}

fn is_plain_linux() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let has_shared_c_library =
        env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|all| !all.contains("crt-static"));
    is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && env::var_os("HOST") == env::var_os("TARGET")
        && has_shared_c_library
}

/// Whether the C compiler, which is also the linker, has the static library: it prints the path of
/// a file that it has, and the bare name of any other.
fn has_unwinder_archive() -> bool {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let asked = Command::new(compiler)
        .arg("-print-file-name=libgcc_eh.a")
        .output();
    asked.is_ok_and(|answer| {
        let path = String::from_utf8_lossy(&answer.stdout);
        Path::new(path.trim()).is_absolute()
    })
}
