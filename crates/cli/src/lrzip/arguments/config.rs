//! Parses `lrzip.conf`, the file of defaults.
//!
//! A line is `KEY = VALUE`. Blank lines and lines that begin with `#` are ignored. Keys and values
//! are case-insensitive except for `DELETEFILES` and `REPLACEFILE` (lrzip.conf(5)). These two are
//! ignored in a file of the current directory, which another user may have created.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::back_end::BackEnd;
use super::number::leading_number;

pub const FILE_NAME: &str = "lrzip.conf";

/// The values set by a file; `None` and false are the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    pub window: Option<i64>,
    pub level: Option<u8>,
    pub is_unlimited: bool,
    pub back_end: Option<BackEnd>,
    pub skips_threshold: bool,
    pub verifies_output: bool,
    pub shows_hash: bool,
    pub output_directory: Option<PathBuf>,
    /// The equivalent number of `-v` options.
    pub verbosity: u8,
    pub hides_progress: bool,
    pub nice: Option<i32>,
    pub keeps_broken: bool,
    pub deletes_sources: bool,
    pub overwrites: bool,
    pub temporary_directory: Option<OsString>,
    pub encrypts: bool,
    pub has_legacy_cipher: bool,
    /// Warnings about the file.
    pub warnings: Vec<String>,
}

/// The paths of the file in order of preference, and whether each may cause data loss.
pub fn search_paths(home: Option<&Path>) -> Vec<(PathBuf, Trust)> {
    let mut paths = vec![(Path::new(".").join(FILE_NAME), Trust::Untrusted)];
    paths.extend(home.map(|home| (home.join(".lrzip").join(FILE_NAME), Trust::Trusted)));
    paths.push((Path::new("/etc/lrzip").join(FILE_NAME), Trust::Trusted));
    paths
}

/// Whether a file may enable options that delete or overwrite files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The user or the administrator wrote it.
    Trusted,
    /// Any user who may write to the current directory may have written it.
    Untrusted,
}

