//! The packed section of an Extents frame.
//!
//! Six columns: kinds, `Fresh` lengths, `Copy` lengths, `Copy` differences, `Fill` lengths, patterns. A copy's source is
//! written as its difference from the *expected* source: where the previous copy's source ended, moved on by the fresh and
//! filled bytes since. After an edit in the middle of a repeat the source goes on at the same displacement, so the commonest
//! difference is 0. Where `Fresh` bytes lie needs no number at all.

use super::extent::{Extent, Pattern};
use super::header::ExtentsHeader;
use crate::bytes::{Reader, add_difference, difference, put_varint};
use crate::check::{check_equal, check_limit, check_positive, check_range};
use crate::columns;
use crate::error::{FormatError, Result};
use crate::limits::{EPOCH_BYTES_MAX, EXTENTS_PER_FRAME_MAX, Limits, PACKED_RAW_BYTES_MAX};
use refrain_protect::checksum64;

const KIND_FRESH: u8 = 0;
const KIND_COPY: u8 = 1;
const KIND_FILL: u8 = 2;

const COLUMN_COUNT: usize = 6;

/// A packed section with what the head says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedExtents {
    /// Sum of all lengths.
    pub content_bytes: u64,
    /// Sum of the `Fresh` lengths.
    pub fresh_bytes: u64,
    /// Number of extents.
    pub extent_count: u64,
    /// The section, before coding.
    pub raw: Vec<u8>,
    /// XXH3-64 of `raw`.
    pub checksum: u64,
}

/// Follows the pointers that the extents imply; encoder and decoder share it, so they cannot drift apart.
#[derive(Debug, Clone)]
struct Walk {
    store_shown: u64,
    expected_source: u64,
    content_bytes: u64,
    fresh_bytes: u64,
}

impl Walk {
    fn new(store_start: u64) -> Self {
        Self {
            store_shown: store_start,
            // Any start would do; 0 needs no explanation.
            expected_source: 0,
            content_bytes: 0,
            fresh_bytes: 0,
        }
    }

    /// Checks `extent` against what has been shown so far and moves on.
    fn step(&mut self, extent: &Extent) -> Result<()> {
        let length = extent.length();
        check_positive("extent length in bytes", length)?;
        self.content_bytes = check_range("epoch bytes", self.content_bytes, length)?;
        match extent {
            Extent::Fresh { .. } => {
                self.fresh_bytes += length;
                self.store_shown = check_range("end of the store", self.store_shown, length)?;
                self.expected_source = self.expected_source.wrapping_add(length);
            }
            Extent::Fill { .. } => {
                self.expected_source = self.expected_source.wrapping_add(length);
            }
            Extent::Copy {
                offset_in_store, ..
            } => {
                self.expected_source = self.check_source(*offset_in_store, length)?;
            }
        }
        Ok(())
    }

    /// A copy may only refer to store bytes that earlier extents have shown. Returns the end of the source.
    fn check_source(&self, offset_in_store: u64, length: u64) -> Result<u64> {
        let end = check_range("end of a copy's source", offset_in_store, length)?;
        match end <= self.store_shown {
            true => Ok(end),
            false => Err(FormatError::Value {
                what: "end of a copy's source",
                value: end,
                rule: "in the part of the store that earlier extents have shown",
            }),
        }
    }
}

/// Packs the extents of an epoch, one after the other.
#[derive(Debug, Clone)]
pub struct ExtentPacker {
    walk: Walk,
    columns: [Vec<u8>; COLUMN_COUNT],
}

impl ExtentPacker {
    /// For an epoch before which all others have shown `store_start` bytes of the store.
    #[must_use]
    pub fn new(store_start: u64) -> Self {
        Self {
            walk: Walk::new(store_start),
            columns: Default::default(),
        }
    }

    /// The next extent.
    ///
    /// # Errors
    /// If it is empty, or refers to what the store has not shown; what was packed is then void.
    pub fn push(&mut self, extent: &Extent) -> Result<()> {
        let [kinds, fresh, copies, sources, fills, patterns] = &mut self.columns;
        match extent {
            Extent::Fresh { length } => {
                kinds.push(KIND_FRESH);
                put_varint(fresh, *length);
            }
            Extent::Copy {
                length,
                offset_in_store,
            } => {
                kinds.push(KIND_COPY);
                put_varint(copies, *length);
                let difference = difference(*offset_in_store, self.walk.expected_source);
                put_varint(sources, difference);
            }
            Extent::Fill { length, pattern } => {
                kinds.push(KIND_FILL);
                put_varint(fills, *length);
                patterns.push(pattern.as_bytes().len() as u8);
                patterns.extend_from_slice(pattern.as_bytes());
            }
        }
        self.walk.step(extent)
    }

