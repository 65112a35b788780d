//! `refrain add`: a new generation of an archive.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use refrain::storage::Sink;
use refrain::volumes::{GrowingVolumes, VOLUME_BYTES_DEFAULT, holds_archive, may_begin};
use refrain::{
    AddSummary, AddTo, CompressOptions, Dialect, Encryption, ErrorKind, GenerationChoice,
    GenerationLabel, Level, MemberInput, ReadOptions, Timestamp, WriterState, add, is_rewritten,
};
use refrain_pool::Cancellation;
use refrain_storage::{
    AtomicFile, Durability, GrowingFile, GrowingSink, OutputOptions, Overwrite, VolumePlace,
};
use serde_json::json;

use super::compress::{Written, own_outputs, summary_json, walk_selection, write_archive};
use super::input::first_bytes;
use crate::args::{AddArgs, SecretArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::paths::{check_no_url, is_dash, label};
use crate::plan::{ArchiveFormat, CompressPlan, is_in_volumes};
use crate::report::{Copied, DataTo, Meter, Outcome, Report, Sizes, added_line};
use crate::session::Session;
use crate::wall_clock::unix_seconds;
use crate::{urls, volumes};

/// Runs the verb.
pub fn run(args: &AddArgs, session: &Session) -> Exit {
    let mut report = Report::new("add", &args.report, session, DataTo::Elsewhere);
    let outcome = add_generation(args, &report);
    report.add(outcome);
    report.finish()
}

fn add_generation(args: &AddArgs, report: &Report) -> Result<Outcome> {
    if is_dash(&args.archive) {
        let text = "an archive that grows is a file: '-' cannot be added to";
        return Err(Failure::usage("-", text));
    }
    let generation = generation(args)?;
    let mut plan = CompressPlan::for_add(args)?;
    if let Some(remark) = &plan.remark {
        report.remark(remark);
    }
    let selection = walk_selection(&plan.walk)?;
    let archive = plan.archives.pop();
    let archive = archive.unwrap_or_else(|| Err(Failure::usage("", "nothing to add")))?;
    let ArchiveFormat::Native(options) = &mut plan.format else {
        return Err(Failure::usage(
            "",
            "only Refrain's own archives can be added to",
        ));
    };
    let mut target = AddTarget::open(args, report.session().cancellation())?;
    let secrets;
    (options.encryption, secrets) = secrets_of(args, &target)?;
    let options = options.clone();
    let own_outputs = own_outputs(target.sink(), &archive.output, report.session());
    let level = args.level.level.map(Level);
    let archive_label = label(&args.archive);
    let outcome = write_archive(
        archive,
        &plan,
        &selection,
        &own_outputs,
        report,
        |members, label, meter| {
            let options = CompressOptions {
                force_read: args.force_read,
                writer_state: args.state.as_ref().map(WriterState::new),
                ..CompressOptions::clone(&options)
            };
            let added = target.add(members, level, (&options, &secrets), generation, meter);
            let added = added.map_err(|error| {
                // Only what the archive has can be wrong in these ways.
                let is_of_archive = matches!(
                    error.kind,
                    ErrorKind::Usage | ErrorKind::Damaged | ErrorKind::Unsupported
                );
                Failure::engine(if is_of_archive { &archive_label } else { label }, error)
            })?;
            let mut json = summary_json(&added.added);
            json["unchanged_files"] = json!(added.added.unchanged_files);
            json["generation"] = json!(added.generation);
            json["total_bytes"] = json!(added.archive_bytes);
            json["recovery_bytes"] = json!(added.recovery_bytes);
            Ok(Written {
                sizes: Sizes {
                    content_bytes: added.added.content_bytes,
                    archive_bytes: added.added.archive_bytes,
                },
                stored: Some(added.added.files),
                json,
                copied: Copied::Whole,
                read_back: None,
                line: Box::new(move |label, sizes, elapsed| {
                    added_line(label, sizes, added.added.unchanged_files, elapsed)
                }),
            })
        },
    )?;
    if let AddTarget::Volumes(volumes) = &target
        && volumes.is_unguarded()
    {
        report.remark(&format!(
            "{archive_label}: the store ignores conditions of uploads, so another program that adds at the \
             same moment may not be noticed"
        ));
    }
    Ok(outcome)
}

fn generation(args: &AddArgs) -> Result<GenerationLabel> {
    let seconds = match &args.time {
        None => unix_seconds() as i64,
        Some(GenerationChoice::At(seconds)) => *seconds,
        Some(_) => {
            let text = "--time is a time in UTC: 2026-11-27T10:30:00";
            return Err(Failure::usage("", text));
        }
    };
    let bytes = |text: &Option<std::ffi::OsString>| {
        text.as_deref().map(|text: &OsStr| text.as_bytes().to_vec())
    };
    Ok(GenerationLabel {
        created: Some(Timestamp {
            seconds,
            nanoseconds: 0,
        }),
        host: bytes(&args.host).unwrap_or_else(host_name),
        comment: bytes(&args.comment).unwrap_or_default(),
        tags: args.tag.iter().map(|tag| tag.as_bytes().to_vec()).collect(),
    })
}

/// The name of this machine; empty if the system does not say.
fn host_name() -> Vec<u8> {
    let name = fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_ascii().to_vec()
}

/// For whom a new archive is encrypted, and what opens one that exists.
fn secrets_of(args: &AddArgs, target: &AddTarget) -> Result<(Option<Encryption>, ReadOptions)> {
    let name = label(&args.archive);
    let usage = |text: String| Err(Failure::usage(&*name, text));
    let secrets = SecretArgs {
        password: args.encryption.password.clone(),
        identity: args.identity.clone(),
    };
    let options = args.resources.read_options();
    let Some(first) = target.first_bytes()? else {
        if secrets.given() == Some("--identity") && !args.encryption.is_encrypted() {
            let text = "does not exist, and nothing says for whom a new archive is encrypted: add \
                        --encrypt or --recipient";
            return usage(text.to_owned());
        }
        if args.state.is_some() && !args.encryption.is_encrypted() {
            let text = "does not exist, and nothing says for whom a new archive is encrypted: \
                        --state needs --encrypt or --recipient";
            return usage(text.to_owned());
        }
        return Ok((args.encryption.options()?, options));
    };
    if !Dialect::may_be_encrypted(&first) {
        let state = args.state.as_ref().map(|_| "--state");
        return match args.encryption.given().or(secrets.given()).or(state) {
            None => Ok((None, options)),
            Some(flag) => usage(format!(
                "is not encrypted, so what is added to it cannot be: leave out {flag}, or compress \
                 it anew with --encrypt"
            )),
        };
    }
    let is_by_state = args.state.is_some() && secrets.given().is_none();
    let opened = secrets.identities()?;
    for recipient in args.encryption.recipients()? {
        // Slots do not say whose they are, and the state has no secret to look.
        if !is_by_state
            && !opened
                .iter()
                .any(|identity| identity.recipient() == recipient)
        {
            return usage(format!(
                "is encrypted already, and the key {recipient} is of none of --identity: to let it \
                 open the archive, use `refrain key add`"
            ));
        }
    }
    let padding = args.encryption.pad.then(|| Encryption {
        is_padded: true,
        ..Encryption::default()
    });
    let options = if is_by_state { options } else { secrets.with(options)? };
    Ok((padding, options))
}

/// What a generation is written to.
enum AddTarget {
    File(GrowingFile),
    Volumes(Box<GrowingVolumes>),
    /// A small archive is written again as a whole. Its file stays locked until that is done.
    Copy(Option<GrowingFile>, Box<AtomicFile>),
}

impl AddTarget {
    fn open(args: &AddArgs, cancellation: &Cancellation) -> Result<AddTarget> {
        let path = &args.archive;
        if is_in_volumes(args) {
            return AddTarget::volumes(args, cancellation);
        }
        let copy = |earlier: Option<GrowingFile>| {
            let replace = OutputOptions {
                // A new archive must not replace one that appeared meanwhile.
                overwrite: if earlier.is_some() { Overwrite::Replace } else { Overwrite::Refuse },
                durability: Durability::Synced,
                ..OutputOptions::default()
            };
            let file = AtomicFile::create(path, &replace).map_err(Failure::Storage)?;
            Ok(AddTarget::Copy(earlier, Box::new(file)))
        };
        if !path.exists() {
            return copy(None);
        }
        let file = GrowingFile::open(path).map_err(Failure::Storage)?;
        let source = file.source().map_err(Failure::Storage)?;
        let is_copied = is_rewritten(&source);
        if is_copied.map_err(|error| Failure::engine(&label(path), error))? {
            return copy(Some(file));
        }
        Ok(AddTarget::File(file))
    }

    /// An archive in volumes, or a new one.
    fn volumes(args: &AddArgs, cancellation: &Cancellation) -> Result<AddTarget> {
        let path = &args.archive;
        let name = label(path);
        let failed = |error| Failure::engine(&name, error);
        let usage = |text: &str| Err(Failure::usage(&*name, text));
        if args.recovery.is_some() {
            return usage("has no place for recovery data in its volumes: leave out --recovery");
        }
        let temporary = args.resources.read_options().temporary;
        let place: Arc<dyn VolumePlace> = if urls::is_url(path) {
            if urls::bucket_and_key(path).is_none() {
                check_no_url(path)?;
            }
            let found = volumes::of_operand(path, temporary.as_deref(), cancellation)?;
            match found {
                Some(found) if found.head.is_none() => found.place,
                _ => return usage("is one head of an archive: leave it out"),
            }
        } else if path.exists() && !path.is_dir() {
            return usage("is a file: an archive in volumes (--volume) is a folder of its own");
        } else {
            Arc::new(volumes::folder(path))
        };
        if !holds_archive(&*place).map_err(failed)? {
            let is_folder = !urls::is_url(path);
            if is_folder && args.volume.is_none() {
                return usage(
                    "is a folder without an archive: --volume SIZE begins one in it (4G, say)",
                );
            }
            if !may_begin(&*place).map_err(failed)? {
                return usage("has other files: an archive in volumes needs a place of its own");
            }
            if is_folder {
                let created = volumes::folder(path).create_folder();
                created.map_err(Failure::Storage)?;
            }
        }
        let volume_bytes = args.volume.map_or(VOLUME_BYTES_DEFAULT, |size| size.bytes);
        let growing = GrowingVolumes::open(place, volume_bytes).map_err(failed)?;
        Ok(AddTarget::Volumes(Box::new(growing)))
    }

    /// The first bytes of the archive; `None` if there is none yet.
    fn first_bytes(&self) -> Result<Option<Vec<u8>>> {
        let file: &dyn GrowingSink = match self {
            AddTarget::Copy(None, _) => return Ok(None),
            AddTarget::Volumes(volumes) if volumes.is_new() => return Ok(None),
            AddTarget::Volumes(volumes) => &**volumes,
            AddTarget::Copy(Some(file), _) | AddTarget::File(file) => file,
        };
        let source = file.source().map_err(Failure::Storage)?;
        Ok(Some(first_bytes(&*source)?))
    }

    fn sink(&self) -> &dyn Sink {
        match self {
            AddTarget::File(file) => file,
            AddTarget::Volumes(volumes) => &**volumes,
            AddTarget::Copy(_, file) => &**file,
        }
    }

    fn add(
        &mut self,
        members: Vec<MemberInput>,
        level: Option<Level>,
        (options, secrets): (&CompressOptions, &ReadOptions),
        generation: GenerationLabel,
        meter: &Meter,
    ) -> refrain::Result<AddSummary> {
        let to = match self {
            AddTarget::File(file) => AddTo::File(file, secrets),
            AddTarget::Volumes(volumes) if volumes.is_new() => AddTo::Copy(None, &mut **volumes),
            AddTarget::Volumes(volumes) => AddTo::File(&mut **volumes, secrets),
            AddTarget::Copy(earlier, file) => {
                let earlier = earlier.as_ref().map(GrowingFile::source).transpose();
                AddTo::Copy(earlier?, &mut **file)
            }
        };
        add(members, to, level, options, generation, meter)
    }
}
