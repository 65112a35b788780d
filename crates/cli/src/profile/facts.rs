//! Describes the run: the command, its level and inputs, and when.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use refrain_page::escaped;
use refrain_page::utc_text;

use crate::args::Verb;
use crate::paths::label;
use crate::text::{printable, shell_word};
use crate::urls;
use crate::wall_clock;

/// More inputs are only counted.
const INPUTS_MAX: usize = 3;

/// A description of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The command for a shell, without passwords in URLs.
    pub command: String,
    /// The level, if the run compresses.
    pub level: Option<u8>,
    pub inputs: Vec<String>,
    /// When it started (UTC).
    pub date: String,
}

impl Facts {
    /// Describes a run that starts now.
    pub fn new(words: &[OsString], verb: &Verb) -> Facts {
        let (inputs, level): (&[PathBuf], _) = match verb {
            Verb::Compress(args) => (&args.files, Some(args.compression.options().level.0)),
            Verb::Decompress(args) | Verb::Gunzip(args) => (&args.operands, None),
            Verb::Test(args) => (&args.archives, None),
            Verb::Cat(args) => (std::slice::from_ref(&args.archive), None),
            _ => (&[], None),
        };
        Facts {
            command: command_text(words),
            level,
            inputs: inputs.iter().map(|path| label(path)).collect(),
            date: utc_text(i64::try_from(wall_clock::unix_seconds()).unwrap_or(i64::MAX)),
        }
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("command", self.command.clone())];
        if let Some(level) = self.level {
            rows.push(("level", level.to_string()));
        }
        if !self.inputs.is_empty() {
            let shown = self
                .inputs
                .iter()
                .take(INPUTS_MAX)
                .map(|name| printable(name));
            let mut text = shown.collect::<Vec<_>>().join(", ");
            if self.inputs.len() > INPUTS_MAX {
                text.push_str(&format!(" and {} more", self.inputs.len() - INPUTS_MAX));
            }
            rows.push(("input", text));
        }
        rows.push(("date", self.date.clone()));
        rows
    }
}

/// The description, for a page.
pub(super) fn facts_html(facts: &Facts) -> String {
    let rows = facts.rows().into_iter();
    let rows = rows.map(|(name, text)| format!("{name}: <b>{}</b>", escaped(&text)));
    let rows = rows.collect::<Vec<_>>().join(" · ");
    format!("<p class=\"faint\" id=\"facts\">{rows}</p>\n")
}

fn command_text(words: &[OsString]) -> String {
    let word = |(number, word): (usize, &OsString)| {
        let path = Path::new(word);
        let shown = match (number, path.file_name()) {
            (0, Some(program)) => program.to_owned(),
            _ if urls::is_url(path) => urls::without_secrets(&word.to_string_lossy()).into(),
            _ => word.clone(),
        };
        shell_word(&shown).unwrap_or_else(|| printable(&shown.to_string_lossy()))
    };
    words
        .iter()
        .enumerate()
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_secrets_and_control_characters() {
        let words = [
            "/usr/bin/refrain",
            "cat",
            "http://u:p@h/a?token=x",
            "a b\u{1b}",
        ];
        let text = command_text(&words.map(OsString::from));
        assert!(text.starts_with("refrain cat "), "{text}");
        assert!(!text.contains("u:p") && !text.contains("token"), "{text}");
        assert!(!text.contains(char::is_control), "{text}");
    }
}
