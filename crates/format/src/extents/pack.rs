//! The packed section of an Extents frame.
//!
//! It has eight columns: kinds, `Fresh` lengths, `Copy` lengths, `Copy` differences, `Reference`
//! lengths, `Reference` differences, `Fill` lengths, patterns. A copy's source is written as its
//! difference from the *expected* source: the end of the previous copy's source, plus the bytes
//! since; likewise for references. After an edit in the middle of a reference the source continues
//! at the same distance, so the most frequent difference is 0. `Fresh` bytes need no offset.

use super::extent::{Extent, Pattern};
use super::header::ExtentsHeader;
use crate::bytes::{ByteReader, add_difference, difference, put_varint};
use crate::check::{check_equal, check_limit, check_positive};
use crate::coding::Coding;
use crate::columns;
use crate::error::{FormatError, Result};
use crate::limits::{
    ADDRESS_BYTES_MAX, EPOCH_BYTES_MAX, EXTENTS_PER_FRAME_MAX, Limits, PACKED_RAW_BYTES_MAX,
};
use refrain_protect::checksum64;

const KIND_FRESH: u8 = 0;
const KIND_COPY: u8 = 1;
const KIND_FILL: u8 = 2;
const KIND_REPEAT: u8 = 3;

const COLUMN_COUNT: usize = 8;

/// A packed section with the values that its header states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedExtents {
    /// The sum of all lengths.
    pub content_bytes: u64,
    /// The sum of the `Fresh` lengths.
    pub fresh_bytes: u64,
    /// The number of extents.
    pub extent_count: u64,
    /// The section, before coding.
    pub raw: Vec<u8>,
    /// The XXH3-64 of `raw`.
    pub checksum: u64,
}

impl PackedExtents {
    /// Returns the header of a frame with these extents, which make up epoch `epoch_id`; it begins
    /// at these offsets in the content and in the store.
    #[must_use]
    pub fn header(
        &self,
        epoch_id: u64,
        (content_start, store_start): (u64, u64),
        coding: Coding,
    ) -> ExtentsHeader {
        ExtentsHeader {
            epoch_id,
            content_start,
            content_bytes: self.content_bytes,
            store_start,
            fresh_bytes: self.fresh_bytes,
            extent_count: self.extent_count,
            packed_raw_bytes: self.raw.len() as u64,
            packed_checksum: self.checksum,
            coding,
        }
    }
}

/// The pointers that extents move. The encoder and the decoder share it, so they agree.
#[derive(Debug, Clone)]
struct Pointers {
    content_start: u64,
    introduced_end: u64,
    expected_source: u64,
    expected_reference: u64,
    content_bytes: u64,
    fresh_bytes: u64,
}

impl Pointers {
    fn new(content_start: u64, store_start: u64) -> Self {
        Self {
            content_start,
            introduced_end: store_start,
            // Any initial values would do.
            expected_source: 0,
            expected_reference: content_start,
            content_bytes: 0,
            fresh_bytes: 0,
        }
    }

    fn step(&mut self, extent: &Extent) -> Result<()> {
        let length = extent.length();
        check_positive("extent length in bytes", length)?;
        self.content_bytes = sum("epoch bytes", self.content_bytes, length)?;
        self.expected_source = self.expected_source.wrapping_add(length);
        self.expected_reference = self.expected_reference.wrapping_add(length);
        match extent {
            Extent::Fresh { .. } => {
                self.fresh_bytes += length;
                self.introduced_end = sum("end of the store", self.introduced_end, length)?;
            }
            Extent::Fill { .. } => {}
            Extent::Copy {
                offset_in_store, ..
            } => {
                self.expected_source = self.check_source(*offset_in_store, length)?;
            }
            Extent::Reference {
                offset_in_content, ..
            } => {
                self.expected_reference = self.check_reference(*offset_in_content, length)?;
            }
        }
        Ok(())
    }

    /// Checks that a reference refers only to earlier epochs. Returns the end of its source.
    fn check_reference(&self, offset_in_content: u64, length: u64) -> Result<u64> {
        let end = offset_in_content.saturating_add(length);
        if end <= self.content_start {
            Ok(end)
        } else {
            Err(FormatError::Value {
                what: "end of a reference's source",
                value: end,
                rule: "at or before the start of the epoch",
            })
        }
    }

