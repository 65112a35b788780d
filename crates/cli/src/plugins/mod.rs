//! Plug-ins that the command line names: libraries, or sources that are compiled when they change.

mod dependencies;
mod make;
mod record;
mod reload;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use refrain_plugin::{Error, Plugin};
use refrain_pool::{Event, SignalDelivery, start_detached};

use crate::failure::{Failure, Result};
use crate::messages;
use crate::paths::{io_failure, label};

pub use make::{Made, default_output, is_source, make};
use reload::MadePlugin;

/// The option, which clap knows for its help: what plug-ins have must be there when the other
/// options are read.
const OPTION: &str = "--plugin";

/// How often the sources of plug-ins are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Plug-ins that were compiled from sources.
#[derive(Default)]
pub struct Plugins {
    made: Vec<MadePlugin>,
}

impl Plugins {
    /// Loads the plug-ins that a command line names.
    ///
    /// # Errors
    /// `Usage` for what is no plug-in, or has the number of another; `Io`; as [`make`].
    pub fn of(arguments: &[OsString]) -> Result<Plugins> {
        let mut plugins = Plugins::default();
        for path in named(arguments) {
            plugins.load(&path)?;
        }
        Ok(plugins)
    }

    fn load(&mut self, path: &Path) -> Result<()> {
        let library = if is_source(path) {
            let output = default_output(path);
            make(path, &output)?;
            output
        } else {
            path.to_path_buf()
        };
        let loaded = Plugin::load(&library).and_then(Plugin::register);
        let plugin = loaded.map_err(|error| failure(&library, error))?;
        if is_source(path) {
            let source = path.to_path_buf();
            self.made.push(MadePlugin::new(source, library, plugin));
        }
        Ok(())
    }

    /// From now on makes and loads again what changed, until the process ends. `program` tells of
    /// it.
    pub fn reload_when_changed(mut self, program: &'static str) {
        if self.made.is_empty() {
            return;
        }
        let is_started = start_detached("plugins", SignalDelivery::OwnFaults, move || {
            loop {
                let never = Event::new();
                never.wait_for(LOOK_EVERY);
                for made in &mut self.made {
                    let said = made.reload();
                    said.iter().for_each(|text| messages::tell(program, text));
                }
            }
        });
        if !is_started {
            let text = "without another thread, plug-ins that change are not loaded again";
            messages::tell(program, text);
        }
    }
}

/// The values of the option.
fn named(arguments: &[OsString]) -> Vec<PathBuf> {
    let mut named = Vec::new();
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        let bytes = word.as_encoded_bytes();
        if bytes == b"--" {
            break;
        }
        if bytes == OPTION.as_bytes() {
            named.extend(words.next().map(PathBuf::from));
        } else if let Some(text) = word.to_str()
            && let Some(path) = text.strip_prefix(OPTION)
            && let Some(path) = path.strip_prefix('=')
        {
            named.push(PathBuf::from(path));
        }
    }
    named
}

/// The failure of a library.
pub fn failure(path: &Path, error: Error) -> Failure {
    let name = label(path);
    match error {
        Error::Io(error) => io_failure(path, "load")(error),
        Error::Temporary { folder, error } => Failure::Io {
            file: format!(
                "a copy of {name} to the folder for temporary files (TMPDIR), {}",
                label(&folder)
            ),
            action: "write",
            error,
        },
        error => Failure::usage(name, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_found_before_the_end_of_options() {
        let words = "refrain test --plugin a.so -q --plugin=b.c x -- --plugin c.so";
        let words: Vec<_> = words.split(' ').map(OsString::from).collect();
        assert_eq!(named(&words), [Path::new("a.so"), Path::new("b.c")]);
        assert!(named(&[OsString::from("refrain"), OsString::from(OPTION)]).is_empty());
    }
}
