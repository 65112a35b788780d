//! The back ends of lrzip-next.

use refrain_testkit::lrzip::encoded_lrzip_archive;

use super::*;

fn next_dialects() -> impl Iterator<Item = SampleDialect> {
    DIALECTS.into_iter().filter(|dialect| dialect.minor > 7)
}

fn zstd(block: &[u8]) -> (u8, Vec<u8>) {
    let mut coded = Vec::with_capacity(zstd_safe::compress_bound(block.len()));
    zstd_safe::compress(&mut coded, block, 3).unwrap();
    if coded.len() < block.len() { (10, coded) } else { (3, block.to_vec()) }
}

#[test]
fn reads_blocks_of_zstd() {
    let mut chunks = sample_chunks(2_000_000, 2, 9);
    // Text-like literals, which compress.
    for chunk in &mut chunks {
        chunk.literals.iter_mut().for_each(|byte| *byte &= 7);
    }
    let content = replay(&chunks);
    let small = ReadOptions {
        memory_bytes: 16 << 20,
        ..options(2)
    };
    for dialect in next_dialects() {
        let archive = encoded_lrzip_archive(&chunks, dialect, (700_000, &zstd), 5);
        let what = format!("{dialect:?}");
        for options in [&options(2), &small] {
            for read in [by_file, to_pipe, by_pipe] {
                let found = read(&archive, options);
                assert!(found.unwrap_or_else(|error| panic!("{what}: {error}")) == content);
            }
        }
        let opened = Archive::open(Arc::new(MemorySource::new(archive.clone())), &small).unwrap();
        let blocks = opened.blocks().unwrap();
        assert!(blocks.iter().any(|block| block.codec == "zstd"), "{what}");
        let mut part = vec![0; 100_000];
        for start in [1_200_000, 5] {
            let count = opened.read_at(0, start, &mut part).unwrap();
            assert!(
                part[..count] == content[start as usize..][..count],
                "{what}"
            );
        }
        // Damage is found by the library, by the lengths or by the CRC-32 of a chunk.
        for at in (0..archive.len()).step_by(archive.len() / 60) {
            let mut broken = archive.clone();
            broken[at] ^= 0x21;
            match by_file(&broken, &small) {
                Ok(found) => assert!(found == content, "{what}: byte {at}"),
                Err(error) => assert_ne!(error.kind, ErrorKind::Internal, "{what}: {error}"),
            }
            by_file(&archive[..at], &small).expect_err("cut");
        }
    }
}

#[test]
fn blocks_of_bzip3_are_named_and_refused() {
    let chunks = sample_chunks(20_000, 1, 10);
    let bzip3 = |block: &[u8]| (9, block.to_vec());
    for dialect in next_dialects() {
        let archive = encoded_lrzip_archive(&chunks, dialect, (10_000, &bzip3), 5);
        let error = by_file(&archive, &options(1)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("bzip3"), "{error}");
        let source = Arc::new(MemorySource::new(archive));
        let layout = LrzipLayout::read(source, &options(1)).unwrap();
        assert_eq!(layout.chunks[0].streams[1][0].back_end, "bzip3");
    }
}
