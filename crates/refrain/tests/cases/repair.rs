//! Recovery data: what it heals, what it cannot heal, and that readers pass over it.

use crate::common::recovery::{plan_of, protected, repaired};
use crate::common::*;
use refrain::storage::StreamSink;
use refrain::{
    CompressOptions, ErrorKind, RecoveryInfo, TemporarySpace, Unwatched, compress, recovery_info,
    recovery_state,
};
use refrain_testkit::{Rng, data, scaled};

/// An archive of random content, and its recovery data.
fn protected_archive(content_bytes: usize, share: &str) -> (Vec<u8>, Vec<u8>) {
    let content = data::random(content_bytes, content_bytes as u64);
    let (archive, _) = archive_of(vec![file("content", &content)], &options(1, 2));
    let (whole, summary) = protected(&archive, share).unwrap();
    assert_eq!(summary.protected_bytes, archive.len() as u64);
    assert!(!summary.is_apart && !summary.has_replaced);
    assert_eq!(whole[..archive.len()], archive);
    assert_eq!(
        whole.len() as u64,
        summary.protected_bytes + summary.recovery_bytes
    );
    (archive, whole)
}

fn info(whole: &[u8]) -> RecoveryInfo {
    recovery_info(&*source(whole)).unwrap().unwrap()
}

#[test]
fn readers_pass_over_recovery_data_and_compress_writes_the_same() {
    for content_bytes in [0, 100, 5000, 300_000, 3_000_000] {
        let content = data::random(content_bytes, content_bytes as u64);
        let (archive, whole) = protected_archive(content_bytes, "10%");
        assert_reads(&whole, &[as_published("content", &content)], "protected");
        let with_recovery = CompressOptions {
            recovery: Some("10%".parse().unwrap()),
            temporary: Some(TemporarySpace::new(std::env::temp_dir())),
            ..options(1, 2)
        };
        let (written, summary) = archive_of(vec![file("content", &content)], &with_recovery);
        assert!(written == whole, "{content_bytes}");
        assert_eq!(summary.archive_bytes, whole.len() as u64);
        let (piped, _) = piped_archive_of(vec![file("content", &content)], &with_recovery);
        let (plain, _) = piped_archive_of(vec![file("content", &content)], &options(1, 2));
        assert!(
            piped == protected(&plain, "10%").unwrap().0,
            "{content_bytes} to a pipe"
        );
        let state = recovery_state(&*source(&whole), &Unwatched)
            .unwrap()
            .unwrap();
        assert_eq!(state.frames, state.intact_frames);
        assert_eq!(state.info.protected_bytes, archive.len() as u64);
        let plan = plan_of(&[&whole]).unwrap();
        assert!(plan.summary().is_intact, "{:?}", plan.summary());
    }
}

#[test]
fn recovery_data_is_replaced_and_belongs_to_the_last_of_several_archives() {
    let (archive, whole) = protected_archive(300_000, "10%");
    let (again, summary) = protected(&whole, "20%").unwrap();
    assert!(summary.has_replaced);
    assert!(again == protected(&archive, "20%").unwrap().0);
    let damaged = [&whole[..100], &[whole[100] ^ 1], &whole[101..]].concat();
    let error = protected(&damaged, "20%").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Damaged);
    let (other, _) = archive_of(vec![file("other", b"some other content")], &options(1, 1));
    for joined in [[&other[..], &whole].concat(), [&whole[..], &other].concat()] {
        let (both, summary) = protected(&joined, "10%").unwrap();
        let is_before = joined.ends_with(&other);
        assert_eq!(summary.protected_bytes, joined.len() as u64, "{is_before}");
        assert!(repaired(&[&both[100..]]).unwrap().0 == both);
        let inserted = [&both[..100], b"abc", &both[100..]].concat();
        assert!(repaired(&[&inserted]).unwrap().0 == both, "{is_before}");
        assert_eq!(extracted(&both, &Default::default()).unwrap().len(), 2);
    }
}

