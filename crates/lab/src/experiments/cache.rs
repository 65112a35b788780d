//! The time of one memory access, by the size of the accessed memory.

use refrain_pool::buffer::Pages;

use super::walk::{LINE_WORDS, access_ns, cycle, fits};
use crate::context::Context;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::outcome::{Cell, Outcome, Section, Unit};
use crate::units::value_text;
use refrain_page::binary_text;

const SMALLEST_BYTES: u64 = 4 << 10;
const LARGEST_BYTES: u64 = 256 << 20;

/// A table belongs to a step if an access takes at most this many times the step's minimum.
const SAME_STEP: f64 = 1.5;

pub(super) struct Cache;

impl Experiment for Cache {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn measures(&self) -> &'static str {
        "how long one access to memory takes, by the size of the memory that is used"
    }

    fn explains(&self) -> &'static str {
        "A walk follows pointers in random order, so each access waits for the one before, and no \
         hardware can guess the next. As long as the table fits a cache the time stays flat; each \
         step up is the end of a cache, the last one is memory. What a program touches at random \
         should stay below a step."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 1.6 } else { 6.0 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let columns = [("table", Unit::Bytes), ("per access", Unit::Nanoseconds)];
        let mut section = Section::new("Time of an access, by the size of the table", &columns)
            .with_chart(0, 1, None, true);
        let mut ladder = Vec::new();
        let mut table_bytes = SMALLEST_BYTES;
        while table_bytes <= LARGEST_BYTES {
            let cell = if fits(context, table_bytes) {
                let table = cycle(context, Pages::Huge, table_bytes, LINE_WORDS)?;
                let ns = access_ns(context, &table, context.time(25, 150))?;
                ladder.push((table_bytes, ns));
                ns.into()
            } else {
                Cell::not_available("more than the memory of the run")
            };
            section.push([table_bytes.into(), cell]);
            // Caches end at half steps of a doubling.
            table_bytes +=
                if table_bytes.is_power_of_two() { table_bytes / 2 } else { table_bytes / 3 };
        }
        Ok(Outcome {
            findings: findings(&ladder, &Machine::this(context.processors)),
            sections: vec![section],
            ..Outcome::default()
        })
    }
}

/// A range of sizes with about the same access time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    largest_bytes: u64,
    least_ns: f64,
}

/// The flat parts of the ladder: at least two sizes each.
fn steps(ladder: &[(u64, f64)]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut from = 0;
    while from < ladder.len() {
        let least_ns = ladder[from].1;
        let later = ladder[from..].iter();
        let length = later
            .take_while(|(_, ns)| *ns <= least_ns * SAME_STEP)
            .count();
        // NaN is in no step; skip it.
        let length = length.max(1);
        if length > 1 {
            steps.push(Step {
                largest_bytes: ladder[from + length - 1].0,
                least_ns,
            });
        }
        from += length;
    }
    steps
}

fn findings(ladder: &[(u64, f64)], machine: &Machine) -> Vec<String> {
    let steps = steps(ladder);
    let Some((last, earlier)) = steps.split_last() else {
        return vec![
            "No size took the same time as its neighbors: the machine was busy, or the \
                     memory limit leaves too few sizes."
                .into(),
        ];
    };
    let mut findings = Vec::new();
    for (level, step) in (1..).zip(earlier) {
        let stated = machine.caches.iter().find(|cache| cache.level == level);
        let stated = stated.map_or(String::new(), |cache| {
            format!(
                " (the system states L{level} with {})",
                binary_text(cache.bytes)
            )
        });
        findings.push(format!(
            "Step {level}: up to {}, {} per access{stated}.",
            binary_text(step.largest_bytes),
            value_text(step.least_ns, Unit::Nanoseconds)
        ));
    }
    let (largest_bytes, largest_ns) = ladder.last().copied().unwrap_or_default();
    findings.push(format!(
        "The last step begins at {} per access; {} take {} per access, {:.0} times as long as the \
         smallest table.",
        value_text(last.least_ns, Unit::Nanoseconds),
        binary_text(largest_bytes),
        value_text(largest_ns, Unit::Nanoseconds),
        largest_ns / ladder[0].1
    ));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_parts_are_steps() {
        let ladder = [
            (4, 1.0),
            (8, 1.1),
            (16, 1.0),
            (32, 4.0),
            (64, 4.2),
            (128, 9.0),
            (256, 80.0),
            (512, 90.0),
        ];
        let found = steps(&ladder);
        let expected = [(16, 1.0), (64, 4.0), (512, 80.0)];
        let found: Vec<_> = found
            .iter()
            .map(|s| (s.largest_bytes, s.least_ns))
            .collect();
        assert_eq!(found, expected);
        assert!(steps(&[]).is_empty());
        assert!(steps(&[(4, f64::NAN), (8, f64::NAN)]).is_empty());
        let machine = Machine::this(1);
        let text = findings(&ladder, &machine).join("\n");
        assert!(
            text.contains("Step 1: up to 16 B, 1.00 ns per access"),
            "{text}"
        );
        assert!(text.contains("90 times as long"), "{text}");
        assert_eq!(findings(&[], &machine).len(), 1);
    }
}
