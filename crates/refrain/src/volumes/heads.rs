//! Reads heads, and composes the next.

use refrain_format::volumes::{
    BaseHead, HEAD_BYTES_MAX, HEAD_NUMBER_MAX, HEAD_PREFIX, VOLUMES_MAX, Volume, VolumeHead,
    head_name, head_number,
};
use refrain_format::{FormatError, content_hash};
use refrain_storage::{JoinedVolume, VolumePlace};

use crate::error::{Error, ErrorKind, Result};

/// How many names that begin like a head may come before the newest.
const OTHERS_MAX: usize = 16;

/// A head, and all volumes before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heads {
    pub number: u32,
    /// BLAKE3 of the head.
    digest: [u8; 32],
    pub base: Option<BaseHead>,
    /// How many of the volumes the base lists.
    base_count: usize,
    pub volumes: Vec<Volume>,
}

/// The number of the newest head at a place.
pub(super) fn newest_number(place: &dyn VolumePlace) -> Result<Option<u32>> {
    let names = place.names(HEAD_PREFIX, OTHERS_MAX)?;
    Ok(names.iter().find_map(|name| head_number(name)))
}

impl Heads {
    /// The newest head at a place.
    pub(super) fn newest(place: &dyn VolumePlace) -> Result<Option<Heads>> {
        let number = newest_number(place)?;
        number.map(|number| Heads::read(place, number)).transpose()
    }

    pub(super) fn read(place: &dyn VolumePlace, number: u32) -> Result<Heads> {
        let (head, digest) = read_head(place, number)?;
        let mut volumes = Vec::new();
        if let Some(base) = head.base {
            let (before, found) = read_head(place, base.number)?;
            if found != base.digest || before.base.is_some() {
                let text = "another head refers to it, and has other contents in mind";
                return Err(in_head(place, base.number, Error::damaged(text)));
            }
            volumes = before.volumes;
        }
        let base_count = volumes.len();
        volumes.extend(head.volumes);
        Ok(Heads {
            number,
            digest,
            base: head.base,
            base_count,
            volumes,
        })
    }

    /// What is there when `head`, of these bytes, was created behind `before`.
    pub(super) fn after(before: Option<Heads>, head: VolumeHead, bytes: &[u8]) -> Heads {
        let mut volumes = Vec::new();
        if let (Some(base), Some(before)) = (head.base, before) {
            let is_base = base.number == before.number;
            let listed = if is_base { before.volumes.len() } else { before.base_count };
            volumes = before.volumes;
            volumes.truncate(listed);
        }
        let base_count = volumes.len();
        volumes.extend(head.volumes);
        Heads {
            number: head.number,
            digest: content_hash(bytes),
            base: head.base,
            base_count,
            volumes,
        }
    }

    /// The volumes, to be joined.
    pub(super) fn joined(&self) -> Vec<JoinedVolume> {
        self.volumes.iter().map(joined).collect()
    }

    /// The head behind `before`, with more volumes.
    pub(super) fn next(before: Option<&Heads>, added: Vec<Volume>) -> Result<VolumeHead> {
        let number = before.map_or(1, |before| before.number + 1);
        let earlier = before.map_or(&[][..], |before| &before.volumes);
        let count = earlier.len() + added.len();
        if number > HEAD_NUMBER_MAX || count > VOLUMES_MAX {
            let text = format!("an archive has at most {VOLUMES_MAX} volumes: make them larger");
            return Err(Error::limit(text));
        }
        // A head without a base is one for the next.
        let base = before.map(|before| match before.base {
            Some(base) => (base, before.base_count),
            None => {
                let base = BaseHead {
                    number: before.number,
                    digest: before.digest,
                };
                (base, earlier.len())
            }
        });
        let base = base.filter(|(_, listed)| VolumeHead::is_based(count, count - listed));
        let listed = base.map_or(0, |(_, listed)| listed);
        let mut volumes = earlier[listed..].to_vec();
        volumes.extend(added);
        Ok(VolumeHead {
            number,
            base: base.map(|(base, _)| base),
            volumes,
        })
    }
}

