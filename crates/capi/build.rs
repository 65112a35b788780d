//! Names the shared library for the dynamic linker.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "linux" {
        return;
    }
    // Programs ask for the version whose functions they know. The library's threads live as long as
    // the process, so it is never unloaded.
    for argument in [&*format!("-soname,librefrain.so.{major}"), "-z,nodelete"] {
        println!("cargo::rustc-cdylib-link-arg=-Wl,{argument}");
    }
}
