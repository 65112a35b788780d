//! Reads ranges of an archive with several threads that share it: `read_range ARCHIVE OFFSET LENGTH
//! [THREADS]`.
//!
//! The range is divided into as many parts as there are threads, and written to standard output in
//! order.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::thread;

use refrain::storage::FileSource;
use refrain::{Archive, ReadOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, archive, offset, length, rest @ ..] = &arguments[..] else {
        return Err("usage: read_range ARCHIVE OFFSET LENGTH [THREADS]".into());
    };
    let (offset, length): (u64, usize) = (offset.parse()?, length.parse()?);
    let threads: usize = rest.first().map_or(Ok(2), |threads| threads.parse())?;

    let source = Arc::new(FileSource::open(archive)?);
    let archive = Archive::open(source, &ReadOptions::default())?;

    // Any number of threads may read at once; a block that two of them need is decoded once.
    let mut buffer = vec![0; length];
    let part_bytes = length.div_ceil(threads.max(1)).max(1);
    let counts = thread::scope(|scope| {
        let readers: Vec<_> = buffer
            .chunks_mut(part_bytes)
            .zip(0_u64..)
            .map(|(part, number)| {
                let (archive, start) = (&archive, offset + number * part_bytes as u64);
                scope.spawn(move || archive.read_at(0, start, part))
            })
            .collect();
        let joined = readers.into_iter().map(|reader| reader.join());
        joined.collect::<Vec<_>>()
    });
    let mut read = 0;
    for count in counts {
        // A read is short only at the end of the content, so the parts leave no gap.
        read += count.map_err(|_| "a reader panicked")??;
    }
    std::io::stdout().write_all(&buffer[..read])?;
    Ok(())
}
