//! Which chunk is the last one: lrzip often marks an earlier one.

use refrain::DigestAlgorithm::Md5;
use refrain::DigestHasher;

use super::*;

/// An archive with the MD5 of its content instead of CRC-32s.
fn with_md5(chunks: &[SampleChunk], dialect: SampleDialect) -> (Vec<u8>, Vec<u8>) {
    let content = replay(chunks);
    let mut archive = sample_lrzip_archive(chunks, dialect, 50_000, 3);
    match dialect.minor {
        8.. => archive[14] = 1,
        _ => archive[21] = 1,
    }
    let mut hasher = DigestHasher::new(Md5);
    hasher.update(&content);
    archive.extend(hasher.finish().as_bytes());
    (archive, content)
}

/// The dialects whose chunks have a mark.
fn marking_dialects() -> impl Iterator<Item = SampleDialect> {
    DIALECTS.into_iter().filter(|dialect| dialect.minor > 5)
}

/// Checks an archive in all ways, with `trailing` more bytes after it.
fn check(archive: &[u8], content: &[u8], chunk_count: usize, trailing: &[u8], what: &str) {
    let longer = [archive, trailing].concat();
    for read in [by_file, to_pipe, by_pipe] {
        let found = read(&longer, &options(2)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found == content, "{what}: {} bytes", found.len());
    }
    let source = Arc::new(MemorySource::new(longer.clone()));
    let summary = verify(source.clone(), &options(2), &Unwatched).unwrap();
    assert_eq!(summary.content_bytes, content.len() as u64, "{what}");
    assert_eq!(summary.archive_bytes, archive.len() as u64, "{what}");
    let opened = Archive::open(source.clone(), &options(1)).unwrap();
    assert_eq!(opened.info().unwrap().content_bytes, content.len() as u64);
    assert_eq!(opened.skipped_bytes(), trailing.len() as u64, "{what}");
    let start = content.len() / 2;
    let mut rest = vec![0; content.len()];
    let count = opened.read_at(0, start as u64, &mut rest).unwrap();
    assert!(rest[..count] == content[start..], "{what}");
    let layout = LrzipLayout::read(source, &options(1)).unwrap();
    assert_eq!(layout.chunks.len(), chunk_count, "{what}");
    let md5 = archive.last_chunk::<16>().copied();
    assert_eq!(layout.md5, md5.filter(|_| layout.has_md5), "{what}");
}

/// Every combination of marks.
#[test]
fn the_length_and_the_end_of_the_file_decide() {
    let sample = sample_chunks(300_000, 3, 4);
    for dialect in marking_dialects() {
        for marks in 0..8 {
            let mut chunks = sample.clone();
            for (index, chunk) in chunks.iter_mut().enumerate() {
                chunk.is_marked_last = Some(marks >> index & 1 == 1);
            }
            let (archive, content) = with_md5(&chunks, dialect);
            let what = format!("{dialect:?}, marks {marks:03b}");
            check(&archive, &content, 3, &[], &what);
            // Without a length and without a mark in the last chunk, only the end of the file
            // separates content from other bytes.
            if !dialect.to_pipe || marks & 4 == 4 {
                check(&archive, &content, 3, &[0; 100], &what);
                check(&archive, &content, 3, &archive, &what);
            }
            if !dialect.to_pipe {
                let crcs = sample_lrzip_archive(&chunks, dialect, 50_000, 3);
                check(&crcs, &content, 3, &[], &what);
                check(&crcs, &content, 3, &[1; 100], &what);
            }
        }
    }
}

/// lrzip ends a pipe whose length is a multiple of the window with a chunk without content.
#[test]
fn a_chunk_without_content_may_follow_all_content() {
    let mut chunks = sample_chunks(200_000, 2, 5);
    chunks.push(SampleChunk::default());
    for dialect in marking_dialects() {
        for mark in [false, true] {
            chunks[1].is_marked_last = Some(mark);
            let (archive, content) = with_md5(&chunks, dialect);
            let what = format!("{dialect:?}, {mark}");
            check(&archive, &content, 3, &[], &what);
            check(&archive, &content, 3, b"something else", &what);
        }
    }
}

#[test]
fn cuts_and_damage_after_a_wrong_mark_are_detected() {
    let mut chunks = sample_chunks(300_000, 3, 6);
    chunks[0].is_marked_last = Some(true);
    chunks[1].is_marked_last = Some(true);
    for dialect in marking_dialects() {
        let (archive, content) = with_md5(&chunks, dialect);
        let source = Arc::new(MemorySource::new(archive.clone()));
        let layout = LrzipLayout::read(source, &options(1)).unwrap();
        // lrzip sometimes loses a chunk of a pipe, but not the digest.
        if !dialect.to_pipe {
            let end = layout.chunks[2].stream_offsets[0] as usize - 11;
            let ends = (end..end + 9).map(|end| [&archive[..end], &archive[archive.len() - 16..]]);
            let lost = ends.map(|parts| parts.concat());
            let messages: Vec<String> = lost
                .map(|lost| by_file(&lost, &options(2)).unwrap_err().to_string())
                .collect();
            let expected = format!("the archive states {} bytes of content", content.len());
            let found = messages.iter().any(|message| message.contains(&expected));
            assert!(found, "{dialect:?}: {messages:?}");
        }
        for chunk in &layout.chunks[1..] {
            let start = chunk.stream_offsets[0] as usize;
            for length in [
                start - 20,
                start - 1,
                start,
                start + 1,
                start + 17,
                start + 40,
            ] {
                let cut = &archive[..length];
                for read in [by_file, to_pipe, by_pipe] {
                    let error = read(cut, &options(2)).expect_err("cut");
                    assert_eq!(error.kind, ErrorKind::Damaged, "{dialect:?}: {error}");
                }
                let cut = Arc::new(MemorySource::new(cut.to_vec()));
                let whole = LrzipLayout::read(cut.clone(), &options(1));
                let opened = Archive::open(cut, &options(1));
                // With an unknown length, the bytes before a cut may be taken for bytes after the
                // archive.
                if !dialect.to_pipe {
                    assert!(whole.is_err() && opened.is_err(), "{dialect:?}: {length}");
                }
            }
            for at in start - 11..start + 9 {
                let mut broken = archive.clone();
                broken[at] ^= 0x40;
                for read in [by_file, by_pipe] {
                    match read(&broken, &options(2)) {
                        Ok(found) => assert!(found == content, "{dialect:?}: {at}"),
                        Err(error) => assert!(
                            matches!(error.kind, ErrorKind::Damaged | ErrorKind::Unsupported),
                            "{error}"
                        ),
                    }
                }
            }
        }
    }
}
