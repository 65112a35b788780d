//! What is appended to encrypted archives, as bytes: crashes, forks, splices and damage.

use std::io::{Cursor, Read};
use std::sync::Arc;

use refrain_format::Tail;
use refrain_format::envelope::run::{GROUP_RUNS, RUN_FRAME_BYTES, RunEnd};
use refrain_protect::envelope::{Identity, RECORD_BYTES, SEALED_RECORD_BYTES};
use refrain_storage::{MemorySink, MemorySource, Sink, Source};
use refrain_testkit::{Rng, data::random, scaled};

use super::open::{opened_envelope, unlocked_feed};
use super::run_ending::RunWriter;
use super::sink::EnvelopeSink;
use super::source::EnvelopeSource;
use crate::error::{ErrorKind, Result};
use crate::options::{Encryption, ReadOptions};
use crate::store::frames::ArchiveFeed;

fn identity() -> Identity {
    Identity::X25519([0x42; 32].into())
}

fn options() -> ReadOptions {
    ReadOptions {
        identities: vec![identity()],
        ..ReadOptions::default()
    }
}

fn base(bytes: &[u8], is_padded: bool) -> Vec<u8> {
    let encryption = Encryption {
        passwords: vec![],
        recipients: vec![identity().recipient()],
        is_padded,
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    let mut envelope = EnvelopeSink::begin(&mut sink, &encryption, 64 << 20).unwrap();
    envelope.write_all(bytes).unwrap();
    envelope.publish().unwrap();
    output.published().unwrap()
}

fn envelope(archive: &[u8]) -> Result<Arc<EnvelopeSource>> {
    let source = Arc::new(MemorySource::new(archive.to_vec()));
    Ok(opened_envelope(source, &options())?.expect("encrypted"))
}

/// The archive with a run behind its complete part.
fn grown_as(archive: &[u8], bytes: &[u8], as_what: (bool, bool)) -> Vec<u8> {
    let earlier = envelope(archive).unwrap();
    let mut sink = MemorySink::new();
    let output = sink.output();
    let mut run = begin_run(&mut sink, &earlier, as_what);
    for piece in bytes.chunks(7_777) {
        run.write_all(piece).unwrap();
    }
    run.publish().unwrap();
    let end = earlier.complete_end().unwrap().1 as usize;
    let written = output.published().unwrap();
    [&archive[..end], &written].concat()
}

fn grown(archive: &[u8], bytes: &[u8]) -> Vec<u8> {
    grown_as(archive, bytes, (false, false))
}

fn opened(archive: &[u8]) -> Result<Vec<u8>> {
    let source = envelope(archive)?;
    let mut bytes = vec![0; source.size_bytes()? as usize];
    assert_eq!(source.read_at(0, &mut bytes)?, bytes.len());
    Ok(bytes)
}

fn streamed(archive: &[u8]) -> Result<Vec<u8>> {
    let stream = ArchiveFeed::Stream(Box::new(Cursor::new(archive.to_vec())));
    let ArchiveFeed::Stream(mut stream) = unlocked_feed(stream, &options())? else {
        unreachable!();
    };
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[track_caller]
fn assert_is(archive: &[u8], expected: &[u8]) {
    assert!(opened(archive).unwrap() == expected, "by the end");
    assert!(streamed(archive).unwrap() == expected, "from the front");
}

/// Content whose ends are zeros, as padding is.
fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = random(length, seed);
    let end = length.saturating_sub(length / 7);
    bytes[end..].fill(0);
    bytes
}

/// Begins a run with the key of the archive.
fn begin_run<'a>(
    sink: &'a mut dyn Sink,
    earlier: &Arc<EnvelopeSource>,
    as_what: (bool, bool),
) -> EnvelopeSink<'a> {
    let inside = Arc::clone(earlier) as Arc<dyn Source>;
    let place = (earlier.origin().unwrap(), &inside);
    EnvelopeSink::begin_run(sink, place, as_what, None).unwrap()
}

#[test]
fn runs_continue_the_archive() {
    let lengths = [
        1,
        RECORD_BYTES - 8,
        RECORD_BYTES - 7,
        5 * RECORD_BYTES,
        70 * RECORD_BYTES + 3,
    ];
    for first in [&lengths[..], &[100_000][..]].concat() {
        let mut expected = content(first, 1);
        let mut archive = base(&expected, false);
        for (number, &length) in lengths.iter().enumerate() {
            let before = archive.clone();
            let more = content(length, 2 + number as u64);
            archive = grown(&archive, &more);
            expected.extend(more);
            assert!(archive.starts_with(&before));
            assert_is(&archive, &expected);
        }
        let source = envelope(&archive).unwrap();
        let mut rng = Rng::new(3);
        for _ in 0..100 {
            let at = rng.below(expected.len() as u64) as usize;
            let count = (rng.below(200_000) as usize).min(expected.len() - at);
            let mut found = vec![0; count];
            assert_eq!(source.read_at(at as u64, &mut found).unwrap(), count);
            assert!(found == expected[at..at + count], "{at} {count}");
        }
    }
}

