//! Gives parts of an archive in volumes back: volumes without them take the place of others.

use std::io;
use std::ops::Range;

use refrain_format::ContentHash;
use refrain_format::volumes::{Volume, VolumeHead, VolumeName, VolumePiece};
use refrain_storage::{GivesBack, Sink, Source};

use super::growing::GrowingVolumes;
use super::heads::joined;
use super::orphans;

/// A volume is written anew if at least this share of it is given back: what stays is copied.
const GONE_SHARE: u64 = 4;

/// How much is copied at once.
const COPY_BYTES: usize = 1 << 20;

impl GivesBack for GrowingVolumes {
    fn check_holes(&self) -> io::Result<()> {
        Ok(())
    }

    fn data_bytes(&self, range: &Range<u64>) -> io::Result<u64> {
        let (mut at, mut bytes) = (0_u64, 0);
        for piece in self.volumes().iter().flat_map(|volume| &volume.pieces) {
            let end = at + piece.data_bytes;
            bytes += end.min(range.end).saturating_sub(at.max(range.start));
            at = end + piece.zero_bytes;
        }
        Ok(bytes)
    }

    fn punch(&mut self, range: Range<u64>) -> io::Result<()> {
        self.holes.push(range);
        Ok(())
    }

    /// Writes volumes without the holes, and the head that lists them; then deletes the others,
    /// and what runs left that did not end.
    fn sync_holes(&mut self) -> io::Result<()> {
        let mut holes = std::mem::take(&mut self.holes);
        holes.sort_unstable_by_key(|hole| hole.start);
        if let Some(plan) = replaced(self.volumes(), &holes) {
            self.write_instead(plan)?;
        }
        let orphans = orphans(&*self.place).map_err(io::Error::other)?;
        for name in orphans {
            match self.place.remove(&name) {
                // A lock that has not expired: a later run deletes it.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                removed => removed?,
            }
        }
        Ok(())
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        Ok(self.volumes().iter().map(Volume::data_bytes).sum())
    }
}

/// What becomes of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Stays(Volume),
    /// Of the archive's bytes, these stay, with so many zeros behind each.
    Copied(Vec<(Range<u64>, u64)>),
}

/// What becomes of all volumes; `None` if all stay.
fn replaced(volumes: &[Volume], holes: &[Range<u64>]) -> Option<Vec<Fate>> {
    let (mut start, mut first) = (0, 0);
    let mut fates = Vec::with_capacity(volumes.len());
    for volume in volumes {
        let end = start + volume.archive_bytes();
        // Holes may go on in the next volume.
        let passed = holes[first..].partition_point(|hole| hole.end <= start);
        first += passed;
        let inside = holes[first..].iter().take_while(|hole| hole.start < end);
        let pieces = without(volume, start, inside);
        let left: u64 = pieces.iter().map(|(data, _)| data.end - data.start).sum();
        let gone = volume.data_bytes() - left;
        let is_copied = gone > 0 && gone >= volume.data_bytes() / GONE_SHARE;
        fates.push(if is_copied { Fate::Copied(pieces) } else { Fate::Stays(volume.clone()) });
        start = end;
    }
    let is_copied = |fate: &Fate| matches!(fate, Fate::Copied(_));
    fates.iter().any(is_copied).then_some(fates)
}

/// The pieces of a volume that begins at `start` of the archive, without holes.
fn without<'a>(
    volume: &Volume,
    start: u64,
    holes: impl Iterator<Item = &'a Range<u64>> + Clone,
) -> Vec<(Range<u64>, u64)> {
    let mut pieces: Vec<(Range<u64>, u64)> = Vec::new();
    let mut at = start;
    for piece in &volume.pieces {
        let end = at + piece.data_bytes;
        for hole in holes.clone() {
            let (from, to) = (hole.start.clamp(at, end), hole.end.clamp(at, end));
            if from < to {
                if at < from {
                    pieces.push((at..from, 0));
                }
                push_zeros(&mut pieces, from..to);
                at = to;
            }
        }
        if at < end {
            pieces.push((at..end, 0));
        }
        push_zeros(&mut pieces, end..end + piece.zero_bytes);
        at = end + piece.zero_bytes;
    }
    pieces
}

