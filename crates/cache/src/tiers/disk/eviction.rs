//! How much there is in all, and what goes first.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use refrain_pool::Lock;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::mirror::Mirror;
use super::names;

/// What is left of the limit for what processes write between two looks, and how much goes at once:
/// shares of the limit.
const MARGIN_SHARE: u64 = 8;
const GOES_SHARE: u64 = 16;

/// So many segments are given back by one writer, which waits for that.
const SEGMENTS_MAX: usize = 64;

/// A segment that may go.
struct Victim {
    name: String,
    segment: u64,
    /// When it was used; if it was used since, it stays.
    stamp: u32,
}

/// The limit of a directory.
pub(super) struct Room {
    directory: PathBuf,
    limit_bytes: u64,
    /// Held by the process that evicts.
    lock: File,
    victims: Lock<Vec<Victim>>,
}

impl Room {
    pub(super) fn new(directory: &Path, limit_bytes: u64, lock: File) -> Room {
        Room {
            directory: directory.to_path_buf(),
            limit_bytes,
            lock,
            victims: Lock::default(),
        }
    }

    /// Gives back what was used least recently, if there is too much. Returns whether there is room
    /// for so many bytes.
    pub(super) fn make(&self, length_bytes: u64) -> io::Result<bool> {
        let high_bytes = self.limit_bytes - self.limit_bytes / MARGIN_SHARE;
        let taken_bytes = self.taken_bytes()?;
        if taken_bytes + length_bytes <= high_bytes {
            return Ok(true);
        }
        match flock(&self.lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            // Another process does it.
            Err(Errno::AGAIN) => return Ok(taken_bytes + length_bytes <= self.limit_bytes),
            Err(error) => return Err(error.into()),
        }
        let low_bytes = high_bytes - self.limit_bytes / GOES_SHARE;
        let evicted = self.evict(taken_bytes + length_bytes - low_bytes);
        flock(&self.lock, FlockOperation::Unlock)?;
        evicted?;
        Ok(self.taken_bytes()? + length_bytes <= high_bytes)
    }

    /// How much all files take, in bytes.
    fn taken_bytes(&self) -> io::Result<u64> {
        let mut sum = fs::metadata(self.directory.join(names::FILE))?.blocks() * 512;
        for name in self.names()? {
            sum += Mirror::open(&self.directory, &name)?.taken_bytes()?;
        }
        Ok(sum)
    }

    /// The names of all archives of which there is something.
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".data"));
            names.extend(name.map(str::to_owned));
        }
        Ok(names)
    }

    /// Gives back segments of so many bytes in all.
    fn evict(&self, bytes: u64) -> io::Result<()> {
        let mut victims = self.victims.lock();
        let mut given_bytes = 0;
        for _ in 0..SEGMENTS_MAX {
            if victims.is_empty() {
                *victims = self.victims_now()?;
            }
            let Some(victim) = victims.pop() else { break };
            let mirror = Mirror::open(&self.directory, &victim.name)?;
            if mirror.stamp(victim.segment)? != victim.stamp {
                continue;
            }
            let before_bytes = mirror.taken_bytes()?;
            mirror.give_back(victim.segment)?;
            given_bytes += before_bytes.saturating_sub(mirror.taken_bytes()?);
            if given_bytes >= bytes {
                break;
            }
        }
        Ok(())
    }

    /// The quarter of all segments that was used least recently, the first to go last.
    fn victims_now(&self) -> io::Result<Vec<Victim>> {
        let mut found = Vec::new();
        for name in self.names()? {
            let segments = Mirror::open(&self.directory, &name)?.segments()?;
            found.extend(segments.into_iter().map(|(segment, stamp, age)| {
                let name = name.clone();
                let victim = Victim {
                    name,
                    segment,
                    stamp,
                };
                (age, victim)
            }));
        }
        found.sort_by_key(|(age, _)| *age);
        let first = found.len() * 3 / 4;
        Ok(found
            .split_off(first)
            .into_iter()
            .map(|(_, victim)| victim)
            .collect())
    }
}
