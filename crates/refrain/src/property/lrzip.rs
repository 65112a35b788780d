#![cfg(feature = "lrzip")]
//! Properties of lrzip archives.

use std::io::Cursor;
use std::sync::Arc;

use super::{AS_MADE, Instructions, SMALL, walked};
use crate::lrzip::{LrzipBackEnd, LrzipLayout, LrzipOptions, compress_lrzip};
use crate::storage::{MemorySink, MemorySource, Sink};
use crate::{Content, Level, MemberInput, ReadOptions, Unwatched};

/// Arbitrary bytes, read as an lrzip archive, are listed or refused.
///
/// # Panics
/// If the property does not hold.
pub fn layout_survives(bytes: &[u8]) {
    let source = Arc::new(MemorySource::new(bytes.to_vec()));
    drop(LrzipLayout::read(source, &SMALL));
}

/// A sink that cannot be read back.
struct Pipe(MemorySink);

impl Sink for Pipe {
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> std::io::Result<()> {
        self.0.write_zeros(length_bytes)
    }

    fn publish(&mut self) -> std::io::Result<()> {
        self.0.publish()
    }
}

/// Content described by arbitrary bytes survives compression into an lrzip archive and extraction,
/// from a file and from a stream, and neither the number of threads nor a second run changes a byte
/// of the archive.
///
/// # Panics
/// If the property does not hold.
/// When the property does not hold.
pub fn lrzip_round_trips(bytes: &[u8]) {
    let mut instructions = Instructions(bytes);
    let choice = instructions.byte();
    let choices = instructions.byte();
    let mut content = vec![];
    while !instructions.0.is_empty() {
        instructions.append_part(&mut content);
    }
    let back_end = LrzipBackEnd::ALL[usize::from(choice) % LrzipBackEnd::ALL.len()];
    if back_end == LrzipBackEnd::Zpaq {
        // More would take seconds.
        content.truncate(100_000);
    }
    let options = LrzipOptions {
        back_end,
        level: Level(1 + choice / 8 % 9),
        tries_sample: choice & 128 == 0,
        memory_bytes: Some(AS_MADE.memory_bytes),
        ..LrzipOptions::default()
    };
    let archive = made(&content, choices, &options);
    let threads = 3;
    let again = made(&content, choices, &LrzipOptions { threads, ..options });
    assert!(archive == again, "threads change the archive");
    for as_pipe in [false, true] {
        let (members, is_sound) = walked(&archive, as_pipe, &ReadOptions::default());
        assert!(is_sound, "a fresh archive is refused");
        let read = members.iter().map(|(_, content)| &content[..]);
        assert!(read.eq([&content[..]]), "content differs");
    }
}

fn made(content: &[u8], choices: u8, options: &LrzipOptions) -> Vec<u8> {
    let member = MemberInput {
        name: Vec::new(),
        mode: None,
        modified: None,
        content: match choices & 1 {
            0 => Content::Source(Arc::new(MemorySource::new(content.to_vec()))),
            _ => Content::Stream(Box::new(Cursor::new(content.to_vec()))),
        },
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    let result = match choices & 2 {
        0 => compress_lrzip(member, &mut sink, options, &Unwatched),
        _ => compress_lrzip(member, &mut Pipe(sink), options, &Unwatched),
    };
    assert!(result.is_ok(), "{result:?}");
    output.published().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Few cases, because each allocates ZPAQ models and LZMA dictionaries three times.
    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn any_content_round_trips(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            lrzip_round_trips(&bytes);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn any_bytes_are_listed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            layout_survives(&bytes);
        }
    }
}