#[test]
fn what_was_written_is_read_back_with_what_is_before() {
    let first = random(100_000, 1);
    let archive = base(&first, false);
    let earlier = envelope(&archive).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("archive");
    std::fs::write(&path, &archive).unwrap();
    let mut file = refrain_storage::GrowingFile::open(&path).unwrap();
    file.append_behind(archive.len() as u64).unwrap();
    let mut run = begin_run(&mut file, &earlier, (false, false));
    let more = random(3_000_000, 2);
    let all = [&first[..], &more].concat();
    let back = run.read_back().expect("a file");
    for piece in more.chunks(300_001) {
        run.write_all(piece).unwrap();
        let end = back.size_bytes().unwrap() as usize;
        for start in [0, 99_000, 100_000, end.saturating_sub(1_500_000), end - 10] {
            let mut found = vec![0; end - start];
            assert_eq!(back.read_at(start as u64, &mut found).unwrap(), found.len());
            assert!(found == all[start..end], "{start}");
        }
    }
    run.publish().unwrap();
    let bytes = run.archive_bytes();
    drop(file);
    let grown = std::fs::read(&path).unwrap();
    assert_eq!(grown.len() as u64, archive.len() as u64 + bytes);
    assert_is(&grown, &all);
}

/// Counts reads.
struct Counted(MemorySource<Vec<u8>>, std::sync::atomic::AtomicU64);

impl Source for Counted {
    fn size_bytes(&self) -> std::io::Result<u64> {
        self.0.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.read_at(offset, buffer)
    }
}

#[test]
fn many_runs_open_with_few_reads() {
    let mut expected = random(1000, 1);
    let mut archive = base(&expected, false);
    let mut ends = vec![(archive.len(), expected.len())];
    let runs = 3 * GROUP_RUNS + 5;
    for number in 0..runs {
        let more = random(10 + number as usize % 7, number);
        archive = grown(&archive, &more);
        expected.extend(more);
        ends.push((archive.len(), expected.len()));
    }
    assert_is(&archive, &expected);
    for &(end, inner_end) in &ends {
        assert!(
            opened(&archive[..end]).unwrap() == expected[..inner_end],
            "{end}"
        );
    }
    let source = Arc::new(Counted(MemorySource::new(archive), Default::default()));
    let envelope = opened_envelope(source.clone(), &options())
        .unwrap()
        .expect("encrypted");
    let reads = || source.1.load(std::sync::atomic::Ordering::Relaxed);
    assert!(reads() < 30, "{} reads to open", reads());
    let before = reads();
    let mut byte = [0];
    for (at, known) in [
        (5, expected[5]),
        (1015, expected[1015]),
        (1700, expected[1700]),
    ] {
        assert_eq!(envelope.read_at(at, &mut byte).unwrap(), 1);
        assert_eq!(byte[0], known);
    }
    assert!(reads() - before <= 3 + 2 * 3, "{} reads", reads() - before);
}

#[test]
fn a_cut_anywhere_leaves_what_was_complete() {
    let first = content(40_000, 1);
    let archive = base(&first, false);
    let second = content(20_000, 2);
    let two = grown(&archive, &second);
    let three = grown(&two, &content(50_000, 3));
    let both = [&first[..], &second].concat();
    for (before, after, expected) in [(&archive, &two, &first), (&two, &three, &both)] {
        let ends = (1..200).chain((200..after.len() - before.len()).step_by(487));
        let near = (1..400).map(|back| after.len() - before.len() - back);
        for more in ends.chain(near) {
            let cut = &after[..before.len() + more];
            let source = envelope(cut).unwrap_or_else(|error| panic!("{more}: {error}"));
            assert_eq!(source.incomplete_bytes(), more as u64, "{more}");
            assert!(opened(cut).unwrap() == *expected, "{more}");
            assert!(streamed(cut).is_err(), "{more}");
            // A writer cuts it off.
            if more % 50 == 0 {
                assert_is(&grown(cut, b"x"), &[&expected[..], b"x"].concat());
            }
        }
    }
}

#[test]
fn no_key_is_used_twice() {
    let archive = base(&content(1000, 1), false);
    // A crash, and other content at the same place: the same zeros give other bytes.
    let (one, two) = (grown(&archive, &[0; 50_000]), grown(&archive, &[0; 50_000]));
    assert_eq!(one.len(), two.len());
    let records = archive.len() + RUN_FRAME_BYTES;
    for record in 0..3 {
        let bytes =
            records + record * SEALED_RECORD_BYTES..records + (record + 1) * SEALED_RECORD_BYTES;
        let (one, two) = (&one[bytes.clone()], &two[bytes]);
        let equal = one.iter().zip(two).filter(|(one, two)| one == two).count();
        assert!(equal < 200, "{equal} equal bytes");
    }
}

