//! Size, start and speed of every codec's module beside the codec itself, on one file and thread:
//! `module_speed FILE [CODEC [MODULE]]`.
//!
//! The file is one block, encoded at the codec's default level. *Start* is all that does not depend
//! on the block: the module is checked and translated, and decodes 4 KiB of one letter. MODULE is a
//! file to measure instead of the module that this crate has for CODEC. Times are the processor
//! time of this thread, medians of five.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::time::Duration;

use refrain_carried::{Decoder, Limits, Module, Role, decoder};
use refrain_codec::{Codec, Params, Settings, Workspace, codecs};
use rustix::time::{ClockId, clock_gettime};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("module_speed: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let (path, only, module) = match arguments {
        [path] => (path, None, None),
        [path, only] => (path, Some(only), None),
        [path, only, module] => (path, Some(only), Some(module)),
        _ => return Err("usage: module_speed FILE [CODEC [MODULE]]".into()),
    };
    let read = |path: &String| std::fs::read(path).map_err(|error| format!("{path}: {error}"));
    let raw = read(path)?;
    let other = module.map(read).transpose()?;
    println!("codec    module bytes  start ms   native MB/s  module MB/s   ratio");
    for codec in codecs() {
        let description = codec.describe();
        if only.is_some_and(|only| only != description.name) {
            continue;
        }
        let Some(decoder) = decoder(Role::Codec, description.id.0) else {
            continue;
        };
        let bytes = other.as_deref().unwrap_or(decoder.module);
        let row = measure(codec, decoder, bytes, &raw)
            .map_err(|error| format!("{}: {error}", description.name))?;
        println!("{:<8} {row}", description.name);
    }
    Ok(())
}

/// A block of a codec.
struct Block<'a> {
    raw: &'a [u8],
    params: Params,
    data: Vec<u8>,
}

impl<'a> Block<'a> {
    fn of(codec: &dyn Codec, raw: &'a [u8]) -> Result<Self, String> {
        let mut data = Vec::new();
        let settings = Settings::default();
        let params = codec.encode(&mut Workspace::new(), raw, &settings, &mut data);
        Ok(Self {
            raw,
            params: params.map_err(|error| error.to_string())?,
            data,
        })
    }

    /// Decodes it by a module.
    fn by(&self, module: &Module, decoder: &Decoder) -> Result<(), String> {
        let mut decoded = vec![0; self.raw.len()];
        let raw_bytes = self.raw.len() as u64;
        let limits = Limits {
            memory_bytes: decoder.memory_pages_max(raw_bytes) << 16,
            steps: Decoder::STEPS_FIXED + decoder.steps_per_byte_max * raw_bytes,
        };
        module
            .decode(self.params.as_bytes(), &self.data, &mut decoded, limits)
            .map_err(|error| error.to_string())?;
        assert!(decoded == self.raw, "the decoded block differs");
        Ok(())
    }
}

fn measure(
    codec: &dyn Codec,
    decoder: &Decoder,
    bytes: &[u8],
    raw: &[u8],
) -> Result<String, String> {
    let block = Block::of(codec, raw)?;
    let letters = [b'a'; 4096];
    let small = Block::of(codec, &letters)?;
    let start = median(|| small.by(&translated(bytes)?, decoder))?;
    let module = translated(bytes)?;
    let by_module = median(|| block.by(&module, decoder))?;
    let mut workspace = Workspace::new();
    let mut decoded = vec![0; raw.len()];
    let native = median(|| {
        codec
            .decode(&mut workspace, &block.params, &block.data, &mut decoded)
            .map_err(|error| error.to_string())
    })?;
    let rate = |time: Duration| raw.len() as f64 / 1e6 / time.as_secs_f64().max(1e-9);
    Ok(format!(
        "{:>12} {:>9.2} {:>13.1} {:>12.2} {:>7.4}",
        bytes.len(),
        start.as_secs_f64() * 1e3,
        rate(native),
        rate(by_module),
        native.as_secs_f64() / by_module.as_secs_f64()
    ))
}

fn translated(bytes: &[u8]) -> Result<Module, String> {
    Module::new(bytes).map_err(|error| error.to_string())
}

/// The median time of five runs.
fn median(mut run: impl FnMut() -> Result<(), String>) -> Result<Duration, String> {
    let mut times = [Duration::ZERO; 5];
    for time in &mut times {
        let start = processor_time();
        run()?;
        *time = processor_time() - start;
    }
    times.sort_unstable();
    Ok(times[2])
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}
