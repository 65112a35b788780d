//! Blocks that are hard for block sorting.

use crate::id::CodecId;
use crate::plan::BlockPlan;
use crate::property::check_round_trip;
use crate::test_data::random_bytes;
use crate::workspace::Workspace;

/// Strings that are hard for some suffix sorters, match finders or models.
fn adversarial_blocks(length: usize) -> Vec<(&'static str, Vec<u8>)> {
    let (mut shorter, mut fibonacci) = (b"a".to_vec(), b"ab".to_vec());
    while fibonacci.len() < length {
        let longer = [&fibonacci[..], &shorter[..]].concat();
        shorter = std::mem::replace(&mut fibonacci, longer);
    }
    fibonacci.truncate(length);
    let thue_morse = (0..length as u32).map(|n| b'0' + (n.count_ones() & 1) as u8);
    let mut sorted = random_bytes(length, 3);
    sorted.sort_unstable();
    let mut squares = Vec::with_capacity(length);
    for n in 1.. {
        if squares.len() + n > length {
            break;
        }
        squares.resize(squares.len() + n - 1, b'a');
        squares.push(b'b');
    }
    let period = |n: usize| {
        random_bytes(n, 2)
            .into_iter()
            .cycle()
            .take(length)
            .collect()
    };
    vec![
        ("equal", vec![0; length]),
        (
            "period 2",
            b"ab".iter().copied().cycle().take(length).collect(),
        ),
        ("period 3", period(3)),
        ("period 31", period(31)),
        ("period 64", period(64)),
        ("period 1000", period(1000)),
        ("fibonacci", fibonacci),
        ("thue-morse", thue_morse.collect()),
        ("sorted", sorted),
        ("squares", squares),
    ]
}

#[test]
fn compresses_adversarial_blocks() {
    let mut workspace = Workspace::new();
    for length in [65_536, 200_003] {
        for (name, raw) in adversarial_blocks(length) {
            for codec in [CodecId::BWT, CodecId::BWT2] {
                let plan = BlockPlan::plain(codec, 1);
                let (block, data) = check_round_trip(&mut workspace, &raw, &plan);
                assert_eq!(block.codec, codec, "{name}");
                assert!(data.len() < raw.len() / 20, "{name}: {}", data.len());
            }
        }
    }
}
