//! The interactivity score: a flow is interactive if it sleeps more than it runs.

use crate::entity::{Entity, History};

/// Flows with a lower score are interactive.
pub const INTERACTIVE_BELOW: u32 = 30;
const SCORE_HALF: u64 = 50;

const HISTORY_MAX_NS: u64 = 5_000_000_000;

/// The score from 0 (only sleeps) to 100 (only runs), from voluntary sleep and run time.
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
    score as u32 // At most 100.
}

/// The interactivity score plus the nice value, at least 0.
pub(super) fn score(entity: &Entity) -> u32 {
    let score = i64::from(interactivity(&entity.history)) + i64::from(entity.nice.value());
    score.clamp(0, i64::from(History::SCORE_MAX)) as u32
}

/// The number of buckets after the current one in which a non-interactive flow is queued: 0 to 63,
/// from the run share of its history and its nice value.
pub(super) fn timeshare_steps(entity: &Entity) -> u64 {
    let total_ns = entity
        .history
        .ran_ns
        .saturating_add(entity.history.slept_ns)
        .max(1);
    // 24 buckets for the run share and one per step of nice fill the calendar: 24 + 39 = 63.
    let by_running = u128::from(entity.history.ran_ns) * 24 / u128::from(total_ns);
    by_running as u64 + entity.nice.index() as u64
}

pub(super) fn ran(history: &mut History, ran_ns: u64) {
    history.ran_ns = history.ran_ns.saturating_add(ran_ns);
    *history = decayed(*history);
}

pub(super) fn woke(history: &mut History, now_ns: u64) {
    if history.asleep_since_ns > 0 {
        let slept_ns = now_ns.saturating_sub(history.asleep_since_ns);
        history.slept_ns = history.slept_ns.saturating_add(slept_ns);
        history.asleep_since_ns = 0;
        *history = decayed(*history);
    }
}

/// Limits the sum to about [`HISTORY_MAX_NS`], so that recent behavior counts. A sum above twice
/// the limit is reduced to the larger part, a sum up to a fifth above it loses a fifth, and one in
/// between is halved.
fn decayed(mut history: History) -> History {
    let sum_ns = history.ran_ns.saturating_add(history.slept_ns);
    if sum_ns < HISTORY_MAX_NS {
        return history;
    }
    if sum_ns > 2 * HISTORY_MAX_NS {
        let has_run_more = history.ran_ns > history.slept_ns;
        let (larger, smaller) = (HISTORY_MAX_NS, 1);
        (history.ran_ns, history.slept_ns) =
            if has_run_more { (larger, smaller) } else { (smaller, larger) };
    } else if sum_ns > HISTORY_MAX_NS / 5 * 6 {
        history.ran_ns /= 2;
        history.slept_ns /= 2;
    } else {
        history.ran_ns = history.ran_ns / 5 * 4;
        history.slept_ns = history.slept_ns / 5 * 4;
    }
    history
}

/// Scales a history to a sum of at most `max_ns` with the same proportions, for inheritance by a
/// child.
pub(super) fn limited(history: History, max_ns: u64) -> History {
    let sum_ns = history.ran_ns.saturating_add(history.slept_ns);
    let divisor = sum_ns.div_ceil(max_ns.max(1)).max(1);
    History {
        ran_ns: history.ran_ns / divisor,
        slept_ns: history.slept_ns / divisor,
        asleep_since_ns: 0,
    }
}
