//! What there is of one archive.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use refrain_protect::checksum64;
use refrain_sync::clock::monotonic_ns;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};

use super::files::{open_file, read_whole};
use crate::key::Key;

/// A range is known by the cell in which it begins; the last range of a cell replaces others.
const CELL_BYTES: u64 = 1 << 10;
/// What the map has of a cell: length and place in the cell (4 bytes each), checksum (8 bytes).
const SLOT_BYTES: u64 = 16;
/// What is given back at once.
pub(super) const SEGMENT_BYTES: u64 = 1 << 20;
const SEGMENT_MAP_BYTES: u64 = SEGMENT_BYTES / CELL_BYTES * SLOT_BYTES;
/// What is known of a segment's use: when, in seconds of the machine's clock, and never 0.
const STAMP_BYTES: u64 = 4;
/// Uses are noted if they are so much later, in seconds.
const STAMP_STEP: u32 = 15;

/// The files of one archive.
pub struct Mirror {
    data: File,
    map: File,
    used: File,
}

/// What the map says of a range.
struct Slot {
    length_bytes: u32,
    inside: u32,
    checksum: u64,
}

impl Slot {
    fn of(key: &Key, offset: u64, bytes: &[u8]) -> Slot {
        Slot {
            length_bytes: bytes.len() as u32,
            inside: (offset % CELL_BYTES) as u32,
            checksum: checksum64(bytes) ^ key.number(),
        }
    }

    fn to_bytes(&self) -> [u8; SLOT_BYTES as usize] {
        let number = u128::from(self.checksum) << 64
            | u128::from(self.inside) << 32
            | u128::from(self.length_bytes);
        number.to_le_bytes()
    }

    fn from_bytes(bytes: [u8; SLOT_BYTES as usize]) -> Slot {
        let number = u128::from_le_bytes(bytes);
        Slot {
            length_bytes: number as u32,
            inside: (number >> 32) as u32,
            checksum: (number >> 64) as u64,
        }
    }
}

fn slot_offset(offset: u64) -> u64 {
    offset / CELL_BYTES * SLOT_BYTES
}

impl Mirror {
    pub(super) fn open(directory: &Path, name: &str) -> io::Result<Mirror> {
        let file = |suffix: &str| open_file(&directory.join(format!("{name}.{suffix}")));
        Ok(Mirror {
            data: file("data")?,
            map: file("map")?,
            used: file("used")?,
        })
    }

    /// A range, if it is there.
    ///
    /// # Errors
    /// `InvalidData` if it is there and damaged; from the operating system.
    pub fn get(&self, key: &Key, offset: u64, length_bytes: usize) -> io::Result<Option<Vec<u8>>> {
        let mut slot = [0; SLOT_BYTES as usize];
        if read_whole(&self.map, slot_offset(offset), &mut slot)? < slot.len() {
            return Ok(None);
        }
        let slot = Slot::from_bytes(slot);
        if slot.length_bytes as usize != length_bytes
            || u64::from(slot.inside) != offset % CELL_BYTES
        {
            return Ok(None);
        }
        let mut bytes = vec![0; length_bytes];
        let count = read_whole(&self.data, offset, &mut bytes)?;
        if count == length_bytes && slot.checksum == Slot::of(key, offset, &bytes).checksum {
            self.note_use(offset, length_bytes)?;
            return Ok(Some(bytes));
        }
        // A part may have been given back meanwhile, or a process ended while it wrote.
        let is_whole = count == length_bytes && !self.has_hole(offset, length_bytes as u64)?;
        if is_whole { Err(io::ErrorKind::InvalidData.into()) } else { Ok(None) }
    }

    /// Keeps a range: first that the segment is used, so that it is given back some day, then the
    /// bytes, then that they are there.
    pub(super) fn put(&self, key: &Key, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.note_use(offset, bytes.len())?;
        self.data.write_all_at(bytes, offset)?;
        let slot = Slot::of(key, offset, bytes).to_bytes();
        self.map.write_all_at(&slot, slot_offset(offset))
    }

    fn note_use(&self, offset: u64, length_bytes: usize) -> io::Result<()> {
        let now = now_seconds();
        let last = (offset + length_bytes.max(1) as u64 - 1) / SEGMENT_BYTES;
        for segment in offset / SEGMENT_BYTES..=last {
            let stamp = self.stamp(segment)?;
            if stamp == 0 || stamp > now || now - stamp >= STAMP_STEP {
                let at = segment * STAMP_BYTES;
                self.used.write_all_at(&now.to_le_bytes(), at)?;
            }
        }
        Ok(())
    }

    /// When a segment was used; 0 if it has nothing.
    pub(super) fn stamp(&self, segment: u64) -> io::Result<u32> {
        let mut stamp = [0; STAMP_BYTES as usize];
        read_whole(&self.used, segment * STAMP_BYTES, &mut stamp)?;
        Ok(u32::from_le_bytes(stamp))
    }

    /// Whether something in a range is not on the disk.
    fn has_hole(&self, offset: u64, length_bytes: u64) -> io::Result<bool> {
        // The position of the file is used for nothing else.
        let hole = seek(&self.data, SeekFrom::Hole(offset));
        Ok(hole.map_or(true, |hole| hole < offset + length_bytes))
    }

    /// How much the files take, in bytes.
    pub(super) fn taken_bytes(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        let files = [&self.data, &self.map, &self.used];
        let blocks = files.map(|file| file.metadata().map(|found| found.blocks()));
        blocks
            .into_iter()
            .try_fold(0, |sum, blocks| Ok(sum + blocks? * 512))
    }

    /// The segments that have something, when they were used, and how many seconds ago.
    pub(super) fn segments(&self) -> io::Result<Vec<(u64, u32, u32)>> {
        let length = self.used.metadata()?.len();
        let mut stamps = vec![0; usize::try_from(length).unwrap_or(0)];
        let count = read_whole(&self.used, 0, &mut stamps)?;
        stamps.truncate(count);
        let now = now_seconds();
        let (stamps, _) = stamps.as_chunks::<{ STAMP_BYTES as usize }>();
        let stamps = stamps.iter().map(|stamp| u32::from_le_bytes(*stamp));
        let used = (0..).zip(stamps).filter(|(_, stamp)| *stamp > 0);
        // Later than now: before the machine was started.
        let age = |stamp: u32| now.checked_sub(stamp).unwrap_or(u32::MAX);
        Ok(used
            .map(|(segment, stamp)| (segment, stamp, age(stamp)))
            .collect())
    }

    /// Gives a segment back to the file system: first what says that ranges are there.
    pub(super) fn give_back(&self, segment: u64) -> io::Result<()> {
        punch(&self.map, segment * SEGMENT_MAP_BYTES, SEGMENT_MAP_BYTES)?;
        punch(&self.data, segment * SEGMENT_BYTES, SEGMENT_BYTES)?;
        (self.used).write_all_at(&[0; STAMP_BYTES as usize], segment * STAMP_BYTES)
    }
}

fn punch(file: &File, offset: u64, length_bytes: u64) -> io::Result<()> {
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(file, hole, offset, length_bytes)?)
}

/// Seconds of the machine's clock, which all processes share; never 0.
fn now_seconds() -> u32 {
    (monotonic_ns() / 1_000_000_000) as u32 + 1
}
