//! Recovery data of archives that grow: each generation has some of its own, and what that heals.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use refrain::{
    AddSummary, Compaction, CompressOptions, Encryption, ErrorKind, KeySlots, ReadOptions,
    TemporarySpace, Unwatched, damaged_places, forget, recovery_info, recovery_state, verify,
    verify_frames,
};
use refrain_format::{
    FRAME_HEADER_BYTES, FrameKind, Limits, RecoverySet, TAIL_BYTES, UntrustedFrameHeader,
    find_frame,
};
use refrain_storage::{GrowingFile, MemorySource};
use refrain_testkit::data::{edited, random};
use refrain_testkit::{Rng, scaled};

use super::encrypted_generations::{add_to as add_encrypted, identity, secrets};
use super::generations::{add_to as add_plain, file_source, label};
use crate::common::recovery::{plan_of, protected, repaired};
use crate::common::{archive_of, extracted_of, file, options, source};

fn with_recovery(share: Option<&str>) -> CompressOptions {
    CompressOptions {
        recovery: share.map(|share| share.parse().unwrap()),
        temporary: Some(TemporarySpace::new(std::env::temp_dir())),
        ..options(1, 2)
    }
}

fn reading(is_encrypted: bool, choice: &str) -> ReadOptions {
    if is_encrypted {
        secrets(1, choice)
    } else {
        ReadOptions {
            generation: choice.parse().unwrap(),
            ..crate::common::read_options(2)
        }
    }
}

fn add_night(
    path: &Path,
    content: &[u8],
    share: Option<&str>,
    is_encrypted: bool,
) -> refrain::Result<AddSummary> {
    let (members, options) = (vec![file("a", content)], with_recovery(share));
    if is_encrypted {
        add_encrypted(path, members, &options, &reading(true, "latest"))
    } else {
        add_plain(path, members, &options, label(1000, &[]))
    }
}

/// An archive that was added to each night, the first time with recovery data.
struct Nights {
    contents: Vec<Vec<u8>>,
    /// Where each ends in the file.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    is_encrypted: bool,
}

impl Nights {
    fn new(count: u64, is_encrypted: bool) -> Nights {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.rfn");
        let mut nights = Nights {
            contents: Vec::new(),
            ends: Vec::new(),
            bytes: Vec::new(),
            is_encrypted,
        };
        for number in 0..count {
            let mut content = match nights.contents.last() {
                None => random(900_000, 1),
                Some(last) => edited(last, 20, number),
            };
            // Nights of several sizes, the third with next to nothing.
            let more = [0, 300_000, 10, 500_000, 20_000][number as usize % 5];
            content.extend(random(more, 100 + number));
            let share = (number == 0).then_some("10%");
            let added = add_night(&path, &content, share, is_encrypted).unwrap();
            let bytes = fs::read(&path).unwrap();
            assert!(bytes.starts_with(&nights.bytes), "{number}");
            assert!(added.recovery_bytes > 0, "{number}");
            assert_eq!(added.archive_bytes, bytes.len() as u64, "{number}");
            nights.ends.push(bytes.len());
            nights.contents.push(content);
            nights.bytes = bytes;
        }
        nights
    }

    #[track_caller]
    fn assert_reads(&self, bytes: &[u8], nights: usize) {
        for (number, content) in self.contents[..nights].iter().enumerate() {
            let options = reading(self.is_encrypted, &format!("{}", number + 1));
            let (found, _) = extracted_of(bytes, &options).unwrap();
            assert!(found[0].content == *content, "{number}");
        }
        let options = reading(self.is_encrypted, "latest");
        verify(source(bytes), &options, &Unwatched).unwrap();
    }
}

/// The sets of a file, in its order.
fn sets(bytes: &[u8]) -> Vec<RecoverySet> {
    let (mut at, mut sets) = (0, Vec::new());
    while let Some(found) = find_frame(bytes, at) {
        at = found + 1;
        let header = UntrustedFrameHeader::parse(&bytes[found..]).unwrap();
        let Ok(header) = header.check(&Limits::default(), None) else { continue };
        let payload = &bytes[found + FRAME_HEADER_BYTES..];
        let payload = &payload[..payload.len().min(header.payload_bytes as usize)];
        if header.kind == FrameKind::Recovery
            && let Ok((set, _, _)) = RecoverySet::parse(&header, payload)
            && !sets.contains(&set)
        {
            sets.push(set);
        }
    }
    sets
}

