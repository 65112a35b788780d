//! The reminders of the current tick and earlier, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::reminder::Reminder;

/// A sorted run, taken from a bucket, and a heap of later insertions.
///
/// A heap alone would pop each of a burst of 100,000 through 17 levels. A sorted vector alone would
/// move all later entries for each insertion.
#[derive(Default)]
pub(crate) struct CurrentTick {
    /// In descending order, so that the next one is at the end.
    run: Vec<Reminder>,
    heap: BinaryHeap<Reverse<Reminder>>,
    stale: usize,
}

/// At most this many stale reminders are tolerated without a sweep.
const STALE_TOLERATED: usize = 64;
/// The capacity that run and heap retain (24 KiB each); the memory of a larger burst is released.
const CAPACITY_RETAINED: usize = 1024;

impl CurrentTick {
    pub(crate) fn insert(&mut self, reminder: Reminder) {
        self.heap.push(Reverse(reminder));
    }

    /// Appends a reminder of a bucket after all earlier ones are gone. [`CurrentTick::sort`] must
    /// follow.
    pub(crate) fn collect(&mut self, reminder: Reminder) {
        self.run.push(reminder);
    }

    pub(crate) fn sort(&mut self) {
        self.run.sort_unstable_by_key(|&reminder| Reverse(reminder));
        self.stale = 0;
    }

    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<Reminder> {
        let in_run = self.run.last().copied();
        let in_heap = self.heap.peek().map(|&Reverse(reminder)| reminder);
        let from_run = match (in_run, in_heap) {
            (Some(run), Some(heap)) => run < heap,
            (run, _) => run.is_some(),
        };
        let first = if from_run { in_run } else { in_heap };
        let first = first.filter(|reminder| reminder.deadline_ns <= now_ns)?;
        if from_run {
            self.run.pop();
        } else {
            self.heap.pop();
        }
        if self.is_empty() {
            self.run.shrink_to(CAPACITY_RETAINED);
            self.heap.shrink_to(CAPACITY_RETAINED);
        }
        Some(first)
    }

    pub(crate) fn first_ns(&self) -> Option<u64> {
        let in_run = self.run.last();
        let in_heap = self.heap.peek().map(|Reverse(reminder)| reminder);
        let firsts = in_run.into_iter().chain(in_heap);
        firsts.map(|reminder| reminder.deadline_ns).min()
    }

    /// Counts a reminder that has become stale, and removes all stale ones if they are the
    /// majority.
    ///
    /// A popped stale reminder is still counted, so a sweep may come early. Its cost is still
    /// amortised by as many cancellations.
    pub(crate) fn mark_stale(&mut self, live: impl Fn(usize, u64) -> Option<u64>) {
        self.stale += 1;
        if self.stale > STALE_TOLERATED && self.stale * 2 > self.len() {
            let is_live = |reminder: &Reminder| {
                live(reminder.slot, reminder.deadline_ns) == Some(reminder.sequence)
            };
            self.run.retain(is_live);
            self.heap.retain(|Reverse(reminder)| is_live(reminder));
            self.stale = 0;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty() && self.heap.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.run.len() + self.heap.len()
    }
}
