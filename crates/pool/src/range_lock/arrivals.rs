//! Who may use which range: requests in the order of their arrival, found by range.
//!
//! A request is granted once no earlier conflicting one remains, granted or not. Each request
//! counts the ones that it waits for, so the end of a request concerns only overlapping ones.

use std::collections::BTreeMap;
use std::ops::Range;

/// Whether a request shares its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Shares its range with other readers.
    Read,
    /// Has its range exclusively.
    Write,
}

impl Access {
    pub(super) fn conflicts_with(self, other: Access) -> bool {
        self == Access::Write || other == Access::Write
    }
}

/// Ranges whose lengths have the same number of bits form a class. So the ranges of a class that
/// overlap a given one start in a window before its end, which is no longer than one of them.
const CLASSES: usize = 65;

/// Identifies a request. By class, then by start, then by arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestId {
    class: u32,
    start: u64,
    pub(super) arrival: u64,
}

#[derive(Debug)]
struct Request<T> {
    end: u64,
    access: Access,
    blockers: usize,
    payload: T,
}

/// The requests of one lock. `T` is the lock's data for each request.
#[derive(Debug)]
pub(super) struct Arrivals<T> {
    requests: BTreeMap<RequestId, Request<T>>,
    of_class: [u32; CLASSES],
    next_arrival: u64,
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Arrivals {
            requests: BTreeMap::new(),
            of_class: [0; CLASSES],
            next_arrival: 0,
        }
    }
}

fn class_of(length: u64) -> u32 {
    u64::BITS - length.leading_zeros()
}

impl<T> Arrivals<T> {
    pub(super) fn arrive(&mut self, range: Range<u64>, access: Access, payload: T) -> RequestId {
        let mut blockers = 0;
        self.for_each_conflict(&range, access, |_, _| blockers += 1);
        let id = RequestId {
            class: class_of(range.end.saturating_sub(range.start)),
            start: range.start,
            arrival: self.next_arrival,
        };
        self.next_arrival += 1;
        self.of_class[id.class as usize] += 1;
        let request = Request {
            end: range.end,
            access,
            blockers,
            payload,
        };
        self.requests.insert(id, request);
        id
    }

    /// Whether a request for this range would be granted at once.
    pub(super) fn is_free(&mut self, range: &Range<u64>, access: Access) -> bool {
        let mut is_free = true;
        self.for_each_conflict(range, access, |_, _| is_free = false);
        is_free
    }

    pub(super) fn is_granted(&self, id: RequestId) -> bool {
        let request = self.requests.get(&id);
        request.is_none_or(|request| request.blockers == 0)
    }

    /// The data of the earliest request that this one waits for.
    pub(super) fn first_blocker(&mut self, id: RequestId) -> Option<&T> {
        let request = self.requests.get(&id)?;
        let (range, access) = (id.start..request.end, request.access);
        let mut first: Option<RequestId> = None;
        self.for_each_conflict(&range, access, |other, _| {
            if other.arrival < id.arrival && first.is_none_or(|first| other.arrival < first.arrival)
            {
                first = Some(other);
            }
        });
        self.requests.get(&first?).map(|request| &request.payload)
    }

    /// Removes a request, granted or not, and calls `grant` for each request that this grants.
    pub(super) fn leave(&mut self, id: RequestId, mut grant: impl FnMut(&T)) {
        let Some(request) = self.requests.remove(&id) else {
            return;
        };
        self.of_class[id.class as usize] -= 1;
        let range = id.start..request.end;
        self.for_each_conflict(&range, request.access, |other, waiting| {
            if other.arrival > id.arrival {
                waiting.blockers -= 1;
                if waiting.blockers == 0 {
                    grant(&waiting.payload);
                }
            }
        });
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.of_class == [0; CLASSES]
    }

    fn for_each_conflict(
        &mut self,
        range: &Range<u64>,
        access: Access,
        mut found: impl FnMut(RequestId, &mut Request<T>),
    ) {
        if self.requests.is_empty() {
            return;
        }
        let classes = (0u32..).zip(self.of_class);
        for (class, _) in classes.filter(|(_, count)| *count > 0) {
            // The longest range of the class that ends after `range.start` starts here.
            let length_max = 1u64.checked_shl(class).unwrap_or(0).wrapping_sub(1);
            let start = range.start.saturating_sub(length_max - 1);
            let id = |start| RequestId {
                class,
                start,
                arrival: 0,
            };
            for (other, request) in self.requests.range_mut(id(start)..id(range.end)) {
                if request.end > range.start && access.conflicts_with(request.access) {
                    found(*other, request);
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The slow twin: all requests in the order of arrival.
    #[derive(Default)]
    struct Naive(Vec<(u64, Range<u64>, Access)>);

    impl Naive {
        fn granted(&self) -> Vec<u64> {
            let is_granted = |at: &usize| {
                let (_, range, access) = &self.0[*at];
                self.0[..*at].iter().all(|(_, earlier, other)| {
                    let overlaps = earlier.start < range.end && range.start < earlier.end;
                    !overlaps || (*access == Access::Read && *other == Access::Read)
                })
            };
            let granted = (0..self.0.len()).filter(is_granted);
            granted.map(|at| self.0[at].0).collect()
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Arrive(u64, u64, bool),
        Leave(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let length = prop_oneof![1u64..4, 1u64..40, Just(u64::MAX)];
        let start = prop_oneof![0u64..30, 0u64..300, Just(u64::MAX - 5)];
        let arrive = (start, length, any::<bool>()).prop_map(|(a, b, c)| Step::Arrive(a, b, c));
        let leave = any::<prop::sample::Index>().prop_map(Step::Leave);
        prop::collection::vec(prop_oneof![3 => arrive, 2 => leave], 1..120)
    }

    proptest! {
        #[test]
        fn grants_what_the_slow_twin_grants(steps in steps()) {
            let (mut fast, mut naive) = (Arrivals::default(), Naive::default());
            let mut ids = Vec::new();
            let mut told: Vec<u64> = Vec::new();
            for step in steps {
                match step {
                    Step::Arrive(start, length, write) => {
                        let range = start..start.saturating_add(length);
                        let access = if write { Access::Write } else { Access::Read };
                        let number = fast.next_arrival;
                        let is_free = fast.is_free(&range, access);
                        let id = fast.arrive(range.clone(), access, number);
                        prop_assert_eq!(is_free, fast.is_granted(id));
                        if is_free {
                            told.push(number);
                        }
                        ids.push(id);
                        naive.0.push((number, range, access));
                    }
                    Step::Leave(index) if !ids.is_empty() => {
                        let at = index.index(ids.len());
                        let id = ids.remove(at);
                        fast.leave(id, |number| told.push(*number));
                        told.retain(|number| *number != id.arrival);
                        naive.0.remove(at);
                    }
                    Step::Leave(_) => {}
                }
                told.sort_unstable();
                let granted = naive.granted();
                // Each was notified exactly once, when it was granted.
                prop_assert_eq!(&told, &granted);
                for id in &ids {
                    let is_granted = granted.contains(&id.arrival);
                    prop_assert_eq!(fast.is_granted(*id), is_granted);
                    prop_assert_eq!(fast.first_blocker(*id).is_none(), is_granted);
                }
            }
            for id in ids {
                fast.leave(id, |_| ());
            }
            prop_assert!(fast.is_empty());
        }
    }
}