    /// Checks that a copy refers only to store bytes that earlier extents have introduced. Returns
    /// the end of its source.
    fn check_source(&self, offset_in_store: u64, length: u64) -> Result<u64> {
        let end = offset_in_store.saturating_add(length);
        if end <= self.introduced_end {
            Ok(end)
        } else {
            Err(FormatError::Value {
                what: "end of a copy's source",
                value: end,
                rule: "in the part of the store that earlier extents have introduced",
            })
        }
    }
}

/// Returns `start + length`; no valid sum is outside the address space.
fn sum(what: &'static str, start: u64, length: u64) -> Result<u64> {
    let end = start.saturating_add(length);
    if end <= ADDRESS_BYTES_MAX {
        Ok(end)
    } else {
        Err(FormatError::Value {
            what,
            value: end,
            rule: "at most 2^61",
        })
    }
}

/// Packs the extents of an epoch one by one.
#[derive(Debug, Clone)]
pub struct ExtentPacker {
    pointers: Pointers,
    columns: [Vec<u8>; COLUMN_COUNT],
}

impl ExtentPacker {
    /// Creates a packer for an epoch that begins at `content_start`; all earlier epochs have
    /// introduced `store_start` bytes of the store.
    #[must_use]
    pub fn new(content_start: u64, store_start: u64) -> Self {
        Self {
            pointers: Pointers::new(content_start, store_start),
            columns: Default::default(),
        }
    }

    /// Appends an extent.
    ///
    /// # Errors
    /// The extent is empty or refers to store bytes that are not introduced. The packed bytes are
    /// then invalid.
    pub fn push(&mut self, extent: &Extent) -> Result<()> {
        let [
            kinds,
            fresh,
            copies,
            sources,
            references,
            repeated,
            fills,
            patterns,
        ] = &mut self.columns;
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
                let difference = difference(*offset_in_store, self.pointers.expected_source);
                put_varint(sources, difference);
            }
            Extent::Reference {
                length,
                offset_in_content,
            } => {
                kinds.push(KIND_REPEAT);
                put_varint(references, *length);
                let difference = difference(*offset_in_content, self.pointers.expected_reference);
                put_varint(repeated, difference);
            }
            Extent::Fill { length, pattern } => {
                kinds.push(KIND_FILL);
                put_varint(fills, *length);
                patterns.push(pattern.as_bytes().len() as u8);
                patterns.extend_from_slice(pattern.as_bytes());
            }
        }
        self.pointers.step(extent)
    }

    /// Returns the section of all extents.
    ///
    /// # Errors
    /// There are none, or a count or size is larger than [`unpack_extents`] accepts.
    pub fn finish(self) -> Result<PackedExtents> {
        let Pointers {
            content_bytes,
            fresh_bytes,
            ..
        } = self.pointers;
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

/// Packs the extents of an epoch that begins at `content_start`; all earlier epochs have introduced
/// `store_start` bytes of the store.
///
/// # Errors
/// Extents that [`unpack_extents`] rejects.
pub fn pack_extents(
    content_start: u64,
    store_start: u64,
    extents: &[Extent],
) -> Result<PackedExtents> {
    let mut packer = ExtentPacker::new(content_start, store_start);
    extents.iter().try_for_each(|extent| packer.push(extent))?;
    packer.finish()
}

/// Unpacks the decoded section `raw` of the frame with this (checked) header.
///
/// # Errors
/// A wrong length or checksum; an extent, sum or count that contradicts the header; bytes at the
/// end; counts above `limits`.
pub fn unpack_extents(header: &ExtentsHeader, raw: &[u8], limits: &Limits) -> Result<Vec<Extent>> {
    check_limit(
        "extents",
        header.extent_count,
        limits.capped().extents_per_frame_max,
    )?;
    let reader = ExtentReader::new(header, raw)?;
    // The reader has checked that the section holds this many kinds.
    let mut extents = Vec::with_capacity(reader.kinds.remaining());
    for extent in reader {
        extents.push(extent?);
    }
    Ok(extents)
}

/// Iterates over the extents of a section, for a reader that stores them in its own form.
///
/// The last item is an error if the sums contradict the header; the items before it are then
/// invalid.
#[derive(Debug, Clone)]
pub struct ExtentReader<'a> {
    header: ExtentsHeader,
    pointers: Pointers,
    kinds: ByteReader<'a>,
    fresh: ByteReader<'a>,
    copies: ByteReader<'a>,
    sources: ByteReader<'a>,
    references: ByteReader<'a>,
    repeated: ByteReader<'a>,
    fills: ByteReader<'a>,
    patterns: ByteReader<'a>,
    done: bool,
}

