//! Recovery frames are read as they were written, and others refused.

use super::*;
use crate::frame::UntrustedFrameHeader;
use crate::limits::Limits;

fn sample(is_apart: bool) -> RecoverySet {
    RecoverySet {
        archive_id: 0x1d1d_1d1d,
        is_apart,
        first_sequence: 6,
        set_id: 0x1234_5678_9abc_def0,
        parameters: RecoveryParameters::choose(467, 1000).unwrap(),
        later: None,
    }
}

fn sample_later() -> RecoverySet {
    RecoverySet {
        later: Some(LaterBytes {
            start: 0x0102_0304_0506,
            share: 250,
        }),
        ..sample(false)
    }
}

fn parse(frame: &[u8]) -> Result<(RecoverySet, RecoveryPlace, &[u8])> {
    let header = UntrustedFrameHeader::parse(frame)?.check(&Limits::default(), None)?;
    let payload = &frame[FRAME_HEADER_BYTES..];
    header.check_payload(payload)?;
    RecoverySet::parse(&header, payload)
}

#[test]
fn frames_parse_as_written_in_their_order() {
    for set in [sample(false), sample(true), sample_later()] {
        let mut bytes = 0;
        for (number, place) in set.places().enumerate() {
            let data = vec![number as u8; set.data_bytes(place.part)];
            let mut frame = Vec::new();
            set.write(place, &data, &mut frame).unwrap();
            assert_eq!(frame.len() as u64, set.frame_bytes(place.part));
            assert_eq!(parse(&frame), Ok((set, place, &data[..])));
            assert_eq!(set.number(place), Some(number as u64));
            bytes += frame.len() as u64;
        }
        assert_eq!(set.frames_bytes(), bytes);
        assert_eq!(set.frame_count(), set.places().count() as u64);
    }
}

#[test]
fn other_sizes_and_numbers_are_refused() {
    let set = sample(false);
    let place = RecoveryPlace {
        part: RecoveryPart::Parity,
        index: 0,
    };
    let data = vec![7; set.data_bytes(place.part)];
    let beyond = RecoveryPlace {
        index: set.parameters.parity_slices(),
        ..place
    };
    let mut frame = Vec::new();
    assert!(set.write(place, &data[1..], &mut frame).is_err());
    assert!(set.write(beyond, &data, &mut frame).is_err());
    let late = RecoverySet {
        first_sequence: u32::MAX,
        ..set
    };
    assert!(late.write(place, &data, &mut frame).is_err());
    set.write(place, &data, &mut frame).unwrap();
    let header = UntrustedFrameHeader::parse(&frame).unwrap();
    let header = header.check(&Limits::default(), None).unwrap();
    let payload = &frame[FRAME_HEADER_BYTES..];
    for (at, value) in [(3, 2), (4, 2), (5, 2), (22, 1), (26, 9), (30, 0), (34, 200)] {
        let mut bad = payload.to_vec();
        bad[at] = value;
        assert!(RecoverySet::parse(&header, &bad).is_err(), "byte {at}");
    }
    assert!(RecoverySet::parse(&header, &payload[..payload.len() - 1]).is_err());
    let early = FrameHeader {
        sequence: 0,
        ..header
    };
    assert!(RecoverySet::parse(&early, payload).is_err());
}

#[test]
fn what_protects_later_bytes_says_where_they_begin() {
    let set = sample_later();
    let place = RecoveryPlace {
        part: RecoveryPart::Digests,
        index: 0,
    };
    assert_eq!(set.protected(), 0x0102_0304_0506..0x0102_0304_0506 + 467);
    let behind = set.frames_bytes() + TAIL_BYTES as u64;
    assert_eq!(set.appendix_end(), set.protected().end + behind);
    let data = vec![7; set.data_bytes(place.part)];
    let mut frame = Vec::new();
    set.write(place, &data, &mut frame).unwrap();
    let header = UntrustedFrameHeader::parse(&frame).unwrap();
    let header = header.check(&Limits::default(), None).unwrap();
    let payload = &frame[FRAME_HEADER_BYTES..];
    assert!(RecoverySet::parse(&header, payload).is_ok());
    // The method of others, a later one, apart, behind the last start, a share above the largest.
    for (at, value) in [(3, 1), (3, 3), (4, 1), (49, 1), (51, 200)] {
        let mut bad = payload.to_vec();
        bad[at] = value;
        assert!(RecoverySet::parse(&header, &bad).is_err(), "byte {at}");
    }
    // From the first byte on, and no share.
    for fields in [42..50, 50..52] {
        let mut bad = payload.to_vec();
        bad[fields].fill(0);
        assert!(RecoverySet::parse(&header, &bad).is_err());
    }
}
