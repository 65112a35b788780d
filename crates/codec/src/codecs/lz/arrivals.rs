//! The cheapest ways to the positions of a segment.

use super::price::BIT;
use super::symbols::{RECENT, RECENT_AT_START};

/// What the coder knows at a position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// Literals since the last match.
    pub run: u32,
    pub recent: [u32; RECENT],
    /// The context of the next command.
    pub command: u8,
}

impl Context {
    pub(super) const START: Self = Self {
        run: 0,
        recent: RECENT_AT_START,
        command: 0,
    };
}

/// A way to a position: the last step, and the arrival before it.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// Never decreases.
    pub cost: u32,
    /// The index of the arrival before the step.
    pub from: u32,
    pub step: StepKind,
    pub context: Context,
}

/// The last step of a way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    Literal,
    /// A match of this kind; its distance is now the first recent one.
    Match(u8),
}

impl Arrival {
    /// Marks a free place.
    const NONE: Self = Self {
        cost: u32::MAX,
        from: 0,
        step: StepKind::Literal,
        context: Context::START,
    };
}

/// The best arrivals at each position, cheapest first. They differ in what later steps can use: the
/// first recent distance, and whether a match ends at the position.
pub(super) struct Arrivals {
    list: Vec<Arrival>,
    /// The number kept for each position.
    width: usize,
}

impl Arrivals {
    pub(super) fn new(positions: usize, width: usize) -> Self {
        Self {
            list: vec![Arrival::NONE; positions * width],
            width,
        }
    }

    pub(super) const fn memory_bytes(positions: usize, width: usize) -> u64 {
        (positions * width * size_of::<Arrival>()) as u64
    }

    /// Forgets everything at the first positions.
    pub(super) fn clear(&mut self, positions: usize) {
        self.list[..positions * self.width].fill(Arrival::NONE);
    }

    /// The indices of the places for a position.
    #[inline(always)]
    pub(super) fn places(&self, position: usize) -> std::ops::Range<usize> {
        position * self.width..(position + 1) * self.width
    }

    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<&Arrival> {
        self.list
            .get(index)
            .filter(|arrival| arrival.cost < u32::MAX)
    }

    /// Whether some way reaches the next position at nearly the same cost: then it is not worth
    /// while to go on from here (as in zstd's parser).
    #[inline(always)]
    pub(super) fn is_passed(&self, position: usize) -> bool {
        let cost = |position: usize| self.get(self.places(position).start).map(|best| best.cost);
        cost(position)
            .zip(cost(position + 1))
            .is_some_and(|(here, next)| next <= here + BIT / 2)
    }

    pub(super) fn position(&self, index: usize) -> usize {
        index / self.width
    }

    /// Adds an arrival if it is one of the best.
    #[inline(always)]
    pub(super) fn add(&mut self, position: usize, arrival: Arrival) {
        let places = self.places(position);
        let places = &mut self.list[places];
        let last = places.len() - 1;
        if arrival.cost >= places[last].cost {
            return;
        }
        let similar = |other: &Arrival| {
            other.context.recent[0] == arrival.context.recent[0]
                && (other.context.run == 0) == (arrival.context.run == 0)
        };
        let replaced = places
            .iter()
            .position(|other| other.cost == u32::MAX || similar(other));
        let mut place = replaced.unwrap_or(last);
        if places[place].cost <= arrival.cost {
            return;
        }
        while place > 0 && places[place - 1].cost > arrival.cost {
            places[place] = places[place - 1];
            place -= 1;
        }
        places[place] = arrival;
    }
}