/// The bytes that a set protects, and it itself with its tail.
fn segment(set: &RecoverySet) -> Range<usize> {
    set.protected().start as usize..set.appendix_end() as usize
}

fn own_bytes(set: &RecoverySet) -> Range<usize> {
    set.protected().end as usize..set.appendix_end() as usize
}

#[track_caller]
fn assert_covered(bytes: &[u8], set_count: u64) {
    let state = recovery_state(&*source(bytes), &Unwatched)
        .unwrap()
        .unwrap();
    assert_eq!(
        (state.info.sets, state.info.unprotected_bytes),
        (set_count, 0)
    );
    assert_eq!(state.frames, state.intact_frames);
    let plan = plan_of(&[bytes]).unwrap();
    assert!(plan.summary().is_intact, "{:?}", plan.summary());
    assert_eq!(plan.summary().unprotected, []);
    assert_eq!(plan.summary().sets, set_count);
}

#[test]
fn each_generation_gets_recovery_data_of_its_own() {
    for is_encrypted in [false, true] {
        let nights = Nights::new(6, is_encrypted);
        for (number, end) in nights.ends.iter().enumerate() {
            let bytes = &nights.bytes[..*end];
            assert_covered(bytes, number as u64 + 1);
            nights.assert_reads(bytes, number + 1);
            let options = reading(is_encrypted, "latest");
            verify_frames(source(bytes), &options, &Unwatched).unwrap();
            let stream: Box<dyn std::io::Read + Send> =
                Box::new(std::io::Cursor::new(bytes.to_vec()));
            verify(stream, &options, &Unwatched).unwrap();
            assert_eq!(damaged_places(&source(bytes), &options).unwrap(), []);
        }
        let sets = sets(&nights.bytes);
        assert_eq!(sets.len(), 6);
        let mut at = 0;
        for set in &sets {
            assert_eq!(segment(set).start, at);
            at = segment(set).end;
            // A night with next to nothing has more, and the next one does not inherit that.
            assert!(set.later.is_none_or(|later| later.share == 1000), "{set:?}");
        }
        assert_eq!(at, nights.bytes.len());
    }
}

/// Damages a place by so much that any of these sets can heal it twice.
fn damage(bytes: &mut Vec<u8>, sets: &[RecoverySet], at: usize, random_: &mut Rng) {
    let most = sets.iter().map(|set| {
        let parameters = set.parameters;
        let rows = (u64::from(parameters.parity_rows) / 2).max(2) - 1;
        let slices = (rows * parameters.columns()).saturating_sub(1);
        let most = slices * u64::from(parameters.slice_bytes) + 1;
        most.min(own_bytes(set).len() as u64 / 6)
    });
    let length = 1 + random_.below(most.min().unwrap()) as usize;
    let end = bytes.len().min(at + length);
    match random_.below(4) {
        0 => bytes[at..end].fill(0),
        1 => bytes[at..end]
            .iter_mut()
            .for_each(|byte| *byte = random_.below(256) as u8),
        2 => drop(bytes.drain(at..end)),
        _ => drop(bytes.splice(at..at, random(length.min(10_000), random_.below(1 << 40)))),
    }
}

#[test]
fn damage_of_every_segment_is_healed_byte_for_byte() {
    for is_encrypted in [false, true] {
        let nights = Nights::new(5, is_encrypted);
        let sets = sets(&nights.bytes);
        for case in 0..u64::from(scaled(40)) {
            let mut random = Rng::new(case);
            let mut damaged = nights.bytes.clone();
            // From the end, so that the places of earlier ones stay.
            for (number, set) in sets.iter().enumerate().rev() {
                let whole = segment(set);
                let at = match random.below(4) {
                    0 => continue,
                    // Across the border to the next, or the end of the file.
                    1 => whole.end - 1 - random.below(20) as usize,
                    2 => own_bytes(set).start - random.below(50) as usize,
                    _ => whole.start + random.below(whole.len() as u64) as usize,
                };
                let touched = &sets[number..sets.len().min(number + 2)];
                damage(&mut damaged, touched, at, &mut random);
            }
            let (healed, summary) =
                repaired(&[&damaged]).unwrap_or_else(|error| panic!("case {case}: {error}"));
            assert!(healed == nights.bytes, "case {case}: {summary:?}");
            assert_eq!(summary.is_intact, damaged == nights.bytes, "case {case}");
            assert_eq!(summary.unprotected, [], "case {case}");
        }
    }
}

