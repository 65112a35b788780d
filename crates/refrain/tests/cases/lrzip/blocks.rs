//! Blocks larger than memory, encrypted blocks, and the checksums that some have.

use refrain::lrzip::{LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions, compress_lrzip};
use refrain::storage::Source;
use refrain::{Content, MemberInput};

use super::*;

const MIB: usize = 1 << 20;

/// Content that compresses to a half, in one or several blocks of 8 MiB.
fn nibbles(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Rng::new(11).fill(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte &= 15);
    bytes
}

fn packed(content: &[u8], back_end: LrzipBackEnd, cipher: Option<LrzipCipher>) -> Vec<u8> {
    let options = LrzipOptions {
        back_end,
        level: refrain::Level(1),
        encryption: cipher.map(|cipher| LrzipEncryption {
            cipher,
            password: PasswordSource::from_bytes(b"secret"),
            written_unix_seconds: 0,
        }),
        threads: 2,
        ..LrzipOptions::default()
    };
    let member = MemberInput {
        name: Vec::new(),
        mode: None,
        modified: None,
        content: Content::Source(Arc::new(MemorySource::new(content.to_vec()))),
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    compress_lrzip(member, &mut sink, &options, &Unwatched).unwrap();
    output.published().unwrap()
}

/// A sixteenth of the smallest block of the archives here fits in the share of a decoder.
fn small_memory() -> ReadOptions {
    ReadOptions {
        memory_bytes: 16 << 20,
        ..with_password("secret")
    }
}

#[test]
fn encrypted_blocks_larger_than_memory_are_read() {
    let content = nibbles(9 * MIB + 12_345);
    for cipher in [LrzipCipher::Aes128Cbc, LrzipCipher::Aes256Gcm] {
        let back_ends = match cipher {
            LrzipCipher::Aes128Cbc => &[LrzipBackEnd::Gzip][..],
            LrzipCipher::Aes256Gcm => &[LrzipBackEnd::None, LrzipBackEnd::Gzip],
        };
        for &back_end in back_ends {
            let archive = packed(&content, back_end, Some(cipher));
            let what = format!("{cipher:?}, {back_end:?}");
            let found = by_file(&archive, &small_memory());
            let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(found == content, "{what}");
            let source = Arc::new(MemorySource::new(archive.clone()));
            let opened = Archive::open(source, &small_memory()).unwrap();
            let blocks = opened.blocks().unwrap();
            let largest = blocks.iter().map(|block| block.stored_bytes).max().unwrap();
            assert!(largest > 3 << 20, "{what}: a block of {largest}");
            let mut part = vec![0; 3_000_000];
            for start in [8_300_000, 17, 5_000_000] {
                let count = opened.read_at(0, start, &mut part).unwrap();
                let expected = &content[start as usize..][..count];
                assert!(part[..count] == *expected, "{what}: from {start}");
            }
            if cipher == LrzipCipher::Aes128Cbc {
                continue;
            }
            // Not one byte of an unauthenticated block.
            let mut broken = archive;
            let last = &blocks[0];
            broken[(last.archive_offset + last.stored_bytes / 2) as usize] ^= 1;
            let (delivered, error) = delivered(&broken, &small_memory());
            assert_eq!(error.unwrap().kind, ErrorKind::Damaged, "{what}");
            assert_eq!(delivered.len(), 0, "{what}");
        }
    }
}

/// Extracts as far as possible. Returns what was written, and the error.
fn delivered(archive: &[u8], options: &ReadOptions) -> (Vec<u8>, Option<refrain::Error>) {
    let mut kept = Kept {
        is_pipe: true,
        ..Kept::default()
    };
    let source = Arc::new(MemorySource::new(archive.to_vec()));
    let extracted = extract(source, &mut kept, options, &Unwatched);
    let output = kept.output.expect("a member");
    let mut bytes = vec![0; output.size_bytes().unwrap() as usize];
    output.read_at(0, &mut bytes).unwrap();
    (bytes, extracted.err())
}

/// With much memory the blocks are decoded at once, with little memory twice.
#[test]
fn blocks_with_a_wrong_checksum_yield_no_bytes() {
    let content = nibbles(9 * MIB);
    let much = ReadOptions {
        memory_bytes: 1 << 30,
        ..options(2)
    };
    let small = small_memory();
    for back_end in [LrzipBackEnd::Gzip, LrzipBackEnd::Bzip2] {
        let archive = packed(&content, back_end, None);
        let source = Arc::new(MemorySource::new(archive.clone()));
        let opened = Archive::open(source, &much).unwrap();
        let blocks = opened.blocks().unwrap();
        assert!(blocks.len() > 1);
        for options in [&much, &small] {
            assert!(by_file(&archive, options).unwrap() == content);
        }
        let mut rng = Rng::new(7);
        for (index, block) in blocks.iter().enumerate() {
            let end = block.archive_offset + block.stored_bytes;
            // The checksum of a zlib stream is at its end, bzip2's are everywhere.
            let places = [
                end - 1,
                end - 4,
                block.archive_offset + rng.below(block.stored_bytes),
            ];
            let cases = places.iter().flat_map(|&at| [(at, &much), (at, &small)]);
            // At scale 1, each block is broken at one of them.
            let count = 2 * scaled(1).min(3) as usize;
            for (at, options) in cases.cycle().skip(2 * index).take(count) {
                let mut broken = archive.clone();
                // The last bits of a bzip2 stream are padding.
                broken[at as usize] ^= 0x80;
                let (found, error) = delivered(&broken, options);
                let what = format!("{back_end:?}, block {index}, offset {at} of {block:?}");
                let error = error.expect(&what);
                assert_eq!(error.kind, ErrorKind::Damaged, "{what}");
                assert_eq!(error.location.block, Some(index as u64), "{what}: {error}");
                // No content before the block uses its literals, and all later content follows it.
                assert!(found.len() as u64 <= block.offset_in_store, "{what}");
                assert!(found == content[..found.len()], "{what}");
                let broken = Arc::new(MemorySource::new(broken));
                let opened = Archive::open(broken, options).unwrap();
                let mut part = [0; 100];
                let read = opened.read_at(0, block.offset_in_store, &mut part);
                assert_eq!(read.unwrap_err().kind, ErrorKind::Damaged, "{what}");
            }
        }
    }
}

/// A chunk that needs more data at hand than fits into memory.
#[test]
fn chunks_from_a_pipe_larger_than_memory_move_to_temporary_space() {
    let mut chunks = sample_chunks(1000, 1, 2);
    chunks[0].literals = nibbles(12 * MIB);
    chunks[0].records = vec![
        SampleRecord::Literals(11 * MIB),
        SampleRecord::Match(100_000, 10 * MIB),
        SampleRecord::Literals(MIB),
    ];
    chunks.push(sample_chunks(50_000, 1, 3).remove(0));
    let content = replay(&chunks);
    let archive = sample_lrzip_archive(&chunks, DIALECTS[2], 3 * MIB, 5);
    let small = ReadOptions {
        memory_bytes: 16 << 20,
        ..options(2)
    };
    let error = by_pipe(&archive, &small).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Limit, "{error}");
    assert!(
        error.to_string().contains("raise the memory limit"),
        "{error}"
    );
    let directory = tempfile::tempdir().unwrap();
    let with_space = ReadOptions {
        temporary: Some(directory.path().to_owned()),
        ..small
    };
    assert!(by_pipe(&archive, &with_space).unwrap() == content);
    // An archive truncated there is as incomplete as any other.
    for length in [archive.len() / 2, archive.len() - 1] {
        let error = by_pipe(&archive[..length], &with_space).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
    }
}

