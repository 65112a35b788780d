//! The speed of reading, writing and copying memory, by size.

use std::hint::black_box;

use crate::context::Context;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::outcome::{Cell, Outcome, Section, Unit};
use crate::units::value_text;
use refrain_page::binary_text;

const SIZES_BYTES: [u64; 9] = [
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
    64 << 20,
    128 << 20,
];

/// The kinds of access.
const READ: &str = "read";
const WRITE: &str = "write";
const COPY: &str = "copy";

pub(super) struct Bandwidth;

impl Experiment for Bandwidth {
    fn name(&self) -> &'static str {
        "bandwidth"
    }

    fn measures(&self) -> &'static str {
        "how many bytes one processor reads, writes and copies per second, by size"
    }

    fn explains(&self) -> &'static str {
        "Here accesses come one after the other, and the hardware fetches ahead. The rates fall \
         where a piece no longer fits a cache: work that passes over data twice is faster in \
         pieces below that size. A copy counts its bytes once, and touches two areas of that size."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 1.1 } else { 5.0 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let columns = [
            ("size", Unit::Bytes),
            ("access", Unit::Text),
            ("rate", Unit::BytesPerSecond),
        ];
        let mut section = Section::new("Bytes per second of one processor", &columns).with_chart(
            0,
            2,
            Some(1),
            true,
        );
        let mut copies = Vec::new();
        for size in SIZES_BYTES {
            if size * 2 > context.memory_bytes {
                for kind in [READ, WRITE, COPY] {
                    let reason = Cell::not_available("more than the memory of the run");
                    section.push([size.into(), kind.into(), reason]);
                }
                continue;
            }
            for (kind, rate) in rates(context, size as usize)? {
                if kind == COPY {
                    copies.push((size, rate));
                }
                section.push([size.into(), kind.into(), rate.into()]);
            }
        }
        Ok(Outcome {
            findings: findings(&copies),
            sections: vec![section],
            ..Outcome::default()
        })
    }
}

fn rates(context: &Context, size: usize) -> Result<[(&'static str, f64); 3]> {
    let mut from = vec![1_u64; size / 8];
    let mut to = vec![2_u64; size / 8];
    let read = rate(context, size, || {
        let sums = from.chunks_exact(8).fold([0_u64; 8], |mut sums, line| {
            for (sum, word) in sums.iter_mut().zip(line) {
                *sum = sum.wrapping_add(*word);
            }
            sums
        });
        black_box(sums);
    })?;
    let copy = rate(context, size, || {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
    })?;
    let write = rate(context, size, || {
        from.fill(black_box(3));
        black_box(&mut from);
    })?;
    Ok([(READ, read), (WRITE, write), (COPY, copy)])
}

/// The bytes per second of `pass` over `size` bytes: the best of the rounds.
fn rate(context: &Context, size: usize, mut pass: impl FnMut()) -> Result<f64> {
    let passes = ((1 << 18) / size).max(1);
    let mut least_ns = f64::INFINITY;
    context.repeat(context.time(20, 150), || {
        let start_ns = context.now_ns();
        (0..passes).for_each(|_| pass());
        let taken_ns = (context.now_ns() - start_ns).max(1) as f64;
        least_ns = least_ns.min(taken_ns / passes as f64);
        Ok(())
    })?;
    Ok(size as f64 / least_ns * 1e9)
}

fn findings(copies: &[(u64, f64)]) -> Vec<String> {
    let best = copies.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(best), Some(last)) = (best, copies.last()) else {
        return Vec::new();
    };
    vec![format!(
        "Copies are fastest in pieces of {}: {}. Pieces of {} are copied at {}, {:.1} times as \
         slow.",
        binary_text(best.0),
        value_text(best.1, Unit::BytesPerSecond),
        binary_text(last.0),
        value_text(last.1, Unit::BytesPerSecond),
        best.1 / last.1
    )]
}