#[test]
fn splices_and_forks_are_refused() {
    let first = content(40_000, 1);
    let archive = base(&first, false);
    let fork = |seed| grown(&archive, &random(30_000, seed));
    let (one, two) = (fork(2), fork(3));
    let (one_more, two_more) = (
        grown(&one, &random(30_000, 4)),
        grown(&two, &random(30_000, 5)),
    );
    let (start, end) = (archive.len(), one.len());
    let refused = |bytes: Vec<u8>, what: &str| {
        for result in [opened(&bytes), streamed(&bytes)] {
            let error = result.err().unwrap_or_else(|| panic!("{what}"));
            assert_eq!(error.kind, ErrorKind::Damaged, "{what}: {error}");
        }
    };
    refused(
        [&one[..], &two_more[end..]].concat(),
        "the run of another version",
    );
    let mut spliced = one_more.clone();
    spliced[start..end].copy_from_slice(&two[start..]);
    refused(spliced, "an earlier run of another version");
    let frame = start + RUN_FRAME_BYTES;
    let mut spliced = one.clone();
    spliced[frame..frame + SEALED_RECORD_BYTES]
        .copy_from_slice(&two[frame..frame + SEALED_RECORD_BYTES]);
    refused(spliced, "a record of another version");
    let mut spliced = one.clone();
    spliced[..archive.len()].copy_from_slice(&base(&first, false));
    // Every frame has the id of its archive.
    refused(spliced, "the run of another archive");
    let [a, b] = [&one_more[start..end], &one_more[end..]];
    refused([&archive[..], b, a].concat(), "another order");
    refused([&archive[..], a, a].concat(), "a run twice");
    refused([&archive[..], b].concat(), "a run left out");
    let mut swapped = one.clone();
    let (first_record, second) = swapped[frame..].split_at_mut(SEALED_RECORD_BYTES);
    first_record.swap_with_slice(&mut second[..SEALED_RECORD_BYTES]);
    refused(swapped, "two records exchanged");
    // With the end of the newest run damaged, what is before it is bound to it by its keys.
    let mut damaged = [&one[..], &two_more[end..]].concat();
    let last = damaged.len() - 100;
    damaged[last] ^= 1;
    refused(damaged, "another version with a damaged end");
}

#[test]
fn every_altered_byte_is_found() {
    let first = content(20_000, 1);
    let archive = base(&first, false);
    let one = grown(&archive, &content(20_000, 2));
    let two = grown(&one, &content(20_000, 3));
    let all = opened(&two).unwrap();
    let mut accepted = 0;
    for at in
        (archive.len()..two.len()).filter(|at| at % 331 == 0 || is_near_a_frame(*at, &one, &two))
    {
        let mut changed = two.clone();
        changed[at] ^= 8;
        // What is around records tells where they are: it may be lost where nothing needs it.
        match opened(&changed) {
            Ok(found) => {
                accepted += 1;
                assert!(found == all, "{at}");
            }
            Err(error) => assert_eq!(error.kind, ErrorKind::Damaged, "{at}: {error}"),
        }
        assert_eq!(
            streamed(&changed).expect_err("changed").kind,
            ErrorKind::Damaged,
            "{at}"
        );
    }
    let frames = 2 * RUN_FRAME_BYTES + 400;
    assert!(accepted < frames, "{accepted}");
}

fn is_near_a_frame(at: usize, one: &[u8], two: &[u8]) -> bool {
    [one.len(), two.len()]
        .iter()
        .any(|&end| (end - 300..end + 80).contains(&at))
}

#[test]
fn an_archive_may_begin_anew() {
    let archive = base(&content(300, 1), true);
    let anew = content(90_000, 2);
    let one = grown_as(&archive, &anew, (true, false));
    assert!(opened(&one).unwrap() == anew);
    assert_eq!(
        streamed(&one).expect_err("from a file").kind,
        ErrorKind::Unsupported
    );
    let more = content(5, 3);
    let two = grown(&one, &more);
    assert!(opened(&two).unwrap() == [&anew[..], &more].concat());
}

#[test]
fn padding_carries_on() {
    let length = 3_020_000;
    let (plain, padded) = (
        base(&random(length, 1), false),
        base(&random(length, 1), true),
    );
    let more = random(length - 90_777, 2);
    let added = |archive: &[u8], pad| grown_as(archive, &more, (false, pad)).len() - archive.len();
    assert!(added(&plain, false) < added(&padded, false));
    assert_eq!(added(&padded, false), added(&plain, true));
    let twice = |pad| grown_as(&plain, &more, (false, pad));
    // Its table has a row more.
    assert_eq!(added(&twice(true), false), added(&padded, false) + 64);
    let sizes: Vec<_> = (0..5)
        .map(|less| grown(&padded, &random(3_070_000 - less * 5_000, 9)).len())
        .collect();
    assert_eq!(sizes, vec![sizes[0]; 5]);
}