#[test]
fn files_of_other_kinds_have_recovery_data_in_a_file_of_its_own() {
    for length in [1, 100, 70_000, 2_000_000] {
        let bytes = data::text(length, 5);
        let (apart, summary) = protected(&bytes, "10%").unwrap();
        assert!(summary.is_apart);
        assert_eq!(apart.len() as u64, summary.recovery_bytes);
        let mut damaged = bytes.clone();
        damaged[length / 2] ^= 1;
        let (healed, summary) = repaired(&[&damaged, &apart]).unwrap();
        assert!(healed == bytes, "{length}: {summary:?}");
        assert!(!summary.is_intact);
        assert!(plan_of(&[&bytes, &apart]).unwrap().summary().is_intact);
        assert_eq!(protected(&apart, "10%").unwrap_err().kind, ErrorKind::Usage);
        assert_eq!(plan_of(&[&bytes]).err().unwrap().kind, ErrorKind::Damaged);
        let stranger = data::random(length + 5000, 9);
        let refused = plan_of(&[&stranger, &apart]).err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Usage, "{length}: {refused}");
    }
    assert_eq!(protected(b"", "10%").unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn damaged_copies_are_merged() {
    let (_, whole) = protected_archive(3_000_000, "1%");
    let mut copies = [whole.clone(), whole.clone(), whole.clone()];
    for (number, copy) in copies.iter_mut().enumerate() {
        for piece in copy.chunks_mut(100_000).skip(number).step_by(3) {
            piece[..50_000].fill(0xaa);
        }
    }
    copies[1].drain(..1000);
    assert_eq!(
        plan_of(&[&copies[0]]).err().unwrap().kind,
        ErrorKind::Damaged
    );
    let (healed, summary) = repaired(&[&copies[0], &copies[1], &copies[2]]).unwrap();
    assert!(healed == whole);
    assert!(summary.merged_bytes > 500_000, "{summary:?}");
}

#[test]
fn copies_without_recovery_data_are_merged_from_their_intact_frames() {
    let contents = [data::random(700_000, 1), data::text(400_000, 2)];
    let archives = contents.iter().map(|content| {
        let (archive, _) = archive_of(vec![file("content", content)], &small_options("none"));
        archive
    });
    let whole = archives.collect::<Vec<_>>().concat();
    let mut healed_count = 0;
    for case in 0..u64::from(scaled(40)) {
        let mut random = Rng::new(case);
        let mut copies = vec![whole.clone(); 2 + (case % 2) as usize];
        for copy in &mut copies {
            for _ in 0..random.below(3) {
                let from = random.below(whole.len() as u64) as usize;
                let to = whole.len().min(from + 1 + random.below(5000) as usize);
                copy[from..to].iter_mut().for_each(|byte| *byte ^= 0x5a);
            }
        }
        // A lost head and a cut end, in different copies.
        copies[0][..random.below(200) as usize].fill(0);
        copies[1].truncate(whole.len() - random.below(200) as usize);
        let copies: Vec<&[u8]> = copies.iter().map(|copy| &copy[..]).collect();
        match repaired(&copies) {
            Ok((healed, summary)) => {
                assert!(healed == whole, "case {case}: {summary:?}");
                assert_eq!(summary.is_intact, copies[0] == whole, "case {case}");
                healed_count += 1;
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Damaged, "case {case}: {error}");
                assert!(error.to_string().contains("no copy has bytes"), "{error}");
            }
        }
    }
    assert!(healed_count * 2 > u64::from(scaled(40)), "{healed_count}");
    let stranger = data::random(whole.len(), 3);
    let error = plan_of(&[&stranger, &whole]).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Usage, "{error}");
    assert!(plan_of(&[&whole, &stranger]).unwrap().summary().is_intact);
}

#[test]
fn recovery_data_of_an_archive_inside_is_not_taken_for_that_of_the_file() {
    let (_, inner) = protected_archive(2_000_000, "10%");
    let stored = CompressOptions {
        recovery: Some("10%".parse().unwrap()),
        ..small_options("none")
    };
    let (outer, _) = archive_of(vec![file("inner", &inner)], &stored);
    let size = outer.len() as u64;
    let protected_bytes = info(&outer).protected_bytes;
    assert!(protected_bytes > inner.len() as u64 && protected_bytes < size);
    let mut damaged = outer.clone();
    damaged[1000..90_000].fill(0);
    assert!(repaired(&[&damaged]).unwrap().0 == outer);
    let cut = &outer[..protected_bytes as usize];
    let error = plan_of(&[cut]).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Usage, "{error}");
}

#[test]
fn what_repeats_itself_is_healed_after_an_insertion() {
    let content: Vec<u8> = (0..20_000_u32).map(|at| (at % 127) as u8).collect();
    let (archive, _) = archive_of(vec![file("content", &content)], &small_options("none"));
    let (whole, _) = protected(&archive, "10%").unwrap();
    for at in [300, 10_000] {
        let inserted = [&whole[..at], &data::random(21, 1), &whole[at..]].concat();
        assert!(repaired(&[&inserted]).unwrap().0 == whole, "{at}");
    }
}

/// A kind of damage that costs no column more than `rows` slices.
fn damage(whole: &mut Vec<u8>, info: &RecoveryInfo, rows: u64, random: &mut Rng) {
    let slice_bytes = u64::from(info.slice_bytes);
    let slices = info.protected_bytes.div_ceil(slice_bytes);
    let columns = slices.div_ceil(u64::from(info.data_rows));
    let size = whole.len() as u64;
    // The bytes that touch so many slices of each column at most, wherever they begin.
    let most = ((rows * columns).saturating_sub(1) * slice_bytes + 1).min(size / 3);
    let length = random.below(most) + 1;
    let (from, to) = {
        let from = random.below(size - length);
        (from as usize, (from + length) as usize)
    };
    match random.below(6) {
        0 => whole[from..to].fill(0),
        1 => whole[from..to]
            .iter_mut()
            .for_each(|byte| *byte = random.below(256) as u8),
        2 => drop(whole.drain(..length as usize)),
        3 => drop(whole.drain((size - length) as usize..)),
        4 => {
            let inserted = data::random(length.min(10_000) as usize, random.below(1 << 40));
            whole.splice(from..from, inserted);
        }
        _ => drop(whole.drain(from..to)),
    }
}

