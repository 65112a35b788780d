//! Serves an archive by NBD and compresses a file again and again, in one process and one pool:
//! `serve_while_compressing ARCHIVE SOCKET FILE OUTPUT [LEVEL]`. Shows how requests of clients
//! precede a compression that uses all processors; `bench/serve-load.rs` measures it. With an empty
//! FILE it only serves. Ends with its standard input.
#![allow(clippy::print_stdout)]

use std::io::{Read, stdin};
use std::path::Path;
use std::sync::Arc;

use refrain::storage::{AtomicFile, FileSource, OutputOptions, Overwrite};
use refrain::{
    Archive, CompressOptions, Content, Level, MemberInput, ReadOptions, Unwatched, compress,
};
use refrain_server::nbd::{Exports, NbdHandler};
use refrain_server::{Address, Clients, Listener, Service};

const CLIENTS_MAX: usize = 64;
const MEMORY_BYTES: u64 = 1 << 30;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, archive, socket, input, output, rest @ ..] = &arguments[..] else {
        return Err("usage: serve_while_compressing ARCHIVE SOCKET FILE OUTPUT [LEVEL]".into());
    };
    let level = rest
        .first()
        .map_or(Ok(Level::default()), |level| level.parse().map(Level))?;
    let archive = Archive::open(
        Arc::new(FileSource::open(Path::new(archive))?),
        &ReadOptions::default(),
    )?;
    archive.use_memory_for_serving();
    let service = Service::new(archive, Arc::new(|line: &str| println!("{line}")));
    let reporter = service.reporter();
    let exports = Exports::new(service)?.with_readahead(2);
    let handler = NbdHandler::new(exports, MEMORY_BYTES, CLIENTS_MAX);
    let listener = Listener::bind(&Address::parse(&format!("unix:{socket}"))?)?;
    let _serving = listener.start(Arc::new(handler), Clients::new(CLIENTS_MAX), reporter)?;
    if !input.is_empty() {
        let (input, output) = (input.clone(), output.clone());
        std::thread::spawn(move || {
            while compress_file(&input, &output, level).is_ok_and(|bytes| bytes > 0) {}
            println!("the compression has ended");
        });
    }
    stdin().read_to_end(&mut vec![])?;
    Ok(())
}

/// Returns the number of bytes written.
fn compress_file(input: &str, output: &str, level: Level) -> Result<u64, Failure> {
    let member = MemberInput {
        name: b"content".to_vec(),
        mode: None,
        modified: None,
        content: Content::Source(Arc::new(FileSource::open(Path::new(input))?)),
    };
    let overwriting = OutputOptions {
        overwrite: Overwrite::Replace,
        ..OutputOptions::default()
    };
    let mut sink = AtomicFile::create(Path::new(output), &overwriting)?;
    let options = CompressOptions {
        level,
        threads: 2,
        ..CompressOptions::default()
    };
    Ok(compress(vec![member], &mut sink, &options, &Unwatched)?.archive_bytes)
}
