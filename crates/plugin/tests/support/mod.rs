//! Libraries made of the sources beside this folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

pub struct Made {
    pub folder: TempDir,
    source: &'static str,
}

impl Made {
    pub fn of(source: &'static str) -> Made {
        Made {
            folder: tempfile::tempdir().unwrap(),
            source,
        }
    }

    /// A library with these definitions.
    pub fn library(&self, name: &str, definitions: &[&str]) -> PathBuf {
        let path = self.folder.path().join(name);
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new("cc");
        command.args([
            "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I",
        ]);
        command.arg(crate_folder.join("include"));
        command.args(
            definitions
                .iter()
                .map(|definition| format!("-D{definition}")),
        );
        command
            .arg("-o")
            .arg(&path)
            .arg(crate_folder.join("tests/sources").join(self.source));
        assert!(command.status().unwrap().success());
        path
    }
}
