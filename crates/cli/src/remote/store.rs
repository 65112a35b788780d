//! Credentials and address of an S3-compatible store, from the user's environment and files, with
//! the names used by Amazon's own tools.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use refrain::storage::{S3Credentials, S3Options};

use super::profile::Profile;
use crate::failure::{Failure, Result};

/// Finds a text by its name.
type Lookup<Name> = Box<dyn Fn(&Name) -> Option<String>>;

/// Where settings come from. Tests replace it.
pub struct Surroundings {
    variable: Lookup<str>,
    file: Lookup<Path>,
}

impl Surroundings {
    /// The environment of the process, and the files of the user.
    pub fn from_process() -> Surroundings {
        Surroundings {
            variable: Box::new(|name| env::var(name).ok()),
            file: Box::new(|path| fs::read_to_string(path).ok()),
        }
    }

    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn first_of(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.variable(name))
    }

    /// The address of the store, and the credentials for it.
    ///
    /// # Errors
    /// `Usage` for half of a pair of keys, and for a named profile that does not exist.
    pub fn store_options(&self) -> Result<S3Options> {
        let profile = self.profile()?;
        let setting = |name: &str| profile.iter().find_map(|profile| profile.get(name));
        let endpoint = self.first_of(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
        let region = self.first_of(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
        Ok(S3Options {
            endpoint: endpoint.or_else(|| setting("endpoint_url")),
            region: region.or_else(|| setting("region")),
            path_style: None,
            credentials: self.credentials(&setting)?,
        })
    }

    fn credentials(
        &self,
        setting: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<S3Credentials>> {
        let unsigned = self.variable("AWS_NO_SIGN_REQUEST");
        let is_no = |text: &String| ["0", "no", "false"].contains(&&*text.to_ascii_lowercase());
        if unsigned.is_some_and(|text| !is_no(&text)) {
            return Ok(None);
        }
        const NAMES: [&str; 3] = [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ];
        let [id, key, token] = NAMES.map(|name| self.variable(name));
        // A named profile takes precedence over what happens to be in the environment.
        let is_named = self.variable("AWS_PROFILE").is_some();
        if !is_named && let Some(found) = pair(id, key, token, &NAMES)? {
            return Ok(Some(found));
        }
        let names = NAMES.map(str::to_ascii_lowercase);
        let [id, key, token] = [&names[0], &names[1], &names[2]].map(|name| setting(name));
        pair(id, key, token, &[&names[0], &names[1]])
    }

    /// The profile: from the credentials file, then from the main file.
    fn profile(&self) -> Result<Vec<Profile>> {
        let named = self.first_of(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]);
        let name = named.as_deref().unwrap_or("default");
        let home = self.variable("HOME").map(PathBuf::from);
        let path = |variable: &str, file: &str| {
            let given = self.variable(variable).map(PathBuf::from);
            given.or_else(|| Some(home.as_ref()?.join(".aws").join(file)))
        };
        let files = [
            path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            path("AWS_CONFIG_FILE", "config"),
        ];
        let texts = files.iter().flatten().filter_map(|path| (self.file)(path));
        let found: Vec<_> = texts
            .filter_map(|text| Profile::parse(&text, name))
            .collect();
        match named {
            Some(name) if found.is_empty() => {
                let text = format!("AWS_PROFILE is {name}, and no file has such a profile");
                Err(Failure::usage("", text))
            }
            _ => Ok(found),
        }
    }
}

/// Credentials from an id and a key; half of them is an error.
fn pair(
    id: Option<String>,
    key: Option<String>,
    session_token: Option<String>,
    names: &[&str],
) -> Result<Option<S3Credentials>> {
    match (id, key) {
        (Some(access_key_id), Some(secret_access_key)) => Ok(Some(S3Credentials {
            access_key_id,
            secret_access_key,
            session_token,
        })),
        (None, None) => Ok(None),
        (id, _) => {
            let (set, missing) = match id {
                Some(_) => (names.first(), names.get(1)),
                None => (names.get(1), names.first()),
            };
            let (set, missing) = (set.unwrap_or(&""), missing.unwrap_or(&""));
            Err(Failure::usage(
                "",
                format!("{set} is set, {missing} is not"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn surroundings(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Surroundings {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
            pairs.iter().map(owned).collect()
        };
        let (variables, files) = (map(variables), map(files));
        Surroundings {
            variable: Box::new(move |name| variables.get(name).cloned()),
            file: Box::new(move |path| files.get(path.to_str()?).cloned()),
        }
    }

    fn id(options: &S3Options) -> Option<&str> {
        Some(&*options.credentials.as_ref()?.access_key_id)
    }

    const FILES: [(&str, &str); 2] = [
        (
            "/home/.aws/credentials",
            "[default]\naws_access_key_id = FILE\naws_secret_access_key = s\n\
             [work]\naws_access_key_id = WORK\naws_secret_access_key = s\naws_session_token = t\n",
        ),
        (
            "/home/.aws/config",
            "[default]\nregion = eu-west-1\n[profile work]\nregion = eu-west-2\n\
             endpoint_url = http://store\n",
        ),
    ];

    #[test]
    fn the_environment_comes_before_the_files_and_a_named_profile_before_both() {
        let home = ("HOME", "/home");
        let keys = [("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let options = surroundings(&[home], &FILES).store_options().unwrap();
        assert_eq!(id(&options), Some("FILE"));
        assert_eq!(options.region.as_deref(), Some("eu-west-1"));
        assert_eq!(options.endpoint, None);
        let both = surroundings(&[home, keys[0], keys[1], ("AWS_REGION", "r")], &FILES);
        let options = both.store_options().unwrap();
        assert_eq!(
            (id(&options), options.region.as_deref()),
            (Some("ENV"), Some("r"))
        );
        let work = [home, keys[0], keys[1], ("AWS_PROFILE", "work")];
        let options = surroundings(&work, &FILES).store_options().unwrap();
        assert_eq!(id(&options), Some("WORK"));
        let token = options.credentials.and_then(|keys| keys.session_token);
        assert_eq!(token.as_deref(), Some("t"));
        assert_eq!(options.endpoint.as_deref(), Some("http://store"));
    }

    #[test]
    fn nothing_is_no_credentials_and_half_is_an_error() {
        let options = surroundings(&[], &[]).store_options().unwrap();
        assert!(options.credentials.is_none());
        let half = surroundings(&[("AWS_SECRET_ACCESS_KEY", "s")], &[]);
        let text = half.store_options().unwrap_err().to_string();
        assert_eq!(
            text,
            "AWS_SECRET_ACCESS_KEY is set, AWS_ACCESS_KEY_ID is not"
        );
        let unsigned = [("HOME", "/home"), ("AWS_NO_SIGN_REQUEST", "true")];
        let options = surroundings(&unsigned, &FILES).store_options().unwrap();
        assert!(options.credentials.is_none());
        let absent = surroundings(&[("HOME", "/home"), ("AWS_PROFILE", "gone")], &FILES);
        assert!(absent.store_options().is_err());
    }
}
