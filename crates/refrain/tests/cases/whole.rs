//! Small archives: they take few bytes, and are read like others.

use crate::common::*;
use refrain::storage::{MemoryOutput, MemorySink, Sink};
use refrain::{
    Archive, DamagedPart, ErrorKind, Member, MemberInput, MemberStart, ReadOptions, Result, Target,
    Targets, Timestamp, Unwatched, recover,
};
use refrain_format::{
    FrameKind, Limits, MAGIC, SplitPayload, TAIL_BYTES, UntrustedFrameHeader, complete_frame, whole,
};
use refrain_testkit::data;

/// A file with all attributes, and a name of 12 bytes.
fn small_file(content: &[u8]) -> MemberInput {
    MemberInput {
        mode: Some(0o644),
        modified: Some(Timestamp {
            seconds: 1_790_000_000,
            nanoseconds: 123_456_789,
        }),
        ..file("document.txt", content)
    }
}

#[test]
fn small_files_make_small_archives() {
    for (content, most) in [(&b""[..], 160), (b"x", 190)] {
        for level in [1, 6, 9] {
            let (archive, summary) = archive_of(vec![small_file(content)], &options(level, 2));
            println!(
                "{} bytes at level {level}: {}",
                content.len(),
                archive.len()
            );
            assert!(archive.len() <= most, "{} bytes at {level}", archive.len());
            assert_eq!(summary.archive_bytes, archive.len() as u64);
            assert_reads(&archive, &[as_published("document.txt", content)], "small");
        }
    }
}

/// Archives that are a Whole frame, and one that is not.
fn mixed() -> (Vec<Vec<u8>>, Vec<Published>) {
    let contents = [
        data::source_code(5000, 1),
        vec![],
        data::random(300_000, 2),
        b"x".to_vec(),
    ];
    let numbered = contents.into_iter().enumerate();
    numbered
        .map(|(number, content)| {
            let name = format!("member {number}");
            let (archive, _) = archive_of(vec![file(&name, &content)], &options(3, 2));
            (archive, as_published(&name, &content))
        })
        .unzip()
}

#[test]
fn whole_archives_are_read_among_others() {
    let (archives, expected) = mixed();
    for (archive, expected) in archives.iter().zip(&expected) {
        assert_reads(archive, std::slice::from_ref(expected), "alone");
    }
    assert_reads(&archives.concat(), &expected, "one behind the other");
    let twice = [&archives[0][..], &archives[0]].concat();
    let expected = [expected[0].clone(), expected[0].clone()];
    assert_reads(&twice, &expected, "twice");
}

#[test]
fn whole_archives_are_read_by_a_scan() {
    let (archives, expected) = mixed();
    for (archive, expected) in archives.iter().zip(&expected) {
        if expected.content.is_empty() {
            continue;
        }
        let scanned = Archive::open_by_scan(source(archive), &ReadOptions::default()).unwrap();
        let mut content = vec![0; expected.content.len() + 1];
        let count = scanned.read_at(0, 0, &mut content).unwrap();
        assert!(content[..count] == expected.content);
    }
}

#[test]
fn a_wrong_reach_in_the_head_is_found_from_front_to_back() {
    let content = data::source_code(5000, 1);
    let (archive, _) = archive_of(vec![small_file(&content)], &options(3, 2));
    let payload = &archive[whole::WHOLE_START_BYTES..archive.len() - TAIL_BYTES];
    let mut changed = payload.to_vec();
    // The reach is the last field of the head, before the parity of ten bytes.
    let head_bytes = SplitPayload::new(payload).unwrap().head.len();
    changed[head_bytes - 11] += 1;
    let id = UntrustedFrameHeader::parse(&archive[MAGIC.len()..]).unwrap();
    let id = id.check(&Limits::default(), None).unwrap().archive_id;
    let forged = |payload: &[u8]| {
        let frame = complete_frame(FrameKind::Whole, 0, payload, id, 0);
        [&MAGIC[..], &frame, &archive[archive.len() - TAIL_BYTES..]].concat()
    };
    assert!(forged(payload) == archive);
    let changed = forged(&changed);
    for read in [
        extracted(&changed, &read_options(1)),
        extracted_from_pipe(&changed, &read_options(1)),
    ] {
        let error = read.map(|read| read.len()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains("needed reach"), "{error}");
    }
}

#[test]
fn every_flip_and_every_cut_of_a_whole_archive_is_found() {
    let (archive, _) = archive_of(vec![small_file(b"content")], &options(3, 2));
    let read = |bytes: &[u8], what: &str| {
        let options = read_options(1);
        for read in [
            extracted(bytes, &options),
            extracted_from_pipe(bytes, &options),
            read_by_index(bytes, &options),
        ] {
            let error = read.map(|read| read.len()).expect_err(what);
            let kinds = [ErrorKind::Damaged, ErrorKind::Unsupported, ErrorKind::Limit];
            assert!(kinds.contains(&error.kind), "{what}: {error}");
        }
    };
    for at in 0..archive.len() {
        let mut flipped = archive.clone();
        flipped[at] ^= 1 << (at % 8);
        read(&flipped, &format!("byte {at}"));
        read(&archive[..at], &format!("cut at {at}"));
    }
}

/// Collects intact members.
#[derive(Default)]
struct Collected {
    open: Option<MemoryOutput>,
    contents: Vec<Vec<u8>>,
}

impl Targets for Collected {
    fn open(&mut self, _: &MemberStart) -> Result<Target> {
        let sink = MemorySink::new();
        self.open = Some(sink.output());
        Ok(Target::Sink(Box::new(sink)))
    }

    fn close(&mut self, _: &Member, target: Target) -> Result<()> {
        target.into_sink().unwrap().publish().unwrap();
        let output = self.open.take().unwrap();
        self.contents.push(output.published().unwrap());
        Ok(())
    }
}

/// What is recovered of an archive, and whether the damage is reported.
fn recovered(archive: &[u8]) -> Result<(Vec<Vec<u8>>, bool)> {
    let mut targets = Collected::default();
    let (_, damage) = recover(
        source(archive),
        &mut targets,
        false,
        &read_options(1),
        &Unwatched,
    )?;
    let is_named = (damage.places.iter()).all(|place| place.part != DamagedPart::CutOff);
    assert!(!damage.has_losses(), "{damage:?}");
    Ok((targets.contents, is_named && !damage.places.is_empty()))
}

#[test]
fn eight_bytes_overwritten_in_a_small_archive_cost_nothing() {
    let contents = [
        data::source_code(5000, 1),
        b"x".to_vec(),
        data::random(900, 4),
    ];
    let inputs = (0..)
        .zip(&contents)
        .map(|(number, content)| file(&format!("m{number}"), content));
    let (archive, _) = archive_of(inputs.collect(), &options(6, 2));
    assert!(whole::whole_archive_bytes(&archive).is_some());
    let mut lost = 0;
    for at in (0..archive.len()).step_by(7) {
        let mut bad = archive.clone();
        let end = (at + 8).min(archive.len());
        bad[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
        match recovered(&bad) {
            Ok((found, is_named)) => {
                assert!(found == contents, "overwritten at {at}");
                assert!(is_named, "overwritten at {at}");
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Damaged);
                lost += 1;
            }
        }
    }
    // Where the header of the frame meets its payload, both are damaged.
    assert!(lost <= 1, "{lost}");
}
