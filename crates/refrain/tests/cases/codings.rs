//! Blocks coded by other writers: readers accept what the format allows, and distinguish
//! unsupported features and exceeded limits from damage.

use crate::common::one_block::archive_of_block;
use crate::common::*;
use refrain::{Archive, ErrorKind};
use refrain_format::Coding;

/// The content: one byte, repeated, so that a frame of zstd can be written by hand.
static RAW: [u8; 100_000] = [b'a'; 100_000];

/// A frame of zstd without its magic number that states this window and decodes to `RAW`.
fn zstd_frame(window: u8) -> Vec<u8> {
    // The only block is a run: last-block bit, type 1, its length, its byte.
    let header = 1 | 1 << 1 | (RAW.len() as u32) << 3;
    let [a, b, c, _] = header.to_le_bytes();
    vec![0, window, a, b, c, RAW[0]]
}

/// An archive of one member, `RAW`, in one block with this coding and data.
fn archive_with(coding: Coding, data: &[u8]) -> Vec<u8> {
    archive_of_block(&RAW, coding, data)
}

/// The error of every way of reading, which must be of this kind, and the error of a partial read.
fn errors(archive: &[u8], kind: ErrorKind) -> Vec<String> {
    let options = read_options(2);
    let part = Archive::open(source(archive), &options)
        .and_then(|archive| archive.read_at(0, 0, &mut [0; 10]));
    let results = [
        extracted(archive, &options).map(|_| ()),
        extracted_from_pipe(archive, &options).map(|_| ()),
        read_by_index(archive, &options).map(|_| ()),
        part.map(|_| ()),
    ];
    let message = |result: refrain::Result<()>| {
        let error = result.expect_err("the block is refused");
        assert_eq!(error.kind, kind, "{error}");
        error.to_string()
    };
    results.into_iter().map(message).collect()
}

#[test]
fn windows_of_other_encoders_are_read() {
    let coding = Coding::new(2, &[], &[], 0).unwrap();
    // 1 KiB, 128 KiB, 256 KiB, 8 MiB.
    for window in [0, 7 << 3, 8 << 3, 13 << 3] {
        let archive = archive_with(coding, &zstd_frame(window));
        let expected = [as_published("member", &RAW)];
        match window {
            // A run is no longer than the window.
            0 => drop(errors(&archive, ErrorKind::Damaged)),
            _ => assert_reads(&archive, &expected, &format!("window {window}")),
        }
    }
}

#[test]
fn what_needs_too_much_memory_is_a_limit() {
    let zstd = (
        Coding::new(2, &[], &[], 0).unwrap(),
        zstd_frame((13 << 3) + 1),
    );
    // A dictionary of 12 MiB, and a model of 16 MiB.
    let lzma = (Coding::new(3, &[], &[23], 0).unwrap(), vec![0; 9]);
    let ppmd = (
        Coding::new(6, &[], &[6, 0, 0, 0, 1], 0).unwrap(),
        vec![0; 9],
    );
    for ((coding, data), expected) in [
        (
            zstd,
            "window of 9437184 bytes; the limit for this block is 8388608",
        ),
        (
            lzma,
            "dictionary of 12582912 bytes; the limit for this block is 8388608",
        ),
        (
            ppmd,
            "model memory of 16777216 bytes; the limit for this block is 2400000",
        ),
    ] {
        for message in errors(&archive_with(coding, &data), ErrorKind::Limit) {
            assert!(message.contains(expected), "{message}");
        }
    }
}

#[test]
fn an_unknown_named_codec_is_unsupported_by_its_uuid() {
    let params: Vec<u8> = (0x10..0x22).collect();
    let coding = Coding::new(refrain_format::CODEC_NAMED, &[], &params, 0).unwrap();
    let archive = archive_with(coding, &[0; 9]);
    for message in errors(&archive, ErrorKind::Unsupported) {
        let expected = "the codec with UUID 10111213-1415-1617-1819-1a1b1c1d1e1f";
        assert!(message.contains(expected), "{message}");
    }
    let opened = Archive::open(source(&archive), &read_options(1)).unwrap();
    assert_eq!(opened.members().unwrap()[0].name, b"member");
    assert_eq!(opened.blocks().unwrap().len(), 1);
}
