//! The components of a model in the form in which they are computed.

use super::bit::{At, Contexts, PREDICTIONS, Predictions};
use super::counting::{Cm, Sse};
use super::histories::{Chain, Icm};
use super::matching::Match;
use super::mixing::{Avg, Learning, Mix, Mix2};
use crate::zpaq::header::Component;
use crate::zpaq::tables::Tables;
use refrain_codec::Result;

/// Components of a model, at most.
pub(crate) const COMPONENTS_MAX: usize = 255;

/// Components that are next to each other in a model, and alike. Constants are none: their predictions never change.
#[allow(private_interfaces)]
pub(crate) enum Unit {
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
    pub(crate) fn all(
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
    pub(crate) fn prefetch(&self, contexts: &Contexts, partial: u32) {
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
    pub(crate) fn begin_half(&mut self, contexts: &Contexts, partial: u32) {
        let context = |index: u8| contexts[usize::from(index)];
        match self {
            Unit::Icm(icm) => icm.begin_half(context(icm.index), partial),
            Unit::Chain(chain) => chain.begin_half(contexts, partial),
            _ => {}
        }
    }

    /// Predicts the bit at `at`.
    #[inline(always)]
    pub(crate) fn predict(
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
    pub(crate) fn learn(&mut self, at: At, bit: usize, predictions: &Predictions, tables: &Tables) {
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
    pub(crate) fn end_byte(&mut self, byte: u8, contexts: &Contexts) {
        if let Unit::Match(model) = self {
            model.end_byte(byte, contexts[usize::from(model.index)]);
        }
    }
}
