//! `refrain test`: every frame, block and hash of archives is checked; nothing is written.

use std::path::Path;

use serde_json::json;

use crate::args::TestArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::report::{DataTo, Outcome, Report};
use crate::session::Session;
use crate::units::{bytes_text, duration_text, rate_text};

/// Runs the verb.
pub fn run(args: &TestArgs, session: &Session) -> Exit {
    let mut report = Report::new("test", &args.report, session, DataTo::Elsewhere);
    match files::or_stdin(&args.archives) {
        Ok(paths) => report.each(&paths, |path, report| test(path, args, report)),
        Err(failure) => report.add(Err(failure)),
    }
    report.finish()
}

fn test(path: &Path, args: &TestArgs, report: &Report) -> Result<Outcome> {
    let label = files::label(path);
    let options = args.password.with(args.resources.read_options());
    let meter = report.meter(&label);
    let summary = if files::is_dash(path) {
        refrain::verify_stream(files::stdin_stream(report.session())?, &options, &meter)
    } else if files::metadata(path)?.is_file() {
        refrain::verify(files::source(path)?, &options, &meter)
    } else {
        let stream = files::file_stream(path, report.session())?;
        refrain::verify_stream(stream, &options, &meter)
    };
    let summary = summary.map_err(|error| Failure::engine(&label, error))?;
    meter.erase();
    let elapsed = meter.elapsed();
    let line = format!(
        "{}: good, {} -> {}, {}, {}",
        names::shown(&label),
        bytes_text(summary.archive_bytes),
        bytes_text(summary.content_bytes),
        duration_text(elapsed),
        rate_text(summary.content_bytes, elapsed),
    );
    let mut json = json!({
        "file": label,
        "members": summary.members,
        "content_bytes": summary.content_bytes,
        "archive_bytes": summary.archive_bytes,
        "entries": summary.entries,
        "seconds": elapsed.as_secs_f64(),
    });
    meter.add_blocks(&mut json);
    Ok(Outcome {
        summary: line,
        json,
    })
}