impl Config {
    /// Parses a configuration file.
    ///
    /// # Errors
    /// A message in lrzip's words for an invalid value.
    pub fn parse(text: &str, trust: Trust) -> Result<Config, String> {
        let mut config = Config::default();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some((key, value)) = line.split_once('=') {
                config.set(key.trim(), value.trim(), trust)?;
            }
        }
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &str, trust: Trust) -> Result<(), String> {
        let is_yes = value.eq_ignore_ascii_case("yes");
        let is_no = value.eq_ignore_ascii_case("no");
        match key.to_ascii_uppercase().as_str() {
            "WINDOW" => self.window = Some(leading_number(value).0),
            "COMPRESSIONLEVEL" => match u8::try_from(leading_number(value).0) {
                Ok(level @ 1..=9) => self.level = Some(level),
                _ => return Err("CONF.FILE error. Compression Level must between 1 and 9".into()),
            },
            "UNLIMITED" => self.is_unlimited = is_yes,
            "COMPRESSIONMETHOD" => match BackEnd::from_config(value) {
                Some(back_end) => self.back_end = Some(back_end),
                None => {
                    return Err(format!(
                        "CONF.FILE error. Invalid compression method {value} specified"
                    ));
                }
            },
            "LZOTEST" => self.skips_threshold = is_no,
            "HASHCHECK" => self.verifies_output = is_yes,
            "SHOWHASH" => self.shows_hash = is_yes,
            "OUTPUTDIRECTORY" => self.output_directory = Some(PathBuf::from(value)),
            "VERBOSITY" if value.eq_ignore_ascii_case("max") => self.verbosity = 2,
            "VERBOSITY" => self.verbosity = u8::from(is_yes),
            "SHOWPROGRESS" => self.hides_progress = is_no,
            "NICE" => match i32::try_from(leading_number(value).0) {
                Ok(nice @ -20..=19) => self.nice = Some(nice),
                _ => return Err("CONF.FILE error. Nice must be between -20 and 19".into()),
            },
            "KEEPBROKEN" => self.keeps_broken = is_yes,
            "DELETEFILES" | "REPLACEFILE" if key != key.to_ascii_uppercase() => {}
            "DELETEFILES" | "REPLACEFILE" if value == "YES" && trust == Trust::Untrusted => {
                self.warnings.push(format!(
                    "{FILE_NAME}: {key} is ignored in a file of the current directory."
                ));
            }
            "DELETEFILES" => self.deletes_sources = value == "YES",
            "REPLACEFILE" => self.overwrites = value == "YES",
            "TMPDIR" => self.temporary_directory = Some(value.into()),
            "ENCRYPT" => self.encrypts = is_yes,
            "LEGACY_ENCRYPT" => self.has_legacy_cipher = is_yes,
            _ => self.warnings.push(format!(
                "{FILE_NAME}: Unrecognized parameter value, {key} = {value}. Continuing."
            )),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Config {
        Config::parse(text, Trust::Trusted).unwrap()
    }

    #[test]
    fn every_key_sets_its_field() {
        type IsSet = fn(&Config) -> bool;
        let cases: [(&str, IsSet); 20] = [
            ("WINDOW = 20", |c| c.window == Some(20)),
            ("CompressionLevel=3", |c| c.level == Some(3)),
            ("\tUNLIMITED\t=\tYes", |c| c.is_unlimited),
            ("COMPRESSIONMETHOD = GZIP", |c| {
                c.back_end == Some(BackEnd::Gzip)
            }),
            ("COMPRESSIONMETHOD = rzip", |c| {
                c.back_end == Some(BackEnd::None)
            }),
            ("LZOTEST = no", |c| c.skips_threshold),
            ("LZOTEST = YES", |c| !c.skips_threshold),
            ("HASHCHECK = YES", |c| c.verifies_output),
            ("SHOWHASH = YES", |c| c.shows_hash),
            ("OUTPUTDIRECTORY = a b", |c| {
                c.output_directory == Some("a b".into())
            }),
            ("VERBOSITY = max", |c| c.verbosity == 2),
            ("VERBOSITY = yes", |c| c.verbosity == 1),
            ("SHOWPROGRESS = NO", |c| c.hides_progress),
            ("NICE = -3 # so", |c| c.nice == Some(-3)),
            ("KEEPBROKEN = YES", |c| c.keeps_broken),
            ("DELETEFILES = YES", |c| c.deletes_sources),
            ("REPLACEFILE = YES", |c| c.overwrites && !c.keeps_broken),
            ("TMPDIR = /x", |c| {
                c.temporary_directory == Some("/x".into())
            }),
            ("ENCRYPT = YES", |c| c.encrypts && !c.has_legacy_cipher),
            ("LEGACY_ENCRYPT = YES", |c| c.has_legacy_cipher),
        ];
        for (text, is_set) in cases {
            let config = parse(text);
            assert!(is_set(&config), "{text}: {config:?}");
            assert!(config.warnings.is_empty(), "{text}");
        }
    }

    #[test]
    fn the_last_line_wins_and_unknown_keys_cause_warnings() {
        assert_eq!(parse("# c\n\nNICE=3\nNICE=4\nword\n").nice, Some(4));
        assert_eq!(
            parse("FOO = YES").warnings,
            ["lrzip.conf: Unrecognized parameter value, FOO = YES. Continuing."]
        );
        for text in ["COMPRESSIONLEVEL = 0", "NICE = 20", "COMPRESSIONMETHOD = x"] {
            assert!(Config::parse(text, Trust::Trusted).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_in_the_current_directory_cannot_delete_or_overwrite() {
        for key in ["DELETEFILES", "REPLACEFILE"] {
            let text = format!("{key} = YES");
            let config = Config::parse(&text, Trust::Untrusted).unwrap();
            assert!(!config.deletes_sources && !config.overwrites);
            assert_eq!(config.warnings.len(), 1);
            // Key and value are case-sensitive.
            for text in [
                format!("{key} = yes"),
                format!("{} = YES", key.to_lowercase()),
            ] {
                let config = parse(&text);
                assert!(!config.deletes_sources && !config.overwrites, "{text}");
            }
        }
        let trusts = search_paths(Some(Path::new("/h"))).into_iter();
        let trusts: Vec<_> = trusts.map(|(_, trust)| trust).collect();
        assert_eq!(trusts, [Trust::Untrusted, Trust::Trusted, Trust::Trusted]);
    }
}