/// A position of an [`ExtentReader`], at which another one can continue.
#[derive(Debug, Clone)]
pub struct ExtentPosition {
    pointers: Pointers,
    /// The unread bytes of each column.
    bytes_left: [u32; COLUMN_COUNT],
}

impl ExtentPosition {
    /// The offset of the next extent from the start of the epoch, in bytes of content.
    #[must_use]
    pub fn offset_in_epoch(&self) -> u64 {
        self.pointers.content_bytes
    }
}

impl<'a> ExtentReader<'a> {
    /// Checks length, checksum and columns of the decoded section `raw`.
    ///
    /// # Errors
    /// One of them is wrong.
    pub fn new(header: &ExtentsHeader, raw: &'a [u8]) -> Result<Self> {
        header.check_raw(raw)?;
        let columns = columns::split("extents", raw)?;
        let pointers = Pointers::new(header.content_start, header.store_start);
        let reader = Self::from_columns(header, columns, pointers);
        check_equal(
            "number of extents",
            reader.kinds.remaining() as u64,
            header.extent_count,
        )?;
        Ok(reader)
    }

    /// Continues at the position of another reader of the same section, without verifying the
    /// checksum again.
    ///
    /// # Errors
    /// The position cannot belong to this section.
    pub fn resume(header: &ExtentsHeader, raw: &'a [u8], at: &ExtentPosition) -> Result<Self> {
        let mut columns = columns::split("extents", raw)?;
        for (column, left) in columns.iter_mut().zip(at.bytes_left) {
            column.take(column.remaining().saturating_sub(left as usize))?;
        }
        Ok(Self::from_columns(header, columns, at.pointers.clone()))
    }

