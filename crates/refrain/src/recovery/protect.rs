//! The verb protect: recovery data for a file that exists.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::RecoverySet;
use refrain_protect::recovery::{BadParameters, RecoveryParameters};
use refrain_storage::{Sink, Source};

use super::appendix::write_appendix;
use super::check::{check_digests, old_digests, repair_first};
use super::encode::{Encoded, encode};
use super::options::RecoveryOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Watch, is_cancelled};
use crate::store::appendix::tail_before;
use crate::store::ending::{Ending, ending_of};
use crate::store::recovery_chain::recovery_chain;

/// The recovery data that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectSummary {
    /// The bytes that are protected.
    pub protected_bytes: u64,
    /// The bytes of the recovery data.
    pub recovery_bytes: u64,
    /// Whether it is in a file of its own.
    pub is_apart: bool,
    /// Whether it replaced other recovery data.
    pub has_replaced: bool,
}

/// Whether recovery data of this file goes to a file of its own: only archives of the native format
/// have a place for it.
///
/// # Errors
/// `Io`; `Damaged` if the file has recovery data that is damaged.
pub fn recovery_goes_apart(source: &dyn Source) -> Result<bool> {
    Ok(match ending_of(source)? {
        Ending::Recovery(set) => set.is_apart,
        Ending::Tail(_) => false,
        Ending::Other => true,
    })
}

/// Makes recovery data for a file, and publishes `sink`: a copy of the file with recovery data in
/// place of what it had, or recovery data alone ([`recovery_goes_apart`]).
///
/// What is damaged already is protected as it is, unless the file has recovery data that says so.
/// If something was added to an archive with recovery data, one set replaces the last one, and
/// protects all that is before it; earlier ones stay where they are, as the archive refers to
/// places behind them.
///
/// # Errors
/// `Damaged` if the file does not match the recovery data that it has; `Usage` for an empty file,
/// or one that is recovery data; `Io`, `Limit`, `Cancelled`. Then the sink is not published.
pub fn protect(
    source: &Arc<dyn Source>,
    sink: &mut dyn Sink,
    options: &RecoveryOptions,
    watch: &dyn Watch,
) -> Result<ProtectSummary> {
    let ending = ending_of(&**source)?;
    if matches!(ending, Ending::Recovery(set) if set.is_apart) {
        let text = "is recovery data itself: name the file that it protects";
        return Err(Error::new(ErrorKind::Usage, text));
    }
    let protected_bytes = match ending {
        Ending::Recovery(set) => set.protected().end,
        _ => source.size_bytes()?,
    };
    let share = options.share.hundredths_of_percent();
    let parameters = RecoveryParameters::choose(protected_bytes, share).map_err(not_protected)?;
    let chain = recovery_chain(&**source, source.size_bytes()?)?;
    if chain.sets.len() > 1 || !chain.unprotected.is_empty() {
        check_digests(&**source)?;
    }
    let encoded = encode(source, parameters, options, watch)?;
    if let Ending::Recovery(old) = ending
        && old.later.is_none()
    {
        compare(&**source, &old, &encoded)?;
    }
    let set = set_of(ending, &encoded);
    let is_apart = set.is_apart;
    let tail = tail_before(&**source, protected_bytes)?;
    if !is_apart {
        copy(&**source, 0..protected_bytes, sink, watch)?;
    }
    let recovery_bytes = write_appendix(&set, &encoded, tail, sink)?;
    if source.has_changed()? {
        let text = "the file changed while recovery data was made";
        return Err(Error::new(ErrorKind::Io, text));
    }
    sink.publish()?;
    Ok(ProtectSummary {
        protected_bytes,
        recovery_bytes,
        is_apart,
        has_replaced: matches!(ending, Ending::Recovery(_)),
    })
}

pub(crate) fn not_protected(bad: BadParameters) -> Error {
    let text = match bad.value {
        0 => "is empty: there is nothing to protect".to_owned(),
        _ => bad.to_string(),
    };
    Error::new(ErrorKind::Usage, text)
}

/// The set of frames that goes behind a file with this ending.
pub(crate) fn set_of(ending: Ending, encoded: &Encoded) -> RecoverySet {
    let (archive_id, first_sequence, is_apart) = match ending {
        Ending::Recovery(old) => (old.archive_id, old.first_sequence, old.is_apart),
        Ending::Tail(last) => {
            let next = u32::try_from(last.sequence.saturating_add(1)).unwrap_or(u32::MAX);
            (last.archive_id, next, false)
        }
        Ending::Other => (0, 0, true),
    };
    RecoverySet {
        archive_id,
        is_apart,
        first_sequence,
        set_id: encoded.table.set_id(),
        parameters: *encoded.table.parameters(),
        later: None,
    }
}

/// Compares the file with the recovery data that it has: to protect what is damaged would make it
/// impossible to heal.
fn compare(source: &dyn Source, old: &RecoverySet, encoded: &Encoded) -> Result<()> {
    let is_same_size = old.parameters.slice_bytes == encoded.table.parameters().slice_bytes;
    let digests = old_digests(source, old)?.filter(|_| is_same_size);
    match digests {
        Some(digests) if digests != encoded.table.digests() => Err(repair_first()),
        _ => Ok(()),
    }
}

/// Copies a range of a file.
pub(crate) fn copy(
    source: &dyn Source,
    range: Range<u64>,
    sink: &mut dyn Sink,
    watch: &dyn Watch,
) -> Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut offset = range.start;
    while offset < range.end {
        if is_cancelled(watch) {
            return Err(Error::cancelled());
        }
        let wanted = (range.end - offset).min(buffer.len() as u64) as usize;
        let count = source.read_at(offset, &mut buffer[..wanted])?;
        if count < wanted {
            let text = "the file became shorter while it was copied";
            return Err(Error::new(ErrorKind::Io, text));
        }
        sink.write_all(&buffer[..count])?;
        offset += count as u64;
    }
    Ok(())
}