    /// The section of all extents.
    ///
    /// # Errors
    /// If there are none, or more than [`unpack_extents`] accepts of them or of anything in them.
    pub fn finish(self) -> Result<PackedExtents> {
        let Walk {
            content_bytes,
            fresh_bytes,
            ..
        } = self.walk;
        let extent_count = self.columns[0].len() as u64;
        check_positive("extents", extent_count)?;
        check_limit("extents", extent_count, EXTENTS_PER_FRAME_MAX)?;
        check_limit("epoch bytes", content_bytes, EPOCH_BYTES_MAX)?;
        let raw = columns::join(&self.columns);
        let raw_bytes = raw.len() as u64;
        check_limit("packed extents bytes", raw_bytes, PACKED_RAW_BYTES_MAX)?;
        Ok(PackedExtents {
            content_bytes,
            fresh_bytes,
            extent_count,
            checksum: checksum64(&raw),
            raw,
        })
    }
}

/// Packs the extents of an epoch. `store_start`: how many store bytes all earlier epochs have shown.
///
/// # Errors
/// What [`unpack_extents`] would refuse.
pub fn pack_extents(store_start: u64, extents: &[Extent]) -> Result<PackedExtents> {
    let mut packer = ExtentPacker::new(store_start);
    extents.iter().try_for_each(|extent| packer.push(extent))?;
    packer.finish()
}

/// Unpacks the decoded section `raw` of the frame with this (checked) head.
///
/// # Errors
/// A wrong length or checksum; any extent, sum or count that contradicts the head; left-over bytes; counts over `limits`.
pub fn unpack_extents(head: &ExtentsHeader, raw: &[u8], limits: &Limits) -> Result<Vec<Extent>> {
    check_limit(
        "extents",
        head.extent_count,
        limits.capped().extents_per_frame_max,
    )?;
    let reader = ExtentReader::new(head, raw)?;
    // The reader has seen that the section holds this many kinds.
    let mut extents = Vec::with_capacity(reader.kinds.remaining());
    for extent in reader {
        extents.push(extent?);
    }
    Ok(extents)
}

/// Gives the extents of a section one by one, for a reader that keeps them in a form of its own.
///
/// The last item is an error if the sums contradict the head; what came before it is then void.
#[derive(Debug, Clone)]
pub struct ExtentReader<'a> {
    head: ExtentsHeader,
    walk: Walk,
    kinds: Reader<'a>,
    fresh: Reader<'a>,
    copies: Reader<'a>,
    sources: Reader<'a>,
    fills: Reader<'a>,
    patterns: Reader<'a>,
    done: bool,
}

impl<'a> ExtentReader<'a> {
    /// Checks length, checksum and columns of the decoded section `raw`.
    ///
    /// # Errors
    /// One of them is wrong.
    pub fn new(head: &ExtentsHeader, raw: &'a [u8]) -> Result<Self> {
        head.check_raw(raw)?;
        let [kinds, fresh, copies, sources, fills, patterns] = columns::split("extents", raw)?;
        if kinds.remaining() as u64 != head.extent_count {
            return Err(FormatError::Mismatch {
                what: "number of extents",
                found: kinds.remaining() as u64,
                expected: head.extent_count,
            });
        }
        Ok(Self {
            head: *head,
            walk: Walk::new(head.store_start),
            kinds,
            fresh,
            copies,
            sources,
            fills,
            patterns,
            done: false,
        })
    }

    fn read(&mut self) -> Result<Extent> {
        let extent = match self.kinds.u8()? {
            KIND_FRESH => Extent::Fresh {
                length: self.fresh.varint()?,
            },
            KIND_COPY => Extent::Copy {
                length: self.copies.varint()?,
                offset_in_store: add_difference(self.walk.expected_source, self.sources.varint()?),
            },
            KIND_FILL => Extent::Fill {
                length: self.fills.varint()?,
                pattern: self.read_pattern()?,
            },
            kind => {
                return Err(FormatError::Value {
                    what: "extent kind",
                    value: u64::from(kind),
                    rule: "0, 1 or 2",
                });
            }
        };
        self.walk.step(&extent)?;
        Ok(extent)
    }

    fn read_pattern(&mut self) -> Result<Pattern> {
        let period_bytes = usize::from(self.patterns.u8()?);
        Pattern::new(self.patterns.take(period_bytes)?)
    }

    fn check_end(&self) -> Result<()> {
        for column in [
            &self.fresh,
            &self.copies,
            &self.sources,
            &self.fills,
            &self.patterns,
        ] {
            column.clone().finish()?;
        }
        check_equal(
            "content bytes of the extents",
            self.walk.content_bytes,
            self.head.content_bytes,
        )?;
        check_equal(
            "fresh bytes of the extents",
            self.walk.fresh_bytes,
            self.head.fresh_bytes,
        )
    }
}