fn push_zeros(pieces: &mut Vec<(Range<u64>, u64)>, zeros: Range<u64>) {
    let count = zeros.end - zeros.start;
    match pieces.last_mut() {
        _ if count == 0 => {}
        Some((_, behind)) => *behind += count,
        None => pieces.push((zeros.start..zeros.start, count)),
    }
}

/// A volume that takes the place of others.
struct Copy {
    sink: Box<dyn Sink>,
    hash: ContentHash,
    volume: Volume,
}

impl GrowingVolumes {
    fn write_instead(&mut self, fates: Vec<Fate>) -> io::Result<()> {
        let number = self.number() + 1;
        let joined = self.volumes().iter().map(joined).collect();
        let source = self.place.joined(joined)?;
        let mut volumes: Vec<Volume> = Vec::new();
        let mut copy: Option<Copy> = None;
        let mut written = Vec::new();
        let result = fates.into_iter().try_for_each(|fate| {
            match fate {
                Fate::Stays(volume) => {
                    end_copy(&mut copy, &mut volumes, &mut written)?;
                    volumes.push(volume);
                }
                Fate::Copied(pieces) => {
                    for (data, zeros) in pieces {
                        self.copy_piece(
                            (&*source, data, zeros),
                            (&mut copy, &mut volumes, &mut written),
                            number,
                        )?;
                    }
                }
            }
            Ok(())
        });
        let result = result.and_then(|()| end_copy(&mut copy, &mut volumes, &mut written));
        let head = VolumeHead {
            number,
            base: None,
            volumes,
        };
        let result = result.and_then(|()| self.publish_head(head));
        if let Err(error) = result {
            // A head may list them, unless another one has its name.
            if error.kind() == io::ErrorKind::WouldBlock {
                let _ = written.iter().try_for_each(|name| self.place.remove(name));
            }
            return Err(error);
        }
        Ok(())
    }

