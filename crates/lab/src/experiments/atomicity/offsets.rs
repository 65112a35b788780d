//! Shared offsets: descriptors read and written forward, and files that grow.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use super::record::{Sighting, fill, number_of};
use crate::context::Context;
use crate::error::Result;
use crate::gang;

/// How two threads write records one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// Through one descriptor, whose offset they share.
    SharedOffset,
    /// Through two descriptors that append (O_APPEND).
    Append,
    /// Through two descriptors, each at what it found to be the end.
    SeekToEnd,
}

/// The fate of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// Records written, or available to read.
    pub(super) records: u64,
    /// Records that are missing, or were read by nobody.
    pub(super) lost: u64,
    /// Records that were read twice.
    pub(super) twice: u64,
    /// Record positions that hold more than one number.
    pub(super) mixed: u64,
}

/// Two threads write records through `files`, one each (or one for both), until `time` is over or
/// the file has `bytes_max`. Then `reader` counts what is there.
pub(super) fn writers(
    context: &Context,
    growth: Growth,
    files: Vec<File>,
    reader: &File,
    size_bytes: usize,
    (time, bytes_max): (Duration, u64),
) -> Result<io::Result<Fate>> {
    let records_max = (bytes_max / 2 / size_bytes as u64).max(1);
    let (files, clocked) = (Arc::new(files), context.clone());
    let act = move |member: usize| -> io::Result<u64> {
        let mut file: &File = match growth {
            Growth::SharedOffset => &files[0],
            _ => &files[member],
        };
        let mut record = vec![0; size_bytes];
        let mut failed = Ok(());
        let mut written = 0;
        let _ = clocked.repeat(time, || {
            if written < records_max && failed.is_ok() {
                fill(&mut record, written * 2 + member as u64);
                failed = write_once(&mut file, &record, growth);
                written += 1;
            }
            Ok(())
        });
        failed.map(|()| written)
    };
    let written = gang::run(2, act)?;
    context.check()?;
    let written: io::Result<u64> = written.into_iter().sum();
    Ok(written.and_then(|records| fate_of_writes(reader, records, size_bytes)))
}

fn write_once(file: &mut &File, record: &[u8], growth: Growth) -> io::Result<()> {
    if growth == Growth::SeekToEnd {
        file.seek(SeekFrom::End(0))?;
    }
    match file.write(record)? {
        count if count == record.len() => Ok(()),
        count => Err(short_write(count, record.len())),
    }
}

pub(super) fn short_write(count: usize, wanted: usize) -> io::Error {
    let text = format!("a write of {wanted} bytes wrote {count}");
    io::Error::new(io::ErrorKind::WriteZero, text)
}

fn fate_of_writes(reader: &File, records: u64, size_bytes: usize) -> io::Result<Fate> {
    let size = size_bytes as u64;
    let mut record = vec![0; size_bytes];
    let mut seen = Sighting::default();
    let length = reader.metadata()?.len();
    for place in 0..length / size {
        reader.read_exact_at(&mut record, place * size)?;
        seen.look(&record);
    }
    Ok(Fate {
        records,
        lost: records.saturating_sub(length / size),
        twice: 0,
        mixed: seen.mixed + u64::from(length % size != 0),
    })
}

/// Two threads read a file of numbered records to its end, through one descriptor.
pub(super) fn readers(
    context: &Context,
    mut file: File,
    size_bytes: usize,
    records: u64,
) -> Result<io::Result<Fate>> {
    let mut record = vec![0; size_bytes];
    for number in 0..records {
        context.check()?;
        fill(&mut record, number);
        if let Err(error) = file.write_all_at(&record, number * size_bytes as u64) {
            return Ok(Err(error));
        }
    }
    if let Err(error) = file.rewind() {
        return Ok(Err(error));
    }
    let file = Arc::new(file);
    let act = move |_: usize| -> io::Result<(Sighting, Vec<u64>)> {
        let mut record = vec![0; size_bytes];
        let (mut seen, mut numbers) = (Sighting::default(), Vec::new());
        loop {
            let count = (&*file).read(&mut record)?;
            if count == 0 {
                return Ok((seen, numbers));
            }
            seen.look(&record[..count]);
            // A partial record counts as mixed: the rest went to another reader.
            seen.mixed += u64::from(count < size_bytes);
            numbers.extend(number_of(&record));
        }
    };
    let read = gang::run(2, act)?;
    context.check()?;
    let read: io::Result<Vec<_>> = read.into_iter().collect();
    Ok(read.map(|read| {
        let mut times_read = vec![0_u64; records as usize];
        for number in read.iter().flat_map(|(_, numbers)| numbers) {
            if let Some(times) = times_read.get_mut(*number as usize) {
                *times += 1;
            }
        }
        Fate {
            records,
            lost: times_read.iter().filter(|times| **times == 0).count() as u64,
            twice: times_read.iter().filter(|times| **times > 1).count() as u64,
            mixed: read.iter().map(|(seen, _)| seen.mixed).sum(),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unnamed_files::{Mode, open};

    fn files(modes: &[Mode]) -> Vec<File> {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path(), modes).unwrap()
    }

    #[test]
    fn what_is_lost_or_torn_is_counted() {
        let file = files(&[Mode::ReadWrite]).remove(0);
        let mut record = vec![0; 512];
        for place in 0..4 {
            fill(&mut record, place);
            file.write_all_at(&record, place * 512).unwrap();
        }
        let fate = fate_of_writes(&file, 4, 512).unwrap();
        assert_eq!((fate.records, fate.lost, fate.mixed), (4, 0, 0));
        file.write_all_at(&record[..8], 512).unwrap();
        let fate = fate_of_writes(&file, 6, 512).unwrap();
        assert_eq!((fate.records, fate.lost, fate.mixed), (6, 2, 1));
    }

    #[test]
    fn records_are_appended_and_read_once_each() {
        let context = Context::new("/");
        let modes = [Mode::Append, Mode::Append, Mode::ReadWrite];
        let mut opened = files(&modes);
        let reader = opened.pop().unwrap();
        let limits = (Duration::from_millis(30), 1 << 20);
        let fate = writers(&context, Growth::Append, opened, &reader, 512, limits);
        let fate = fate.unwrap().unwrap();
        // POSIX requires this of O_APPEND.
        assert!(
            fate.records >= 2 && fate.records <= (1 << 20) / 512,
            "{fate:?}"
        );
        assert_eq!(fate.lost, 0);
        let file = files(&[Mode::ReadWrite]).remove(0);
        let fate = readers(&context, file, 512, 300).unwrap().unwrap();
        assert_eq!(fate.records, 300);
    }
}
