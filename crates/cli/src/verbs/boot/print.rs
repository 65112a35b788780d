//! The commands of `refrain boot --print`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::json;

use crate::args::BootArgs;
use crate::failure::{Failure, Result};
use crate::files;
use crate::plan::Guest;
use crate::report::Outcome;
use crate::text::shell_word;

/// How long the service of printed commands waits for QEMU.
const PRINTED_IDLE: &str = "1m";

/// Prints the commands for a shell, in order. The service ends by itself.
pub(super) fn print(
    args: &BootArgs,
    guest: &Guest,
    name: &[u8],
    (directory, label): (&Path, &str),
) -> Result<Outcome> {
    let mut commands = vec![serve_command(args, guest, name)];
    if !guest.overlay.exists() {
        commands.push(guest.make_overlay());
    }
    commands.push(guest.run());
    let needs_directory = args.socket.is_none() || args.overlay.is_none();
    if needs_directory {
        let of = |words: &[&str]| {
            let words = words.iter().map(OsString::from);
            words.chain([directory.into()]).collect::<Vec<_>>()
        };
        commands.insert(0, of(&["mkdir", "-m", "700"]));
        commands.push(of(&["rm", "-r"]));
    }
    let lines: Result<Vec<String>> = commands.iter().map(|words| shell_line(words)).collect();
    let lines = lines?;
    if !args.report.json {
        let mut stdout = files::stdout_sink()?;
        let text = format!("{}\n", lines.join("\n"));
        stdout
            .write_all(text.as_bytes())
            .map_err(Failure::Storage)?;
        files::publish(stdout.as_mut(), Path::new("standard output"))?;
    }
    Ok(Outcome::complete(
        String::new(),
        json!({ "file": label, "commands": lines }),
    ))
}

/// The service that the guest reads from, opened like this archive.
fn serve_command(args: &BootArgs, guest: &Guest, name: &[u8]) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["refrain", "serve"].map(OsString::from).to_vec();
    let mut address = OsString::from("unix:");
    address.push(guest.socket);
    // With an equals sign, no value is taken for an option, whatever it starts with.
    let mut option = |name: &str, value: Option<OsString>| {
        words.extend(value.map(|value| {
            let mut word = OsString::from(name);
            word.push("=");
            word.push(value);
            word
        }));
    };
    option("--nbd", Some(address));
    option("--export", Some(OsStr::from_bytes(name).to_owned()));
    option("--idle-exit", Some(PRINTED_IDLE.into()));
    let number = |number: String| Some(OsString::from(number));
    option(
        "--password-file",
        args.secrets.password.password_file.clone().map(Into::into),
    );
    option(
        "--password-fd",
        args.secrets
            .password
            .password_fd
            .and_then(|fd| number(fd.to_string())),
    );
    let command = args.secrets.password.password_command.clone();
    option("--password-command", command.map(Into::into));
    for path in &args.secrets.identity {
        option("--identity", Some(path.clone().into()));
    }
    let memory = args
        .resources
        .memory
        .and_then(|size| number(size.bytes.to_string()));
    option("--memory", memory);
    let content = args
        .limits
        .content_max
        .and_then(|size| number(size.bytes.to_string()));
    option("--content-max", content);
    if args.limits.work_max != refrain::WORK_MAX_DEFAULT {
        option("--work-max", number(args.limits.work_max.to_string()));
    }
    words.push("--daemon".into());
    words.extend(args.opening.scan.then(|| "--scan".into()));
    words.extend(["--".into(), args.archive.clone().into()]);
    words
}

fn shell_line(command: &[OsString]) -> Result<String> {
    let word = |word: &OsString| {
        shell_word(word).ok_or_else(|| {
            let text = "no word of a shell ends with a line break: the command cannot be printed";
            Failure::usage(word.to_string_lossy(), text)
        })
    };
    let words: Result<Vec<String>> = command.iter().map(word).collect();
    Ok(words?.join(" "))
}
