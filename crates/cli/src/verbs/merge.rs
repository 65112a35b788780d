//! `refrain merge`: one archive of several, with the generations of all.

use refrain::{
    CompressOptions, Encryption, GenerationInfo, KeySlots, Level, Merge, MergeSource, MergeSummary,
};
use serde_json::{Value, json};

use super::protect::regular_file;
use crate::args::{EncryptionArgs, MergeArgs, SecretArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::memory_limit;
use crate::paths::{self, NewFile, label};
use crate::report::{DataTo, Outcome, Report, generation_json, generation_lines, print};
use crate::session::Session;
use crate::text::counted;
use crate::units::{bytes_text, duration_text};
use crate::{files, temporary, volumes};

/// Runs the verb.
pub fn run(args: &MergeArgs, session: &Session) -> Exit {
    let mut report = Report::new("merge", &args.report, session, DataTo::Elsewhere);
    let outcome = merge(args, &report);
    report.add(outcome);
    report.finish()
}

fn merge(args: &MergeArgs, report: &Report) -> Result<Outcome> {
    let output = label(&args.output);
    check_paths(args)?;
    let options = options(args, report)?;
    let sources = sources(args)?;
    let names: Vec<_> = args.archives.iter().map(|path| label(path)).collect();
    let failed = |error| Failure::engine(&output, error);
    let level = args.level.level.map(Level);
    let merge = Merge::open(sources, level, &options).map_err(failed)?;
    let generations = merge.generations();
    let numbered: Vec<_> = (merge.first_number()..).zip(generations).collect();
    let mut json = json!({
        "file": output,
        "dry_run": args.dry_run,
        "archives": names,
        "generations": numbered.iter().map(|&(number, row)| row_json(number, row, &names)).collect::<Vec<_>>(),
        "stores_bytes": merge.store_bytes(),
    });
    let count = numbered.len();
    if args.dry_run {
        if report.writes_text() {
            print(&plan_lines(&numbered, &names))?;
        }
        let text = format!(
            "{output}: would have {} of {} archives, whose stores have {}",
            counted(count as u64, "generation"),
            names.len(),
            bytes_text(merge.store_bytes()),
        );
        return Ok(Outcome::new(&output, text, json));
    }
    let new = NewFile {
        overwrite: args.force,
        mode_limit: mode_limit(args),
        synced: true,
        ..NewFile::default()
    };
    let mut sink = files::file_sink(&args.output, new)?;
    let meter = report.meter(&output);
    let summary = merge.run(sink.as_mut(), &options, &meter).map_err(failed)?;
    drop(sink);
    meter.erase();
    let elapsed = meter.elapsed();
    json["content_bytes"] = json!(summary.content_bytes);
    json["store_bytes"] = json!(summary.store_bytes);
    json["archive_bytes"] = json!(summary.archive_bytes);
    json["seconds"] = json!(elapsed.as_secs_f64());
    let text = summary_text(&output, names.len(), &summary, &duration_text(elapsed));
    Ok(Outcome::new(&output, text, json))
}

/// Refuses what cannot be merged before any work is done for it.
fn check_paths(args: &MergeArgs) -> Result<()> {
    if paths::is_dash(&args.output) || paths::own_descriptor(&args.output).is_some() {
        let text = "what is merged is read again: the new archive must be a file";
        return Err(Failure::usage("-", text));
    }
    let mut seen = Vec::new();
    for path in &args.archives {
        let metadata = paths::metadata(path)?;
        paths::check_other_than(&metadata, &args.output)?;
        if seen
            .iter()
            .any(|other| paths::is_same_file(other, &metadata))
        {
            let text = "is given twice: its generations would be there twice";
            return Err(Failure::usage(label(path), text));
        }
        seen.push(metadata);
    }
    if !args.dry_run {
        paths::check_free(&args.output, args.force)?;
    }
    Ok(())
}

fn mode_limit(args: &MergeArgs) -> Option<u32> {
    let found = args.archives.iter().map(|path| paths::metadata(path));
    let found: Vec<_> = found.filter_map(Result::ok).collect();
    paths::mode_limit(&found)
}

fn options(args: &MergeArgs, report: &Report) -> Result<CompressOptions> {
    let options = CompressOptions::default();
    let level = args.level.level.map_or(options.level, Level);
    let threads = args.resources.thread_count();
    let levels = refrain::levels(options.purpose);
    let row = levels.iter().find(|row| row.number == level.0);
    let asked = args.resources.memory.map(|size| size.bytes);
    let default = row.map_or(options.memory_bytes.unwrap_or(1 << 30), |row| {
        row.memory_bytes
    });
    let budget = memory_limit::for_compressing(asked, default, threads)?;
    memory_limit::prepare_allocator(budget.bytes.unwrap_or(u64::MAX));
    if let Some(remark) = &budget.remark {
        report.remark(remark);
    }
    let options = CompressOptions {
        level,
        threads,
        memory_bytes: budget.bytes,
        temporary: temporary::space(args.resources.temporary.as_deref(), Some(&args.output)),
        encryption: encryption(&args.encryption)?,
        carry_decoders: args.carry_decoders,
        ..options
    };
    options.check().map_err(Failure::Engine)?;
    Ok(options)
}

/// For whom the new archive is encrypted. A password may be for the others alone.
fn encryption(args: &EncryptionArgs) -> Result<Option<Encryption>> {
    let password = match args.encrypt {
        Some(_) => args.password.clone(),
        None => Default::default(),
    };
    let args = EncryptionArgs {
        password,
        ..args.clone()
    };
    args.options()
}

/// The archives, each with what opens it.
fn sources(args: &MergeArgs) -> Result<Vec<MergeSource>> {
    let secrets = SecretArgs {
        password: args.encryption.password.clone(),
        identity: args.identity.clone(),
    };
    let options = args.resources.read_options();
    let with_secrets = secrets.with(options.clone())?;
    let mut encrypted = None;
    let mut sources = Vec::new();
    for path in &args.archives {
        let source = match volumes::at_path(path) {
            Some(found) => found.source(&label(path))?,
            None => regular_file(path)?,
        };
        let slots = KeySlots::read(&*source);
        let slots = slots.map_err(|error| Failure::engine(&label(path), error))?;
        let is_encrypted = slots.is_some();
        if is_encrypted {
            encrypted = Some(path);
        }
        sources.push(MergeSource {
            name: label(path),
            source,
            options: if is_encrypted { with_secrets.clone() } else { options.clone() },
        });
    }
    match (encrypted, secrets.given()) {
        (None, Some(flag)) if args.encryption.encrypt.is_none() => {
            let text = format!("{flag} is given, and none of the archives is encrypted");
            return Err(Failure::usage("", text));
        }
        (Some(path), _) if !args.encryption.is_encrypted() && !args.decrypt => {
            let text = "is encrypted, and the new archive would not be: add --encrypt or \
                        --recipient, or --decrypt to write it in the clear";
            return Err(Failure::usage(label(path), text));
        }
        _ => {}
    }
    Ok(sources)
}

/// A generation of the new archive.
fn renumbered(number: u16, row: &GenerationInfo) -> GenerationInfo {
    GenerationInfo {
        number,
        ..row.clone()
    }
}

fn row_json(number: u16, (archive, row): &(usize, GenerationInfo), names: &[String]) -> Value {
    let mut json = generation_json(&renumbered(number, row));
    json["archive"] = json!(names.get(*archive));
    json["number_there"] = json!(row.number);
    json
}

/// A table of the generations, with the archives that they are from.
fn plan_lines(rows: &[(u16, &(usize, GenerationInfo))], names: &[String]) -> String {
    let infos = rows
        .iter()
        .map(|(number, (_, row))| renumbered(*number, row));
    let lines = generation_lines(&infos.collect::<Vec<_>>());
    let from = rows.iter().map(|(_, (archive, row))| {
        let name = names.get(*archive).map_or("", String::as_str);
        format!("{name} {}", row.number)
    });
    let lines = lines.iter().zip(from);
    lines
        .map(|(line, from)| format!("{line}  < {from}\n"))
        .collect()
}

fn summary_text(label: &str, archives: usize, summary: &MergeSummary, elapsed: &str) -> String {
    format!(
        "{label}: {} of {archives} archives, {}, {elapsed}",
        counted(summary.generations as u64, "generation"),
        bytes_text(summary.archive_bytes),
    )
}
