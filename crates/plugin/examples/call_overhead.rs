//! Measures what a call of a plug-in costs beside a direct call of the same function:
//! `cargo run -p refrain-plugin --example call_overhead`. Needs `cc`.
#![allow(unsafe_code, clippy::unwrap_used, clippy::print_stdout)]
// `unsafe`: the direct call, for comparison.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use refrain_codec::{CodecId, Params, Workspace, by_id};
use refrain_plugin::Plugin;

const CALLS: u32 = 1_000_000;
const ROUNDS: usize = 9;

type DecodeFn = unsafe extern "C" fn(*const u8, usize, *mut u8, usize) -> i64;

const SOURCE: &str = "#include \"refrain_plugin.h\"
int64_t encode(const uint8_t *r, size_t n, uint8_t *o, size_t m, int32_t l) { return -1; }
int64_t decode(const uint8_t *d, size_t n, uint8_t *o, size_t m) { return (int64_t)m; }
static const refrain_plugin_description description =
    { REFRAIN_PLUGIN_ABI, 65024, \"nothing\", 0, 0, encode, decode };
const refrain_plugin_description *refrain_plugin(void) { return &description; }
";

/// The least time of a call, in nanoseconds.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let round = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let rounds = (0..ROUNDS).map(|_| round(&mut call));
    rounds.fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, library] = ["a.c", "a.so"].map(|name| folder.path().join(name));
    std::fs::write(&source, SOURCE)?;
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut command = Command::new("cc");
    command.args(["-O2", "-shared", "-fPIC", "-I"]).arg(include);
    assert!(
        command
            .arg("-o")
            .arg(&library)
            .arg(&source)
            .status()?
            .success()
    );
    Plugin::load(&library)?.register()?;
    let codec = by_id(CodecId(65024))?;
    // SAFETY: the source gives the function this type.
    let direct = unsafe { libloading::Library::new(&library) }?;
    // SAFETY: as above.
    let direct = unsafe { direct.get::<DecodeFn>(b"decode") }?;
    let (data, mut out, mut workspace) = ([7; 100], [0; 100], Workspace::new());
    let direct_ns = nanoseconds(|| {
        let (from, to) = (black_box(data.as_ptr()), black_box(out.as_mut_ptr()));
        // SAFETY: the buffers have these lengths.
        black_box(unsafe { direct(from, data.len(), to, out.len()) });
    });
    let plugin_ns = nanoseconds(|| {
        let decoded = codec.decode(&mut workspace, &Params::EMPTY, &data, black_box(&mut out));
        black_box(decoded.is_ok());
    });
    println!("direct {direct_ns:.1} ns, through the interface {plugin_ns:.1} ns");
    Ok(())
}
