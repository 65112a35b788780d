//! Two threads write to one pipe.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::offsets::short_write;
use super::record::{Sighting, fill};
use crate::context::Context;
use crate::error::{Result, at};
use crate::gang::{self, Countdown};

/// Two threads write records to a pipe until `time` is over. A third reads everything, and checks
/// each stretch of a record's length. As long as nothing is interleaved, each is one record.
pub(super) fn writers(
    context: &Context,
    size_bytes: usize,
    time: Duration,
) -> Result<io::Result<Sighting>> {
    let (reader, writer) = io::pipe().map_err(at("make", Path::new("a pipe")))?;
    let reader = File::from(OwnedFd::from(reader));
    let writer = File::from(OwnedFd::from(writer));
    // The reader reaches the end of the pipe when the last writer has closed it.
    let writers = Arc::new(Countdown::new(2, writer));
    let clocked = context.clone();
    let act = move |member: usize| -> io::Result<Sighting> {
        let mut record = vec![0; size_bytes];
        if member == 2 {
            return read_all(&reader, &mut record);
        }
        let written = writers.get().map_or(Ok(()), |file| {
            write_records(&clocked, &file, member as u64, &mut record, time)
        });
        writers.finish();
        written.map(|()| Sighting::default())
    };
    let seen = gang::run(3, act)?;
    context.check()?;
    Ok(seen
        .into_iter()
        .try_fold(Sighting::default(), |sum, seen| Ok(sum.and(seen?))))
}

fn write_records(
    context: &Context,
    mut file: &File,
    first: u64,
    record: &mut [u8],
    time: Duration,
) -> io::Result<()> {
    let mut number = first;
    let mut failed = Ok(());
    let _ = context.repeat(time, || {
        number += 2;
        fill(record, number);
        if failed.is_ok() {
            failed = match file.write(record) {
                Ok(count) if count == record.len() => Ok(()),
                Ok(count) => Err(short_write(count, record.len())),
                Err(error) => Err(error),
            };
        }
        Ok(())
    });
    failed
}

fn read_all(mut reader: &File, record: &mut [u8]) -> io::Result<Sighting> {
    let mut seen = Sighting::default();
    loop {
        let mut filled = 0;
        while filled < record.len() {
            match reader.read(&mut record[filled..])? {
                0 => return Ok(seen),
                count => filled += count,
            }
        }
        seen.look(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let context = Context::new("/");
        for size in [512, 64 << 10] {
            let time = Duration::from_millis(20);
            let seen = writers(&context, size, time).unwrap().unwrap();
            assert!(seen.looks >= 2 && seen.mixed <= seen.looks, "{seen:?}");
        }
    }
}
