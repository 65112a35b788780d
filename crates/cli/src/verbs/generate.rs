//! `refrain generate`: manual pages and completions, from the declaration of the flags.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;

use super::{completions, examples};
use crate::args::{GenerateArgs, GenerateWhat};
use crate::exit::{EXIT_CODES_TEXT, Exit};
use crate::failure::Result;
use crate::lrzip;
use crate::messages;
use crate::paths::io_failure;
use crate::program;
use crate::session::Session;

/// `refrain generate WHAT DIR`
pub fn run(args: &GenerateArgs, session: &Session) -> Exit {
    match generate(args.what, &args.directory) {
        Ok(()) => Exit::Done,
        Err(failure) => {
            messages::tell(session.program, &failure.to_string());
            failure.exit()
        }
    }
}

fn generate(what: GenerateWhat, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(io_failure(directory, "write to"))?;
    let written = match what {
        GenerateWhat::Man => manuals(&program::commands().map(with_codes), directory),
        GenerateWhat::Completions => {
            let mut commands = program::commands().into_iter();
            commands.try_for_each(|command| completions::write(command, directory))
        }
        GenerateWhat::LrzipMan => manuals(&lrzip::commands(), directory),
        GenerateWhat::LrzipLinks => return lrzip::links::create(directory),
    };
    written.map_err(io_failure(directory, "write to"))
}

/// One page for each command and for each of its verbs.
fn manuals(commands: &[Command], directory: &Path) -> io::Result<()> {
    for command in commands {
        clap_mangen::generate_to(command.clone(), directory)?;
    }
    let stems = commands.iter().flat_map(|command| pages(command, ""));
    let stems: Vec<String> = stems.map(|(stem, _)| stem).collect();
    for stem in &stems {
        let path = directory.join(format!("{stem}.1"));
        let page = with_standard_sections(&fs::read_to_string(&path)?);
        fs::write(&path, page + &examples::sections(stem, &stems))?;
    }
    Ok(())
}

/// Every visible command with the stem of its manual page.
fn pages(command: &Command, prefix: &str) -> Vec<(String, Command)> {
    let stem = format!("{prefix}{}", command.get_name());
    let below = command
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .flat_map(|c| pages(c, &format!("{stem}-")));
    below.chain([(stem.clone(), command.clone())]).collect()
}

/// Renames the section that clap makes from the text after the flags to the sections of
/// man-pages(7).
fn with_standard_sections(page: &str) -> String {
    page.replace(".SH EXTRA\nExit codes:\n", ".SH \"EXIT STATUS\"\n")
        .replace("\nExit codes:\n", "\n.SH \"EXIT STATUS\"\n")
        .replace(".SH EXTRA\n", ".SH NOTES\n")
}

/// Adds the exit codes to the page of every verb. A verb's help leaves them out to stay short.
fn with_codes(command: Command) -> Command {
    command.mut_subcommands(|verb| {
        let own_text = verb.get_after_help().map(|text| format!("{text}\n\n"));
        let text = format!("{}{EXIT_CODES_TEXT}", own_text.unwrap_or_default());
        verb.after_help(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible_flags(command: &Command) -> Vec<String> {
        let visible = command.get_arguments().filter(|a| !a.is_hide_set());
        visible
            .filter_map(|a| a.get_long().map(str::to_string))
            .collect()
    }

    fn fresh_directory(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("refrain-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn every_flag_has_an_entry_in_its_manual_page() {
        let directory = fresh_directory("man");
        generate(GenerateWhat::Man, &directory).unwrap();
        let commands = program::commands().to_vec();
        generate(GenerateWhat::LrzipMan, &directory).unwrap();
        let commands = [commands, lrzip::commands()].concat();
        let mut count = 0;
        for (stem, command) in commands.iter().flat_map(|c| pages(c, "")) {
            let page = fs::read_to_string(directory.join(format!("{stem}.1"))).unwrap();
            assert!(!page.contains("SH EXTRA"), "{stem}.1");
            assert!(
                page.contains(".SH \"EXIT STATUS\"\n    0  "),
                "{stem}.1 lacks the exit codes"
            );
            assert!(page.contains(".SH \"SEE ALSO\""), "{stem}.1");
            let is_ours = stem.starts_with("refrain") || stem == "rfn";
            assert!(!is_ours || page.contains(".SH EXAMPLES"), "{stem}.1");
            for flag in visible_flags(&command) {
                let roff = format!("\\-\\-{}", flag.replace('-', "\\-"));
                assert!(page.contains(&roff), "{stem}.1 lacks --{flag}");
                count += 1;
            }
        }
        assert!(
            count > 40,
            "only {count} flags found: the walk over the verbs is broken"
        );
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn every_flag_is_completed_in_every_shell() {
        let directory = fresh_directory("completions");
        generate(GenerateWhat::Completions, &directory).unwrap();
        for (shell_file, dashes) in [
            ("refrain.bash", "--"),
            ("_refrain", "--"),
            ("refrain.fish", "-l "),
        ] {
            let script = fs::read_to_string(directory.join(shell_file)).unwrap();
            for (_, command) in pages(&program::commands()[0], "") {
                for flag in visible_flags(&command) {
                    let text = format!("{dashes}{flag}");
                    assert!(script.contains(&text), "{shell_file} lacks --{flag}");
                }
            }
        }
        assert!(directory.join("rfn.bash").exists());
        fs::remove_dir_all(directory).unwrap();
    }
}
