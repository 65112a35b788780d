//! Tests of the order rules, on headers alone.

use super::*;
use crate::archive::{FORMAT_MAJOR, FORMAT_MINOR};
use crate::coding::Coding;
use crate::constants::FRAME_HEADER_BYTES;
use crate::end::ExtentTotals;
use crate::error::ErrorClass;
use crate::frame::complete_frame;
use crate::member::MemberKind;

/// Feeds headers whose frames have only the fields that the checker reads.
struct Feeder(StreamChecker);

impl Feeder {
    fn new(reach_bytes: u64) -> Self {
        let mut feeder = Self(StreamChecker::new(&Limits::default()));
        feeder.archive(reach_bytes);
        feeder
    }

    fn archive(&mut self, reach_bytes: u64) {
        let header = ArchiveHeader {
            version: (FORMAT_MAJOR, FORMAT_MINOR),
            required_features: 0,
            level: 1,
            segment_bytes: 1,
            epoch_bytes: 1000,
            block_bytes_max: 100,
            memory_budget_bytes: 0,
            reach_bytes,
            reference_window: 0,
        };
        self.feed(FrameKind::Archive, &Payload::Archive(header))
            .unwrap();
    }

    fn feed(&mut self, kind: FrameKind, payload: &Payload<'_>) -> Result<()> {
        let header = FrameHeader {
            archive_id: 7,
            kind,
            generation: 0,
            skippable: false,
            keep: false,
            payload_bytes: 60,
            sequence: self.0.frame_count(),
            payload_checksum: 0,
        };
        self.0.feed(&header, payload)
    }

    fn start(&mut self, member_id: u64, content_start: u64) -> Result<()> {
        let start = MemberStart {
            member_id,
            content_start,
            kind: MemberKind::File,
            name: Vec::new(),
            mode: None,
            modified: None,
            content_bytes_hint: None,
            is_sparse: false,
            layers: None,
            extensions: Vec::new(),
        };
        self.feed(FrameKind::MemberStart, &Payload::MemberStart(start))
    }

    fn end(&mut self, member_id: u64, content_bytes: u64) -> Result<()> {
        let end = MemberEnd::of_content(member_id, content_bytes);
        self.feed(FrameKind::MemberEnd, &Payload::MemberEnd(end))
    }

    fn block(&mut self, raw_bytes: u64) -> Result<()> {
        let header = BlockHeader {
            block_id: self.0.block_count,
            store_start: self.0.store_bytes,
            raw_bytes,
            raw_checksum: None,
            coding: Coding::none(),
        };
        self.feed(FrameKind::Block, &Payload::Block { header, data: &[] })
    }

    /// Feeds the next epoch; its bytes that are not fresh are copied from `source`.
    fn epoch(&mut self, content_bytes: u64, fresh_bytes: u64, source: Option<u64>) -> Result<()> {
        let header = ExtentsHeader {
            epoch_id: self.0.epoch_count,
            content_start: self.0.content_bytes,
            content_bytes,
            store_start: self.0.introduced_bytes,
            fresh_bytes,
            extent_count: 1,
            packed_raw_bytes: 2,
            packed_checksum: 0,
            coding: Coding::none(),
        };
        self.feed(FrameKind::Extents, &Payload::Extents { header, data: &[] })?;
        self.0.observe_epoch(&EpochSums {
            lowest_source: source,
            matched_bytes: content_bytes - fresh_bytes,
            run_bytes: 0,
        })
    }
}

fn rule_of(result: Result<()>) -> &'static str {
    match result {
        Err(FormatError::Order { rule, .. }) => rule,
        other => panic!("expected an order error, found {other:?}"),
    }
}

#[test]
fn the_archive_frame_is_first_and_unique() {
    let mut empty = Feeder(StreamChecker::new(&Limits::default()));
    assert!(rule_of(empty.block(1)).contains("first frame"));
    let mut feeder = Feeder::new(REACH_UNLIMITED);
    let again = Payload::Archive(*feeder.0.archive().unwrap());
    assert!(rule_of(feeder.feed(FrameKind::Archive, &again)).contains("one Archive"));
}

