//! Makes and loads plug-ins again that changed.

use std::fs;
use std::path::PathBuf;

use refrain_plugin::Plugin;

use super::make::{build, folder_of, is_fresh, is_source, record_path};
use super::record::{Record, Stamps, stamps_of};
use crate::failure::Failure;

/// A plug-in that was made of a source.
pub struct MadePlugin {
    source: PathBuf,
    output: PathBuf,
    plugin: &'static Plugin,
    failed: Option<Failed>,
}

/// An attempt to make it.
struct Failed {
    /// The files that it may have read.
    seen: Stamps,
    text: String,
    /// Whether it fails until something of that changes.
    is_lasting: bool,
}

impl MadePlugin {
    pub fn new(source: PathBuf, output: PathBuf, plugin: &'static Plugin) -> MadePlugin {
        MadePlugin {
            source,
            output,
            plugin,
            failed: None,
        }
    }

    /// Makes and loads it again if something changed. Returns what there is to tell.
    pub fn reload(&mut self) -> Option<String> {
        if is_fresh(&self.source, &self.output) {
            self.failed = None;
            return None;
        }
        // Before it is compiled: what changes meanwhile is tried again.
        let seen = self.seen();
        let before = self.failed.take();
        if let Some(failed) = before.as_ref()
            && failed.is_lasting
            && failed.seen == seen
        {
            self.failed = before;
            return None;
        }
        let name = self.plugin.name();
        let failure = match build(&self.source, &self.output) {
            Ok(()) => return Some(self.replace()),
            Err(failure) => failure,
        };
        let text = format!("the plug-in '{name}' stays as it was: {failure}");
        let is_lasting = matches!(failure, Failure::Usage { .. });
        // A compiler says what is wrong each time it runs; a full disk is tried again in silence.
        let is_told = !is_lasting && before.is_some_and(|before| before.text == text);
        let said = (!is_told).then(|| text.clone());
        self.failed = Some(Failed {
            seen,
            text,
            is_lasting,
        });
        said
    }

    fn replace(&self) -> String {
        let name = self.plugin.name();
        match self.plugin.replace_by(&self.output) {
            Ok(()) => format!("the plug-in '{name}' changed and was loaded again"),
            Err(error) => format!("the plug-in '{name}' stays as it was: {error}"),
        }
    }

    /// The source, what it was made of the last time, and the sources and headers beside it: a
    /// compiler that fails does not say what it read.
    fn seen(&self) -> Stamps {
        let mut paths = vec![self.source.clone()];
        let record = Record::read(&record_path(&self.output));
        paths.extend(record.iter().flat_map(Record::parts));
        let beside = fs::read_dir(folder_of(&self.source)).into_iter().flatten();
        let beside = beside.filter_map(|entry| Some(entry.ok()?.path()));
        paths.extend(beside.filter(|path| {
            let is_header = path.extension().is_some_and(|suffix| suffix == "h");
            is_header || is_source(path)
        }));
        stamps_of(paths)
    }
}