#[test]
fn what_was_inserted_or_lost_moves_all_later_segments() {
    let nights = Nights::new(4, false);
    let sets = sets(&nights.bytes);
    for set in &sets {
        let middle = segment(set).start + segment(set).len() / 2;
        for at in [
            segment(set).start,
            middle,
            own_bytes(set).start,
            segment(set).end - 1,
        ] {
            let (before, after) = nights.bytes.split_at(at);
            let inserted = [before, b"a few more bytes", after].concat();
            assert!(
                repaired(&[&inserted]).unwrap().0 == nights.bytes,
                "inserted at {at}"
            );
            let lost = [before, &after[after.len().min(700)..]].concat();
            let (healed, summary) = repaired(&[&lost]).unwrap();
            assert!(healed == nights.bytes, "lost at {at}: {summary:?}");
        }
    }
    // Copies that are damaged by more than each could heal.
    let mut copies = [nights.bytes.clone(), nights.bytes.clone()];
    for set in &sets {
        let (at, length) = (segment(set).start, segment(set).len());
        copies[0][at + 10..at + length / 3].fill(0);
        copies[1][at + length / 2..at + length * 5 / 6].fill(0);
    }
    copies[1].drain(..500);
    assert!(plan_of(&[&copies[0]]).is_err());
    assert!(repaired(&[&copies[0], &copies[1]]).unwrap().0 == nights.bytes);
}

#[test]
fn a_lost_set_costs_its_own_segment_only() {
    for is_encrypted in [false, true] {
        let nights = Nights::new(5, is_encrypted);
        let sets = sets(&nights.bytes);
        for (number, lost) in sets.iter().enumerate() {
            let mut without = nights.bytes.clone();
            let own = own_bytes(lost);
            without[own.start..own.end - TAIL_BYTES].fill(0x33);
            let mut damaged = without.clone();
            let others = sets.iter().enumerate();
            for (other, set) in others.filter(|(other, _)| *other != number) {
                damaged[segment(set).start + 1 + other..][..100].fill(0x44);
            }
            // It is made anew, of what is there.
            let (healed, summary) = repaired(&[&damaged]).unwrap();
            assert!(healed == nights.bytes, "{number}: {summary:?}");
            let expected = segment(lost).start as u64..segment(lost).end as u64;
            assert_eq!(summary.unprotected, [expected], "{number}");
            assert_eq!((summary.sets, summary.renewed_sets), (4, 1), "{number}");
            assert!(!summary.is_intact);
            // Even its tail is lost, and what was inserted moves it.
            let moved = [&damaged[..3], b"new", &damaged[3..]].concat();
            let (healed, summary) = repaired(&[&moved]).unwrap();
            let renewed = u64::from(healed == nights.bytes);
            assert_eq!(
                (healed.len(), summary.renewed_sets),
                (nights.bytes.len(), renewed)
            );
            let mut tailless = without;
            tailless[own.start..own.end].fill(0x33);
            let (healed, summary) = repaired(&[&tailless]).unwrap();
            assert!(tailless.starts_with(&healed), "{number}");
            assert_eq!((summary.sets, summary.renewed_sets), (4, 0), "{number}");
            let again = plan_of(&[&healed]).unwrap();
            assert_eq!(again.summary().unprotected, summary.unprotected);
        }
        // A set of which only the last frame is left.
        let mut few = nights.bytes.clone();
        let own = own_bytes(&sets[3]);
        few[own.start..own.end - 200].fill(0x33);
        few[segment(&sets[4]).start + 5] ^= 1;
        let (healed, summary) = repaired(&[&few]).unwrap();
        assert!(healed == nights.bytes, "{summary:?}");
        assert_eq!(summary.renewed_sets, 1);
    }
}

