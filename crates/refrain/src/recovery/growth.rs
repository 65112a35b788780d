//! Recovery data for what was added to an archive: as much as the archive has, behind it.

use std::sync::Arc;

use refrain_format::{FrameKind, LaterBytes, RecoverySet};
use refrain_protect::recovery::RecoveryParameters;
use refrain_storage::{GrowingSink, Source};

use super::appendix::write_appendix;
use super::encode::encode;
use super::options::RecoveryOptions;
use super::protect::{not_protected, set_of};
use super::window::Window;
use crate::error::{Error, Result};
use crate::progress::{CancelOnly, Watch};
use crate::recovery_share::RecoveryShare;
use crate::store::appendix::{appended_frames, own_end, tail_before};
use crate::store::ending::{ending_of, set_ending_at};
use crate::store::recovery_chain::set_before;

/// The recovery data that an archive has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Covered {
    /// Where it ends in the file.
    end: u64,
    /// How much was asked for.
    share: RecoveryShare,
}

impl Covered {
    /// The last recovery data before `end`, where an archive ends in a file, with all that is
    /// appended to it. `None` if there is none.
    ///
    /// # Errors
    /// `Damaged` if that at the very end is damaged; `Io`, `Limit`.
    pub(crate) fn before(file: &dyn Source, end: u64) -> Result<Option<Covered>> {
        if set_ending_at(file, end)?.is_none() && ends_with_recovery(file, end)? {
            return Err(Error::damaged(
                "the recovery data is damaged: repair the file first",
            ));
        }
        let set = set_before(file, end)?;
        Ok(set.map(|set| Covered {
            end: set.appendix_end(),
            share: share_of(&set),
        }))
    }
}

fn ends_with_recovery(file: &dyn Source, end: u64) -> Result<bool> {
    let own = own_end(file, end)?.filter(|own| own.offset < end);
    let Some(own) = own else { return Ok(false) };
    let last = appended_frames(file, &own, end)?.last;
    Ok(last.is_some_and(|(kind, _)| kind == FrameKind::Recovery))
}

/// The share that was asked for when a set was made.
pub(crate) fn share_of(set: &RecoverySet) -> RecoveryShare {
    match set.later {
        Some(later) => RecoveryShare::nearest(u32::from(later.share)),
        None => RecoveryShare::of_rows(set.parameters.parity_rows, set.parameters.data_rows),
    }
}

/// The share that what is added to an archive gets: what was asked for now, or else as before.
pub(crate) fn growing_share(
    asked: Option<RecoveryShare>,
    covered: Option<&Covered>,
) -> Option<RecoveryShare> {
    asked.or(covered.map(|covered| covered.share))
}

/// Makes recovery data for what follows `covered` in an archive to which `added_bytes` were just
/// added, and publishes it behind the archive. Returns its size with its tail; volumes get none.
///
/// # Errors
/// `Io`, `Limit`, `Cancelled`. Then what was added is cut off again.
pub(crate) fn protect_growth(
    file: &mut dyn GrowingSink,
    covered: Option<&Covered>,
    options: &RecoveryOptions,
    added_bytes: u64,
    watch: &dyn Watch,
) -> Result<u64> {
    if !file.grows_again() {
        return Ok(0);
    }
    let size = file.source()?.size_bytes()?;
    let appended = append_recovery(file, size, covered, options, &CancelOnly(watch));
    if appended.is_err() {
        // If this fails, too, what was added stays without recovery data.
        let _ = file.append_behind(size.saturating_sub(added_bytes));
    }
    appended
}

fn append_recovery(
    file: &mut dyn GrowingSink,
    size: u64,
    covered: Option<&Covered>,
    options: &RecoveryOptions,
    watch: &dyn Watch,
) -> Result<u64> {
    let source = file.source()?;
    let start = covered.map_or(0, |covered| covered.end);
    let share = options.share.hundredths_of_percent();
    let parameters =
        RecoveryParameters::choose(size.saturating_sub(start), share).map_err(not_protected)?;
    let later: Arc<dyn Source> = Arc::new(Window::new(source.clone(), start..size));
    let encoded = encode(&later, parameters, options, watch)?;
    let set = RecoverySet {
        later: (start > 0).then(|| LaterBytes {
            start,
            share: u16::try_from(share).unwrap_or(u16::MAX),
        }),
        ..set_of(ending_of(&*source)?, &encoded)
    };
    file.append_behind(size)?;
    let tail = tail_before(&*source, size)?;
    let bytes = write_appendix(&set, &encoded, tail, &mut *file)?;
    file.publish()?;
    Ok(bytes)
}
