//! The ring of one thread, which alone writes to it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::names::name_of;
use crate::{Event, EventKind, ThreadTrace};

/// The words of an event: kind and name, start, duration, argument.
type Slot = [AtomicU64; 4];

#[derive(Debug)]
pub(crate) struct Ring {
    name: String,
    slots: Vec<Slot>,
    /// The number of events that were ever written.
    written: AtomicU64,
}

impl Ring {
    pub(crate) fn new(name: String, capacity: usize) -> Ring {
        Ring {
            name,
            slots: (0..capacity).map(|_| Slot::default()).collect(),
            written: AtomicU64::new(0),
        }
    }

    /// Writes an event. For the thread that owns the ring.
    pub(crate) fn push(&self, name: u32, event: &Event) {
        let number = self.written.load(Ordering::Relaxed);
        let Some(slot) = self.slots.get((number % self.slots.len() as u64) as usize) else {
            return;
        };
        let words = [
            u64::from(name) << 8 | u64::from(event.kind as u8),
            event.start_ns,
            event.duration_ns,
            event.argument,
        ];
        for (to, word) in slot.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        // Whoever sees the number sees the event.
        self.written.store(number + 1, Ordering::Release);
    }

    /// The events. Those that may have been replaced during the reading are left out.
    pub(crate) fn read(&self) -> ThreadTrace {
        let capacity = self.slots.len() as u64;
        let end = self.written.load(Ordering::Acquire);
        let start = end.saturating_sub(capacity);
        let mut events: Vec<Option<Event>> = (start..end).map(|number| self.at(number)).collect();
        // The one being written counts as replaced, too.
        let now = self.written.load(Ordering::Acquire);
        let replaced = match now == end {
            true => start,
            false => (now + 1).saturating_sub(capacity).clamp(start, end),
        };
        events.drain(..(replaced - start) as usize);
        ThreadTrace {
            name: self.name.clone(),
            events: events.into_iter().flatten().collect(),
            lost: replaced,
        }
    }

    fn at(&self, number: u64) -> Option<Event> {
        let slot = self
            .slots
            .get((number % self.slots.len() as u64) as usize)?;
        let [head, start_ns, duration_ns, argument] =
            [0, 1, 2, 3].map(|word: usize| slot[word].load(Ordering::Relaxed));
        Some(Event {
            kind: *EventKind::ALL.get((head & 0xff) as usize)?,
            name: name_of((head >> 8) as u32),
            start_ns,
            duration_ns,
            argument,
        })
    }
}
