//! Weights, and the virtual times of a flow.

use refrain_policy::{Class, Entity, Nice};

/// The weight of nice 0.
pub(super) const WEIGHT_NICE_0: i64 = 1024;
/// The weight of idle flows.
const WEIGHT_IDLE: i64 = 3;

/// One step of nice changes the share by a quarter: 1024 · 1.25^−nice.
pub(super) fn weight(entity: &Entity) -> i64 {
    if entity.class == Class::Idle {
        return WEIGHT_IDLE;
    }
    let steps = entity
        .nice
        .value()
        .clamp(Nice::MIN.value(), Nice::MAX.value());
    let (five, four) = (
        5i128.pow(steps.unsigned_abs()),
        4i128.pow(steps.unsigned_abs()),
    );
    let (up, down) = if steps < 0 { (five, four) } else { (four, five) };
    ((i128::from(WEIGHT_NICE_0) * up + down / 2) / down) as i64 // 15 to 88,818.
}

/// How much virtual time a service of `time_ns` takes.
pub(super) fn scaled_ns(entity: &Entity, time_ns: i64) -> i64 {
    time_ns
        .saturating_mul(WEIGHT_NICE_0)
        .div_euclid(weight(entity))
}

/// The flow's own virtual time: its deadline without the rest of its request. It is eligible when
/// that of its queue has reached this, so if its lag is not negative.
pub(super) fn virtual_start_ns(entity: &Entity) -> i64 {
    entity.deadline_ns as i64 - scaled_ns(entity, entity.slice_left_ns)
}
