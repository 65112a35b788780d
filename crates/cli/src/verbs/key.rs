//! `refrain key`: makes keys, and changes what opens an encrypted archive.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use refrain::storage::Source;
use refrain::{ChangedSlots, Encryption, KeySlots, RecoveryShare, SlotKind, new_identity};
use refrain_storage::{GrowingFile, ReadBack, read_back_parts};
use zeroize::Zeroizing;

use crate::args::{KeyAction, KeyArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::paths::{self, NewFile, io_failure, is_dash};
use crate::report::read_back_remark;
use crate::session::Session;
use crate::{files, keys, messages, password, standard, volumes};

/// `refrain key ACTION FILE`
pub fn run(args: &KeyArgs, session: &Session) -> Exit {
    let done = check(args).and_then(|()| match (args.action, &args.file) {
        (KeyAction::Generate, file) => generate(file.as_deref(), args.post_quantum).map(|()| None),
        (_, None) => Err(Failure::usage("", "which archive? Name its file")),
        (KeyAction::List, Some(file)) => list(file).map(|()| None),
        (KeyAction::Add, Some(file)) => add(file, args),
        (KeyAction::Remove, Some(file)) => remove(file, args),
    });
    match done {
        Ok(found) => {
            if let Some(remark) = found.as_ref().and_then(read_back_remark) {
                messages::tell(session.program, &remark);
            }
            Exit::Done
        }
        Err(failure) => {
            messages::tell(session.program, &failure.to_string());
            failure.exit()
        }
    }
}

/// Refuses options that belong to another action.
fn check(args: &KeyArgs) -> Result<()> {
    use KeyAction::{Add, Generate, Remove};
    let given = [
        ("--post-quantum", args.post_quantum, &[Generate][..]),
        ("--recipient", !args.recipient.is_empty(), &[Add]),
        (
            "--recipients-file",
            !args.recipients_file.is_empty(),
            &[Add],
        ),
        ("--new-password", args.new_password, &[Add]),
        (
            "--new-password-file",
            args.new_password_file.is_some(),
            &[Add],
        ),
        ("--slot", !args.slot.is_empty(), &[Remove]),
        ("--check", args.check, &[Add, Remove]),
        (
            args.secrets.given().unwrap_or_default(),
            args.secrets.given().is_some(),
            &[Add, Remove],
        ),
    ];
    let wrong = given
        .iter()
        .find(|(_, is_given, actions)| *is_given && !actions.contains(&args.action));
    match wrong {
        Some((flag, ..)) => {
            let text = format!("{flag} has no effect on this action: leave it out");
            Err(Failure::usage("", text))
        }
        None => Ok(()),
    }
}

fn generate(file: Option<&Path>, is_post_quantum: bool) -> Result<()> {
    let identity = new_identity(is_post_quantum).map_err(Failure::Engine)?;
    let recipient = identity.recipient();
    let text = Zeroizing::new(format!(
        "# public key: {recipient}\n{}\n",
        *identity.to_text()
    ));
    let Some(path) = file.filter(|path| !is_dash(path)) else {
        return write_text(text.as_bytes());
    };
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let text = "already exists: a secret key in it would be lost";
            Failure::usage(path.to_string_lossy(), text)
        }
        _ => io_failure(path, "create")(error),
    })?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(io_failure(path, "write to"))?;
    write_text(format!("{recipient}\n").as_bytes())
}

fn write_text(text: &[u8]) -> Result<()> {
    let written = standard::output().and_then(|mut output| output.write_all(text));
    written.map_err(io_failure(Path::new("standard output"), "write to"))
}

/// An archive that is encrypted, and its slots.
fn open(path: &Path) -> Result<(Arc<dyn Source>, KeySlots)> {
    volumes::check_is_file(path, "its keys stay as they are")?;
    let source: Arc<dyn Source> = files::file_source(path)?;
    let label = path.to_string_lossy();
    let slots = KeySlots::read(&*source).map_err(|error| Failure::engine(&label, error))?;
    let slots =
        slots.ok_or_else(|| Failure::usage(&*label, "is not encrypted: it has no slots"))?;
    Ok((source, slots))
}