#[test]
fn an_add_that_was_killed_leaves_what_was_there_and_the_next_one_protects_all() {
    for is_encrypted in [false, true] {
        let nights = Nights::new(4, is_encrypted);
        let sets = sets(&nights.bytes);
        let last = sets.last().unwrap();
        let (start, added, end) = (
            segment(last).start,
            own_bytes(last).start,
            segment(last).end,
        );
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.rfn");
        let mut cuts: Vec<_> = [start, added, end]
            .into_iter()
            .flat_map(|at| [-9, -8, -7, -1, 0, 1, 8, 40, 90].map(|by| at.strict_add_signed(by)))
            .filter(|cut| (start..end).contains(cut))
            .collect();
        cuts.extend((start..end).step_by((end - start) / 23));
        for cut in cuts {
            let left = &nights.bytes[..cut];
            let complete = if cut < added { 3 } else { 4 };
            nights.assert_reads(left, complete);
            let info = recovery_info(&*source(left)).unwrap().unwrap();
            let unprotected = if cut < added { 0 } else { added - start };
            let expected = (3, unprotected as u64);
            assert_eq!((info.sets, info.unprotected_bytes), expected, "{cut}");
            fs::write(&path, left).unwrap();
            let next = random(40_000, cut as u64);
            add_night(&path, &next, None, is_encrypted).unwrap();
            let bytes = fs::read(&path).unwrap();
            assert!(bytes.starts_with(&nights.bytes[..start]), "{cut}");
            nights.assert_reads(&bytes, complete);
            assert_covered(&bytes, 4);
            let mut damaged = bytes.clone();
            damaged[start + 100..start + 200].fill(0);
            assert!(repaired(&[&damaged]).unwrap().0 == bytes, "{cut}");
            // What is left can be repaired, and says what has no recovery data.
            let (healed, summary) = repaired(&[left]).unwrap();
            if healed == nights.bytes {
                // There was enough of the recovery data.
                assert_eq!(summary.unprotected, [], "{cut}");
                continue;
            }
            assert!(left.starts_with(&healed), "{cut}");
            let unprotected = summary
                .unprotected
                .iter()
                .map(|range| range.end - range.start);
            let behind = healed.len() - start;
            assert_eq!(unprotected.sum::<u64>(), behind as u64, "{cut}");
            assert!(cut < added || healed.len() >= added, "{cut}");
        }
    }
}

#[test]
fn an_archive_is_protected_when_it_is_added_to() {
    let directory = tempfile::tempdir().unwrap();
    for is_encrypted in [false, true] {
        let path = directory.path().join(format!("{is_encrypted}.rfn"));
        let contents = [random(200_000, 1), random(100_000, 2), random(300_000, 3)];
        let added = add_night(&path, &contents[0], None, is_encrypted).unwrap();
        assert_eq!(added.recovery_bytes, 0);
        let before = fs::read(&path).unwrap();
        assert_eq!(recovery_info(&*source(&before)).unwrap(), None);
        add_night(&path, &contents[1], Some("5%"), is_encrypted).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(&before));
        assert_covered(&bytes, 1);
        add_night(&path, &contents[2], Some("50%"), is_encrypted).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_covered(&bytes, 2);
        let mut damaged = bytes.clone();
        let second = segment(&sets(&bytes)[1]);
        damaged[second.start..second.start + 100_000].fill(0);
        damaged[..5_000].fill(0);
        assert!(repaired(&[&damaged]).unwrap().0 == bytes);
        // The set at the end is replaced by one for everything.
        let (again, summary) = protected(&bytes, "20%").unwrap();
        assert!(summary.has_replaced);
        assert_eq!(
            summary.protected_bytes as usize,
            own_bytes(&sets(&bytes)[1]).start
        );
        assert_covered(&again, 1);
        let mut damaged = again.clone();
        damaged[second.start..second.start + 50_000].fill(0);
        assert!(repaired(&[&damaged]).unwrap().0 == again);
        for (number, content) in contents.iter().enumerate() {
            let options = reading(is_encrypted, &format!("{}", number + 1));
            assert!(extracted_of(&again, &options).unwrap().0[0].content == *content);
        }
        fs::write(&path, &again).unwrap();
        add_night(&path, &contents[0], None, is_encrypted).unwrap();
        assert_covered(&fs::read(&path).unwrap(), 2);
    }
}

