//! The memory that the system leaves to this process, which bounds the default budgets.
//!
//! A process that exceeds the memory of its control group or machine is killed without a message,
//! and one that exceeds `ulimit -v` is refused memory in the middle of its work. So the default
//! budget is the level's or what fits, whichever is smaller:
//!
//! | limit | what it leaves |
//! |---|---|
//! | control groups, up to the topmost | minus what others use and cannot be reclaimed |
//! | `ulimit -v`, `ulimit -d` | minus what is mapped, stacks and heaps |
//! | the machine | `MemAvailable` |
//!
//! A budget is three quarters of that: the rest is for pages of files being read and written, and
//! for what the kernel counts. Compression budgets decide an archive's bytes, so they are rounded
//! down to 2^n or 3 * 2^n: slightly more or less free memory changes nothing.
//!
//! A budget that the user asks for is used unchanged. If it does not fit, a remark says so.

mod groups;

use std::fs;
use std::sync::OnceLock;

use refrain::{ErrorKind, MEMORY_BYTES_MIN};
use rustix::process::{Resource, getrlimit};

use crate::failure::{Failure, Result};
use crate::units::binary_text;

const MIB: u64 = 1 << 20;

/// Addresses that glibc reserves for a heap of threads.
const HEAP_BYTES: u64 = 64 * MIB;

/// A thread's stack and its surroundings.
const STACK_BYTES: u64 = 4 * MIB;

/// The smallest default budget for reading: it suffices for small archives, and may fit even where
/// the limits seem to leave less.
const READING_BYTES_LEAST: u64 = 24 * MIB;

/// In smaller budgets, what the allocator retains would be a large part.
const SMALL_BUDGET_BYTES: u64 = 512 * MIB;

/// Memory that is left to this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    pub bytes: u64,
    /// The name of the limit, for messages.
    pub what: &'static str,
}

/// A budget for compressing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// `None`: the default.
    pub bytes: Option<u64>,
    /// What the user should know about it.
    pub remark: Option<String>,
}

/// The budget for reading if the user gives none.
pub fn default_for_reading(threads: usize) -> u64 {
    let default = refrain::ReadOptions::default().memory_bytes;
    let fits = |limit: MemoryLimit| usable(limit.bytes).clamp(READING_BYTES_LEAST, default);
    least(threads).map_or(default, fits)
}

/// The budget for compressing: the one asked for, or as much of the `default` as fits.
///
/// # Errors
/// `Limit` if nobody asked for a budget and the smallest one does not fit.
pub fn for_compressing(asked: Option<u64>, default: u64, threads: usize) -> Result<Budget> {
    fitting(asked, default, least(threads))
}

fn fitting(asked: Option<u64>, default: u64, limit: Option<MemoryLimit>) -> Result<Budget> {
    let unchanged = Budget {
        bytes: asked,
        remark: None,
    };
    let Some(MemoryLimit { bytes, what }) = limit else {
        return Ok(unchanged);
    };
    if let Some(asked) = asked {
        let remark = (asked > bytes).then(|| {
            let (asked, bytes) = (binary_text(asked), binary_text(bytes));
            format!(
                "a memory budget of {asked} is more than {what} leaves ({bytes}): the system may \
                 end this run"
            )
        });
        return Ok(Budget {
            remark,
            ..unchanged
        });
    }
    let budget_bytes = rounded_down(usable(bytes));
    if budget_bytes >= default {
        return Ok(unchanged);
    }
    let bytes = binary_text(bytes);
    if budget_bytes < MEMORY_BYTES_MIN {
        let least = binary_text(MEMORY_BYTES_MIN);
        let text =
            format!("{what} leaves {bytes} of memory, too little for the smallest budget, {least}");
        return Err(Failure::Engine(refrain::Error::new(ErrorKind::Limit, text)));
    }
    let (budget, default) = (binary_text(budget_bytes), binary_text(default));
    let remark = format!(
        "{what} leaves {bytes} of memory: the budget is {budget} instead of {default}, which the \
         archive depends on"
    );
    Ok(Budget {
        bytes: Some(budget_bytes),
        remark: Some(remark),
    })
}

/// What pages of files may take at most: the memory that limits leave, those pages included. The
/// first call looks, so that thousands of files do not take a look each.
pub fn for_pages() -> Option<u64> {
    static BYTES: OnceLock<Option<u64>> = OnceLock::new();
    *BYTES.get_or_init(|| {
        [groups::left(), left_of_machine()]
            .into_iter()
            .flatten()
            .min()
    })
}