fn list(path: &Path) -> Result<()> {
    let (_, slots) = open(path)?;
    let mut text = String::new();
    for (number, kind) in slots.kinds().iter().enumerate() {
        text.push_str(&format!("{number}  {}\n", kind_text(*kind)));
    }
    write_text(text.as_bytes())
}

fn kind_text(kind: SlotKind) -> String {
    match kind {
        SlotKind::Password { memory_kib, passes } => {
            format!(
                "password (Argon2id, {} MiB, {passes} passes)",
                memory_kib >> 10
            )
        }
        SlotKind::X25519 => "key (X25519)".into(),
        SlotKind::Hybrid => "key (X25519 and ML-KEM-768)".into(),
        SlotKind::Unknown(kind) => format!("of a later version (kind {kind})"),
        _ => "other".into(),
    }
}

/// Returns what was read back of what was written.
fn add(path: &Path, args: &KeyArgs) -> Result<Option<ReadBack>> {
    let mut added = Encryption {
        recipients: args.recipient.clone(),
        ..Encryption::default()
    };
    for file in &args.recipients_file {
        added.recipients.extend(keys::recipients(file)?);
    }
    if let Some(file) = &args.new_password_file {
        let file = file.clone();
        let read = move || password::from_file(&file);
        added.passwords.push(refrain::PasswordSource::new(read));
    }
    if args.new_password {
        let typed = refrain::PasswordSource::new(password::typed_twice);
        added.passwords.push(typed);
    }
    if added.recipients.is_empty() && added.passwords.is_empty() {
        let text = "what is to be added? Give --recipient, --recipients-file, --new-password or --new-password-file";
        return Err(Failure::usage("", text));
    }
    change(path, args, |slots, options| slots.with(&added, options))
}

fn remove(path: &Path, args: &KeyArgs) -> Result<Option<ReadBack>> {
    if args.slot.is_empty() {
        let text = "which slot? Give --slot NUMBER; `refrain key list` shows the numbers";
        return Err(Failure::usage("", text));
    }
    change(path, args, |slots, options| {
        slots.without(&args.slot, options)
    })
}

fn change(
    path: &Path,
    args: &KeyArgs,
    change: impl FnOnce(&KeySlots, &refrain::ReadOptions) -> refrain::Result<ChangedSlots>,
) -> Result<Option<ReadBack>> {
    let options = args.secrets.with(args.resources.read_options())?;
    volumes::check_is_file(path, "its keys stay as they are")?;
    // Nobody adds a generation meanwhile, which a copy would not have.
    let _locked = GrowingFile::open(path).map_err(Failure::Storage)?;
    let (source, slots) = open(path)?;
    let label = path.to_string_lossy();
    let changed = change(&slots, &options).map_err(|error| Failure::engine(&label, error))?;
    let Some(writes) = changed.writes() else {
        let mode = fs::metadata(path).ok().as_ref().and_then(paths::mode);
        let new = NewFile {
            overwrite: true,
            mode,
            synced: true,
            checking: paths::checking(args.check),
            ..NewFile::default()
        };
        let mut sink = files::file_sink(path, new)?;
        let options = args.resources.recovery_options(RecoveryShare::default());
        changed
            .copy(&source, sink.as_mut(), options)
            .map_err(|error| Failure::engine(&label, error))?;
        return Ok(sink.read_back_result());
    };
    let file = OpenOptions::new().read(args.check).write(true).open(path);
    let file: File = file.map_err(io_failure(path, "write to"))?;
    for (offset, bytes) in &writes {
        file.write_all_at(bytes, *offset)
            .and_then(|()| file.sync_all())
            .map_err(io_failure(path, "write to"))?;
    }
    if !args.check {
        return Ok(None);
    }
    let written = writes.iter().map(|(offset, bytes)| (*offset, &bytes[..]));
    let found = read_back_parts(&file, path, written).map_err(Failure::Storage)?;
    Ok(Some(found))
}