#[test]
fn damage_within_the_promise_is_healed_byte_for_byte() {
    for (number, content_bytes) in [10, 1000, 20_000, 300_000, 3_000_000]
        .into_iter()
        .enumerate()
    {
        let (_, whole) = protected_archive(content_bytes, "10%");
        let info = info(&whole);
        for case in 0..u64::from(scaled(if content_bytes > 1_000_000 { 12 } else { 40 })) {
            let mut random = Rng::new(case * 8 + number as u64);
            let mut damaged = whole.clone();
            // A damage on both sides of the end of the archive counts twice.
            let rows = u64::from(info.parity_rows) - 1;
            let count = 1 + random.below(rows.min(3));
            for _ in 0..count {
                damage(&mut damaged, &info, rows / count, &mut random);
            }
            let (healed, summary) = repaired(&[&damaged])
                .unwrap_or_else(|error| panic!("{content_bytes}, case {case}: {error}"));
            assert!(healed == whole, "{content_bytes}, case {case}: {summary:?}");
        }
    }
}

#[test]
fn scattered_sectors_are_healed_up_to_half_of_the_share() {
    let (_, whole) = protected_archive(6_000_000, "10%");
    let info = info(&whole);
    let slices = whole.len() as u64 / u64::from(info.slice_bytes);
    for case in 0..u64::from(scaled(8)) {
        let mut random = Rng::new(case);
        let mut damaged = whole.clone();
        for _ in 0..slices / 20 {
            let sector = random.below(whole.len() as u64 / 512) as usize * 512;
            damaged[sector..sector + 512].fill(0x55);
        }
        assert!(repaired(&[&damaged]).unwrap().0 == whole, "case {case}");
    }
}

#[test]
fn a_lost_sector_of_a_small_archive_is_healed_wherever_it_is() {
    for content_bytes in [10, 1024, 4000, 20_000, 65_536] {
        let (_, whole) = protected_archive(content_bytes, "10%");
        for at in (0..whole.len()).step_by(if content_bytes > 5000 { 251 } else { 67 }) {
            let end = whole.len().min(at + 512);
            let mut damaged = whole.clone();
            damaged[at..end].fill(0);
            assert!(
                repaired(&[&damaged]).unwrap().0 == whole,
                "{content_bytes}, lost at {at}"
            );
            let missing = [&whole[..at], &whole[end..]].concat();
            assert!(
                repaired(&[&missing]).unwrap().0 == whole,
                "{content_bytes}, missing at {at}"
            );
            let inserted = [&whole[..at], &data::random(512, 1)[..], &whole[at..]].concat();
            assert!(
                repaired(&[&inserted]).unwrap().0 == whole,
                "{content_bytes}, more at {at}"
            );
        }
    }
}

#[test]
fn damaged_golden_files_are_healed_to_the_golden_archive() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden");
    let whole = std::fs::read(golden.join("archives/0.1.0/recovery.rfn")).unwrap();
    for damage in ["overwritten", "cut", "headless", "inserted", "line-ends"] {
        let path = golden.join(format!("damaged/recovery-{damage}.rfn"));
        let damaged = std::fs::read(path).unwrap();
        assert!(
            damaged != whole && repaired(&[&damaged]).unwrap().0 == whole,
            "{damage}"
        );
    }
}

#[test]
fn too_much_damage_is_told_and_nothing_is_delivered() {
    let (archive, whole) = protected_archive(300_000, "10%");
    let mut damaged = whole.clone();
    damaged[..archive.len() / 5].fill(0);
    let error = plan_of(&[&damaged]).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Damaged);
    assert!(error.to_string().contains("more damage than"), "{error}");
    let error = plan_of(&[&archive]).err().unwrap();
    assert!(error.to_string().contains("no recovery data"), "{error}");
    let mut headless = whole.clone();
    headless[archive.len()..]
        .chunks_mut(300)
        .for_each(|piece| piece[0] ^= 1);
    assert_eq!(
        plan_of(&[&headless]).err().unwrap().kind,
        ErrorKind::Damaged
    );
    assert_eq!(plan_of(&[b""]).err().unwrap().kind, ErrorKind::Damaged);
    assert_eq!(plan_of(&[]).err().unwrap().kind, ErrorKind::Usage);
    // A sink that cannot be read back needs a place for a copy.
    let mut sink = StreamSink::new(std::io::sink(), "pipe");
    let without = CompressOptions {
        recovery: Some("10%".parse().unwrap()),
        ..options(1, 1)
    };
    let refused = compress(vec![file("a", b"b")], &mut sink, &without, &Unwatched);
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Limit);
}
