//! A block: one segment, or two that are coded independently.
//!
//! The coded data of two segments starts with the length of the first one's.

use super::coding::{self, Decoding, Encoding, damaged};
use super::model::Model;
use super::table::TableMemory;
use crate::codec::reserve;
use crate::error::Result;
use crate::host::Host;
use crate::id::CodecId;

/// The memory of the tables of all segments.
#[derive(Default)]
pub(super) struct BlockMemory {
    tables: [TableMemory; 2],
}

/// The bytes of the length before the first of two segments.
const LENGTH_BYTES: usize = size_of::<u32>();

/// The memory beside the models for the coded data of the second segment, bytes.
pub(super) fn second_data_bytes(model: Model) -> u64 {
    u64::from(model.raw_length_bytes) - model.segment_bytes() as u64
}

/// Encodes a block.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn encode(
    host: Host,
    memory: &mut BlockMemory,
    model: Model,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let [memory, second_memory] = &mut memory.tables;
    if model.segments() == 1 {
        return encode_segment(host, memory, model, raw, out);
    }
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    let (first, second) = raw.split_at(model.segment_bytes());
    let mut second_out = Vec::new();
    reserve(CodecId::CM, &mut second_out, second.len() / 4)?;
    let (second, first) = host.both(
        || encode_segment(host, second_memory, model, second, &mut second_out),
        || encode_segment(host, memory, model, first, out),
    );
    first.and(second)?;
    let length_bytes = (out.len() - start - LENGTH_BYTES) as u32;
    out[start..start + LENGTH_BYTES].copy_from_slice(&length_bytes.to_le_bytes());
    out.extend_from_slice(&second_out);
    Ok(())
}

fn encode_segment(
    host: Host,
    memory: &mut TableMemory,
    model: Model,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut segment = Encoding::new(raw, out);
    coding::run(host, memory, model, &mut segment)?;
    segment.finish();
    Ok(())
}

/// Decodes the first `out.len()` bytes of a block.
///
/// # Errors
/// `Damaged`, `OutOfMemory`.
pub(super) fn decode(
    host: Host,
    memory: &mut BlockMemory,
    model: Model,
    data: &[u8],
    out: &mut [u8],
) -> Result<()> {
    let is_whole = out.len() == model.raw_length_bytes as usize;
    let [memory, second_memory] = &mut memory.tables;
    if model.segments() == 1 {
        return decode_segment(host, memory, model, data, out, is_whole);
    }
    let (data, second_data) = split(data)?;
    let first_bytes = model.segment_bytes();
    if out.len() <= first_bytes {
        return decode_segment(host, memory, model, data, out, out.len() == first_bytes);
    }
    let (first, second) = out.split_at_mut(first_bytes);
    let (second, first) = host.both(
        || decode_segment(host, second_memory, model, second_data, second, is_whole),
        || decode_segment(host, memory, model, data, first, true),
    );
    first.and(second)
}

fn decode_segment(
    host: Host,
    memory: &mut TableMemory,
    model: Model,
    data: &[u8],
    out: &mut [u8],
    is_whole: bool,
) -> Result<()> {
    let mut segment = Decoding::new(data, out);
    coding::run(host, memory, model, &mut segment)?;
    segment.check(is_whole)
}

/// The coded data of two segments.
fn split(data: &[u8]) -> Result<(&[u8], &[u8])> {
    let (length, rest) = data
        .split_first_chunk::<LENGTH_BYTES>()
        .ok_or_else(|| damaged("truncated"))?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
        .ok_or_else(|| damaged("the length of a segment"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::cm::profile::Profile;
    use crate::error::Error;
    use crate::test_data;

    const LENGTH: usize = (16 << 20) + 1;

    fn two_segments() -> (Model, Vec<u8>) {
        let model = Model {
            level: 1,
            profile: Profile::Text,
            raw_length_bytes: LENGTH as u32,
        };
        assert_eq!(model.segments(), 2);
        let [one, two] = [1, 2].map(|seed| test_data::text(20_000, seed));
        let (one, two) = (one.iter().cycle(), two.iter().cycle());
        let raw = one.take(LENGTH / 2).chain(two).take(LENGTH).copied();
        (model, raw.collect())
    }

    /// The same bytes with and without another thread, and as the segments alone.
    #[test]
    fn segments_are_independent() {
        let (model, raw) = two_segments();
        let parallel = Host::with_threads();
        let [data, again] = [Host::default(), parallel].map(|host| {
            let mut out = vec![9];
            encode(host, &mut BlockMemory::default(), model, &raw, &mut out).unwrap();
            out.split_off(1)
        });
        assert!(data == again);
        let (first, second) = raw.split_at(LENGTH - LENGTH / 2);
        let mut memory = TableMemory::default();
        let mut parts = [first, second].map(|part| {
            let mut out = vec![];
            encode_segment(Host::default(), &mut memory, model, part, &mut out).unwrap();
            out
        });
        let length_bytes = (parts[0].len() as u32).to_le_bytes();
        let [first, second] = &mut parts;
        assert!(data == [&length_bytes, &first[..], &second[..]].concat());
        let mut memory = BlockMemory::default();
        for wanted in [LENGTH, LENGTH / 2 + 2, LENGTH / 2 + 1] {
            let mut out = vec![0; wanted];
            decode(parallel, &mut memory, model, &data, &mut out).unwrap();
            assert!(out == raw[..wanted]);
        }
        for length in [3, 12, data.len() - 1] {
            let result = decode(
                parallel,
                &mut memory,
                model,
                &data[..length],
                &mut vec![0; LENGTH],
            );
            assert!(matches!(result, Err(Error::Damaged { .. })), "{length}");
        }
        let longer = [&data[..], &[0; 4]].concat();
        let result = decode(parallel, &mut memory, model, &longer, &mut vec![0; LENGTH]);
        assert!(matches!(result, Err(Error::Damaged { .. })));
    }
}
