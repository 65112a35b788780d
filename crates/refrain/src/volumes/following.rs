//! The bytes of an archive whose volumes may be replaced while it is read.

use std::io;
use std::sync::Arc;

use refrain_pool::Lock;
use refrain_storage::{Source, VolumePlace};

use super::heads::Heads;

/// The bytes of an archive as they were when it was opened, except what is given back later. When a
/// volume is gone, the newest head says where its bytes are now.
pub(super) struct FollowingSource {
    place: Arc<dyn VolumePlace>,
    length_bytes: u64,
    current: Lock<Current>,
}

/// What was read last.
struct Current {
    number: u32,
    source: Arc<dyn Source>,
}

impl FollowingSource {
    pub(super) fn new(place: Arc<dyn VolumePlace>, heads: &Heads) -> io::Result<FollowingSource> {
        let source = place.joined(heads.joined())?;
        Ok(FollowingSource {
            length_bytes: source.size_bytes()?,
            current: Lock::new(Current {
                number: heads.number,
                source,
            }),
            place,
        })
    }

    /// The bytes by a later head than `number`, if there is one.
    fn later(&self, number: u32) -> Option<Arc<dyn Source>> {
        let known = self.current.lock();
        if known.number > number {
            return Some(Arc::clone(&known.source));
        }
        drop(known);
        let heads = Heads::newest(&*self.place).ok()??;
        if heads.number <= number {
            return None;
        }
        let source = self.place.joined(heads.joined()).ok()?;
        let mut known = self.current.lock();
        *known = Current {
            number: heads.number,
            source: Arc::clone(&source),
        };
        Some(source)
    }
}

impl Source for FollowingSource {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.length_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length_bytes.saturating_sub(offset);
        let count = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let buffer = &mut buffer[..count];
        let (number, source) = {
            let current = self.current.lock();
            (current.number, Arc::clone(&current.source))
        };
        match source.read_at(offset, buffer) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match self.later(number) {
                Some(source) => source.read_at(offset, buffer),
                None => Err(error),
            },
            read => read,
        }
    }
}
