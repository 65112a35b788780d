//! `--rm`: removes sources once all of their content is elsewhere.

use std::fs::Metadata;
use std::path::PathBuf;

use crate::exit::Exit;
use crate::files::{self, Kept};
use crate::paths::label;
use crate::report::{Copied, Outcome, Report};
use crate::text::printable;

/// Removes the sources of a result, or says why not. The metadata are from when they were read.
pub fn remove_sources<'a>(
    sources: impl IntoIterator<Item = (&'a PathBuf, &'a Metadata)>,
    copied: Copied,
    outcome: &mut Outcome,
    report: &Report,
) {
    let reason = outcome.reason_to_keep(copied);
    for (path, read) in sources {
        let removed = match reason {
            Some(reason) => Ok(Some(Kept::Because(reason))),
            None => files::remove_source(path, read),
        };
        let file = printable(&label(path));
        match removed {
            Ok(None) => {}
            Ok(Some(Kept::Because(why))) => report.remark(&format!("{file}: not removed: {why}")),
            Ok(Some(Kept::Changed)) => {
                let text = format!("{file}: not removed: it changed while it was read");
                outcome.add_loss(Exit::Exceptions, &text);
            }
            Err(failure) => outcome.add_loss(Exit::Exceptions, &failure.to_string()),
        }
    }
}