fn left_of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    available_in(&text)
}

/// Adjusts the allocator of the process to the run's budget.
pub fn prepare_allocator(budget_bytes: u64) {
    if budget_bytes < SMALL_BUDGET_BYTES {
        refrain_pool::return_large_buffers();
    }
}

/// The part of the remaining memory that a budget may use.
fn usable(bytes: u64) -> u64 {
    bytes / 4 * 3
}

fn rounded_down(number: u64) -> u64 {
    let Some(exponent) = number.checked_ilog2() else {
        return 0;
    };
    let power = 1 << exponent;
    if power + power / 2 <= number { power + power / 2 } else { power }
}

/// The tightest limit for a process with this many threads.
fn least(threads: usize) -> Option<MemoryLimit> {
    let limit = |what| move |bytes| MemoryLimit { bytes, what };
    let limits = [
        groups::left().map(limit("the memory limit of the control group")),
        left_of_addresses(Resource::As, 0, threads)
            .map(limit("the limit of addresses (ulimit -v)")),
        left_of_addresses(Resource::Data, 5, threads).map(limit("the limit of data (ulimit -d)")),
        left_of_machine().map(limit("the machine")),
    ];
    limits.into_iter().flatten().min_by_key(|limit| limit.bytes)
}

/// What a limit of addresses leaves. `column` is the column of `/proc/self/statm` with what is in
/// use, counted from 0.
fn left_of_addresses(limit: Resource, column: usize, threads: usize) -> Option<u64> {
    let limit_bytes = getrlimit(limit).current?;
    let page_bytes = rustix::param::page_size() as u64;
    let used = fs::read_to_string("/proc/self/statm").ok();
    let used = used.and_then(|text| text.split_whitespace().nth(column)?.parse::<u64>().ok());
    let used_bytes = used.unwrap_or(0).saturating_mul(page_bytes);
    // Workers, a reader, one for signals, and the lists of stacks on which jobs wait.
    let stacks_bytes = (threads as u64 + 4).saturating_mul(STACK_BYTES);
    Some(limit_bytes.saturating_sub(used_bytes + HEAP_BYTES + stacks_bytes))
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available_in(text: &str) -> Option<u64> {
    let line = (text.lines()).find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(mib: u64) -> Option<MemoryLimit> {
        Some(MemoryLimit {
            bytes: mib * MIB,
            what: "the test",
        })
    }

    #[test]
    fn a_default_budget_is_what_fits() {
        let budget = |mib| fitting(None, 1024 * MIB, limit(mib));
        for (left_mib, budget_mib) in [(200, 128), (300, 192), (1023, 512)] {
            let budget = budget(left_mib).unwrap();
            assert_eq!(budget.bytes, Some(budget_mib * MIB), "{left_mib}");
            let remark = budget.remark.unwrap();
            assert!(remark.contains("instead of 1"), "{remark}");
        }
        let unchanged = Budget {
            bytes: None,
            remark: None,
        };
        assert_eq!(budget(1400).unwrap(), unchanged);
        assert_eq!(fitting(None, 1024 * MIB, None).unwrap(), unchanged);
        let refused = budget(100).unwrap_err();
        assert_eq!(refused.exit(), crate::exit::Exit::Limit);
        assert!(refused.to_string().contains("--memory"), "{refused}");
    }

    #[test]
    fn a_budget_that_was_asked_for_is_used_and_one_too_large_is_told_of() {
        let budget = |mib| fitting(Some(mib * MIB), 1024 * MIB, limit(300)).unwrap();
        assert_eq!(budget(256).bytes, Some(256 * MIB));
        assert_eq!(budget(256).remark, None);
        assert_eq!(budget(512).bytes, Some(512 * MIB));
        assert!(budget(512).remark.unwrap().contains("the test leaves"));
    }

    #[test]
    fn the_memory_of_the_machine_is_read() {
        let text = "MemTotal:  24683980 kB\nMemFree: 7 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(available_in(text), Some(2 * MIB));
        assert_eq!(available_in("MemTotal: 1 kB\n"), None);
        assert_eq!(
            (rounded_down(0), rounded_down(1), rounded_down(3)),
            (0, 1, 3)
        );
        assert_eq!(
            (rounded_down(5), rounded_down(6), rounded_down(7)),
            (4, 6, 6)
        );
    }
}
