//! What a run adds to an archive in volumes.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::ContentHash;
use refrain_format::volumes::{Volume, VolumeHead, VolumeName, VolumePiece, head_name};
use refrain_pool::Lock;
use refrain_storage::{
    Alone, GrowingSink, MemorySource, Sink, Source, VolumeLock, VolumePlace, in_zero_pieces,
};

use super::heads::{Heads, joined};
use crate::error::{Error, ErrorKind, Result};

/// The largest volume that is made, in bytes, unless something else is asked for.
pub const VOLUME_BYTES_DEFAULT: u64 = 4 << 30;

/// The least size of volumes that can be asked for, in bytes.
pub const VOLUME_BYTES_MIN: u64 = 4 << 10;

/// An archive in volumes that grows: new volumes, and when the sink is published, a head that lists
/// them behind the earlier ones.
///
/// Only one writer can create the next head. Whoever comes second gets an error, and removes its
/// volumes; those of a run that was killed stay, and nothing refers to them.
pub struct GrowingVolumes {
    pub(super) place: Arc<dyn VolumePlace>,
    heads: Option<Heads>,
    pub(super) volume_bytes: u64,
    /// Of this run's volumes.
    pub(super) run: u64,
    current: Option<CurrentVolume>,
    done: Vec<Volume>,
    written: Arc<Written>,
    /// Ranges of the archive to be given back.
    pub(super) holes: Vec<Range<u64>>,
    /// Whether the volumes stay: a head lists them, or may do so.
    keeps_volumes: bool,
    /// How sure it is that no other writer was at it.
    alone: Option<Alone>,
    lock: VolumeLock,
}

/// A volume that is being written.
struct CurrentVolume {
    sink: Box<dyn Sink>,
    name: VolumeName,
    hash: ContentHash,
    length_bytes: u64,
}

/// All bytes, earlier and new.
struct Written {
    earlier: Arc<dyn Source>,
    earlier_bytes: u64,
    new: Lock<New>,
}

/// What a run wrote.
struct New {
    /// Whole volumes.
    done: Arc<dyn Source>,
    done_bytes: u64,
    /// The last one, if it can be read back.
    current: Option<Arc<dyn Source>>,
    current_bytes: u64,
}

impl GrowingVolumes {
    /// The archive at a place, or a new one. New volumes have at most `volume_bytes` bytes.
    ///
    /// # Errors
    /// `Usage` for too small volumes; `Io` if there is another writer (`WouldBlock`), and others;
    /// `Damaged`, `Unsupported` for a head.
    pub fn open(place: Arc<dyn VolumePlace>, volume_bytes: u64) -> Result<GrowingVolumes> {
        if volume_bytes < VOLUME_BYTES_MIN {
            let text = format!("volumes have at least {VOLUME_BYTES_MIN} bytes");
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let bytes_max = place.volume_bytes_max();
        if volume_bytes > bytes_max {
            let text = format!("volumes in this place have at most {bytes_max} bytes");
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let lock = place.lock()?;
        let heads = Heads::newest(&*place)?;
        let volumes = heads.as_ref().map(Heads::joined).unwrap_or_default();
        let earlier = place.joined(volumes)?;
        let mut run = [0; 8];
        getrandom::fill(&mut run).map_err(|error| {
            let text = format!("the system has no random numbers: {error}");
            Error::new(ErrorKind::Io, text)
        })?;
        let new = New {
            done: Arc::new(MemorySource::new(Vec::new())),
            done_bytes: 0,
            current: None,
            current_bytes: 0,
        };
        Ok(GrowingVolumes {
            written: Arc::new(Written {
                earlier_bytes: earlier.size_bytes()?,
                earlier,
                new: Lock::new(new),
            }),
            place,
            heads,
            volume_bytes,
            run: u64::from_le_bytes(run),
            current: None,
            done: Vec::new(),
            holes: Vec::new(),
            keeps_volumes: false,
            alone: None,
            lock,
        })
    }

    /// Whether there is no archive yet.
    pub fn is_new(&self) -> bool {
        self.heads.is_none()
    }

    /// Whether the head, once published, may have been created by two writers at the same time: the
    /// store ignores conditions, and there is no lock.
    pub fn is_unguarded(&self) -> bool {
        self.alone == Some(Alone::Likely) && !self.lock.is_held()
    }

    fn begin_volume(&mut self) -> io::Result<()> {
        let name = VolumeName {
            head: self.number() + 1,
            index: self.done.len() as u32,
            run: self.run,
        };
        let sink = self.place.create(&name.to_string())?;
        self.written.new.lock().current = sink.read_back();
        self.current = Some(CurrentVolume {
            sink,
            name,
            hash: ContentHash::new(),
            length_bytes: 0,
        });
        Ok(())
    }

    fn end_volume(&mut self) -> io::Result<()> {
        let Some(mut current) = self.current.take() else {
            return Ok(());
        };
        current.sink.publish()?;
        self.done.push(Volume {
            name: current.name,
            pieces: vec![VolumePiece {
                data_bytes: current.length_bytes,
                zero_bytes: 0,
            }],
            digest: current.hash.value(),
        });
        let done = self.place.joined(self.done.iter().map(joined).collect())?;
        let mut new = self.written.new.lock();
        new.done = done;
        new.done_bytes += new.current_bytes;
        new.current = None;
        new.current_bytes = 0;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.current.is_none() {
                self.begin_volume()?;
            }
            let Some(current) = &mut self.current else {
                return Ok(());
            };
            let room = self.volume_bytes - current.length_bytes;
            let count = usize::try_from(room).map_or(rest.len(), |room| room.min(rest.len()));
            let (part, behind) = rest.split_at(count);
            current.sink.write_all(part)?;
            current.hash.update(part);
            current.length_bytes += count as u64;
            self.written.new.lock().current_bytes = current.length_bytes;
            rest = behind;
            if current.length_bytes == self.volume_bytes {
                self.end_volume()?;
            }
        }
        Ok(())
    }

    /// The number of the newest head; 0 if there is none.
    pub(super) fn number(&self) -> u32 {
        self.heads.as_ref().map_or(0, |heads| heads.number)
    }

    /// The volumes that the newest head lists.
    pub(super) fn volumes(&self) -> &[Volume] {
        self.heads.as_ref().map_or(&[], |heads| &heads.volumes)
    }

    /// Creates a head, by which its volumes become the archive.
    pub(super) fn publish_head(&mut self, head: VolumeHead) -> io::Result<()> {
        let name = head_name(head.number);
        let bytes = head.to_bytes();
        // Whatever else goes wrong, the head may be there, or appear late.
        self.keeps_volumes = true;
        let created = self.place.create_alone(&name, &bytes);
        self.alone = Some(created.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                self.keeps_volumes = false;
                let label = self.place.label();
                let text = format!(
                    "another program added to {label} meanwhile ({name}): nothing of this run was \
                     added"
                );
                io::Error::new(io::ErrorKind::WouldBlock, text)
            }
            _ => error,
        })?);
        self.heads = Some(Heads::after(self.heads.take(), head, &bytes));
        Ok(())
    }
}

