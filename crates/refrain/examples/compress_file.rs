//! Compresses one file into another: `compress_file INPUT OUTPUT [LEVEL]`.
#![allow(clippy::print_stdout)]

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use refrain::storage::{AtomicFile, FileSource, OutputOptions};
use refrain::{CompressOptions, Content, Level, MemberInput, Unwatched, compress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, input, output, rest @ ..] = &arguments[..] else {
        return Err("usage: compress_file INPUT OUTPUT [LEVEL]".into());
    };
    let level = rest
        .first()
        .map_or(Ok(Level::default()), |level| level.parse().map(Level))?;
    let member = MemberInput {
        name: Path::new(input)
            .file_name()
            .map(|name| name.as_bytes().to_vec())
            .unwrap_or_default(),
        mode: None,
        modified: None,
        content: Content::Source(Arc::new(FileSource::open(Path::new(input))?)),
    };
    let mut sink = AtomicFile::create(Path::new(output), &OutputOptions::default())?;
    let options = CompressOptions {
        level,
        threads: 2,
        ..CompressOptions::default()
    };
    let summary = compress(vec![member], &mut sink, &options, &Unwatched)?;
    println!("{summary:?}");
    Ok(())
}
