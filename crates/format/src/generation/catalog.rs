//! The catalog: the generations that are kept, and where the fingerprints of the store are.
//!
//! It is written with each generation, so the last one has all that a reader needs to choose one. A
//! row takes some 20 bytes unless its host, comment or tags differ from the row before.

use refrain_entries::Timestamp;

use crate::bytes::{ByteReader, put_varint, put_varints};
use crate::check::{
    check_equal, check_limit, check_positive, check_range, check_text, check_timestamp,
};
use crate::error::{FormatError, Result};
use crate::generation::gone::GoneFrames;
use crate::head::{SplitPayload, head_of, take_extensions};
use crate::limits::{CATALOG_BYTES_MAX, NAME_BYTES_MAX, TAGS_MAX};
use crate::member::{put_time, take_time};

/// A generation that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationInfo {
    /// Its number: 0 for what an archive had before something was added to it.
    pub number: u16,
    /// Where it begins in the archive.
    pub start: u64,
    /// Where it ends, with its tail; `None` for the generation with this catalog.
    pub end: Option<u64>,
    /// The id of its first member.
    pub first_member: u64,
    /// The number of its members.
    pub member_count: u64,
    /// Where its content starts in the content space.
    pub content_start: u64,
    /// Bytes of its members' content.
    pub content_bytes: u64,
    /// Raw bytes of its own blocks: what no earlier generation has.
    pub store_bytes: u64,
    /// When it was made; `None` if nobody stated it.
    pub created: Option<Timestamp>,
    /// The name of the machine, or empty.
    pub host: Vec<u8>,
    /// What the user said of it, or empty.
    pub comment: Vec<u8>,
    /// Names by which it is chosen and kept, sorted.
    pub tags: Vec<Vec<u8>>,
}

/// A frame of anchors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnchorsPlace {
    /// Where the frame begins.
    pub frame_offset: u64,
    /// Its size in bytes.
    pub frame_bytes: u64,
    /// At least this many low bits of its fingerprints are zero.
    pub zero_bits: u8,
    /// The number of its anchors.
    pub anchor_count: u64,
}

/// The payload of a Catalog frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalog {
    /// The generations that are kept, by ascending number.
    pub generations: Vec<GenerationInfo>,
    /// The frames of anchors of the whole store, in file order.
    pub anchors: Vec<AnchorsPlace>,
    /// The frames whose data is gone. A writer carries them on to every later catalog.
    pub gone: GoneFrames,
}

const IS_OWN: u64 = 1;
const HAS_CREATED: u64 = 2;
const HAS_HOST: u64 = 4;
const HAS_COMMENT: u64 = 8;
const HAS_TAGS: u64 = 16;

/// The smallest row: number, flags, and six numbers.
const ROW_BYTES_MIN: usize = 8;
const ANCHORS_BYTES_MIN: usize = 4;

impl Catalog {
    /// Parses the payload.
    ///
    /// # Errors
    /// Values out of range; rows that do not follow one another; bytes at the end.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let split = SplitPayload::new(payload)?;
        check_limit(
            "bytes of a catalog",
            split.data.len() as u64,
            CATALOG_BYTES_MAX,
        )?;
        let mut fields = split.fields("catalog");
        let gone_runs = GoneFrames::take_count(&mut fields)?;
        take_extensions(fields)?;
        let mut reader = ByteReader::new("catalog", split.data);
        let mut catalog = Self::default();
        for _ in 0..reader.count(ROW_BYTES_MIN)? {
            let row = take_row(&mut reader, catalog.generations.last())?;
            catalog.generations.push(row);
        }
        let mut end = 0;
        for _ in 0..reader.count(ANCHORS_BYTES_MIN)? {
            let place = take_anchors(&mut reader, end)?;
            end = place.frame_offset + place.frame_bytes;
            catalog.anchors.push(place);
        }
        catalog.gone = GoneFrames::take(&mut reader, gone_runs)?;
        reader.finish()?;
        Ok(catalog)
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        let mut fields = Vec::new();
        self.gone.put_count(&mut fields);
        let mut payload = head_of(&fields);
        put_varint(&mut payload, self.generations.len() as u64);
        let mut before = None;
        for row in &self.generations {
            put_row(&mut payload, row, before);
            before = Some(row);
        }
        put_varint(&mut payload, self.anchors.len() as u64);
        let mut end = 0;
        for place in &self.anchors {
            let gap = place.frame_offset.wrapping_sub(end);
            let zero_bits = u64::from(place.zero_bits);
            put_varints(
                &mut payload,
                &[gap, place.frame_bytes, zero_bits, place.anchor_count],
            );
            end = place.frame_offset.wrapping_add(place.frame_bytes);
        }
        self.gone.put(&mut payload);
        if Self::parse(&payload)? == *self {
            Ok(payload)
        } else {
            Err(order("rows of a catalog", "in ascending order"))
        }
    }
}