    fn from_columns(
        header: &ExtentsHeader,
        columns: [ByteReader<'a>; COLUMN_COUNT],
        pointers: Pointers,
    ) -> Self {
        let [
            kinds,
            fresh,
            copies,
            sources,
            references,
            repeated,
            fills,
            patterns,
        ] = columns;
        Self {
            header: *header,
            pointers,
            kinds,
            fresh,
            copies,
            sources,
            references,
            repeated,
            fills,
            patterns,
            done: false,
        }
    }

    fn columns(&self) -> [&ByteReader<'a>; COLUMN_COUNT] {
        [
            &self.kinds,
            &self.fresh,
            &self.copies,
            &self.sources,
            &self.references,
            &self.repeated,
            &self.fills,
            &self.patterns,
        ]
    }

    /// The position before the next extent.
    #[must_use]
    pub fn position(&self) -> ExtentPosition {
        ExtentPosition {
            pointers: self.pointers.clone(),
            // A section has at most `PACKED_RAW_BYTES_MAX` bytes, which 32 bits hold.
            bytes_left: self.columns().map(|column| column.remaining() as u32),
        }
    }

    /// The offset of the next extent from the start of the epoch, in bytes of content.
    #[must_use]
    pub fn offset_in_epoch(&self) -> u64 {
        self.pointers.content_bytes
    }

    /// The offset in the store of the next `Fresh` extent.
    #[must_use]
    pub fn fresh_offset_in_store(&self) -> u64 {
        self.pointers.introduced_end
    }

    fn read(&mut self) -> Result<Extent> {
        let extent = match self.kinds.u8()? {
            KIND_FRESH => Extent::Fresh {
                length: self.fresh.varint()?,
            },
            KIND_COPY => Extent::Copy {
                length: self.copies.varint()?,
                offset_in_store: add_difference(
                    self.pointers.expected_source,
                    self.sources.varint()?,
                ),
            },
            KIND_REPEAT => Extent::Reference {
                length: self.references.varint()?,
                offset_in_content: add_difference(
                    self.pointers.expected_reference,
                    self.repeated.varint()?,
                ),
            },
            KIND_FILL => Extent::Fill {
                length: self.fills.varint()?,
                pattern: self.read_pattern()?,
            },
            kind => {
                return Err(FormatError::Reserved {
                    what: "extent kind",
                    value: u64::from(kind),
                });
            }
        };
        self.pointers.step(&extent)?;
        Ok(extent)
    }

    fn read_pattern(&mut self) -> Result<Pattern> {
        let period_bytes = usize::from(self.patterns.u8()?);
        Pattern::new(self.patterns.take(period_bytes)?)
    }

    fn check_end(&self) -> Result<()> {
        for column in self.columns() {
            column.clone().finish()?;
        }
        check_equal(
            "content bytes of the extents",
            self.pointers.content_bytes,
            self.header.content_bytes,
        )?;
        check_equal(
            "fresh bytes of the extents",
            self.pointers.fresh_bytes,
            self.header.fresh_bytes,
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
    use crate::error::ErrorClass;
    use crate::property::{extents_from_seed, extents_round_trip};

    const CONTENT_START: u64 = 1 << 50;

    fn header_for(store_start: u64, packed: &PackedExtents) -> ExtentsHeader {
        packed.header(0, (CONTENT_START, store_start), Coding::none())
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
            Extent::Reference {
                length: 30,
                offset_in_content: CONTENT_START - 100,
            },
            // Expected source: (CONTENT_START - 70) + 1.
            Extent::Fresh { length: 1 },
            Extent::Reference {
                length: 9,
                offset_in_content: CONTENT_START - 69,
            },
        ]
    }

    #[test]
    fn packs_to_the_documented_bytes_and_unpacks() {
        let packed = pack_extents(CONTENT_START, 0, &sample()).unwrap();
        assert_eq!(packed.fresh_bytes, 1011);
        assert_eq!(
            packed.content_bytes,
            1000 + 100 + 10 + 50 + (1 << 40) + 7 + 30 + 1 + 9
        );
        let header = header_for(0, &packed);
        assert_eq!(
            unpack_extents(&header, &packed.raw, &Limits::default()),
            Ok(sample())
        );
        let expected = [
            &[8, 9, 4, 2, 3, 2, 7, 7][..], // number and lengths of columns
            &[0, 1, 0, 1, 2, 2, 3, 0, 3],  // kinds
            &[0xe8, 7, 10, 1],             // fresh lengths: 1000, 10, 1
            &[100, 50],                    // copy lengths
            // Differences: 200 - 1000 = -800 is 1599 in zigzag; the second one is 0.
            &[0xbf, 0x0c, 0],
            &[30, 9], // reference lengths
            // Differences: -100 from the start, which is 2^40 + 1167 ago; the second one is 0.
            &[0xe5, 0x93, 0x80, 0x80, 0x80, 0x40, 0],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 7], // fill lengths
            &[1, 0, 3, b'x', b'y', b'z'],             // patterns
        ]
        .concat();
        assert_eq!(packed.raw, expected);
    }

    #[test]
    fn a_reader_goes_on_where_another_stood() {
        for seed in 0..50 {
            let (content_start, store_start, extents) = extents_from_seed(seed, 60);
            let packed = pack_extents(content_start, store_start, &extents).unwrap();
            let header = packed.header(0, (content_start, store_start), Coding::none());
            let mut reader = ExtentReader::new(&header, &packed.raw).unwrap();
            let mut offset = 0;
            for number in 0..=extents.len() {
                let position = reader.position();
                assert_eq!(position.offset_in_epoch(), offset);
                let resumed = ExtentReader::resume(&header, &packed.raw, &position).unwrap();
                assert_eq!(
                    resumed.fresh_offset_in_store(),
                    reader.fresh_offset_in_store()
                );
                let rest: Vec<_> = resumed.map(Result::unwrap).collect();
                assert_eq!(rest, extents[number..]);
                offset += reader.next().map_or(0, |extent| extent.unwrap().length());
            }
        }
    }

    #[test]
    fn copies_refer_only_to_introduced_bytes() {
        let beyond = [
            Extent::Fresh { length: 10 },
            Extent::Copy {
                length: 5,
                offset_in_store: 6,
            },
        ];
        assert!(pack_extents(CONTENT_START, 0, &beyond).is_err());
        // The same source is fine when an earlier epoch has introduced it.
        assert!(pack_extents(CONTENT_START, 1, &beyond).is_ok());
        let packed = pack_extents(CONTENT_START, 1, &beyond).unwrap();
        let forged = header_for(0, &packed);
        assert!(unpack_extents(&forged, &packed.raw, &Limits::default()).is_err());
    }

    fn class_after_change(extents: &[Extent], change: impl Fn(&mut Vec<u8>)) -> ErrorClass {
        let packed = pack_extents(CONTENT_START, 0, extents).unwrap();
        let mut raw = packed.raw.clone();
        change(&mut raw);
        let mut header = header_for(0, &packed);
        header.packed_raw_bytes = raw.len() as u64;
        header.packed_checksum = checksum64(&raw);
        let read = unpack_extents(&header, &raw, &Limits::default());
        read.unwrap_err().class()
    }

    #[test]
    fn unknown_kinds_are_unsupported() {
        let class = class_after_change(&sample(), |raw| raw[8] = 4);
        assert_eq!(class, ErrorClass::Unsupported);
    }

    #[test]
    fn sources_and_lengths_beyond_the_address_space_are_damaged() {
        let copy = [
            Extent::Fresh { length: 10 },
            Extent::Copy {
                length: 5,
                offset_in_store: 5,
            },
        ];
        // The difference, -5, becomes -12: the source begins two bytes before the store.
        let class = class_after_change(&copy, |raw| *raw.last_mut().unwrap() = 23);
        assert_eq!(class, ErrorClass::Damaged);
        let reference = [Extent::Reference {
            length: 2,
            offset_in_content: u64::MAX - 1,
        }];
        let error = pack_extents(CONTENT_START, 0, &reference).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Damaged);
        // The length of the only extent becomes 2^62.
        let class = class_after_change(&[Extent::Fresh { length: 1 }], |raw| {
            raw.pop();
            raw.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40]);
        });
        assert_eq!(class, ErrorClass::Damaged);
    }

    #[test]
    fn references_refer_only_to_earlier_epochs() {
        let beyond = |offset_in_content| {
            [Extent::Reference {
                length: 5,
                offset_in_content,
            }]
        };
        assert!(pack_extents(100, 0, &beyond(95)).is_ok());
        assert!(pack_extents(100, 0, &beyond(96)).is_err());
        assert!(pack_extents(0, 0, &beyond(0)).is_err());
        assert!(pack_extents(100, 0, &beyond(u64::MAX - 1)).is_err());
        // The last number of the section is the difference of the source.
        let packed = pack_extents(CONTENT_START, 0, &beyond(CONTENT_START - 5)).unwrap();
        let difference_at = packed.raw.iter().position(|&byte| byte == 9).unwrap();
        let mut raw = packed.raw.clone();
        raw[difference_at] = 0;
        let mut header = header_for(0, &packed);
        header.packed_checksum = checksum64(&raw);
        assert!(matches!(
            unpack_extents(&header, &raw, &Limits::default()),
            Err(FormatError::Value { .. })
        ));
    }

    #[test]
    fn rejects_wrong_sums_and_counts() {
        let packed = pack_extents(CONTENT_START, 0, &sample()).unwrap();
        let header = header_for(0, &packed);
        let is_rejected = |change: fn(&mut ExtentsHeader)| {
            let mut forged = header;
            change(&mut forged);
            unpack_extents(&forged, &packed.raw, &Limits::default()).is_err()
        };
        assert!(is_rejected(|header| header.content_bytes += 1));
        assert!(is_rejected(|header| header.fresh_bytes -= 1));
        assert!(is_rejected(|header| header.extent_count -= 1));
        assert!(is_rejected(|header| header.packed_raw_bytes += 1));
        assert!(is_rejected(|header| header.packed_checksum ^= 1));
        let few = Limits {
            extents_per_frame_max: 5,
            ..Limits::default()
        };
        assert!(matches!(
            unpack_extents(&header, &packed.raw, &few),
            Err(FormatError::OverLimit { .. })
        ));
    }

    #[test]
    fn rejects_empty_extents_and_overflow() {
        assert!(pack_extents(CONTENT_START, 0, &[]).is_err());
        assert!(pack_extents(CONTENT_START, 0, &[Extent::Fresh { length: 0 }]).is_err());
        let overflow = [
            Extent::Fresh { length: u64::MAX },
            Extent::Fresh { length: u64::MAX },
        ];
        assert!(pack_extents(CONTENT_START, 0, &overflow).is_err());
    }

    /// Any accepted section packs to the same bytes, even if its checksum was recomputed after a
    /// change.
    #[test]
    fn accepted_sections_pack_to_the_same_bytes() {
        let packed = pack_extents(CONTENT_START, 5000, &sample()).unwrap();
        for at in 0..packed.raw.len() {
            for value in [0, 1, 2, 3, 0x7f, 0x80, 0xff] {
                let mut raw = packed.raw.clone();
                raw[at] = value;
                let mut header = header_for(5000, &packed);
                header.packed_checksum = checksum64(&raw);
                if let Ok(extents) = unpack_extents(&header, &raw, &Limits::default()) {
                    assert_eq!(
                        pack_extents(CONTENT_START, 5000, &extents).unwrap().raw,
                        raw
                    );
                }
            }
        }
    }

    #[test]
    fn typical_extents_take_about_five_bytes() {
        let (content_start, store_start, extents) = extents_from_seed(7, 350_000);
        let packed = pack_extents(content_start, store_start, &extents).unwrap();
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