impl Iterator for ExtentReader<'_> {
    type Item = Result<Extent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.kinds.remaining() == 0 {
            self.done = true;
            return self.check_end().err().map(Err);
        }
        let extent = self.read();
        self.done = extent.is_err();
        Some(extent)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.kinds.remaining().checked_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::Coding;
    use crate::property::{extents_from_seed, extents_round_trip};

    fn head_for(store_start: u64, packed: &PackedExtents) -> ExtentsHeader {
        ExtentsHeader {
            epoch_id: 0,
            content_start: 0,
            content_bytes: packed.content_bytes,
            store_start,
            fresh_bytes: packed.fresh_bytes,
            extent_count: packed.extent_count,
            packed_raw_bytes: packed.raw.len() as u64,
            packed_checksum: packed.checksum,
            coding: Coding::none(),
        }
    }

    fn sample() -> Vec<Extent> {
        vec![
            Extent::Fresh { length: 1000 },
            Extent::Copy {
                length: 100,
                offset_in_store: 200,
            },
            Extent::Fresh { length: 10 },
            // Expected source: 200 + 100 + 10.
            Extent::Copy {
                length: 50,
                offset_in_store: 310,
            },
            Extent::Fill {
                length: 1 << 40,
                pattern: Pattern::ZERO,
            },
            Extent::Fill {
                length: 7,
                pattern: Pattern::new(b"xyz").unwrap(),
            },
        ]
    }

    #[test]
    fn round_trip_and_exact_bytes() {
        let packed = pack_extents(0, &sample()).unwrap();
        assert_eq!(packed.fresh_bytes, 1010);
        assert_eq!(packed.content_bytes, 1000 + 100 + 10 + 50 + (1 << 40) + 7);
        let head = head_for(0, &packed);
        assert_eq!(
            unpack_extents(&head, &packed.raw, &Limits::default()),
            Ok(sample())
        );
        let expected = [
            &[6, 3, 2, 3, 7][..], // column lengths
            &[0, 1, 0, 1, 2, 2],  // kinds
            &[0xe8, 7, 10],       // fresh lengths: 1000, 10
            &[100, 50],           // copy lengths
            // Differences: 200 - 1000 = -800 is 1599 in zigzag; the second one is 0.
            &[0xbf, 0x0c, 0],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 7], // fill lengths
            &[1, 0, 3, b'x', b'y', b'z'],             // patterns
        ]
        .concat();
        assert_eq!(packed.raw, expected);
    }

    #[test]
    fn copies_stay_in_what_has_been_shown() {
        let beyond = [
            Extent::Fresh { length: 10 },
            Extent::Copy {
                length: 5,
                offset_in_store: 6,
            },
        ];
        assert!(pack_extents(0, &beyond).is_err());
        // The same source is fine when an earlier epoch has shown it.
        assert!(pack_extents(1, &beyond).is_ok());
        let packed = pack_extents(1, &beyond).unwrap();
        let forged = head_for(0, &packed);
        assert!(unpack_extents(&forged, &packed.raw, &Limits::default()).is_err());
    }

    #[test]
    fn sums_and_counts_are_checked() {
        let packed = pack_extents(0, &sample()).unwrap();
        let head = head_for(0, &packed);
        let refused = |change: fn(&mut ExtentsHeader)| {
            let mut forged = head;
            change(&mut forged);
            unpack_extents(&forged, &packed.raw, &Limits::default()).is_err()
        };
        assert!(refused(|head| head.content_bytes += 1));
        assert!(refused(|head| head.fresh_bytes -= 1));
        assert!(refused(|head| head.extent_count -= 1));
        assert!(refused(|head| head.packed_raw_bytes += 1));
        assert!(refused(|head| head.packed_checksum ^= 1));
        let few = Limits {
            extents_per_frame_max: 5,
            ..Limits::default()
        };
        assert!(matches!(
            unpack_extents(&head, &packed.raw, &few),
            Err(FormatError::OverLimit { .. })
        ));
    }

    #[test]
    fn nothing_of_length_zero() {
        assert!(pack_extents(0, &[]).is_err());
        assert!(pack_extents(0, &[Extent::Fresh { length: 0 }]).is_err());
        let overflow = [
            Extent::Fresh { length: u64::MAX },
            Extent::Fresh { length: u64::MAX },
        ];
        assert!(pack_extents(0, &overflow).is_err());
    }

    /// Whatever the section holds, with its checksum made right: an answer or an error, and what is accepted packs to the
    /// same bytes again.
    #[test]
    fn forged_sections_never_pass_wrongly() {
        let packed = pack_extents(5000, &sample()).unwrap();
        for at in 0..packed.raw.len() {
            for value in [0, 1, 2, 3, 0x7f, 0x80, 0xff] {
                let mut raw = packed.raw.clone();
                raw[at] = value;
                let mut head = head_for(5000, &packed);
                head.packed_checksum = checksum64(&raw);
                if let Ok(extents) = unpack_extents(&head, &raw, &Limits::default()) {
                    assert_eq!(pack_extents(5000, &extents).unwrap().raw, raw);
                }
            }
        }
    }

    #[test]
    fn typical_extents_take_about_five_bytes() {
        let (store_start, extents) = extents_from_seed(7, 350_000);
        let packed = pack_extents(store_start, &extents).unwrap();
        let bytes_each = packed.raw.len() as f64 / extents.len() as f64;
        assert!(bytes_each < 6.0, "{bytes_each} bytes per extent");
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
        #[test]
        fn any_extents_round_trip(seed in 0_u64..u64::MAX, count in 1_usize..400) {
            extents_round_trip(seed, count);
        }
    }
}
