//! Whether readers and writers of one file run at the same time, judged by their combined
//! throughput.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::probe::Target;
use crate::context::Context;
use crate::error::Result;
use crate::gang;

/// What one of the two threads does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Keeps reading the same bytes.
    Read,
    /// Keeps writing the same bytes.
    Write,
    /// Writes bytes that nobody else touches.
    WriteElsewhere,
}

/// The combined throughput relative to that of each alone: 2 if neither hinders the other, 1 if
/// they take turns.
pub(super) fn share<T: Target>(
    context: &Context,
    target: &Arc<T>,
    size_bytes: usize,
    roles: [Role; 2],
    time: Duration,
) -> Result<io::Result<f64>> {
    // The best of alternating rounds: disturbances only ever slow down.
    let mut alone = [0.0_f64; 2];
    let mut together = Vec::new();
    for _ in 0..ROUNDS {
        for (rate, role) in alone.iter_mut().zip(roles) {
            match run(context, target, size_bytes, vec![role], time / ROUNDS)? {
                Ok(rates) => *rate = rate.max(rates[0]),
                Err(error) => return Ok(Err(error)),
            }
        }
        match run(context, target, size_bytes, roles.to_vec(), time / ROUNDS)? {
            Ok(rates) => together.push([rates[0], rates[1]]),
            Err(error) => return Ok(Err(error)),
        }
    }
    let shares = together
        .iter()
        .map(|[one, other]| one / alone[0] + other / alone[1]);
    Ok(Ok(shares.fold(f64::NAN, f64::max)))
}

/// How often each is measured alone, and both together.
const ROUNDS: u32 = 3;

/// Operations per nanosecond of each.
fn run<T: Target>(
    context: &Context,
    target: &Arc<T>,
    size_bytes: usize,
    roles: Vec<Role>,
    time: Duration,
) -> Result<io::Result<Vec<f64>>> {
    let (target, clocked) = (target.clone(), context.clone());
    let members = roles.len();
    let act = move |member: usize| -> io::Result<f64> {
        let mut buffer = vec![1; size_bytes];
        let mut failed = Ok(());
        let rounds = clocked.repeat(time, || {
            if failed.is_ok() {
                failed = match roles[member] {
                    Role::Read => target.read_at(0, &mut buffer).map(drop),
                    Role::Write => target.write_at(0, &buffer),
                    Role::WriteElsewhere => target.write_at(size_bytes as u64, &buffer),
                };
            }
            Ok(())
        });
        // The caller's check detects a cancelled round.
        let rate = rounds.map_or(f64::NAN, |(rounds, taken_ns)| {
            rounds as f64 / taken_ns as f64
        });
        failed.map(|()| rate)
    };
    let rates = gang::run(members, act)?;
    context.check()?;
    Ok(rates.into_iter().collect())
}
