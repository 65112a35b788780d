//! The components of a model in the form in which they are computed.

use super::bit::{BitPosition, Contexts, PREDICTIONS, Predictions};
use super::counting::{Cm, Sse};
use super::histories::{Chain, Icm};
use super::matching::Match;
use super::mixing::{Avg, Mix, Mix2, MixerSettings};
use crate::zpaq::header::Component;
use crate::zpaq::tables::Tables;
use refrain_codec::Result;

pub(crate) const COMPONENTS_MAX: usize = 255;

/// A component, or a chain of adjacent ISSE components. A constant has no unit: its prediction
/// never changes.
#[allow(private_interfaces)]
pub(crate) enum ModelUnit {
    Cm(Box<Cm>),
    Icm(Box<Icm>),
    Match(Box<Match>),
    Avg(Box<Avg>),
    Mix2(Box<Mix2>),
    Mix(Box<Mix>),
    /// ISSE components, each of which corrects the previous one.
    Chain(Box<Chain>),
    Sse(Box<Sse>),
}

impl ModelUnit {
    /// Creates the units for the components of a model. Returns them with the initial predictions.
    pub(crate) fn all(
        components: &[Component],
        tables: &Tables,
    ) -> Result<(Vec<ModelUnit>, Predictions)> {
        let mut units = Vec::new();
        let mut predictions = [0; PREDICTIONS];
        for (index, (&component, prediction)) in components.iter().zip(&mut predictions).enumerate()
        {
            if let Component::Const { value } = component {
                *prediction = (i32::from(value) - 128) * 4;
            }
            match (
                units.last_mut(),
                ModelUnit::new(index as u8, component, tables)?,
            ) {
                (_, None) => {}
                (Some(ModelUnit::Chain(chain)), Some(ModelUnit::Chain(next))) => {
                    let next = chain.append(*next);
                    units.extend(next.map(|next| ModelUnit::Chain(Box::new(next))));
                }
                (_, Some(unit)) => units.push(unit),
            }
        }
        Ok((units, predictions))
    }

    /// Returns `None` for a constant.
    fn new(index: u8, component: Component, tables: &Tables) -> Result<Option<ModelUnit>> {
        Ok(Some(match component {
            Component::Const { .. } => return Ok(None),
            Component::Cm { size_bits, limit } => {
                ModelUnit::Cm(Box::new(Cm::new(index, size_bits, limit)?))
            }
            Component::Icm { size_bits } => {
                ModelUnit::Icm(Box::new(Icm::new(index, size_bits, tables)?))
            }
            Component::Match {
                size_bits,
                buffer_bits,
            } => ModelUnit::Match(Box::new(Match::new(index, size_bits, buffer_bits, tables)?)),
            Component::Avg { inputs, weight } => ModelUnit::Avg(Box::new(Avg {
                index,
                inputs,
                weight,
            })),
            Component::Mix2 {
                size_bits,
                inputs,
                rate,
                mask,
            } => ModelUnit::Mix2(Box::new(Mix2::new(
                index,
                size_bits,
                inputs,
                MixerSettings { rate, mask },
            )?)),
            Component::Mix {
                size_bits,
                first,
                count,
                rate,
                mask,
            } => {
                let inputs = (first, usize::from(count));
                ModelUnit::Mix(Box::new(Mix::new(
                    index,
                    size_bits,
                    inputs,
                    MixerSettings { rate, mask },
                )?))
            }
            Component::Isse { size_bits, input } => {
                ModelUnit::Chain(Box::new(Chain::new(index, size_bits, input, tables)?))
            }
            Component::Sse {
                size_bits,
                input,
                start,
                limit,
            } => ModelUnit::Sse(Box::new(Sse::new(
                index,
                size_bits,
                input,
                (start, limit),
                tables,
            )?)),
        }))
    }

    /// Prefetches what the nibble after the bits `partial` needs.
    #[inline(always)]
    pub(crate) fn prefetch(&self, contexts: &Contexts, partial: u32) {
        let context = |index: u8| contexts[usize::from(index)];
        match self {
            ModelUnit::Icm(icm) => icm.prefetch(context(icm.index), partial),
            ModelUnit::Chain(chain) => chain.prefetch(contexts, partial),
            ModelUnit::Cm(cm) => cm.prefetch(context(cm.index), partial << 4),
            ModelUnit::Match(model) => model.prefetch(context(model.index), partial > 1),
            ModelUnit::Avg(_) | ModelUnit::Mix2(_) | ModelUnit::Mix(_) | ModelUnit::Sse(_) => {}
        }
    }

    #[inline(always)]
    pub(crate) fn begin_nibble(&mut self, contexts: &Contexts, partial: u32) {
        let context = |index: u8| contexts[usize::from(index)];
        match self {
            ModelUnit::Icm(icm) => icm.begin_nibble(context(icm.index), partial),
            ModelUnit::Chain(chain) => chain.begin_nibble(contexts, partial),
            _ => {}
        }
    }

    #[inline(always)]
    pub(crate) fn predict(
        &mut self,
        position: BitPosition,
        contexts: &Contexts,
        predictions: &mut Predictions,
        tables: &Tables,
    ) {
        let context = |index: u8| contexts[usize::from(index)];
        let (index, prediction) = match self {
            ModelUnit::Cm(cm) => (cm.index, cm.predict(position, context(cm.index), tables)),
            ModelUnit::Icm(icm) => (icm.index, icm.predict(position)),
            ModelUnit::Match(model) => (model.index, model.predict(position)),
            ModelUnit::Avg(avg) => (avg.index, avg.predict(predictions)),
            ModelUnit::Mix2(mix) => (
                mix.index,
                mix.predict(position, context(mix.index), predictions),
            ),
            ModelUnit::Mix(mix) => (
                mix.index,
                mix.predict(position, context(mix.index), predictions),
            ),
            ModelUnit::Sse(sse) => (
                sse.index,
                sse.predict(position, context(sse.index), predictions, tables),
            ),
            ModelUnit::Chain(chain) => {
                chain.predict(position, predictions, tables);
                return;
            }
        };
        predictions[usize::from(index)] = prediction;
    }

    #[inline(always)]
    pub(crate) fn learn(
        &mut self,
        position: BitPosition,
        bit: usize,
        predictions: &Predictions,
        tables: &Tables,
    ) {
        match self {
            ModelUnit::Cm(cm) => cm.learn(bit, tables),
            ModelUnit::Icm(icm) => icm.learn(position, bit, tables),
            ModelUnit::Match(model) => model.learn(bit),
            ModelUnit::Avg(_) => {}
            ModelUnit::Mix2(mix) => mix.learn(bit, predictions, tables),
            ModelUnit::Mix(mix) => mix.learn(bit, predictions, tables),
            ModelUnit::Sse(sse) => sse.learn(bit, tables),
            ModelUnit::Chain(chain) => chain.learn(position, bit, tables),
        }
    }

    #[inline(always)]
    pub(crate) fn end_byte(&mut self, byte: u8, contexts: &Contexts) {
        if let ModelUnit::Match(model) = self {
            model.end_byte(byte, contexts[usize::from(model.index)]);
        }
    }
}
