//! The ring of one thread, which is its only writer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::{Event, EventKind, ThreadTrace};
use crate::names::name_of;

/// The words of an event: kind, name and flow; start, duration, argument.
type EventWords = [AtomicU64; 4];

/// The number of events in a part of a ring: a thread with few events takes little memory.
const PART_EVENTS: usize = 1 << 12;

const NAME_SHIFT: u32 = 8;
const NAME_MASK: u64 = 0xff_ffff;
const FLOW_SHIFT: u32 = 32;

#[derive(Debug)]
pub(crate) struct Ring {
    name: String,
    /// Each is allocated for the first event in it.
    parts: Vec<OnceLock<Box<[EventWords]>>>,
    capacity: u64,
    /// The total number of events written.
    written: AtomicU64,
}

impl Ring {
    pub(crate) fn new(name: String, capacity: usize) -> Ring {
        let parts = capacity.div_ceil(PART_EVENTS);
        Ring {
            name,
            parts: (0..parts).map(|_| OnceLock::new()).collect(),
            capacity: capacity as u64,
            written: AtomicU64::new(0),
        }
    }

    /// Writes an event. Only for the thread that owns the ring.
    pub(crate) fn push(&self, name: u32, event: &Event) {
        let number = self.written.load(Ordering::Relaxed);
        let place = (number % self.capacity) as usize;
        let Some(part) = self.parts.get(place / PART_EVENTS) else {
            return;
        };
        let events = (self.capacity as usize).min(PART_EVENTS);
        let part = part.get_or_init(|| (0..events).map(|_| EventWords::default()).collect());
        let Some(slot) = part.get(place % PART_EVENTS) else {
            return;
        };
        let words = [
            u64::from(event.flow) << FLOW_SHIFT
                | (u64::from(name) & NAME_MASK) << NAME_SHIFT
                | u64::from(event.kind as u8),
            event.start_ns,
            event.duration_ns,
            event.argument,
        ];
        for (to, word) in slot.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        // A thread that sees the number sees the event.
        self.written.store(number + 1, Ordering::Release);
    }

    /// The events, except for those that may have been replaced while they were read.
    pub(crate) fn read(&self) -> ThreadTrace {
        let end = self.written.load(Ordering::Acquire);
        let start = end.saturating_sub(self.capacity);
        let mut events: Vec<Option<Event>> = (start..end).map(|number| self.at(number)).collect();
        // The one being written also counts as replaced.
        let now = self.written.load(Ordering::Acquire);
        let replaced = if now == end {
            start
        } else {
            (now + 1).saturating_sub(self.capacity).clamp(start, end)
        };
        events.drain(..(replaced - start) as usize);
        ThreadTrace {
            name: self.name.clone(),
            events: events.into_iter().flatten().collect(),
            lost: replaced,
        }
    }

    fn at(&self, number: u64) -> Option<Event> {
        let place = (number % self.capacity) as usize;
        let part = self.parts.get(place / PART_EVENTS)?.get()?;
        let slot = part.get(place % PART_EVENTS)?;
        let [head, start_ns, duration_ns, argument] =
            [0, 1, 2, 3].map(|word: usize| slot[word].load(Ordering::Relaxed));
        Some(Event {
            kind: *EventKind::ALL.get((head & 0xff) as usize)?,
            name: name_of((head >> NAME_SHIFT & NAME_MASK) as u32),
            flow: (head >> FLOW_SHIFT) as u32,
            start_ns,
            duration_ns,
            argument,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_several_parts_keeps_the_latest() {
        let capacity = 2 * PART_EVENTS + 10;
        let ring = Ring::new("thread".into(), capacity);
        let event = |number: u64| Event {
            kind: EventKind::Run,
            name: "",
            flow: u32::MAX - number as u32,
            start_ns: number,
            duration_ns: 2 * number,
            argument: 3 * number,
        };
        let count = 3 * capacity as u64 + 7;
        (0..count).for_each(|number| ring.push(NAME_MASK as u32, &event(number)));
        let trace = ring.read();
        assert_eq!(trace.lost, count - capacity as u64);
        let expected: Vec<Event> = (trace.lost..count).map(event).collect();
        assert_eq!(trace.events, expected);
    }
}