#[test]
fn sequence_numbers_have_no_gap() {
    let mut feeder = Feeder::new(REACH_UNLIMITED);
    let header = FrameHeader {
        archive_id: 7,
        kind: FrameKind::Padding,
        generation: 0,
        skippable: true,
        keep: false,
        payload_bytes: 0,
        sequence: 2,
        payload_checksum: 0,
    };
    assert!(feeder.0.feed(&header, &Payload::Skipped).is_err());
}

#[test]
fn content_belongs_to_started_members() {
    let mut feeder = Feeder::new(REACH_UNLIMITED);
    assert!(rule_of(feeder.epoch(50, 50, None)).contains("has started"));

    // Two members in one epoch: both start before it.
    let mut feeder = Feeder::new(REACH_UNLIMITED);
    feeder.start(0, 0).unwrap();
    feeder.start(1, 30).unwrap();
    feeder.epoch(50, 50, None).unwrap();
    assert!(feeder.clone_of().end(0, 29).is_err());
    assert!(feeder.clone_of().end(1, 20).is_err(), "out of order");
    feeder.end(0, 30).unwrap();
    feeder.end(1, 20).unwrap();

    // A late start.
    let mut late = Feeder::new(REACH_UNLIMITED);
    late.start(0, 0).unwrap();
    late.epoch(50, 50, None).unwrap();
    assert!(rule_of(late.start(1, 30)).contains("before the extents"));
}

#[test]
fn members_end_after_their_content() {
    let mut feeder = Feeder::new(REACH_UNLIMITED);
    feeder.start(0, 0).unwrap();
    feeder.start(1, 30).unwrap();
    assert!(rule_of(feeder.clone_of().end(0, 30)).contains("after the extents"));
    let mut empty = Feeder::new(REACH_UNLIMITED);
    empty.start(0, 0).unwrap();
    empty.end(0, 0).unwrap();
    empty.start(1, 0).unwrap();
    assert!(empty.end(1, 1).is_err());
}

#[test]
fn extents_come_before_their_blocks() {
    let mut feeder = Feeder::new(REACH_UNLIMITED);
    assert!(rule_of(feeder.clone_of().block(1)).contains("before it"));
    feeder.start(0, 0).unwrap();
    feeder.epoch(50, 50, None).unwrap();
    feeder.epoch(60, 60, None).unwrap();
    // A member may end while blocks are missing, and a block may end inside an epoch.
    feeder.end(0, 110).unwrap();
    feeder.block(70).unwrap();
    assert!(rule_of(feeder.clone_of().block(41)).contains("before it"));
    feeder.block(40).unwrap();
    assert!(rule_of(feeder.block(1)).contains("before it"));
}

#[test]
fn what_exceeds_the_archives_own_settings_is_damaged() {
    let class = |result: Result<()>| result.unwrap_err().class();
    let mut feeder = Feeder::new(500);
    let feed = |feeder: &Feeder, reach_needed_bytes| {
        let end = ArchiveEnd {
            content_bytes: 0,
            store_bytes: 0,
            frame_count: 2,
            member_count: 0,
            archive_bytes: 8 + 2 * (FRAME_HEADER_BYTES as u64 + 60) + TAIL_BYTES as u64,
            totals: ExtentTotals {
                reach_needed_bytes,
                ..ExtentTotals::default()
            },
            fallback_count: 0,
            root_hash: feeder.0.root_hash(),
            generation: None,
            last_decoder: None,
        };
        let roots = Vec::new();
        feeder
            .clone_of()
            .feed(FrameKind::End, &Payload::End { end, roots })
    };
    feed(&feeder, 0).unwrap();
    // Nothing needs a reach.
    let wrong = feed(&feeder, 500).unwrap_err();
    assert!(matches!(wrong, FormatError::Mismatch { .. }), "{wrong}");
    let above = feed(&feeder, 501).unwrap_err();
    assert!(matches!(above, FormatError::OverSetting { .. }), "{above}");
    assert_eq!(above.class(), ErrorClass::Damaged);
    feeder.start(0, 0).unwrap();
    let far = feeder.clone_of().epoch(1001, 1, Some(0));
    assert_eq!(class(far), ErrorClass::Damaged);
    feeder.epoch(1000, 1000, None).unwrap();
    assert_eq!(class(feeder.clone_of().block(101)), ErrorClass::Damaged);
    feeder.block(100).unwrap();
}

