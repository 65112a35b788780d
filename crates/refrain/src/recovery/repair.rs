//! The verb repair: from damaged files to a healed one.

use std::sync::Arc;

use refrain_storage::{Sink, Source};

use super::depot::Depot;
use super::frames::FoundSets;
use super::healed_file::{Added, HealedFile};
use super::merge::Merged;
use super::options::RecoveryOptions;
use super::protect::copy;
use super::segment::Healing;
use super::summary::{PLACES_MAX, RepairSummary};
use super::unreadable::Unreadable;
use super::window::Window;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Watch;

/// More inputs than anyone has.
const INPUTS_MAX: usize = 100;

/// A healed file that exists only as a plan: what is intact is read where it is.
pub struct RepairPlan {
    healed: Arc<dyn Source>,
    /// Up to the last recovery data, if the file ends with it.
    archive_bytes: u64,
    summary: RepairSummary,
}

impl RepairPlan {
    /// What was found.
    pub fn summary(&self) -> &RepairSummary {
        &self.summary
    }

    /// The healed file, without the recovery data at its end.
    pub fn source(&self) -> Arc<dyn Source> {
        Arc::new(Window::new(self.healed.clone(), 0..self.archive_bytes))
    }

    /// Writes the healed file, with recovery data if it had it, and publishes `sink`.
    ///
    /// # Errors
    /// `Io`, `Cancelled`. Then the sink is not published.
    pub fn write(&self, sink: &mut dyn Sink, watch: &dyn Watch) -> Result<()> {
        copy(&*self.healed, 0..self.summary.healed_bytes, sink, watch)?;
        if self.healed.has_changed()? {
            let text = "a file changed while it was repaired";
            return Err(Error::new(ErrorKind::Io, text));
        }
        Ok(sink.publish()?)
    }
}

/// Plans the repair of the first of `inputs`. The others are damaged copies of it, or files with
/// its recovery data.
///
/// All that the plan delivers has been compared with the digests in the recovery data, except for
/// ranges that have none, because an `add` was interrupted or all of theirs is lost: the summary
/// names them. Without recovery data, an archive is put together from the frames that are intact in
/// any of the copies, which must be where they were.
///
/// # Errors
/// `Damaged` if there is no recovery data and no other copy, or more damage than they can heal;
/// `Usage` if it is that of another file; `Io`, `Limit`, `Cancelled`.
pub fn plan_repair(
    inputs: Vec<Arc<dyn Source>>,
    options: &RecoveryOptions,
    watch: &dyn Watch,
) -> Result<RepairPlan> {
    if inputs.is_empty() || inputs.len() > INPUTS_MAX {
        let text = format!("repairs use 1 to {INPUTS_MAX} files");
        return Err(Error::new(ErrorKind::Usage, text));
    }
    let readable: Vec<_> = inputs
        .into_iter()
        .map(Unreadable::new)
        .map(Arc::new)
        .collect();
    let inputs: Vec<Arc<dyn Source>> = (readable.iter())
        .map(|input| input.clone() as Arc<dyn Source>)
        .collect();
    let mut sets = FoundSets::find(&inputs, watch)?;
    let mut plan = if sets.chain().is_empty() && inputs.len() > 1 {
        plan_merge(inputs, options, watch)?
    } else {
        let depot = Arc::new(Depot::new(
            options.memory_bytes / 4,
            options.temporary.clone(),
        ));
        let healing = Healing {
            inputs,
            depot: &depot,
            options,
            watch,
        };
        match plan_healing(&mut sets, &healing)? {
            Planned::Plan(plan) => plan,
            // Recovery data of the archive itself may end earlier in it than that of one inside.
            Planned::Inside(Some(id)) if sets.keep_only(id) => {
                match plan_healing(&mut sets, &healing)? {
                    Planned::Plan(plan) => plan,
                    Planned::Inside(_) => return Err(of_archive_inside()),
                }
            }
            Planned::Inside(_) => return Err(of_archive_inside()),
        }
    };
    plan.summary.unreadable_bytes = readable.iter().map(|input| input.bytes()).sum();
    Ok(plan)
}

fn of_archive_inside() -> Error {
    let text = "the recovery data that is left is of an archive inside this file";
    Error::new(ErrorKind::Usage, text)
}

enum Planned {
    Plan(RepairPlan),
    /// The recovery data is not that of the archive with this id, with which the file begins.
    Inside(Option<u32>),
}

/// Plans the repair with the recovery data that was found. Sets of which too little is left are
/// left out, unless there is no other.
fn plan_healing(sets: &mut FoundSets, healing: &Healing<'_>) -> Result<Planned> {
    let mut lost = sets.take_hopeless();
    loop {
        let chain = sets.chain();
        if chain.is_empty() {
            return Err(Error::damaged(
                "has no recovery data, or nothing is left of it",
            ));
        }
        let mut healed = HealedFile::new(healing, &lost);
        match healed.add_chain(&chain)? {
            Added::All => {}
            Added::Inside(id) => return Ok(Planned::Inside(id)),
            Added::Not(_, error) if chain.len() == 1 => return Err(error),
            Added::Not(set, _) => {
                sets.remove(&set);
                lost.push(set);
                continue;
            }
        }
        let Some((last, _)) = chain.last() else { continue };
        let (pieces, archive_bytes, summary) = healed.finish(last)?;
        return Ok(Planned::Plan(RepairPlan {
            healed: Arc::new(pieces),
            archive_bytes,
            summary,
        }));
    }
}

/// Plans an archive put together from copies that have no recovery data.
fn plan_merge(
    inputs: Vec<Arc<dyn Source>>,
    options: &RecoveryOptions,
    watch: &dyn Watch,
) -> Result<RepairPlan> {
    let first_bytes = inputs[0].size_bytes()?;
    let merged = Merged::new(inputs, options.memory_bytes, watch)?;
    let bytes = merged.size_bytes()?;
    let mut summary = RepairSummary {
        protected_bytes: bytes,
        healed_bytes: bytes,
        damaged: merged.ranges_of_others(),
        ..RepairSummary::default()
    };
    summary.damaged_bytes = summary
        .damaged
        .iter()
        .map(|range| range.end - range.start)
        .sum();
    summary.merged_bytes = summary.damaged_bytes;
    summary.is_intact = summary.damaged_bytes == 0 && bytes == first_bytes;
    summary.damaged.truncate(PLACES_MAX);
    Ok(RepairPlan {
        healed: Arc::new(merged),
        archive_bytes: bytes,
        summary,
    })
}
