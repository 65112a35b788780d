//! Sparse files: their holes are neither read nor hashed nor written, and every way of reading
//! shows them.

use std::io::{self, Cursor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::holes::Holey;
use crate::common::*;
use proptest::prelude::*;
use refrain::storage::{MemorySink, Sink, Source};
use refrain::{
    Archive, Content, DigestAlgorithm, Error, ErrorKind, Member, MemberInput, MemberStart,
    ReadOptions, Result, Run, Target, Targets, Unwatched,
};
use refrain_format::{Extent, Pattern, content_hash};
use refrain_protect::SparseHasher;
use refrain_testkit::{ForgedArchive, data, scaled, uncoded};

const GIB: u64 = 1 << 30;

fn sparse(name: &str, holey: &Arc<Holey>) -> MemberInput {
    member(name, Content::Source(holey.clone()))
}

/// What was written to a sink, without its zeros.
#[derive(Default)]
struct Written {
    at: u64,
    /// The bytes that were passed, with zeros among them.
    passed_bytes: u64,
    data: Vec<(u64, u8)>,
}

#[derive(Clone, Default)]
struct NonZeros(Arc<Mutex<Written>>);

impl Sink for NonZeros {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut written = self.0.lock().unwrap();
        let at = written.at;
        let data = (at..).zip(bytes.iter().copied());
        written.data.extend(data.filter(|(_, byte)| *byte != 0));
        written.at += bytes.len() as u64;
        written.passed_bytes += bytes.len() as u64;
        Ok(())
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.0.lock().unwrap().at += length_bytes;
        Ok(())
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Targets for NonZeros {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        Ok(Target::Sink(Box::new(self.clone())))
    }

    fn spill(&mut self) -> Result<Box<dyn Sink>> {
        Err(Error::new(
            ErrorKind::Internal,
            "a sparse file needs no copy",
        ))
    }

    fn close(&mut self, _member: &Member, _target: Target) -> Result<()> {
        Ok(())
    }
}

/// Four bytes in 100 GiB.
fn huge() -> Arc<Holey> {
    Holey::new(100 * GIB + 3, vec![(60_000_000_000, b"data".to_vec())])
}

#[test]
fn holes_are_neither_read_nor_written() {
    let holey = huge();
    let (archive, summary) = archive_of(vec![sparse("disk", &holey)], &options(3, 2));
    assert_eq!(summary.content_bytes, holey.size_bytes);
    // The pieces with the data and the end, and the first bytes.
    assert!(holey.read_bytes.load(Ordering::Relaxed) < 200_000);
    assert!(archive.len() < 500, "{} bytes", archive.len());

    let data: Vec<_> = (60_000_000_000..).zip(*b"data").collect();
    let read = |from_pipe: bool| {
        let mut targets = NonZeros::default();
        let (options, written) = (read_options(2), targets.0.clone());
        let summary = if from_pipe {
            let stream = Box::new(Cursor::new(archive.clone()));
            refrain::extract(stream, &mut targets, &options, &Unwatched)
        } else {
            refrain::extract(source(&archive), &mut targets, &options, &Unwatched)
        };
        assert_eq!(summary.unwrap().content_bytes, holey.size_bytes);
        let written = written.lock().unwrap();
        assert_eq!((written.at, &written.data), (holey.size_bytes, &data));
        assert!(written.passed_bytes < 200_000, "{}", written.passed_bytes);
    };
    read(false);
    read(true);
    refrain::verify(source(&archive), &read_options(2), &Unwatched).unwrap();

    let opened = Archive::open(source(&archive), &ReadOptions::default()).unwrap();
    let member = &opened.members().unwrap()[0];
    assert!(member.is_sparse && member.content_bytes == holey.size_bytes);
    let mut around = [1; 8];
    opened.read_at(0, 59_999_999_998, &mut around).unwrap();
    assert_eq!(&around, b"\0\0data\0\0");
    let mut runs = vec![];
    opened
        .for_each_run(0, 0..holey.size_bytes, &mut |run: Run| {
            runs.push((run.length_bytes, run.is_zero));
            true
        })
        .unwrap();
    let zeros: u64 = runs.iter().filter(|run| run.1).map(|run| run.0).sum();
    // The data, and the bytes after the last whole piece.
    assert!(zeros >= holey.size_bytes - 7 && runs.len() < 9, "{runs:?}");
    let sink = NonZeros::default();
    opened
        .write_member(0, &mut sink.clone(), &Unwatched)
        .unwrap();
    let written = sink.0.lock().unwrap();
    assert_eq!((written.at, &written.data), (holey.size_bytes, &data));
    assert!(written.passed_bytes < 200_000);
}

#[test]
fn what_is_hardly_sparse_has_the_bytes_and_the_hash_of_a_dense_file() {
    let text = data::text(8 * MIB - 10, 1);
    let holes = Holey::new(9 * MIB as u64 - 10, vec![(0, text)]);
    let dense = file("a", &holes.content());
    let bytes = archive_of(vec![sparse("a", &holes)], &options(1, 2)).0;
    assert_eq!(bytes, archive_of(vec![dense], &options(1, 1)).0);
    let opened = Archive::open(source(&bytes), &ReadOptions::default()).unwrap();
    assert!(!opened.members().unwrap()[0].is_sparse);
}

#[test]
fn digests_on_request_are_those_of_all_bytes() {
    let holes = Holey::new(
        5 * MIB as u64 + 9,
        vec![(3 * MIB as u64 + 7, b"data".to_vec())],
    );
    let options = refrain::CompressOptions {
        digests: vec![DigestAlgorithm::Sha256],
        ..options(1, 2)
    };
    let sparse = archive_of(vec![sparse("a", &holes)], &options).0;
    let dense = archive_of(vec![file("a", &holes.content())], &options).0;
    let member = |archive: &[u8]| {
        let opened = Archive::open(source(archive), &ReadOptions::default()).unwrap();
        opened.members().unwrap().remove(0)
    };
    let (sparse_member, dense_member) = (member(&sparse), member(&dense));
    assert_eq!(sparse_member.digests, dense_member.digests);
    assert!(sparse_member.is_sparse && sparse_member.blake3 != dense_member.blake3);
    assert_reads(&sparse, &[as_published("a", &holes.content())], "digests");
}

/// A source that ends earlier than it states.
struct Shrinking {
    holey: Arc<Holey>,
    end_bytes: u64,
    sizes_asked: AtomicU64,
}

impl Source for Shrinking {
    fn size_bytes(&self) -> io::Result<u64> {
        let is_first = self.sizes_asked.fetch_add(1, Ordering::Relaxed) < 2;
        Ok(if is_first { self.holey.size_bytes } else { self.end_bytes })
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        // The two bytes requested before the run.
        if buffer.len() == 1 {
            return self.holey.read_at(offset, buffer);
        }
        let left = self.end_bytes.saturating_sub(offset);
        let count = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        self.holey.read_at(offset, &mut buffer[..count])
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        self.holey.next_data(offset)
    }
}

#[test]
fn a_file_that_shrinks_is_stored_as_far_as_it_was_read_and_named() {
    let size = 40 * MIB as u64;
    let ends = [0, 5, 3 * MIB as u64, 20 * MIB as u64, 30 * MIB as u64 + 5];
    for end_bytes in ends {
        let text = data::text(2 * MIB, 3);
        let at = 29 * MIB as u64;
        let holey = Holey::new(size, vec![(0, text[..MIB].to_vec()), (at, text.clone())]);
        let shrinking = Shrinking {
            holey: holey.clone(),
            end_bytes,
            sizes_asked: AtomicU64::new(0),
        };
        let members = vec![
            member("shrinks", Content::Source(Arc::new(shrinking))),
            file("after", &text),
        ];
        let (archive, summary) = archive_of(members, &options(1, 2));
        assert_eq!(summary.problems, 1, "{end_bytes}");
        let published = extracted(&archive, &read_options(2)).unwrap();
        let (content, expected) = (&published[0].content, holey.content());
        assert!(content.len() as u64 <= end_bytes.max(MIB as u64));
        assert!(content[..] == expected[..content.len()], "{end_bytes}");
        assert!(published[1].content == text, "{end_bytes}");
        assert_reads(&archive, &published, "a file that shrinks");
    }
}

#[test]
fn damage_costs_what_it_hits_and_a_cut_what_is_behind_it() {
    let noise = data::random(3 * MIB, 4);
    let holes = Holey::new(
        200 * MIB as u64,
        vec![
            (10 * MIB as u64, noise[..MIB].to_vec()),
            (100 * MIB as u64, noise[MIB..].to_vec()),
        ],
    );
    let archive = archive_of(vec![sparse("a", &holes)], &small_options("zstd")).0;
    let expected = holes.content();
    let size = archive.len();
    for cut in [size / 4, size / 2, size - size / 8, size - 9] {
        let mut targets = Collect::default();
        let cut = Box::new(Cursor::new(archive[..cut].to_vec()));
        let error = refrain::extract(cut, &mut targets, &read_options(2), &Unwatched);
        assert_eq!(error.unwrap_err().kind, ErrorKind::Damaged);
    }
    for at in (0..size).step_by(size / 23) {
        let mut broken = archive.clone();
        broken[at] ^= 0x40;
        let opened = Archive::open_by_scan(source(&broken), &ReadOptions::default());
        let Ok(opened) = opened else { continue };
        let mut content = vec![0; MIB];
        for piece in 0..200 {
            let from = piece * MIB;
            if opened.member_count() == 1
                && opened
                    .read_at(0, from as u64, &mut content)
                    .is_ok_and(|count| count == MIB)
            {
                assert!(content == expected[from..from + MIB], "{at}, {piece}");
            }
        }
        let verified = refrain::verify(source(&broken), &read_options(2), &Unwatched);
        assert!(verified.is_err(), "byte {at}");
    }
}

/// A sparse file that is one fill of zeros, with this hash.
fn forged(length: u64, blake3: [u8; 32]) -> Vec<u8> {
    let mut archive = ForgedArchive::sparse(uncoded);
    archive.extents([Extent::Fill {
        length,
        pattern: Pattern::ZERO,
    }]);
    archive.finish(blake3, length, &[])
}

#[test]
fn zeros_without_end_are_limited_and_a_wrong_hash_is_damage() {
    let with_limit = |content_bytes_max| ReadOptions {
        content_bytes_max,
        ..read_options(2)
    };
    let verify = |archive: &[u8], limit| {
        let verified = refrain::verify(source(archive), &with_limit(limit), &Unwatched);
        verified.map_err(|error| error.kind)
    };
    let endless = forged(1 << 50, [0; 32]);
    assert_eq!(verify(&endless, None).unwrap_err(), ErrorKind::Limit);
    let mut hasher = SparseHasher::default();
    hasher.push_zeros(1 << 44).unwrap();
    let long = forged(1 << 44, hasher.value());
    assert_eq!(verify(&long, None).unwrap().content_bytes, 1 << 44);
    // The hash of all bytes, one of another length, and an arbitrary one.
    let length = 3 << 20;
    let mut hasher = SparseHasher::default();
    hasher.push_zeros(length + 1).unwrap();
    let plain = content_hash(&vec![0; length as usize]);
    for wrong in [plain, hasher.value(), [7; 32]] {
        let archive = forged(length, wrong);
        assert_eq!(verify(&archive, None).unwrap_err(), ErrorKind::Damaged);
        let opened = Archive::open(source(&archive), &ReadOptions::default()).unwrap();
        let mut sink = MemorySink::new();
        let written = opened.write_range(0, 0..length, &mut sink, &Unwatched);
        assert_eq!(written.unwrap_err().kind, ErrorKind::Damaged);
    }
}

/// Random data in random places.
fn random_holes() -> impl Strategy<Value = (u64, Vec<(u64, u64, u64)>)> {
    let lengths = prop_oneof![
        1_u64..100,
        1_u64..200_000,
        Just(65_536),
        Just(1 << 20),
        1_u64..3 << 20
    ];
    let gaps = prop_oneof![
        Just(0_u64),
        1_u64..400_000,
        Just(65_536),
        Just(256 << 10),
        1_u64..3 << 20
    ];
    let data = proptest::collection::vec((gaps.clone(), lengths, 0_u64..3), 0..6);
    (gaps, data)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(10)))]
    #[test]
    fn any_holes_read_as_they_were((rest, data) in random_holes(), seed in 0_u64..1000) {
        let (mut at, mut ranges) = (0, vec![]);
        for (gap, length, kind) in data {
            at += gap;
            let bytes = match kind {
                0 => data::random(length as usize, seed),
                1 => data::text(length as usize, seed),
                // Data that is zeros.
                _ => vec![0; length as usize],
            };
            ranges.push((at, bytes));
            at += length;
        }
        let holey = Holey::new(at + rest, ranges);
        let content = holey.content();
        let members = || vec![
            file("before", b"a small file"),
            sparse("sparse", &holey),
            pipe("between", b"a pipe"),
            sparse("again", &holey),
        ];
        let archive = archive_of(members(), &options(1, 1)).0;
        prop_assert!(archive == archive_of(members(), &options(1, 4)).0);
        let expected = [
            as_published("before", b"a small file"),
            as_published("sparse", &content),
            as_published("between", b"a pipe"),
            as_published("again", &content),
        ];
        assert_reads(&archive, &expected, "random holes");
        let piped = piped_archive_of(members(), &options(1, 2)).0;
        assert_reads(&piped, &expected, "random holes, to a pipe");
    }
}
