//! pprof's format, parsed by an independent reader: it knows the wire format of protocol buffers
//! and takes the field numbers from `profile.proto`.

// Helpers of tests may panic.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

use std::collections::HashMap;
use std::io::Read as _;
use std::process::Command;

use flate2::read::GzDecoder;
use refrain_sampler::{CallPath, Count, Function, Profile, StackSamples, pprof};

/// A field: its number, and its value as a number or bytes.
enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
}

fn variable(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    unreachable!()
}

fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = vec![];
    while !bytes.is_empty() {
        let key = variable(&mut bytes);
        fields.push(match key & 7 {
            0 => Field::Number(key >> 3, variable(&mut bytes)),
            2 => {
                let length = variable(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(key >> 3, value)
            }
            kind => panic!("wire type {kind}"),
        });
    }
    fields
}

fn all(message: &[u8], number: u64) -> Vec<&[u8]> {
    let bytes = fields(message).into_iter().filter_map(|field| match field {
        Field::Bytes(found, bytes) if found == number => Some(bytes),
        _ => None,
    });
    bytes.collect()
}

fn number(message: &[u8], wanted: u64) -> u64 {
    let found = fields(message).into_iter().find_map(|field| match field {
        Field::Number(found, value) if found == wanted => Some(value),
        _ => None,
    });
    found.unwrap_or(0)
}

fn packed(mut bytes: &[u8]) -> Vec<u64> {
    let mut values = vec![];
    while !bytes.is_empty() {
        values.push(variable(&mut bytes));
    }
    values
}

fn profile() -> Profile {
    let function = |name: &str, linker_name: &str, origin: &str, module: &str| Function {
        name: name.into(),
        linker_name: linker_name.into(),
        origin: origin.into(),
        module: module.into(),
    };
    let count = |cpu, faults| Count { cpu, faults };
    let row = |stage, thread_id, path, count| StackSamples {
        stage,
        thread_id,
        path,
        count,
    };
    Profile {
        functions: vec![
            function(
                "refrain::main",
                "_ZN7refrain4main",
                "refrain",
                "/bin/refrain",
            ),
            function("ZSTD_fast", "ZSTD_fast", "zstd", "/bin/refrain"),
            function("memcpy", "memcpy", "libc", "/lib/libc.so.6"),
        ],
        paths: [(0, 0), (0, 0), (1, 1), (2, 2)]
            .map(|(caller, function)| CallPath { caller, function })
            .into(),
        rows: vec![
            row(None, 100, 1, count(1, 0)),
            row(Some("encode"), 101, 3, count(300, 2)),
        ],
        threads: vec![(100, "refrain".into()), (101, "worker".into())],
        cpu_ns_per_sample: 1_003_009,
        faults_per_sample: 97,
        start_unix_ns: 1_700_000_000_000_000_000,
        elapsed_ns: 5_000_000_000,
        lost: 3,
        ..Profile::default()
    }
}

fn uncompressed() -> Vec<u8> {
    let mut message = vec![];
    let file = pprof::file(&profile()).unwrap();
    GzDecoder::new(&*file).read_to_end(&mut message).unwrap();
    message
}

#[test]
fn another_reader_finds_every_number() {
    let message = uncompressed();
    let texts = all(&message, 6);
    let texts: Vec<&str> = texts
        .iter()
        .map(|text| std::str::from_utf8(text).unwrap())
        .collect();
    let text = |message: &[u8], field| texts[number(message, field) as usize];
    assert_eq!(texts[0], "");

    let types = all(&message, 1);
    let types: Vec<_> = types
        .iter()
        .map(|kind| (text(kind, 1), text(kind, 2)))
        .collect();
    let expected = [
        ("samples", "count"),
        ("cpu", "nanoseconds"),
        ("page_faults", "count"),
    ];
    assert_eq!(types, expected);
    assert_eq!(number(&message, 9), 1_700_000_000_000_000_000);
    assert_eq!(number(&message, 10), 5_000_000_000);
    let period = all(&message, 11)[0];
    assert_eq!((text(period, 1), text(period, 2)), ("cpu", "nanoseconds"));
    assert_eq!(number(&message, 12), 1_003_009);
    assert_eq!(text(&message, 13), "3 samples were lost");
    assert_eq!(text(&message, 14), "cpu");

    let mappings = all(&message, 3);
    let mappings: HashMap<u64, &str> = mappings
        .iter()
        .map(|mapping| {
            assert_eq!(number(mapping, 7), 1, "it has functions");
            (number(mapping, 1), text(mapping, 5))
        })
        .collect();
    let functions = all(&message, 5);
    let functions: HashMap<u64, _> = functions
        .iter()
        .map(|function| {
            let names = (text(function, 2), text(function, 3), text(function, 4));
            (number(function, 1), names)
        })
        .collect();
    let locations = all(&message, 4);
    let locations: HashMap<u64, _> = locations
        .iter()
        .map(|location| {
            let line = all(location, 4)[0];
            let function = functions[&number(line, 1)];
            (
                number(location, 1),
                (mappings[&number(location, 2)], function),
            )
        })
        .collect();
    let samples = all(&message, 2);
    let samples: Vec<_> = samples
        .iter()
        .map(|sample| {
            let stack = packed(all(sample, 1)[0]);
            let stack: Vec<_> = stack.iter().map(|location| locations[location]).collect();
            let labels = all(sample, 3);
            let labels: Vec<_> = labels
                .iter()
                .map(|label| (text(label, 1), text(label, 2), number(label, 3)))
                .collect();
            (stack, packed(all(sample, 2)[0]), labels)
        })
        .collect();
    let main = (
        "/bin/refrain",
        ("refrain::main", "_ZN7refrain4main", "refrain"),
    );
    let fast = ("/bin/refrain", ("ZSTD_fast", "ZSTD_fast", "zstd"));
    let copy = ("/lib/libc.so.6", ("memcpy", "memcpy", "libc"));
    let expected = [
        (
            vec![main],
            vec![1, 1_003_009, 0],
            vec![("thread", "refrain", 0), ("thread_id", "", 100)],
        ),
        (
            vec![copy, fast, main],
            vec![300, 300 * 1_003_009, 2 * 97],
            vec![
                ("stage", "encode", 0),
                ("thread", "worker", 0),
                ("thread_id", "", 101),
            ],
        ),
    ];
    assert_eq!(samples, expected);
}

/// pprof itself, where Go is installed.
#[test]
fn pprof_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pb.gz");
    std::fs::write(&path, pprof::file(&profile()).unwrap()).unwrap();
    let mut command = Command::new("go");
    command
        .args(["tool", "pprof", "-top", "-sample_index=cpu"])
        .arg(&path);
    let Ok(output) = command.output() else {
        eprintln!("NOT TESTED: there is no Go");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("memcpy"),
        "{output:?}"
    );
}