#[test]
fn rejects_epochs_beyond_the_promised_reach() {
    // Every frame here has this size. An epoch and the block right after it take two.
    const FRAME: u64 = FRAME_HEADER_BYTES as u64 + 60;
    let mut feeder = Feeder::new(2 * FRAME);
    feeder.start(0, 0).unwrap();
    for _ in 0..3 {
        feeder.epoch(10, 10, None).unwrap();
        feeder.block(10).unwrap();
    }
    assert_eq!(feeder.0.reach_needed_bytes(), FRAME);
    assert!(
        feeder.0.reach.block_count() <= 3,
        "blocks out of reach are evicted"
    );
    // From the last block to the end of an epoch that needs no later one.
    feeder.clone_of().epoch(10, 0, Some(20)).unwrap();
    assert!(feeder.clone_of().epoch(10, 0, Some(19)).is_err());
    // Fresh bytes come one frame later.
    feeder.epoch(20, 10, Some(20)).unwrap();
    assert!(feeder.clone_of().block(10).is_err());
    let mut near = Feeder::new(3 * FRAME);
    near.start(0, 0).unwrap();
    near.epoch(10, 10, None).unwrap();
    near.block(10).unwrap();
    near.epoch(20, 10, Some(9)).unwrap();
    near.clone_of().block(10).unwrap();
    // An epoch counts up to the block that completes it, not to its own last block.
    near.block(9).unwrap();
    assert!(near.block(1).is_err());
}

#[test]
fn the_reach_is_measured_where_none_is_promised() {
    const FRAME: u64 = FRAME_HEADER_BYTES as u64 + 60;
    let mut feeder = Feeder(StreamChecker::measuring_reach(&Limits::default()));
    feeder.archive(REACH_UNLIMITED);
    feeder.start(0, 0).unwrap();
    feeder.epoch(30, 30, None).unwrap();
    feeder.epoch(10, 10, None).unwrap();
    feeder.block(10).unwrap();
    assert_eq!(feeder.0.reach_needed_bytes(), 0, "nothing is complete");
    feeder.block(30).unwrap();
    assert_eq!(feeder.0.reach_needed_bytes(), 2 * FRAME);
    feeder.epoch(10, 0, Some(0)).unwrap();
    assert_eq!(feeder.0.reach_needed_bytes(), 3 * FRAME);
}

#[test]
fn what_a_reader_holds_back_is_limited() {
    const FRAME: u64 = FRAME_HEADER_BYTES as u64 + 60;
    let limits = Limits {
        held_bytes_max: 2 * FRAME,
        ..Limits::default()
    };
    let mut feeder = Feeder(StreamChecker::new(&limits));
    feeder.archive(REACH_UNLIMITED);
    feeder.start(0, 0).unwrap();
    feeder.epoch(10, 10, None).unwrap();
    feeder.epoch(10, 0, Some(0)).unwrap();
    assert!(matches!(
        feeder.clone_of().epoch(10, 0, Some(0)),
        Err(FormatError::OverLimit { .. })
    ));
    feeder.block(10).unwrap();
    feeder.epoch(10, 0, Some(0)).unwrap();
}

#[test]
fn only_a_generation_follows_the_end() {
    let mut feeder = Feeder::new(REACH_UNLIMITED);
    assert!(feeder.0.check_what_follows(b"frames").is_ok());
    feeder.0.end_frame_bytes = Some(40);
    assert!(feeder.0.clone().tail(&[0; 8]).is_err());
    let tail = Tail { back_bytes: 40 };
    feeder.0.tail(&tail.to_bytes()).unwrap();
    assert!(feeder.0.check_what_follows(b"").is_ok());
    assert!(matches!(
        feeder.0.check_what_follows(b"junk"),
        Err(FormatError::Trailing { extra_bytes: 4, .. })
    ));
    let generation = complete_frame(FrameKind::Generation, 0, b"\x02\0\0", 7, 9);
    assert_eq!(feeder.0.check_what_follows(&generation), Ok(()));
    assert!(feeder.block(1).is_err());
}

impl Feeder {
    fn clone_of(&self) -> Self {
        Self(self.0.clone())
    }
}
