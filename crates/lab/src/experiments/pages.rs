//! The same random walk on ordinary and on huge pages.

use std::fs;

use refrain_pool::buffer::Pages as Kind;

use super::walk::{LINE_WORDS, access_ns, cycle, fits};
use crate::context::Context;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::outcome::{Cell, Measured, Outcome, Section, Unit};
use crate::units::value_text;
use refrain_page::binary_text;

const SIZES_BYTES: [u64; 7] = [
    128 << 10,
    512 << 10,
    2 << 20,
    8 << 20,
    32 << 20,
    128 << 20,
    256 << 20,
];

/// A page and a line: the walk touches one line per page, and not always the same one, which would
/// use only a small part of the caches.
pub(super) const PAGE_STEP_WORDS: usize = 512 + LINE_WORDS;

pub(super) struct Pages;

impl Experiment for Pages {
    fn name(&self) -> &'static str {
        "pages"
    }

    fn measures(&self) -> &'static str {
        "what huge pages gain for random accesses, and how far the TLB reaches without them"
    }

    fn explains(&self) -> &'static str {
        "Each access needs the address of its page, which the processor looks up in a small table, \
         the TLB. The walk touches one line of each page of 4 KiB. On huge pages (superpages, 2 MiB \
         on most machines) the same table covers 512 times as much memory. Where the two lines \
         part, the TLB's reach ends."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 1.2 } else { 4.5 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let columns = [
            ("table", Unit::Bytes),
            ("pages", Unit::Text),
            ("per access", Unit::Nanoseconds),
            ("on huge pages", Unit::Bytes),
        ];
        let mut section = Section::new("Time of an access to another page each time", &columns)
            .with_chart(0, 2, Some(1), true);
        let mut pairs = Vec::new();
        let mut huge_bytes_most = 0;
        for size in SIZES_BYTES {
            let mut pair = [f64::NAN; 2];
            for (index, kind) in [Kind::Ordinary, Kind::Huge].into_iter().enumerate() {
                let name = ["ordinary", "huge"][index];
                if !fits(context, size) {
                    let reason = || Cell::not_available("more than the memory of the run");
                    section.push([size.into(), name.into(), reason(), reason()]);
                    continue;
                }
                let table = cycle(context, kind, size, PAGE_STEP_WORDS)?;
                let address = table.words().as_ptr() as usize;
                let huge = huge_bytes_at(address);
                let ns = access_ns(context, &table, context.time(30, 200))?;
                pair[index] = ns;
                if kind == Kind::Huge {
                    huge_bytes_most = huge.unwrap_or(0).max(huge_bytes_most);
                }
                let huge = huge.map_or_else(
                    || Cell::not_available("the system does not say"),
                    Cell::from,
                );
                section.push([size.into(), name.into(), ns.into(), huge]);
            }
            if pair.iter().all(|ns| ns.is_finite()) {
                pairs.push((size, pair));
            }
        }
        let gain = match huge_bytes_most {
            0 => None,
            _ => pairs.last().map(|(_, [ordinary, huge])| ordinary / huge),
        };
        Ok(Outcome {
            findings: findings(&pairs, gain, &Machine::this(context.processors)),
            sections: vec![section],
            measured: Measured {
                huge_pages_gain: gain,
                ..Measured::default()
            },
        })
    }
}

/// The bytes of the mapping at `address` that are on huge pages.
fn huge_bytes_at(address: usize) -> Option<u64> {
    huge_bytes_in(&fs::read_to_string("/proc/self/smaps").ok()?, address)
}

/// Reads `/proc/self/smaps`: a line `from-to ...` for each mapping, then lines `Name: N kB`.
fn huge_bytes_in(smaps: &str, address: usize) -> Option<u64> {
    let mut is_inside = false;
    for line in smaps.lines() {
        let first = line.split_ascii_whitespace().next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-') {
            let number = |hex| usize::from_str_radix(hex, 16);
            if let (Ok(from), Ok(to)) = (number(from), number(to)) {
                is_inside = (from..to).contains(&address);
            }
        } else if is_inside && first == "AnonHugePages:" {
            let kibibytes: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
            return kibibytes.checked_mul(1024);
        }
    }
    None
}

/// Smaller tables are not certain to be on huge pages.
const LARGE_BYTES: u64 = 8 << 20;

/// Ordinary pages count as slower at this ratio.
const SLOWER: f64 = 1.25;

fn findings(pairs: &[(u64, [f64; 2])], gain: Option<f64>, machine: &Machine) -> Vec<String> {
    let largest = pairs.last().map_or(0, |(size, _)| *size);
    if largest < LARGE_BYTES {
        return vec!["The memory limit leaves no table large enough for huge pages.".into()];
    }
    let Some(gain) = gain else {
        return vec![format!(
            "The system gave no huge pages (its setting is \"{}\"), so there is nothing to compare.",
            machine.huge_pages
        )];
    };
    let mut findings = Vec::new();
    if let Some((size, [ordinary, huge])) = pairs.last() {
        findings.push(format!(
            "Random accesses to {} take {} on ordinary pages and {} on huge ones: {gain:.2} times \
             as long.",
            binary_text(*size),
            value_text(*ordinary, Unit::Nanoseconds),
            value_text(*huge, Unit::Nanoseconds),
        ));
    }
    let parted = pairs
        .iter()
        .find(|(_, [ordinary, huge])| ordinary / huge >= SLOWER);
    findings.push(match parted {
        Some((size, _)) => format!(
            "From {} on ordinary pages are slower by a quarter or more: the TLB reaches less far.",
            binary_text(*size)
        ),
        None => "No size was slower by a quarter on ordinary pages.".into(),
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_of_an_address_is_found() {
        let smaps = "1000-2000 rw-p 00000000 00:00 0\nSize: 4 kB\nAnonHugePages:  0 kB\n\
                     200000-600000 rw-p 00000000 00:00 0 [anon: x]\nAnonHugePages:  2048 kB\n";
        assert_eq!(huge_bytes_in(smaps, 0x1000), Some(0));
        assert_eq!(huge_bytes_in(smaps, 0x5f_ffff), Some(2 << 20));
        assert_eq!(huge_bytes_in(smaps, 0x60_0000), None);
        assert_eq!(huge_bytes_in("nonsense", 0), None);
    }

    #[test]
    fn findings_say_where_pages_matter() {
        let machine = Machine::this(1);
        let pairs = [(1 << 20, [5.0, 5.0]), (1 << 24, [20.0, 10.0])];
        let text = findings(&pairs, Some(2.0), &machine).join("\n");
        assert!(
            text.contains("From 16 MiB on") && text.contains("2.00 times"),
            "{text}"
        );
        assert!(findings(&pairs, None, &machine)[0].contains("no huge pages"));
        assert!(findings(&pairs[..1], None, &machine)[0].contains("memory limit"));
    }
}
