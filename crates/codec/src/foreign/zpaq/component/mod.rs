//! The components of a model: what each predicts, and what it learns from the bit that came.
//!
//! The tables of one component are one allocation, whose length is a power of two; what one bit needs of them lies in one line of the
//! cache, and was asked for before: rows of histories in the half byte before, weights with the bit before.

mod counting;
mod histories;
mod matching;
mod mixing;

use super::header::Component;
use super::tables::Tables;
use crate::error::Result;
use counting::{Cm, Sse};
use histories::{Chain, Icm};
use matching::Match;
use mixing::{Avg, LANES, Learning, Mix, Mix2};

/// Components of a model, at most.
pub(super) const COMPONENTS_MAX: usize = 255;

/// Components are numbered by bytes; then so many that groups of lanes stay inside.
const PREDICTIONS: usize = 256 + LANES;

/// What each component predicts, in the logistic domain.
pub(super) type Predictions = [i32; PREDICTIONS];

/// The contexts of all components, for one byte.
pub(super) type Contexts = [u32; 256];

/// Where in its byte a bit stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    /// The bits of this byte that are known, behind a leading one.
    pub partial: u32,
    /// Those of this half byte, likewise.
    pub in_half: usize,
    /// What `in_rows` is beyond `in_half`: the first half byte behind a leading one, or nothing in it.
    pub first_half: u32,
    /// By so much a byte is shifted to show this bit.
    pub shift: u32,
}

impl At {
    /// The known bits in the form by which a context selects a counter: those of one half byte lie side by side.
    #[inline(always)]
    fn in_rows(self) -> u32 {
        self.first_half | self.in_half as u32
    }
}

/// What a prediction of 15 bits should have been.
#[inline(always)]
fn target(bit: usize) -> i32 {
    bit as i32 * 32767
}

/// Components that are next to each other in a model, and alike. Constants are none: their predictions never change.
#[allow(private_interfaces)]
pub(super) enum Unit {
    Cm(Box<Cm>),
    Icm(Box<Icm>),
    Match(Box<Match>),
    Avg(Box<Avg>),
    Mix2(Box<Mix2>),
    Mix(Box<Mix>),
    /// A chain: each corrects the one before.
    Chain(Box<Chain>),
    Sse(Box<Sse>),
}

impl Unit {
    /// Units for the components of a model, and what they predict before anything came.
    pub(super) fn all(
        components: &[Component],
        tables: &Tables,
    ) -> Result<(Vec<Unit>, Predictions)> {
        let mut units = Vec::new();
        let mut predictions = [0; PREDICTIONS];
        for (index, (&component, prediction)) in components.iter().zip(&mut predictions).enumerate()
        {
            if let Component::Const { value } = component {
                *prediction = (i32::from(value) - 128) * 4;
            }
            match (units.last_mut(), Unit::new(index as u8, component, tables)?) {
                (_, None) => {}
                (Some(Unit::Chain(chain)), Some(Unit::Chain(next))) => {
                    let next = chain.append(*next);
                    units.extend(next.map(|next| Unit::Chain(Box::new(next))));
                }
                (_, Some(unit)) => units.push(unit),
            }
        }
        Ok((units, predictions))
    }

    /// `None` for a constant.
    fn new(index: u8, component: Component, tables: &Tables) -> Result<Option<Unit>> {
        Ok(Some(match component {
            Component::Const { .. } => return Ok(None),
            Component::Cm { size_bits, limit } => {
                Unit::Cm(Box::new(Cm::new(index, size_bits, limit)?))
            }
            Component::Icm { size_bits } => {
                Unit::Icm(Box::new(Icm::new(index, size_bits, tables)?))
            }
            Component::Match {
                size_bits,
                buffer_bits,
            } => Unit::Match(Box::new(Match::new(index, size_bits, buffer_bits, tables)?)),
            Component::Avg { inputs, weight } => Unit::Avg(Box::new(Avg {
                index,
                inputs,
                weight,
            })),
            Component::Mix2 {
                size_bits,
                inputs,
                rate,
                mask,
            } => Unit::Mix2(Box::new(Mix2::new(
                index,
                size_bits,
                inputs,
                Learning { rate, mask },
            )?)),
            Component::Mix {
                size_bits,
                first,
                count,
                rate,
                mask,
            } => {
                let inputs = (first, usize::from(count));
                Unit::Mix(Box::new(Mix::new(
                    index,
                    size_bits,
                    inputs,
                    Learning { rate, mask },
                )?))
            }
            Component::Isse { size_bits, input } => {
                Unit::Chain(Box::new(Chain::new(index, size_bits, input, tables)?))
            }
            Component::Sse {
                size_bits,
                input,
                start,
                limit,
            } => Unit::Sse(Box::new(Sse::new(
                index,
                size_bits,
                input,
                (start, limit),
                tables,
            )?)),
        }))
    }

