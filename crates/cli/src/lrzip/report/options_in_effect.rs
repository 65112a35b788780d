//! The list of options in effect that `-v` prints, in lrzip's words.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::console::Console;
use crate::args::resources::ThreadArgs;
use crate::lrzip::arguments::back_end::BackEnd;
use crate::lrzip::arguments::settings::{Action, HUNDRED_MIB, Settings};

/// Prints the options in effect with `-v`.
pub fn print(settings: &Settings, console: &Console) {
    if settings.action != Action::Info {
        lines(settings)
            .iter()
            .for_each(|line| console.print_line_at(1, line));
    }
}

fn lines(settings: &Settings) -> Vec<String> {
    let mut lines = Vec::new();
    match settings.action {
        Action::Compress => {
            lines.push("The following options are in effect for this COMPRESSION.".into())
        }
        Action::Decompress => {
            lines.push("The following options are in effect for this DECOMPRESSION.".into());
        }
        Action::Test | Action::Info => {}
    }
    let threads = ThreadArgs {
        threads: settings.threads.unwrap_or(0),
    }
    .count();
    let is_enabled = if threads > 1 { "ENABLED" } else { "DISABLED" };
    lines.push(format!(
        "Threading is {is_enabled}. Number of CPUs detected: {threads}"
    ));
    if let Some(hundreds) = settings.maxram {
        lines.push(format!(
            "Detected {} bytes ram",
            hundreds.saturating_mul(HUNDRED_MIB)
        ));
    }
    lines.push(format!("Compression level {}", settings.level));
    lines.push(format!("Nice Value: {}", settings.nice));
    let switches = [
        (settings.verbosity.has_progress, "Show Progress"),
        (settings.verbosity.level == 1, "Verbose"),
        (settings.verbosity.level == 2, "Max Verbose"),
        (settings.force, "Overwrite Files"),
        (settings.deletes_sources, "Remove input files on completion"),
        (settings.action == Action::Test, "Test file integrity"),
    ];
    let is_on = switches.into_iter().filter(|(is_on, _)| *is_on);
    lines.extend(is_on.map(|(_, text)| text.to_string()));
    if let Some(outdir) = &settings.outdir {
        lines.push(format!("Output Directory Specified: {}", outdir.display()));
    }
    if let Some(outfile) = &settings.outfile {
        lines.push(format!("Output Filename Specified: {}", outfile.display()));
    }
    let directory = Path::new(&temporary_directory()).join("");
    lines.push(format!(
        "Temporary Directory set as: {}",
        directory.display()
    ));
    if settings.action == Action::Compress {
        lines.push(format!("Compression mode is: {}", mode(settings)));
        lines.push(match settings.window {
            _ if settings.is_unlimited => "Using Unlimited Window size".into(),
            Some(window) => format!("Compression Window: {window} = {window}00MB"),
            None => "Compression Window: the whole of the input".into(),
        });
    }
    lines
}

fn mode(settings: &Settings) -> String {
    let name = match settings.back_end {
        BackEnd::Lzma => "LZMA",
        BackEnd::Bzip2 => "BZIP2",
        BackEnd::Gzip => return "GZIP".into(),
        BackEnd::Lzo => return "LZO".into(),
        BackEnd::None => return "RZIP pre-processing only".into(),
        BackEnd::Zpaq => "ZPAQ",
    };
    let test = if settings.skips_threshold { "disabled" } else { "enabled" };
    format!("{name}. LZ4 Compressibility testing {test}")
}

/// The directory that lrzip would use for temporary files, only printed.
fn temporary_directory() -> OsString {
    let names = ["TMPDIR", "TMP", "TEMPDIR", "TEMP"];
    let found = names.into_iter().find_map(std::env::var_os);
    found.unwrap_or_else(|| OsStr::new(".").to_owned())
}
