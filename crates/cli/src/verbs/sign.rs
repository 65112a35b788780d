//! `refrain sign`: signatures for archives that exist.

use std::io::Write;
use std::path::Path;

use refrain::{
    Archive, RecoveryShare, SignSummary, Signature, SigningKey, append_signature,
    attached_signature,
};
use serde_json::json;

use super::protect::regular_file;
use crate::args::{SignArgs, all_signers};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::paths::{self, NewFile, label};
use crate::report::{DataTo, Outcome, Report, tell_read_back};
use crate::session::Session;
use crate::text::printable;
use crate::units::bytes_text;
use crate::{files, keys, standard};

/// What to do with each archive.
enum Task {
    Statement,
    Sign(Box<SigningKey>),
    Attach(Box<Signature>),
}

/// Runs the verb.
pub fn run(args: &SignArgs, session: &Session) -> Exit {
    let data_to = if args.statement { DataTo::Stdout } else { DataTo::Elsewhere };
    let mut report = Report::new("sign", &args.report, session, data_to);
    match task(args) {
        Err(failure) => report.add(Err(failure)),
        Ok(task) => report.each(&args.archives, |path, report| {
            sign(path, &task, args, report)
        }),
    }
    report.finish()
}

fn task(args: &SignArgs) -> Result<Task> {
    if args.archives.len() > 1 && (args.output.is_some() || args.attach.is_some()) {
        let text = "a signature is of one archive: sign one ARCHIVE at a time";
        return Err(Failure::usage("", text));
    }
    Ok(match (&args.key, &args.attach) {
        (Some(path), _) => {
            let key = keys::signing_key(path, args.key_password_file.as_deref());
            Task::Sign(Box::new(key?))
        }
        (None, Some(path)) => Task::Attach(Box::new(keys::signature(path)?)),
        (None, None) => Task::Statement,
    })
}

fn sign(path: &Path, task: &Task, args: &SignArgs, report: &Report) -> Result<Outcome> {
    let label = label(path);
    let failure = |error| Failure::engine(&label, error);
    let options = args.secrets.with(args.resources.read_options())?;
    let archive = Archive::open(regular_file(path)?, &options).map_err(failure)?;
    let signature = match task {
        Task::Statement => {
            let statement = archive.signed_statement().map_err(failure)?;
            let written = standard::output();
            let written = written.and_then(|mut out| out.write_all(statement.as_bytes()));
            written.map_err(paths::io_failure(Path::new("standard output"), "write to"))?;
            let json = json!({ "file": label, "statement": statement });
            return Ok(Outcome::new(&label, String::new(), json));
        }
        Task::Sign(key) => archive.sign(key).map_err(failure)?,
        Task::Attach(signature) => {
            let signers = all_signers(&args.signer, &args.signers_file)?;
            let keys: Vec<_> = signers.iter().map(|signer| signer.key).collect();
            let of_file = label_of(args.attach.as_deref());
            attached_signature(&archive, signature, &keys)
                .map_err(|error| Failure::engine(&of_file, error))?;
            (**signature).clone()
        }
    };
    match &args.output {
        Some(output) => apart(&label, &signature, output, args, report),
        None => append(path, &archive, &signature, args, report),
    }
}

fn label_of(path: Option<&Path>) -> String {
    path.map(label).unwrap_or_default()
}

/// Writes a signature to a file of its own.
fn apart(
    label: &str,
    signature: &Signature,
    output: &Path,
    args: &SignArgs,
    report: &Report,
) -> Result<Outcome> {
    paths::check_free(output, args.force)?;
    let new = NewFile {
        overwrite: args.force,
        checking: paths::checking(args.check),
        ..NewFile::default()
    };
    let mut sink = files::file_sink(output, new)?;
    let text = signature.text().as_bytes();
    sink.write_all(text).map_err(Failure::Storage)?;
    files::publish(sink.as_mut(), output)?;
    let place = printable(&output.to_string_lossy());
    let line = format!(
        "{}: signed by {}, in {place}",
        printable(label),
        signature.signer()
    );
    let json = json!({
        "file": label,
        "output": output.to_string_lossy(),
        "signer": signature.signer().to_string(),
    });
    let mut outcome = Outcome::new(label, line, json);
    tell_read_back(sink.read_back_result(), &mut outcome, report);
    Ok(outcome)
}

/// Replaces an archive by one with the signature.
fn append(
    path: &Path,
    archive: &Archive,
    signature: &Signature,
    args: &SignArgs,
    report: &Report,
) -> Result<Outcome> {
    let label = label(path);
    let meter = report.meter(&label);
    let new = NewFile {
        overwrite: true,
        mode: paths::metadata(path).ok().as_ref().and_then(paths::mode),
        synced: true,
        checking: paths::checking(args.check),
        ..NewFile::default()
    };
    let mut sink = files::file_sink(path, new)?;
    // Recovery data keeps its share.
    let options = args.resources.recovery_options(RecoveryShare::default());
    let appended = append_signature(archive, signature, sink.as_mut(), options, &meter);
    let appended = appended.map_err(|error| Failure::engine(&label, error))?;
    let read_back = sink.read_back_result();
    drop(sink);
    meter.erase();
    let json = json!({
        "file": label,
        "signer": signature.signer().to_string(),
        "appended_bytes": appended.map_or(0, |summary| summary.appended_bytes),
        "renewed_recovery": appended.is_some_and(|summary| summary.renewed_recovery),
    });
    let line = line(&printable(&label), signature, appended);
    let mut outcome = Outcome::new(&label, line, json);
    tell_read_back(read_back, &mut outcome, report);
    Ok(outcome)
}

fn line(label: &str, signature: &Signature, appended: Option<SignSummary>) -> String {
    let signer = signature.signer();
    match appended {
        None => format!("{label}: has this signature by {signer} already"),
        Some(summary) => {
            let bytes = bytes_text(summary.appended_bytes);
            let renewed = if summary.renewed_recovery { ", recovery data renewed" } else { "" };
            format!("{label}: signed by {signer}, {bytes} more{renewed}")
        }
    }
}
