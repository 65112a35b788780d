//! Who is interactive: who sleeps more than it runs.

use super::super::{Entity, History};

/// Flows with a score below are interactive.
pub const INTERACTIVE_BELOW: u32 = 30;
const SCORE_HALF: u64 = 50;
const SCORE_MAX: u32 = 100;

/// Time of running and sleeping that is remembered.
const HISTORY_MAX_NS: u64 = 5_000_000_000;

/// 0 (sleeps only) to 100 (runs only), from voluntary sleep against run time.
pub fn interactivity(history: &History) -> u32 {
    let (ran_ns, slept_ns) = (history.ran_ns, history.slept_ns);
    let score = if ran_ns > slept_ns {
        SCORE_HALF + (SCORE_HALF - (slept_ns / (ran_ns / SCORE_HALF).max(1)).min(SCORE_HALF))
    } else if slept_ns > ran_ns {
        (ran_ns / (slept_ns / SCORE_HALF).max(1)).min(SCORE_HALF)
    } else if ran_ns > 0 {
        SCORE_HALF
    } else {
        0
    };
    score as u32 // at most 100
}

/// Interactivity with the nice value counted in, not below zero.
pub(super) fn score(entity: &Entity) -> u32 {
    let score = i64::from(interactivity(&entity.history)) + i64::from(entity.nice.value());
    score.clamp(0, i64::from(SCORE_MAX)) as u32
}

/// How many buckets behind "now" a flow that is not interactive is queued: 0 to 63, by how much of its history it ran, and by
/// nice.
pub(super) fn timeshare_steps(entity: &Entity) -> u64 {
    let total_ns = entity
        .history
        .ran_ns
        .saturating_add(entity.history.slept_ns)
        .max(1);
    // 24 buckets for running and one per step of nice fill the calendar: 24 + 39 = 63.
    let by_running = u128::from(entity.history.ran_ns) * 24 / u128::from(total_ns);
    by_running as u64 + entity.nice.index() as u64
}

pub(super) fn ran(history: &mut History, ran_ns: u64) {
    history.ran_ns = history.ran_ns.saturating_add(ran_ns);
    *history = forgotten(*history);
}

pub(super) fn woke(history: &mut History, now_ns: u64) {
    if history.asleep_since_ns > 0 {
        let slept_ns = now_ns.saturating_sub(history.asleep_since_ns);
        history.slept_ns = history.slept_ns.saturating_add(slept_ns);
        history.asleep_since_ns = 0;
        *history = forgotten(*history);
    }
}

/// Keeps the sum near [`HISTORY_MAX_NS`], so that what happened lately counts: far beyond it only the larger part stays, a
/// fifth beyond it is halved, a little beyond it loses a fifth.
fn forgotten(mut history: History) -> History {
    let sum_ns = history.ran_ns.saturating_add(history.slept_ns);
    if sum_ns < HISTORY_MAX_NS {
        return history;
    }
    if sum_ns > 2 * HISTORY_MAX_NS {
        let has_run_more = history.ran_ns > history.slept_ns;
        let (larger, smaller) = (HISTORY_MAX_NS, 1);
        (history.ran_ns, history.slept_ns) = if has_run_more {
            (larger, smaller)
        } else {
            (smaller, larger)
        };
    } else if sum_ns > HISTORY_MAX_NS / 5 * 6 {
        history.ran_ns /= 2;
        history.slept_ns /= 2;
    } else {
        history.ran_ns = history.ran_ns / 5 * 4;
        history.slept_ns = history.slept_ns / 5 * 4;
    }
    history
}

/// The same proportions with a sum of at most `max_ns`: what a child inherits.
pub(super) fn limited(history: History, max_ns: u64) -> History {
    let sum_ns = history.ran_ns.saturating_add(history.slept_ns);
    let divisor = sum_ns.div_ceil(max_ns.max(1)).max(1);
    History {
        ran_ns: history.ran_ns / divisor,
        slept_ns: history.slept_ns / divisor,
        asleep_since_ns: 0,
    }
}