    fn copy_piece(
        &self,
        (source, data, zeros): (&dyn Source, Range<u64>, u64),
        (copy, volumes, written): (&mut Option<Copy>, &mut Vec<Volume>, &mut Vec<String>),
        number: u32,
    ) -> io::Result<()> {
        let mut at = data.start;
        let mut buffer = vec![0; COPY_BYTES];
        while at < data.end {
            let is_full = |copy: &Copy| copy.volume.data_bytes() >= self.volume_bytes;
            if copy.as_ref().is_some_and(is_full) {
                end_copy(copy, volumes, written)?;
            }
            let current = match copy {
                Some(current) => current,
                None => copy.insert(self.begin_copy(number, written.len() as u32)?),
            };
            let room = self.volume_bytes - current.volume.data_bytes();
            let count = room.min(data.end - at).min(COPY_BYTES as u64) as usize;
            let part = &mut buffer[..count];
            if source.read_at(at, part)? < count {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            current.sink.write_all(part)?;
            current.hash.update(part);
            current.add(count as u64, 0);
            at += count as u64;
        }
        match (copy, volumes.last_mut()) {
            (Some(current), _) => current.add(0, zeros),
            (None, Some(before)) => add_zeros(before, zeros),
            // An archive begins with bytes that are never given back.
            (None, None) if zeros > 0 => return Err(io::ErrorKind::InvalidData.into()),
            (None, None) => {}
        }
        Ok(())
    }

    fn begin_copy(&self, number: u32, index: u32) -> io::Result<Copy> {
        let name = VolumeName {
            head: number,
            index,
            run: self.run,
        };
        Ok(Copy {
            sink: self.place.create(&name.to_string())?,
            hash: ContentHash::new(),
            volume: Volume {
                name,
                pieces: Vec::new(),
                digest: [0; 32],
            },
        })
    }
}

impl Copy {
    /// Adds bytes, or zeros, to what it stands for.
    fn add(&mut self, data_bytes: u64, zero_bytes: u64) {
        match self.volume.pieces.last_mut() {
            Some(last) if last.zero_bytes == 0 || data_bytes == 0 => {
                last.data_bytes += data_bytes;
                last.zero_bytes += zero_bytes;
            }
            _ => self.volume.pieces.push(VolumePiece {
                data_bytes,
                zero_bytes,
            }),
        }
    }
}

fn add_zeros(volume: &mut Volume, zeros: u64) {
    if let Some(last) = volume.pieces.last_mut() {
        last.zero_bytes += zeros;
    }
}

fn end_copy(
    copy: &mut Option<Copy>,
    volumes: &mut Vec<Volume>,
    written: &mut Vec<String>,
) -> io::Result<()> {
    if let Some(mut copy) = copy.take() {
        copy.sink.publish()?;
        written.push(copy.volume.name.to_string());
        copy.volume.digest = copy.hash.value();
        volumes.push(copy.volume);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use refrain_storage::{GrowingSink, VolumeFolder, VolumePlace};
    use refrain_testkit::{data, scaled};

    use super::*;
    use crate::volumes::{VOLUME_BYTES_MIN, needed_files, open_volumes};

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(scaled(48)))]
        /// What stays is as it was, what is given back is zero, and only what is listed is there.
        #[test]
        fn what_stays_is_as_it_was(
            lengths in proptest::collection::vec(1_usize..20_000, 1..5),
            holes in proptest::collection::vec((1_usize..50_000, 1_usize..9000), 0..12),
            again in proptest::collection::vec((1_usize..50_000, 1_usize..9000), 0..6),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let place: Arc<dyn VolumePlace> = Arc::new(VolumeFolder::new(directory.path()));
            let mut expected = Vec::new();
            for (seed, length) in lengths.iter().enumerate() {
                let bytes = data::random(*length, seed as u64);
                let mut growing = GrowingVolumes::open(place.clone(), VOLUME_BYTES_MIN).unwrap();
                growing.append_behind(expected.len() as u64).unwrap();
                growing.write_all(&bytes).unwrap();
                growing.publish().unwrap();
                expected.extend(bytes);
            }
            for holes in [holes, again] {
                let mut growing = GrowingVolumes::open(place.clone(), VOLUME_BYTES_MIN).unwrap();
                let before = growing.allocated_bytes().unwrap();
                let mut punched: Vec<bool> = vec![false; expected.len()];
                for (start, length) in holes {
                    let end = (start + length).min(expected.len());
                    if start < end && !punched[start..end].contains(&true) {
                        punched[start..end].fill(true);
                        growing.punch(start as u64..end as u64).unwrap();
                    }
                }
                // One that is open now reads on.
                let opened = open_volumes(&place, None).unwrap();
                growing.sync_holes().unwrap();
                let source = open_volumes(&place, None).unwrap();
                let mut found = vec![0; source.size_bytes().unwrap() as usize];
                source.read_at(0, &mut found).unwrap();
                prop_assert_eq!(found.len(), expected.len());
                let mut read_on = vec![1; found.len()];
                prop_assert_eq!(opened.read_at(0, &mut read_on).unwrap(), found.len());
                prop_assert!(read_on == found);
                let mut zeroed = 0;
                for (at, byte) in found.iter().enumerate() {
                    if *byte != expected[at] {
                        prop_assert!(punched[at] && *byte == 0);
                        zeroed += 1;
                    }
                }
                let after = growing.allocated_bytes().unwrap();
                prop_assert!(zeroed <= before - after);
                expected = found;
                let mut needed: Vec<_> = needed_files(&*place, None).unwrap();
                needed.retain(|file| file.length_bytes.is_some());
                prop_assert_eq!(needed.iter().filter_map(|file| file.length_bytes).sum::<u64>(), after);
                let mut needed: Vec<_> = needed.into_iter().map(|file| file.name).collect();
                needed.sort_unstable();
                prop_assert_eq!(place.names("data-", 1000).unwrap(), needed);
            }
        }
    }
}