/// A volume, to be joined with others.
pub(super) fn joined(volume: &Volume) -> JoinedVolume {
    let pieces = volume.pieces.iter();
    JoinedVolume {
        name: volume.name.to_string(),
        pieces: pieces
            .map(|piece| (piece.data_bytes, piece.zero_bytes))
            .collect(),
    }
}

/// A head and its hash.
fn read_head(place: &dyn VolumePlace, number: u32) -> Result<(VolumeHead, [u8; 32])> {
    let name = head_name(number);
    let bytes = place.read(&name, HEAD_BYTES_MAX as u64)?;
    let head = VolumeHead::parse(&bytes)
        .map_err(|error| in_head(place, number, with_advice(error, number)))?;
    if head.number != number {
        let text = format!("it is the head {}, under another name", head.number);
        return Err(in_head(place, number, Error::damaged(text)));
    }
    Ok((head, content_hash(&bytes)))
}

/// What is before a damaged head can be read.
fn with_advice(error: FormatError, number: u32) -> Error {
    let mut error = Error::from(error);
    if error.kind == ErrorKind::Damaged && number > 1 {
        let before = head_name(number - 1);
        error.cause = format!("{}; the archive before it is at {before}", error.cause).into();
    }
    error
}

fn in_head(place: &dyn VolumePlace, number: u32, mut error: Error) -> Error {
    error.cause = format!("{}/{}: {}", place.label(), head_name(number), error.cause).into();
    error
}

#[cfg(test)]
mod tests {
    use refrain_format::volumes::{VolumeName, VolumePiece};
    use refrain_storage::VolumeFolder;

    use super::*;

    fn volume(head: u32, index: u32) -> Volume {
        Volume {
            name: VolumeName {
                head,
                index,
                run: 7,
            },
            pieces: vec![VolumePiece {
                data_bytes: u64::from(head * 10 + index),
                zero_bytes: 0,
            }],
            digest: [head as u8; 32],
        }
    }

    /// Any number of runs: the volumes are those of all runs, and heads stay small.
    #[test]
    fn heads_list_everything_and_share_lists() {
        let directory = tempfile::tempdir().unwrap();
        let place = VolumeFolder::new(directory.path());
        let mut expected = Vec::new();
        let mut heads: Option<Heads> = None;
        let mut written_bytes = 0;
        for number in 1..=400 {
            let count = if number % 50 == 0 { 40 } else { 1 };
            let added: Vec<_> = (0..count).map(|index| volume(number, index)).collect();
            expected.extend(added.clone());
            let head = Heads::next(heads.as_ref(), added).unwrap();
            assert_eq!(head.number, number);
            let bytes = head.to_bytes();
            written_bytes += bytes.len();
            place.create_alone(&head_name(number), &bytes).unwrap();
            let newest = Heads::newest(&place).unwrap().unwrap();
            assert_eq!(Heads::after(heads, head, &bytes), newest);
            assert_eq!((newest.number, &newest.volumes), (number, &expected));
            heads = Some(newest);
        }
        assert!(written_bytes < 400 * 2500, "{written_bytes}");
        // Earlier ones are still there.
        assert_eq!(Heads::read(&place, 3).unwrap().volumes, expected[..3]);
    }

    #[test]
    fn damaged_heads_are_named_and_the_one_before_too() {
        let directory = tempfile::tempdir().unwrap();
        let place = VolumeFolder::new(directory.path());
        assert_eq!(Heads::newest(&place).unwrap(), None);
        let first = Heads::next(None, vec![volume(1, 0)]).unwrap().to_bytes();
        place.create_alone(&head_name(1), &first).unwrap();
        let cut = &first[..first.len() - 1];
        place.create_alone(&head_name(2), cut).unwrap();
        let error = Heads::newest(&place).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Damaged);
        let text = error.to_string();
        assert!(
            text.contains(&head_name(2)) && text.contains(&head_name(1)),
            "{text}"
        );
        assert_eq!(Heads::read(&place, 1).unwrap().number, 1);
        place.create_alone(&head_name(3), &first).unwrap();
        let text = Heads::newest(&place).unwrap_err().to_string();
        assert!(
            text.contains("it is the head 1, under another name"),
            "{text}"
        );
    }
}