fn order(what: &'static str, rule: &'static str) -> FormatError {
    FormatError::Value {
        what,
        value: 0,
        rule,
    }
}

fn take_anchors(reader: &mut ByteReader<'_>, end: u64) -> Result<AnchorsPlace> {
    let frame_offset = check_range("start of a frame of anchors", end, reader.varint()?)?;
    let place = AnchorsPlace {
        frame_offset,
        frame_bytes: reader.varint()?,
        zero_bits: reader.varint_as("zero bits of anchors")?,
        anchor_count: reader.varint()?,
    };
    check_range("end of a frame of anchors", frame_offset, place.frame_bytes)?;
    Ok(place)
}

/// What a row is coded relative to.
fn base(before: Option<&GenerationInfo>) -> (u64, u64, u64, u64) {
    before.map_or((0, 0, 0, 0), |row| {
        (
            u64::from(row.number) + 1,
            row.end.unwrap_or(row.start),
            row.first_member.saturating_add(row.member_count),
            row.content_start.saturating_add(row.content_bytes),
        )
    })
}

fn put_row(out: &mut Vec<u8>, row: &GenerationInfo, before: Option<&GenerationInfo>) {
    let (number, end, member, content) = base(before);
    let differs = |of: fn(&GenerationInfo) -> bool| of(row);
    let has_host = before.map_or(&[][..], |before| &before.host[..]) != row.host;
    let has_comment = differs(|row| !row.comment.is_empty());
    let has_tags = differs(|row| !row.tags.is_empty());
    let flags = [
        (row.end.is_none(), IS_OWN),
        (row.created.is_some(), HAS_CREATED),
        (has_host, HAS_HOST),
        (has_comment, HAS_COMMENT),
        (has_tags, HAS_TAGS),
    ];
    let flags = flags.iter().map(|&(is_set, bit)| u64::from(is_set) * bit);
    put_varint(out, u64::from(row.number).wrapping_sub(number));
    put_varint(out, flags.sum());
    put_varint(out, row.start.wrapping_sub(end));
    if let Some(end) = row.end {
        put_varint(out, end.wrapping_sub(row.start));
    }
    let numbers = [
        row.first_member.wrapping_sub(member),
        row.member_count,
        row.content_start.wrapping_sub(content),
        row.content_bytes,
        row.store_bytes,
    ];
    put_varints(out, &numbers);
    if let Some(created) = row.created {
        put_time(out, created);
    }
    if has_host {
        put_text(out, &row.host);
    }
    if has_comment {
        put_text(out, &row.comment);
    }
    if has_tags {
        put_varint(out, row.tags.len() as u64);
        row.tags.iter().for_each(|tag| put_text(out, tag));
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn take_text(reader: &mut ByteReader<'_>, what: &'static str) -> Result<Vec<u8>> {
    let length = reader.count(1)?;
    let text = reader.take(length)?;
    check_text(what, text, NAME_BYTES_MAX)?;
    Ok(text.to_vec())
}

fn take_row(
    reader: &mut ByteReader<'_>,
    before: Option<&GenerationInfo>,
) -> Result<GenerationInfo> {
    let (number, end, member, content) = base(before);
    if before.is_some_and(|before| before.end.is_none()) {
        return Err(order(
            "generation behind the one with the catalog",
            "the last of the catalog",
        ));
    }
    let number = number.saturating_add(reader.varint()?);
    check_limit("number of a generation", number, u64::from(u16::MAX))?;
    let flags = reader.varint()?;
    check_equal(
        "unknown flags of a generation",
        flags & !(IS_OWN | HAS_CREATED | HAS_HOST | HAS_COMMENT | HAS_TAGS),
        0,
    )?;
    let has = |bit| flags & bit != 0;
    let start = check_range("start of a generation", end, reader.varint()?)?;
    let end = if has(IS_OWN) {
        None
    } else {
        let bytes = reader.varint()?;
        check_positive("bytes of a generation", bytes)?;
        Some(check_range("end of a generation", start, bytes)?)
    };
    let mut row = GenerationInfo {
        number: number as u16,
        start,
        end,
        first_member: check_range("first member", member, reader.varint()?)?,
        member_count: reader.varint()?,
        content_start: check_range("start of content", content, reader.varint()?)?,
        content_bytes: reader.varint()?,
        store_bytes: reader.varint()?,
        created: None,
        host: before.map_or_else(Vec::new, |before| before.host.clone()),
        comment: Vec::new(),
        tags: Vec::new(),
    };
    check_range("members", row.first_member, row.member_count)?;
    check_range("content", row.content_start, row.content_bytes)?;
    if has(HAS_CREATED) {
        row.created = Some(check_timestamp(take_time(reader)?)?);
    }
    if has(HAS_HOST) {
        row.host = take_text(reader, "host of a generation")?;
    }
    if has(HAS_COMMENT) {
        row.comment = take_text(reader, "comment of a generation")?;
    }
    if has(HAS_TAGS) {
        row.tags = take_tags(reader)?;
    }
    Ok(row)
}

fn take_tags(reader: &mut ByteReader<'_>) -> Result<Vec<Vec<u8>>> {
    let count = reader.count(2)?;
    check_limit("tags of a generation", count as u64, TAGS_MAX as u64)?;
    let mut tags: Vec<Vec<u8>> = Vec::with_capacity(count);
    for _ in 0..count {
        let tag = take_text(reader, "tag of a generation")?;
        if tags.last().is_some_and(|before| *before >= tag) {
            return Err(order("tags of a generation", "sorted, each once"));
        }
        tags.push(tag);
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<GenerationInfo> {
        let first = GenerationInfo {
            number: 0,
            start: 0,
            end: Some(5000),
            first_member: 0,
            member_count: 2,
            content_start: 0,
            content_bytes: 7000,
            store_bytes: 6000,
            created: None,
            host: vec![],
            comment: vec![],
            tags: vec![],
        };
        let second = GenerationInfo {
            number: 4,
            start: 9000,
            end: Some(9500),
            first_member: 5,
            member_count: 1,
            content_start: 9000,
            content_bytes: 7100,
            store_bytes: 100,
            created: Some(Timestamp {
                seconds: 1_700_000_000,
                nanoseconds: 5,
            }),
            host: b"laptop".to_vec(),
            comment: b"before the upgrade".to_vec(),
            tags: vec![b"keep".to_vec(), b"weekly".to_vec()],
        };
        let last = GenerationInfo {
            number: 5,
            start: 9500,
            end: None,
            first_member: 6,
            content_start: 16_100,
            comment: vec![],
            tags: vec![],
            ..second.clone()
        };
        vec![first, second, last]
    }

    #[test]
    fn a_catalog_parses_as_written() {
        let catalog = Catalog {
            generations: rows(),
            anchors: vec![
                AnchorsPlace {
                    frame_offset: 4000,
                    frame_bytes: 200,
                    zero_bits: 5,
                    anchor_count: 20,
                },
                AnchorsPlace {
                    frame_offset: 9400,
                    frame_bytes: 60,
                    zero_bits: 8,
                    anchor_count: 1,
                },
            ],
            gone: GoneFrames::default(),
        };
        let payload = catalog.to_payload().unwrap();
        let with_gone = Catalog {
            gone: GoneFrames::new([100..4000, 5100..70_000]),
            ..catalog.clone()
        };
        for (catalog, payload) in [
            (with_gone.clone(), with_gone.to_payload().unwrap()),
            (catalog, payload.clone()),
        ] {
            assert_eq!(Catalog::parse(&payload), Ok(catalog));
            for length in 0..payload.len() {
                assert!(Catalog::parse(&payload[..length]).is_err(), "{length}");
            }
        }
        // Without gone frames there is nothing that an earlier reader does not know.
        assert_eq!(payload.first(), Some(&0));
        let alike = Catalog {
            generations: vec![rows().remove(1); 1],
            ..Catalog::default()
        };
        assert!(alike.to_payload().unwrap().len() < 80);
    }

    #[test]
    fn rows_in_another_order_and_bad_texts_are_refused() {
        let refused = |change: fn(&mut Vec<GenerationInfo>)| {
            let mut generations = rows();
            change(&mut generations);
            let catalog = Catalog {
                generations,
                ..Catalog::default()
            };
            assert!(catalog.to_payload().is_err());
        };
        refused(|rows| rows.swap(0, 1));
        refused(|rows| rows.swap(1, 2));
        refused(|rows| rows[1].tags.reverse());
        refused(|rows| rows[1].host = b"a\0b".to_vec());
        refused(|rows| rows[1].start = 10);
        refused(|rows| rows[1].comment = vec![b'x'; NAME_BYTES_MAX + 1]);
    }
}
