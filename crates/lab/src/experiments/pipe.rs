//! How fast data passes through a pipe.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use refrain_pool::{SignalDelivery, start_detached};

use crate::context::Context;
use crate::error::{Error, Result, at};
use crate::experiment::Experiment;
use crate::outcome::{Cell, Measured, Outcome, Section, Unit};
use crate::units::value_text;
use refrain_page::binary_text;

const WRITES_BYTES: [usize; 8] = [
    64,
    512,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
];
/// Linux's default capacity of a pipe, and larger ones that an ordinary user may request.
const CAPACITIES_BYTES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];

/// A capacity is enough if no larger one is faster by more than this.
const ENOUGH: f64 = 0.97;

/// The size of the engine's typical writes.
pub(super) const USUAL_WRITE_BYTES: usize = 256 << 10;

pub(super) struct Pipe;

impl Experiment for Pipe {
    fn name(&self) -> &'static str {
        "pipe"
    }

    fn measures(&self) -> &'static str {
        "how many bytes per second pass through a pipe, by the size of writes and of the pipe"
    }

    fn explains(&self) -> &'static str {
        "One thread writes, another reads all there is. Small writes cost a system call each. When \
         the pipe is full the writer sleeps, when it is empty the reader does: a larger pipe \
         (F_SETPIPE_SZ, up to 1 MiB for ordinary users) lets both work longer, unless it no longer \
         fits the cache that they share."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 1.4 } else { 6.0 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let columns = [
            ("write", Unit::Bytes),
            ("pipe", Unit::Text),
            ("rate", Unit::BytesPerSecond),
        ];
        let mut section = Section::new("Bytes per second through a pipe", &columns).with_chart(
            0,
            2,
            Some(1),
            true,
        );
        let mut rates = Vec::new();
        for capacity in CAPACITIES_BYTES {
            let name = binary_text(capacity as u64);
            for write in WRITES_BYTES {
                let cell = match rate(context, capacity, write, context.time(45, 220))? {
                    Ok(rate) => {
                        rates.push((capacity, write, rate));
                        rate.into()
                    }
                    Err(reason) => Cell::not_available(reason),
                };
                section.push([write.into(), name.clone().into(), cell]);
            }
        }
        let best = best_capacity(&rates);
        Ok(Outcome {
            findings: findings(&rates, best),
            sections: vec![section],
            measured: Measured {
                pipe_bytes: best.map(|bytes| bytes as u64),
                ..Measured::default()
            },
        })
    }
}

/// The smallest capacity that is enough for the engine's writes.
fn best_capacity(rates: &[(usize, usize, f64)]) -> Option<usize> {
    let usual = || {
        rates
            .iter()
            .filter(|(_, write, _)| *write == USUAL_WRITE_BYTES)
    };
    let best = usual().map(|(.., rate)| *rate).reduce(f64::max)?;
    let enough = usual().filter(|(.., rate)| *rate >= best * ENOUGH);
    enough.map(|(capacity, ..)| *capacity).min()
}

fn findings(rates: &[(usize, usize, f64)], best: Option<usize>) -> Vec<String> {
    let of = |capacity, write| {
        let found = rates.iter().find(|(c, w, _)| (*c, *w) == (capacity, write));
        found.map(|(.., rate)| *rate)
    };
    let mut findings = Vec::new();
    let text = |rate| value_text(rate, Unit::BytesPerSecond);
    if let (Some(small), Some(large)) = (of(64 << 10, 64), of(64 << 10, 64 << 10)) {
        findings.push(format!(
            "Writes of 64 B pass {}, writes of 64 KiB {}: {:.0} times as much.",
            text(small),
            text(large),
            large / small
        ));
    }
    if let (Some(best), Some(usual)) = (best, of(64 << 10, USUAL_WRITE_BYTES)) {
        let with = of(best, USUAL_WRITE_BYTES).unwrap_or(usual);
        findings.push(match best {
            65_536 => "For writes of 256 KiB no larger pipe was faster by more than 3 %.".into(),
            _ => format!(
                "For writes of 256 KiB a pipe of {} is enough: {} instead of {} with 64 KiB, \
                 {:.2} times as much.",
                binary_text(best as u64),
                text(with),
                text(usual),
                with / usual
            ),
        });
    }
    findings
}

/// A pipe of this capacity; the reason if the system refuses it.
fn pipe_of(capacity_bytes: usize) -> Result<std::result::Result<(File, File), String>> {
    let (reader, writer) = io::pipe().map_err(at("make", Path::new("a pipe")))?;
    let (reader, writer) = (
        File::from(OwnedFd::from(reader)),
        File::from(OwnedFd::from(writer)),
    );
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::pipe::fcntl_setpipe_size(&writer, capacity_bytes) {
        return Ok(Err(format!(
            "the system refuses a pipe of this size: {error}"
        )));
    }
    #[cfg(not(target_os = "linux"))]
    if capacity_bytes != CAPACITIES_BYTES[0] {
        return Ok(Err("this system has pipes of one size only".into()));
    }
    Ok(Ok((reader, writer)))
}

/// The bytes per second through a pipe of `capacity_bytes` by writes of `write_bytes`.
pub(super) fn rate(
    context: &Context,
    capacity_bytes: usize,
    write_bytes: usize,
    time: Duration,
) -> Result<std::result::Result<f64, String>> {
    let (mut reader, mut writer) = match pipe_of(capacity_bytes)? {
        Ok(pipe) => pipe,
        Err(reason) => return Ok(Err(reason)),
    };
    let data = vec![7_u8; write_bytes];
    // The writer ends when the reader closes its end.
    let write = move || while writer.write_all(&data).is_ok() {};
    if !start_detached("lab-pipe", SignalDelivery::OwnFaults, write) {
        return Err(Error::NoThread);
    }
    let mut buffer = vec![0; 1 << 20];
    let mut read = |count: &mut usize| -> Result<()> {
        // Several reads between two clock readings.
        for _ in 0..8 {
            let read = reader.read(&mut buffer);
            *count += read.map_err(at("read", Path::new("a pipe")))?;
        }
        Ok(())
    };
    // The first reads fault in the buffer.
    read(&mut 0)?;
    let mut count = 0;
    let (_, taken_ns) = context.repeat(time, || read(&mut count))?;
    Ok(Ok(count as f64 / taken_ns as f64 * 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_capacity_that_is_enough_is_best() {
        let usual = USUAL_WRITE_BYTES;
        let rates = |small: f64, middle: f64, large: f64| {
            [
                (1, usual, small),
                (2, usual, middle),
                (3, usual, large),
                (9, 64, 1e12),
            ]
        };
        assert_eq!(best_capacity(&rates(1.0, 2.0, 2.05)), Some(2));
        assert_eq!(best_capacity(&rates(1.0, 2.0, 3.0)), Some(3));
        assert_eq!(best_capacity(&rates(1.0, 0.9, 1.0)), Some(1));
        assert_eq!(best_capacity(&[]), None);
    }

    #[test]
    fn a_pipe_of_too_many_bytes_is_not_available() {
        let context = Context::new("/");
        let refused = rate(&context, 1 << 40, 64, Duration::ZERO).unwrap();
        assert!(refused.unwrap_err().contains("refuses"));
    }
}
