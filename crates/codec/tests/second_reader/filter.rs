//! The filter x86-64 against the second reader, which was written from `docs/filter-x86-64.md`.

use std::io::Write as _;

use refrain_codec::{FilterStep, Host};
use refrain_testkit::Rng;

use super::data::{machine_code, random_bytes, text};
use super::{hex, python};

/// Undoes the filter on each line of standard input.
const PROGRAM: &str = "
import sys
from refrain_reader import x86_64

for line in sys.stdin:
    print(x86_64.undo(bytes.fromhex(line)).hex())
";

/// Bytes of which half come from those that decide the form of an instruction.
fn instructions(length: usize, seed: u64) -> Vec<u8> {
    const DECIDING: &[u8] = &[
        0x0F, 0x38, 0x3A, 0x48, 0x41, 0x66, 0x2E, 0xF2, 0x62, 0xC4, 0xC5, 0xE1, 0xE2, 0xE3, 0xF1,
        0x05, 0x0D, 0x04, 0x25, 0x44, 0x84, 0xE8, 0xE9, 0xC7, 0xF6, 0xF7, 0xB8, 0xA1, 0x8D, 0x8B,
    ];
    let mut rng = Rng::new(seed);
    let byte = |_| match rng.below(2) {
        0 => rng.any() as u8,
        _ => DECIDING[rng.below(DECIDING.len() as u64) as usize],
    };
    (0..length).map(byte).collect()
}

#[test]
fn x86_64_agrees_with_the_second_reader() {
    let mut cases = vec![vec![], vec![0xE8; 14], vec![0xE8; 400]];
    cases.extend((0..40).map(|seed| instructions(4000, seed)));
    cases.extend([
        machine_code(20_000, 1),
        text(20_000, 1),
        random_bytes(20_000, 1),
    ]);
    let Some(mut child) = python(PROGRAM) else {
        return;
    };
    let mut input = child.stdin.take().unwrap();
    let mut changed = 0;
    let filtered = cases.iter().map(|raw| {
        let mut filtered = raw.clone();
        FilterStep::X86_64
            .encode(Host::default(), &mut filtered)
            .unwrap();
        changed += raw.iter().zip(&filtered).filter(|(a, b)| a != b).count();
        filtered
    });
    let lines: Vec<_> = filtered.map(|filtered| hex(&filtered)).collect();
    assert!(changed > 1000, "the filter did {changed}");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            lines
                .iter()
                .for_each(|line| writeln!(input, "{line}").unwrap())
        });
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.lines().count(), cases.len());
    for (index, (raw, found)) in cases.iter().zip(output.lines()).enumerate() {
        assert!(found == hex(raw), "case {index}: the second reader differs");
    }
}
