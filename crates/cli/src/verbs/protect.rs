//! `refrain protect`: recovery data for files that exist.

use std::path::Path;
use std::sync::Arc;

use refrain::storage::Source;
use refrain::{ProtectSummary, RecoveryOptions, recovery_goes_apart, recovery_info};
use serde_json::json;

use crate::args::ProtectArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::paths::{self, NewFile, label};
use crate::report::{DataTo, Outcome, Report, tell_read_back};
use crate::session::Session;
use crate::text::printable;
use crate::units::{bytes_text, duration_text, percent_text};
use crate::volumes;

/// The suffix of a file with the recovery data of another one, without its dot.
pub const APART_SUFFIX: &str = "rfr";

/// Runs the verb.
pub fn run(args: &ProtectArgs, session: &Session) -> Exit {
    let mut report = Report::new("protect", &args.report, session, DataTo::Elsewhere);
    if args.output.is_some() && args.files.len() > 1 {
        let text = "-o names one output: protect one FILE at a time";
        report.add(Err(Failure::usage("", text)));
    } else {
        let options = args.resources.recovery_options(args.recovery);
        report.each(&args.files, |path, report| {
            protect(path, args, &options, report)
        });
    }
    report.finish()
}

fn protect(
    path: &Path,
    args: &ProtectArgs,
    options: &RecoveryOptions,
    report: &Report,
) -> Result<Outcome> {
    let label = label(path);
    let failure = |error| Failure::engine(&label, error);
    let source = regular_file(path)?;
    let is_apart = recovery_goes_apart(&*source).map_err(failure)?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None if is_apart => names::with_suffix(path, APART_SUFFIX),
        None => path.to_path_buf(),
    };
    let replaces = args.force || (args.output.is_none() && may_be_replaced(&output, is_apart));
    if args.output.is_some() {
        paths::check_other_than(&paths::metadata(path)?, &output)?;
    }
    paths::check_free(&output, replaces)?;
    let new = NewFile {
        overwrite: replaces,
        mode: paths::metadata(path).ok().as_ref().and_then(paths::mode),
        synced: true,
        checking: paths::checking(args.check),
        ..NewFile::default()
    };
    let mut sink = files::file_sink(&output, new)?;
    let meter = report.meter(&label);
    let summary = refrain::protect(&source, sink.as_mut(), options, &meter).map_err(failure)?;
    let read_back = sink.read_back_result();
    drop(sink);
    meter.erase();
    let elapsed = meter.elapsed();
    let json = json!({
        "file": label,
        "output": output.to_string_lossy(),
        "protected_bytes": summary.protected_bytes,
        "recovery_bytes": summary.recovery_bytes,
        "replaced": summary.has_replaced,
        "seconds": elapsed.as_secs_f64(),
    });
    let line = line(&label, &summary, &output, &duration_text(elapsed));
    let mut outcome = Outcome::new(&label, line, json);
    tell_read_back(read_back, &mut outcome, report);
    Ok(outcome)
}

fn line(label: &str, summary: &ProtectSummary, output: &Path, elapsed: &str) -> String {
    let share = percent_text(summary.recovery_bytes, summary.protected_bytes);
    let bytes = bytes_text(summary.recovery_bytes);
    let place = if summary.is_apart {
        format!(" in {}", printable(&output.to_string_lossy()))
    } else {
        String::new()
    };
    let label = printable(label);
    format!("{label}: protected, {bytes} of recovery data ({share}){place}, {elapsed}")
}

/// A file that can be read at any offset.
pub fn regular_file(path: &Path) -> Result<Arc<dyn Source>> {
    volumes::check_is_file(path, "this verb needs one file")?;
    paths::check_no_url(path)?;
    let metadata = paths::metadata(path)?;
    if !metadata.is_file() {
        let text = "is not a regular file";
        return Err(Failure::usage(label(path), text));
    }
    files::source(path)
}

/// Whether a file may be replaced without being asked: the archive itself, or recovery data.
fn may_be_replaced(output: &Path, is_apart: bool) -> bool {
    let is_recovery = || {
        let source = files::source(output).ok()?;
        let is_made_here = recovery_goes_apart(&*source).ok()?;
        recovery_info(&*source).ok()?.filter(|_| is_made_here)
    };
    !is_apart || is_recovery().is_some()
}
