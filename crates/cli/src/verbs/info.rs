//! `refrain info`: describes archives.

use refrain::foreign::Description;
use refrain::{Archive, ArchiveInfo, ReadOptions, RecoveryInfo, Trust};
use serde_json::Value;

use super::damaged::Damaged;
use super::entries::{for_each_member, skipped};
use super::input::open_archive;
use super::trusted;
use crate::args::InfoArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plan::{InspectPlan, SeekableInput};
use crate::report::{
    DataTo, KnownSignature, Outcome, Report, archive_json, archive_text, block_json, block_text,
    description_json, description_text, has_md5, member_text, print, recovery_json, signature_json,
    table_head, table_line,
};
use crate::session::Session;

/// Runs the verb.
pub fn run(args: &InfoArgs, session: &Session) -> Exit {
    let mut report = Report::new("info", &args.report, session, DataTo::Elsewhere);
    if args.table && report.writes_text() {
        report.add_text(&table_head());
    }
    match InspectPlan::for_info(args) {
        Err(failure) => report.add(Err(failure)),
        Ok(plan) => report.each(plan.archives, |archive, report| {
            info(&archive?, args, (&plan.options, &plan.trust), report)
        }),
    }
    report.finish()
}

fn info(
    input: &SeekableInput,
    args: &InfoArgs,
    (options, trust): (&ReadOptions, &Trust),
    report: &Report,
) -> Result<Outcome> {
    let meter = report.meter(&input.label);
    let archive = open_archive(input, &args.opening, options, &meter, report.session())?;
    let engine_failure = |error| Failure::engine(&input.label, error);
    if let Some(description) = archive.description().map_err(engine_failure)? {
        trusted::refuse_other_format(trust, &input.label)?;
        return described(&archive, input, &description, args.table, report);
    }
    let unproven = (!trust.is_none())
        .then(|| archive.authenticate(trust, None).err())
        .flatten()
        .map(|error| engine_failure(error).to_string());
    let signatures = signatures(&archive, trust, &input.label)?;
    let info = archive.info().map_err(engine_failure)?;
    let recovery = recovery(input);
    let has_blocks = report.verbosity() > 1;
    if report.writes_text() {
        meter.erase();
        if args.table {
            let (archive_bytes, content_bytes) = (info.archive_bytes, Some(info.content_bytes));
            print(&table_line(&input.label, archive_bytes, content_bytes))?;
        } else {
            print_text(
                &archive,
                input,
                &info,
                (recovery.as_ref(), &signatures),
                report.verbosity() > 0,
            )?;
            if has_blocks {
                print_blocks(&archive, &input.label)?;
            }
        }
        return Ok(with_proof(
            outcome_of(&archive, input, Value::Null),
            unproven,
        ));
    }
    let members = archive.members().map_err(engine_failure)?;
    let mut json = archive_json(&input.label, &input.path, &info, &members);
    json["signatures"] = signatures.iter().map(signature_json).collect();
    json["recovery"] = recovery.as_ref().map(recovery_json).into();
    if has_blocks {
        let blocks = archive.blocks().map_err(engine_failure)?;
        json["blocks"] = blocks.iter().map(block_json).collect::<Value>();
    }
    meter.erase();
    Ok(with_proof(outcome_of(&archive, input, json), unproven))
}

/// The signatures of an archive, and what is known of each.
fn signatures(archive: &Archive, trust: &Trust, label: &str) -> Result<Vec<KnownSignature>> {
    let Some(root_hash) = archive.root_hash() else {
        return Ok(Vec::new());
    };
    let found = archive
        .signatures()
        .map_err(|error| Failure::engine(label, error))?;
    let known = found.into_iter().map(|signature| {
        let state = trust.state(&signature, &root_hash);
        KnownSignature { signature, state }
    });
    Ok(known.collect())
}

/// Adds that nobody vouches for the archive.
fn with_proof(mut outcome: Outcome, unproven: Option<String>) -> Outcome {
    if let Some(text) = unproven {
        outcome.add_loss(Exit::Damaged, &text);
    }
    outcome
}

/// The recovery data at the end of the archive, if it is intact there: `test` reports damage.
fn recovery(input: &SeekableInput) -> Option<RecoveryInfo> {
    refrain::recovery_info(&**input.opened.get()?).ok()?
}

/// The outcome for an archive that states little about itself, and has no blocks.
fn described(
    archive: &Archive,
    input: &SeekableInput,
    description: &Description,
    is_table: bool,
    report: &Report,
) -> Result<Outcome> {
    let label = &input.label;
    if !report.writes_text() {
        return Ok(outcome_of(
            archive,
            input,
            description_json(label, description),
        ));
    }
    print(&if is_table {
        table_line(label, description.file_bytes, description.content_bytes)
    } else {
        description_text(label, description)
    })?;
    Ok(outcome_of(archive, input, Value::Null))
}

fn outcome_of(archive: &Archive, input: &SeekableInput, json: Value) -> Outcome {
    let mut outcome = Outcome::new(&input.label, String::new(), json);
    outcome.add_unread(skipped(archive));
    Damaged::in_archive(archive).report(&mut outcome);
    outcome
}

/// Text is printed in pieces of about this size: there may be millions of members.
const PRINT_BYTES: usize = 1 << 16;

fn print_text(
    archive: &Archive,
    input: &SeekableInput,
    info: &ArchiveInfo,
    (recovery, signatures): (Option<&RecoveryInfo>, &[KnownSignature]),
    is_detailed: bool,
) -> Result<()> {
    let label = &input.label;
    // Only lrzip archives have their own, for their only member.
    let has_md5 = match info.lrzip {
        None => false,
        Some(_) => {
            let member = archive.member(0);
            has_md5(&member.map_err(|error| Failure::engine(label, error))?)
        }
    };
    let mut text = archive_text(label, info, (recovery, signatures), (has_md5, is_detailed));
    for_each_member(archive, label, |_, member| {
        text.push_str(&member_text(&input.path, member));
        print_full(&mut text)
    })?;
    print(&text)
}

fn print_blocks(archive: &Archive, label: &str) -> Result<()> {
    let blocks = archive
        .blocks()
        .map_err(|error| Failure::engine(label, error))?;
    let mut text = String::new();
    for block in &blocks {
        text.push_str(&block_text(block));
        print_full(&mut text)?;
    }
    print(&text)
}

/// Prints and empties a text that has reached the size of a piece.
fn print_full(text: &mut String) -> Result<()> {
    if text.len() >= PRINT_BYTES {
        print(text)?;
        text.clear();
    }
    Ok(())
}
