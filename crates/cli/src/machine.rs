//! This machine's profile, which `refrain lab --save` keeps in the user's configuration.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use refrain_lab::{Machine, Profile};

use crate::failure::{Failure, Result};
use crate::messages;
use crate::paths::label;

const PROFILE_BYTES_MAX: u64 = 64 << 10;

/// The path of the profile: in `$XDG_CONFIG_HOME`, otherwise `~/.config`. `None` without both.
pub fn path() -> Option<PathBuf> {
    path_in(|name| env::var_os(name).map(PathBuf::from))
}

fn path_in(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // The specification of these variables says to ignore relative paths.
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let configuration =
        absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    configuration.map(|directory| directory.join("refrain/machine.json"))
}

/// The profile at `path`, for any machine. `None` if the file does not exist.
///
/// # Errors
/// The file cannot be read or is not a profile.
pub fn read(path: &Path) -> Result<Option<Profile>> {
    let failed = |error| Failure::Io {
        file: label(path),
        action: "read",
        error,
    };
    let text = match fs::metadata(path) {
        Ok(metadata) if metadata.len() > PROFILE_BYTES_MAX => {
            return Err(Failure::refused(label(path), "too large for a profile"));
        }
        Ok(_) => fs::read_to_string(path).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let profile = Profile::from_json(&text);
    let profile = profile.map_err(|error| Failure::refused(label(path), error.to_string()))?;
    Ok(Some(profile))
}

/// This machine's profile, read once. An unreadable one is reported and ignored: it makes runs
/// faster, but none depends on it.
pub fn profile() -> Option<&'static Profile> {
    static PROFILE: OnceLock<Option<Profile>> = OnceLock::new();
    let found = PROFILE.get_or_init(|| match read(&path()?) {
        // Checked only if there is one.
        Ok(profile) => {
            profile.filter(|profile| profile.belongs_to(&Machine::this(refrain_pool::processors())))
        }
        Err(failure) => {
            messages::tell("refrain", &format!("{failure}; using the defaults"));
            None
        }
    });
    found.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_below_the_configuration_of_the_user() {
        let found = |config: Option<&str>, home: Option<&str>| {
            path_in(|name| {
                let value = if name == "HOME" { home } else { config };
                value.map(PathBuf::from)
            })
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(
            found(Some("/c"), Some("/h")),
            path("/c/refrain/machine.json")
        );
        let below_home = path("/h/.config/refrain/machine.json");
        assert_eq!(found(None, Some("/h")), below_home);
        assert_eq!(found(Some("relative"), Some("/h")), below_home);
        assert_eq!(found(None, None), None);
    }

    #[test]
    fn what_is_no_profile_is_refused_and_none_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("machine.json");
        assert_eq!(read(&path).unwrap(), None);
        for text in ["{", "", "{\"version\": 9}"] {
            fs::write(&path, text).unwrap();
            let refused = read(&path).unwrap_err().to_string();
            assert!(refused.contains("machine.json"), "{refused}");
        }
        fs::write(&path, vec![b' '; 1 << 20]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("too large"));
    }
}
