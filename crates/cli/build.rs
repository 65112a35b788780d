//! Links the unwinder into the program, so that it starts faster.
//!
//! Rust's standard library asks for `libgcc_s`, which the system's loader has to find, map and relocate whenever the program starts; of a
//! short `refrain hash` that was a quarter of the time. GCC brings the same code as an archive, `libgcc_eh`, under the same
//! exception from its licence (the GCC Runtime Library Exception). So that the linker takes it, a file of the name it looks for lies
//! in a directory that is searched first, and names the archives: a linker script, as the C library's own `libc.so` is.
//!
//! Where anything about this is different (another system, another C library, cross-compiling, no GCC), nothing is done, and the
//! program is linked as usual.

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

/// Whether the C compiler, which is what links, knows the archive: it gives the path of a file that it has, and the bare name of another.
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