#[test]
fn tampering_is_refused_or_changes_nothing() {
    let archive = base(&content(30_000, 1), false);
    let one = grown(&grown(&archive, &content(20_000, 2)), &content(40_000, 3));
    let other = grown(&grown(&archive, &content(20_000, 4)), &content(40_000, 5));
    let known: Vec<_> = [&archive[..], &one[..]]
        .iter()
        .map(|bytes| opened(bytes).unwrap())
        .collect();
    let end_of_first = archive.len() + RUN_FRAME_BYTES + 2 * SEALED_RECORD_BYTES;
    let mut rng = Rng::new(41);
    let mut refused = 0;
    let cases = scaled(300);
    for number in 0..cases {
        let mut changed = one.clone();
        let length = (one.len() - archive.len()) as u64;
        let from = archive.len() + rng.below(length) as usize;
        let to = archive.len() + rng.below(length) as usize;
        let count = (1 + rng.below(30_000) as usize).min(one.len() - from.max(to));
        match rng.below(6) {
            0 => changed[to] ^= 1 << rng.below(8),
            1 => changed.copy_within(from..from + count, to),
            2 => changed[to..to + count].copy_from_slice(&other[to..to + count]),
            3 => changed.truncate(to),
            4 => drop(changed.drain(to..to + count)),
            _ => drop(changed.splice(
                end_of_first..end_of_first,
                other[from..from + count].iter().copied(),
            )),
        }
        let middle = opened(&one[..one.len() - 1]).unwrap();
        for found in [opened(&changed), streamed(&changed)] {
            match found {
                // An earlier end is one.
                Ok(found) => assert!(known.contains(&found) || found == middle, "case {number}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > cases, "{refused} of {cases}");
}

/// The archive with another table in its newest run, by somebody who has the key.
fn with_table(archive: &[u8], table: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let earlier = envelope(archive).unwrap();
    let origin = earlier.origin().unwrap();
    let last = *origin.table.last().expect("a run");
    let at = (origin.records_offset + last.records_end()) as usize;
    let mut end = RunEnd::parse(&archive[at..], earlier.archive_id()).unwrap();
    let RunWriter::Owner(key, _) = &origin.writer else {
        panic!("the key of the archive")
    };
    let cipher = || key.table(&origin.salt, &last.link);
    let mut bytes = cipher().open(&end.sealed).unwrap();
    table(&mut bytes);
    end.sealed = cipher().seal(bytes);
    let frame = end.to_frame(earlier.archive_id());
    let tail = Tail {
        back_bytes: frame.len() as u64,
    };
    [&archive[..at], &frame, &tail.to_bytes()].concat()
}

#[test]
fn forged_tables_are_refused_or_lead_to_records() {
    let mut archive = base(&content(30_000, 1), false);
    for number in 0..70 {
        archive = grown(&archive, &content(100 + number, 2));
    }
    let all = opened(&archive).unwrap();
    assert!(opened(&with_table(&archive, |_| {})).unwrap() == all);
    let mut rng = Rng::new(5);
    let (cases, mut refused) = (scaled(200), 0_u32);
    for _ in 0..cases {
        let forged = with_table(&archive, |table| {
            for _ in 0..1 + rng.below(2) {
                // Numbers, rather than links.
                let row = rng.below((table.len() as u64 - 24) / 64) as usize;
                let at = 24 + row * 64 + rng.below(4) as usize * 8;
                let number: [u8; 8] = table[at..at + 8].try_into().unwrap();
                let number = u64::from_le_bytes(number);
                let changed = match rng.below(4) {
                    0 => number.wrapping_add(1),
                    1 => number.wrapping_sub(1),
                    2 => rng.below(u64::MAX),
                    _ => number ^ 1 << rng.below(64),
                };
                table[at..at + 8].copy_from_slice(&changed.to_le_bytes());
            }
            if rng.below(10) == 0 {
                table.truncate(table.len() - rng.below(100) as usize);
            }
        });
        let Ok(source) = envelope(&forged) else {
            refused += 1;
            continue;
        };
        let mut found = vec![0; 5000];
        for at in [
            0,
            29_000,
            30_050,
            33_000,
            source.size_bytes().unwrap().saturating_sub(9),
        ] {
            let _ = source.read_at(at, &mut found);
        }
        refused += u32::from(streamed(&forged).is_err());
    }
    assert!(refused >= cases * 9 / 10, "{refused} of {cases}");
}