#[test]
fn damage_that_recovery_data_knows_is_not_protected_anew() {
    let nights = Nights::new(3, false);
    let sets = sets(&nights.bytes);
    let mut damaged = nights.bytes.clone();
    damaged[segment(&sets[0]).start + 1000] ^= 1;
    assert_eq!(
        protected(&damaged, "10%").unwrap_err().kind,
        ErrorKind::Damaged
    );
    // Nor is anything added behind recovery data that must be repaired first.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let mut damaged = nights.bytes.clone();
    let end = damaged.len();
    damaged[end - 60] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let error = add_night(&path, b"more", None, false).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
    assert!(fs::read(&path).unwrap() == damaged);
}

#[test]
fn forgetting_keeps_everything_protected_and_nothing_is_given_back() {
    for is_encrypted in [false, true] {
        let nights = Nights::new(3, is_encrypted);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.rfn");
        fs::write(&path, &nights.bytes).unwrap();
        let options = reading(is_encrypted, "latest");
        let mut growing = GrowingFile::open(&path).unwrap();
        assert_eq!(forget(&mut growing, &[1], &options).unwrap().len(), 1);
        drop(growing);
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(&nights.bytes));
        assert_covered(&bytes, 4);
        verify(file_source(&path), &options, &Unwatched).unwrap();
        let mut growing = GrowingFile::open(&path).unwrap();
        let refused = Compaction::plan(&mut growing, &options, &Unwatched);
        let refused = refused.err().expect("recovery data would call it damage");
        assert_eq!(refused.kind, ErrorKind::Unsupported);
        drop(growing);
        assert!(fs::read(&path).unwrap() == bytes);
        // A record alone, whose recovery data was not written.
        let cut = own_bytes(sets(&bytes).last().unwrap()).start;
        fs::write(&path, &bytes[..cut]).unwrap();
        add_night(&path, &random(1000, 5), None, is_encrypted).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(&nights.bytes));
        assert_covered(&bytes, 4);
    }
}

#[test]
fn keys_do_not_change_where_recovery_data_would_bring_old_ones_back() {
    let nights = Nights::new(2, true);
    let (whole, _) = protected(&nights.bytes, "10%").unwrap();
    let first = nights.ends[0];
    for (bytes, is_refused) in [
        (&nights.bytes[..], true),
        (&whole, true),
        (&nights.bytes[..first], false),
    ] {
        let slots = KeySlots::read(&*source(bytes)).unwrap().unwrap();
        let changed = slots.with(
            &Encryption {
                recipients: vec![identity(9).recipient()],
                ..Encryption::default()
            },
            &secrets(1, "latest"),
        );
        assert_eq!(
            changed.err().map(|error| error.kind),
            is_refused.then_some(ErrorKind::Unsupported)
        );
    }
}

#[test]
fn a_small_archive_that_is_written_again_keeps_its_recovery_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let (archive, _) = archive_of(vec![file("a", b"small")], &with_recovery(Some("100%")));
    fs::write(&path, &archive).unwrap();
    let added = add_night(&path, b"small as well", None, false).unwrap();
    assert!(added.recovery_bytes > 0);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(added.archive_bytes, bytes.len() as u64);
    assert_covered(&bytes, 1);
    let options = reading(false, "latest");
    let (found, _) = extracted_of(&bytes, &options).unwrap();
    assert_eq!(found[0].content, b"small as well");
}

#[test]
fn an_archive_inside_with_generations_is_not_taken_for_the_file() {
    let inner = Nights::new(3, false);
    let stored = CompressOptions {
        recovery: Some("10%".parse().unwrap()),
        ..crate::common::small_options("none")
    };
    let (outer, _) = archive_of(vec![file("inner", &inner.bytes)], &stored);
    let mut damaged = outer.clone();
    damaged[1000..60_000].fill(0);
    assert!(repaired(&[&damaged]).unwrap().0 == outer);
    // The outer recovery data is lost.
    let end = own_bytes(sets(&outer).last().unwrap()).start;
    let error = plan_of(&[&outer[..end]]).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Usage, "{error}");
    let source: Arc<dyn refrain::storage::Source> = Arc::new(MemorySource::new(inner.bytes));
    assert!(recovery_info(&*source).unwrap().is_some());
}
