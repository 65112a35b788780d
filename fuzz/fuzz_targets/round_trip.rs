//! Any content comes back, by every way of reading, and its archive depends neither on threads nor on time.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use refrain::{Archive, CompressOptions, Content, Level, Unwatched, verify, verify_stream};
use refrain_fuzz::{Part, READ_OPTIONS, compressed, content, resealed, source};

fuzz_target!(|input: (u8, bool, Vec<(u32, u16)>, Vec<Part>)| {
    let (level, piped, reads, parts) = input;
    let content = content(&parts);
    let options = |threads| CompressOptions {
        level: Level(1 + level % 9),
        codec: None,
        threads,
        memory_bytes: None,
        reach_bytes: None,
    };
    let input = || match piped {
        true => Content::Stream(Box::new(Cursor::new(content.clone()))),
        false => Content::Source(source(content.clone())),
    };
    let archive = compressed(input(), &options(1));
    assert!(
        archive == compressed(input(), &options(3)),
        "the archive depends on the number of threads"
    );
    assert!(
        archive == resealed(&archive),
        "the fuzz targets' idea of frames is out of date"
    );

    let stream = Box::new(Cursor::new(archive.clone()));
    let streamed =
        verify_stream(stream, &READ_OPTIONS, &Unwatched).expect("a fresh archive is whole");
    assert_eq!(streamed.content_bytes, content.len() as u64);
    verify(source(archive.clone()), &READ_OPTIONS, &Unwatched).expect("a fresh archive is whole");

    let opened =
        Archive::open(source(archive), &READ_OPTIONS).expect("a fresh archive can be opened");
    let mut whole = vec![0; content.len()];
    assert_eq!(
        opened.read_at(0, 0, &mut whole).expect("can be read"),
        content.len()
    );
    assert!(whole == content, "the content does not come back");
    for (offset, length) in reads {
        let start = offset as usize % (content.len() + 1);
        let end = content.len().min(start + usize::from(length));
        let mut buffer = vec![0; usize::from(length)];
        let read = opened
            .read_at(0, start as u64, &mut buffer)
            .expect("can be read");
        assert!(buffer[..read] == content[start..end]);
    }
});