    /// Asks for what the half byte that begins with `partial` needs.
    #[inline(always)]
    pub(super) fn prefetch(&self, contexts: &Contexts, partial: u32) {
        let context = |index: u8| contexts[usize::from(index)];
        match self {
            Unit::Icm(icm) => icm.prefetch(context(icm.index), partial),
            Unit::Chain(chain) => chain.prefetch(contexts, partial),
            Unit::Cm(cm) => cm.prefetch(context(cm.index), partial << 4),
            Unit::Match(model) => model.prefetch(context(model.index), partial > 1),
            Unit::Avg(_) | Unit::Mix2(_) | Unit::Mix(_) | Unit::Sse(_) => {}
        }
    }

    /// Turns to the half byte that begins with `partial`.
    #[inline(always)]
    pub(super) fn begin_half(&mut self, contexts: &Contexts, partial: u32) {
        let context = |index: u8| contexts[usize::from(index)];
        match self {
            Unit::Icm(icm) => icm.begin_half(context(icm.index), partial),
            Unit::Chain(chain) => chain.begin_half(contexts, partial),
            _ => {}
        }
    }

    /// Predicts the bit at `at`.
    #[inline(always)]
    pub(super) fn predict(
        &mut self,
        at: At,
        contexts: &Contexts,
        predictions: &mut Predictions,
        tables: &Tables,
    ) {
        let context = |index: u8| contexts[usize::from(index)];
        let (index, prediction) = match self {
            Unit::Cm(cm) => (cm.index, cm.predict(at, context(cm.index), tables)),
            Unit::Icm(icm) => (icm.index, icm.predict(at)),
            Unit::Match(model) => (model.index, model.predict(at)),
            Unit::Avg(avg) => (avg.index, avg.predict(predictions)),
            Unit::Mix2(mix) => (mix.index, mix.predict(at, context(mix.index), predictions)),
            Unit::Mix(mix) => (mix.index, mix.predict(at, context(mix.index), predictions)),
            Unit::Sse(sse) => (
                sse.index,
                sse.predict(at, context(sse.index), predictions, tables),
            ),
            Unit::Chain(chain) => {
                chain.predict(at, predictions, tables);
                return;
            }
        };
        predictions[usize::from(index)] = prediction;
    }

    /// Learns the bit that came.
    #[inline(always)]
    pub(super) fn learn(&mut self, at: At, bit: usize, predictions: &Predictions, tables: &Tables) {
        match self {
            Unit::Cm(cm) => cm.learn(bit, tables),
            Unit::Icm(icm) => icm.learn(at, bit, tables),
            Unit::Match(model) => model.learn(bit),
            Unit::Avg(_) => {}
            Unit::Mix2(mix) => mix.learn(bit, predictions, tables),
            Unit::Mix(mix) => mix.learn(bit, predictions, tables),
            Unit::Sse(sse) => sse.learn(bit, tables),
            Unit::Chain(chain) => chain.learn(at, bit, tables),
        }
    }

    /// Learns the byte that is whole now.
    #[inline(always)]
    pub(super) fn end_byte(&mut self, byte: u8, contexts: &Contexts) {
        if let Unit::Match(model) = self {
            model.end_byte(byte, contexts[usize::from(model.index)]);
        }
    }
}
