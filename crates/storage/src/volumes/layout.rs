//! Which bytes of which volumes a range of the joined bytes is.

/// A volume among those that are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedVolume {
    /// Its name.
    pub name: String,
    /// What it holds, from front to back: bytes, and zeros behind them that it does not hold.
    pub pieces: Vec<(u64, u64)>,
}

/// A part of the joined bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Bytes of a volume.
    Data {
        /// Its number.
        volume: usize,
        /// Where in it.
        offset: u64,
        /// How many.
        length_bytes: u64,
    },
    /// So many zeros, which no volume holds.
    Zeros(u64),
}

/// The names and lengths of volumes, and the order of their bytes.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    volumes: Vec<(String, u64)>,
    /// Where each part begins, ascending, and the part.
    parts: Vec<(u64, Place)>,
    length_bytes: u64,
}

impl Layout {
    /// The layout of these volumes, one behind the other. Lengths whose sum is 2^64 or more are cut
    /// off there.
    #[must_use]
    pub fn new(volumes: Vec<JoinedVolume>) -> Layout {
        let mut layout = Layout::default();
        for JoinedVolume { name, pieces } in volumes {
            let mut offset = 0_u64;
            for (data_bytes, zero_bytes) in pieces {
                layout.push(Place::Data {
                    volume: layout.volumes.len(),
                    offset,
                    length_bytes: data_bytes,
                });
                layout.push(Place::Zeros(zero_bytes));
                offset = offset.saturating_add(data_bytes);
            }
            layout.volumes.push((name, offset));
        }
        layout
    }

    fn push(&mut self, place: Place) {
        if place.length_bytes() > 0 {
            self.parts.push((self.length_bytes, place));
            self.length_bytes = self.length_bytes.saturating_add(place.length_bytes());
        }
    }

    /// The joined length.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// The number of volumes.
    pub fn count(&self) -> usize {
        self.volumes.len()
    }

    /// The name and length of a volume.
    pub fn volume(&self, number: usize) -> Option<(&str, u64)> {
        let (name, length_bytes) = self.volumes.get(number)?;
        Some((name, *length_bytes))
    }

    /// What is at an offset of the joined bytes, and follows it without a break; `None` at the end.
    pub fn at(&self, at: u64) -> Option<Place> {
        let after = self.parts.partition_point(|(start, _)| *start <= at);
        let (start, place) = self.parts.get(after.checked_sub(1)?)?;
        let skipped = at - start;
        let left = place.length_bytes().checked_sub(skipped)?;
        if left == 0 {
            return None;
        }
        Some(match *place {
            Place::Data { volume, offset, .. } => Place::Data {
                volume,
                offset: offset + skipped,
                length_bytes: left,
            },
            Place::Zeros(_) => Place::Zeros(left),
        })
    }
}

impl Place {
    /// How many bytes it is.
    pub fn length_bytes(&self) -> u64 {
        match *self {
            Place::Data { length_bytes, .. } => length_bytes,
            Place::Zeros(length_bytes) => length_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
        /// Compared with the bytes written out.
        #[test]
        fn places_are_those_of_the_bytes(
            volumes in proptest::collection::vec(
                proptest::collection::vec((0_u64..5, 0_u64..4), 0..4),
                0..5,
            ),
        ) {
            let mut expected = Vec::new();
            for (volume, pieces) in volumes.iter().enumerate() {
                let mut offset = 0;
                for (data_bytes, zero_bytes) in pieces {
                    expected.extend((offset..offset + data_bytes).map(|at| Some((volume, at))));
                    expected.extend((0..*zero_bytes).map(|_| None));
                    offset += data_bytes;
                }
            }
            let joined = volumes.iter().map(|pieces| JoinedVolume {
                name: String::new(),
                pieces: pieces.clone(),
            });
            let layout = Layout::new(joined.collect());
            prop_assert_eq!(layout.length_bytes(), expected.len() as u64);
            for at in 0..expected.len() + 2 {
                let place = layout.at(at as u64);
                let found = place.map(|place| match place {
                    Place::Data { volume, offset, .. } => Some((volume, offset)),
                    Place::Zeros(_) => None,
                });
                prop_assert_eq!(found, expected.get(at).copied());
                // All of it continues like that.
                for step in 0..place.map_or(0, |place| place.length_bytes() as usize) {
                    let byte = expected[at + step];
                    prop_assert_eq!(byte, found.flatten().map(|(v, o)| (v, o + step as u64)));
                }
            }
        }
    }
}
