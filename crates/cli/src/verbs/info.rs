//! `refrain info`: what an archive consists of.

use refrain::ReadOptions;
use serde_json::Value;

use super::input::open_archive;
use crate::args::InfoArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plan::{InspectPlan, SeekableInput};
use crate::report::{
    DataTo, Outcome, Report, archive_json, archive_text, block_json, print, table_head, table_line,
};
use crate::session::Session;

/// Runs the verb.
pub fn run(args: &InfoArgs, session: &Session) -> Exit {
    let mut report = Report::new("info", &args.report, session, DataTo::Elsewhere);
    if args.table && report.writes_text() {
        report.add_text(&table_head());
    }
    let plan = InspectPlan::of_info(args);
    report.each(plan.archives, |archive, report| {
        info(&archive?, args, &plan.options, report)
    });
    report.finish()
}

fn info(
    input: &SeekableInput,
    args: &InfoArgs,
    options: &ReadOptions,
    report: &Report,
) -> Result<Outcome> {
    let meter = report.meter(&input.label);
    let archive = open_archive(input, &args.opening, options, &meter, report.session())?;
    let engine_failure = |error| Failure::engine(&input.label, error);
    let info = archive.info().map_err(engine_failure)?;
    let members = archive.members().map_err(engine_failure)?;
    let blocks = match report.verbosity() {
        0 | 1 => Vec::new(),
        _ => archive.blocks().map_err(engine_failure)?,
    };
    meter.erase();
    if report.writes_text() {
        let text = match args.table {
            true => table_line(&input.label, &info),
            false => archive_text(
                &input.path,
                &info,
                &members,
                &blocks,
                report.verbosity() > 0,
            ),
        };
        print(&text)?;
    }
    let mut json = archive_json(&input.path, &info, &members);
    if !blocks.is_empty() {
        json["blocks"] = blocks.iter().map(block_json).collect::<Value>();
    }
    Ok(Outcome::complete(String::new(), json))
}
