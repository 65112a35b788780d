//! Completions for shells: what clap makes of the declaration of the flags, and paths inside
//! archives.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::{Shell, generate_to};

/// The shells that completions are written for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// The command whose operands are archives and paths inside them.
const READS_ARCHIVES: &str = "refrain";

/// Writes the scripts of a command.
///
/// # Errors
/// Those of writing.
pub fn write(mut command: Command, directory: &Path) -> io::Result<()> {
    let name = command.get_name().to_string();
    for shell in SHELLS {
        let path = generate_to(shell, &mut command, &name, directory)?;
        let script = fs::read_to_string(&path)?;
        let script = match shell {
            Shell::Bash => {
                let words = include_str!("refrain.bash").replace(READS_ARCHIVES, &name);
                format!("{script}{words}")
            }
            _ if name == READS_ARCHIVES => with_paths(shell, &script),
            _ => continue,
        };
        fs::write(&path, script)?;
    }
    Ok(())
}

/// A script for zsh or fish that completes paths inside archives, too.
fn with_paths(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Fish => format!("{script}{}", include_str!("refrain.fish")),
        _ => {
            let lines = script.lines().map(|line| {
                let takes_paths = ["'*::operands ", "'*::paths "];
                let takes_paths = takes_paths.iter().any(|start| line.starts_with(start));
                let (all, rest) = (line, "' \\");
                match line.rsplit_once(':').filter(|_| takes_paths) {
                    Some((start, _)) => format!("{start}:_refrain_operands{rest}\n"),
                    None => format!("{all}\n"),
                }
            });
            let lines: String = lines.collect();
            // The function must be there before the last lines call the completion.
            match lines.rsplit_once("if [ \"$funcstack[1]\"") {
                Some((before, call)) => {
                    let paths = include_str!("_refrain");
                    format!("{before}{paths}if [ \"$funcstack[1]\"{call}")
                }
                None => lines,
            }
        }
    }
}