impl GrowingSink for GrowingVolumes {
    fn source(&self) -> io::Result<Arc<dyn Source>> {
        Ok(Arc::clone(&self.written.earlier))
    }

    fn append_behind(&mut self, end: u64) -> io::Result<()> {
        let length_bytes = self.written.earlier_bytes;
        if end == length_bytes {
            return Ok(());
        }
        let text = format!(
            "{}: the archive ends after {end} of {length_bytes} bytes, and volumes are never cut",
            self.place.label()
        );
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    fn grows_again(&self) -> bool {
        false
    }
}

impl Sink for GrowingVolumes {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        in_zero_pieces(length_bytes, |piece| self.write(piece))
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        let reads_back = self.place.reads_back();
        reads_back.then(|| Arc::clone(&self.written) as Arc<dyn Source>)
    }

    fn is_stored(&self) -> bool {
        true
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        self.place.file_id()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.end_volume()?;
        let head = Heads::next(self.heads.as_ref(), self.done.clone());
        self.publish_head(head.map_err(io::Error::other)?)?;
        self.done.clear();
        Ok(())
    }
}

impl Drop for GrowingVolumes {
    fn drop(&mut self) {
        if self.keeps_volumes {
            return;
        }
        self.current = None;
        for volume in &self.done {
            // What remains is as after a crash: nothing refers to it.
            let _ = self.place.remove(&volume.name.to_string());
        }
    }
}

impl Source for Written {
    fn size_bytes(&self) -> io::Result<u64> {
        let new = self.new.lock();
        Ok(self.earlier_bytes + new.done_bytes + new.current_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (done, done_bytes, current) = {
            let new = self.new.lock();
            (Arc::clone(&new.done), new.done_bytes, new.current.clone())
        };
        let parts = [
            (Some(Arc::clone(&self.earlier)), self.earlier_bytes),
            (Some(done), done_bytes),
            (current, u64::MAX),
        ];
        let (mut start, mut count) = (0_u64, 0);
        for (source, length_bytes) in parts {
            let end = start.saturating_add(length_bytes);
            let at = offset.saturating_add(count as u64);
            if count < buffer.len() && at < end {
                let Some(source) = source else { break };
                let left = usize::try_from(end - at).unwrap_or(usize::MAX);
                let to = count + left.min(buffer.len() - count);
                count += source.read_at(at - start, &mut buffer[count..to])?;
            }
            start = end;
        }
        Ok(count)
    }
}
