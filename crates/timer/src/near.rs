//! The reminders of the current tick and before, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::wheel::Reminder;

/// A sorted run, as it came from a bucket, and a heap of what was inserted since. (A heap alone pops a burst of
/// 100,000 in 17 levels each; a sorted vector alone moves all behind it for each one inserted.)
#[derive(Default)]
pub(super) struct Near {
    /// Latest first, so that the next one is at the end.
    run: Vec<Reminder>,
    heap: BinaryHeap<Reverse<Reminder>>,
    stale: usize,
}

/// Fewer stale reminders than this are not worth a sweep.
const STALE_KEPT: usize = 64;
/// Memory is kept for so many reminders (24 KiB each for run and heap); what a larger burst took is given back.
const KEPT_CAPACITY: usize = 1024;

impl Near {
    pub(super) fn insert(&mut self, reminder: Reminder) {
        self.heap.push(Reverse(reminder));
    }

    /// Takes in a reminder of a bucket, when all earlier ones are gone; [`Near::sort`] has to follow.
    pub(super) fn collect(&mut self, reminder: Reminder) {
        self.run.push(reminder);
    }

    /// Brings what was collected into order.
    pub(super) fn sort(&mut self) {
        self.run.sort_unstable_by_key(|&reminder| Reverse(reminder));
        self.stale = 0;
    }

    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<Reminder> {
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
            self.run.shrink_to(KEPT_CAPACITY);
            self.heap.shrink_to(KEPT_CAPACITY);
        }
        Some(first)
    }

    pub(super) fn first_ns(&self) -> Option<u64> {
        let in_run = self.run.last();
        let in_heap = self.heap.peek().map(|Reverse(reminder)| reminder);
        let firsts = in_run.into_iter().chain(in_heap);
        firsts.map(|reminder| reminder.deadline_ns).min()
    }

    /// One of the reminders here is not live any more: they are thrown out when more than half are. (A stale one that
    /// is popped is still counted, so a sweep may come early; it is paid by as many cancellations all the same.)
    pub(super) fn went_stale(&mut self, live: impl Fn(usize, u64) -> Option<u64>) {
        self.stale += 1;
        if self.stale > STALE_KEPT && self.stale * 2 > self.len() {
            let is_live = |reminder: &Reminder| {
                live(reminder.slot, reminder.deadline_ns) == Some(reminder.sequence)
            };
            self.run.retain(is_live);
            self.heap.retain(|Reverse(reminder)| is_live(reminder));
            self.stale = 0;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.run.is_empty() && self.heap.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.run.len() + self.heap.len()
    }
}