/// Content read by ranges is compared with the digests once all of it was read.
#[test]
fn all_content_read_by_ranges_is_compared() {
    let write = |archive: &[u8]| {
        let source = Arc::new(MemorySource::new(archive.to_vec()));
        let opened = Archive::open(source, &options(1))?;
        let mut sink = MemorySink::new();
        let output = sink.output();
        let is_checked = opened.write_member(0, &mut sink, &Unwatched)?;
        sink.publish()?;
        Ok::<_, refrain::Error>((is_checked, output.published().unwrap()))
    };
    for (name, (archive, content)) in archives() {
        assert!(write(&archive).unwrap() == (true, content), "{name}");
    }
    // Archives with a CRC-32 for each chunk, one of which has no content.
    let mut chunks = sample_chunks(30_000, 2, 8);
    chunks.insert(1, SampleChunk::default());
    for dialect in DIALECTS.into_iter().filter(|dialect| dialect.minor != 7) {
        let chunks = match dialect.minor {
            4 => &chunks[..1],
            _ => &chunks[..],
        };
        let archive = sample_lrzip_archive(chunks, dialect, 10_000, 8);
        assert!(write(&archive).unwrap() == (true, replay(chunks)));
        let mut damaged = 0;
        for at in (0..archive.len()).step_by(31) {
            let mut broken = archive.clone();
            broken[at] ^= 8;
            match write(&broken) {
                Ok(found) => assert!(found == (true, replay(chunks)), "{dialect:?}: {at}"),
                Err(error) => damaged += u64::from(error.kind == ErrorKind::Damaged),
            }
        }
        assert!(damaged > 5, "{dialect:?}");
    }
}
