//! `lrzip.conf`: defaults that a file sets.
//!
//! `KEY = VALUE` lines; blank ones and those that begin with `#` are none. Keys and values may be in any case, but
//! `DELETEFILES` and `REPLACEFILE` may not (lrzip.conf(5)). Of a file in the current directory, which anybody may have put there,
//! these two are not believed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::back_end::BackEnd;
use super::number::leading_number;

/// The name of the file.
pub const FILE_NAME: &str = "lrzip.conf";

/// What a file sets; `None` and false where it says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    pub window: Option<i64>,
    pub level: Option<u8>,
    pub is_unlimited: bool,
    pub back_end: Option<BackEnd>,
    pub skips_threshold: bool,
    pub checks: bool,
    pub shows_hash: bool,
    pub output_directory: Option<PathBuf>,
    /// How often `-v` would have been given.
    pub verbosity: u8,
    pub hides_progress: bool,
    pub nice: Option<i32>,
    pub keeps_broken: bool,
    pub deletes: bool,
    pub overwrites: bool,
    pub temporary_directory: Option<OsString>,
    pub encrypts: bool,
    /// What is to be told about the file.
    pub remarks: Vec<String>,
}

/// Where a file is looked for, in order, and whether what it says may cost data.
pub fn places(home: Option<&Path>) -> Vec<(PathBuf, Trust)> {
    let mut places = vec![(Path::new(".").join(FILE_NAME), Trust::Stranger)];
    places.extend(home.map(|home| (home.join(".lrzip").join(FILE_NAME), Trust::Owner)));
    places.push((Path::new("/etc/lrzip").join(FILE_NAME), Trust::Owner));
    places
}

/// Who wrote a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The user or the administrator.
    Owner,
    /// Whoever can write to the current directory.
    Stranger,
}

impl Config {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What lrzip says of values that it refuses.
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
            "COMPRESSIONMETHOD" => match BackEnd::of_config(value) {
                Some(back_end) => self.back_end = Some(back_end),
                None => {
                    return Err(format!(
                        "CONF.FILE error. Invalid compression method {value} specified"
                    ));
                }
            },
            "LZOTEST" => self.skips_threshold = is_no,
            "HASHCHECK" => self.checks = is_yes,
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
            "DELETEFILES" | "REPLACEFILE" if value == "YES" && trust == Trust::Stranger => {
                self.remarks.push(format!(
                    "{FILE_NAME}: {key} is not taken from the current directory."
                ));
            }
            "DELETEFILES" => self.deletes = value == "YES",
            "REPLACEFILE" => self.overwrites = value == "YES",
            "TMPDIR" => self.temporary_directory = Some(value.into()),
            "ENCRYPT" => self.encrypts = is_yes,
            // Of lrzip 0.7; it is what is done unless another cipher is asked for.
            "LEGACY_ENCRYPT" => {}
            _ => self.remarks.push(format!(
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
        Config::parse(text, Trust::Owner).unwrap()
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
            ("HASHCHECK = YES", |c| c.checks),
            ("SHOWHASH = YES", |c| c.shows_hash),
            ("OUTPUTDIRECTORY = a b", |c| {
                c.output_directory == Some("a b".into())
            }),
            ("VERBOSITY = max", |c| c.verbosity == 2),
            ("VERBOSITY = yes", |c| c.verbosity == 1),
            ("SHOWPROGRESS = NO", |c| c.hides_progress),
            ("NICE = -3 # so", |c| c.nice == Some(-3)),
            ("KEEPBROKEN = YES", |c| c.keeps_broken),
            ("DELETEFILES = YES", |c| c.deletes),
            ("REPLACEFILE = YES", |c| c.overwrites && !c.keeps_broken),
            ("TMPDIR = /x", |c| {
                c.temporary_directory == Some("/x".into())
            }),
            ("ENCRYPT = YES", |c| c.encrypts),
            ("LEGACY_ENCRYPT = YES", |c| *c == Config::default()),
        ];
        for (text, is_set) in cases {
            let config = parse(text);
            assert!(is_set(&config), "{text}: {config:?}");
            assert!(config.remarks.is_empty(), "{text}");
        }
    }

    #[test]
    fn the_last_line_wins_and_what_is_unknown_is_told() {
        assert_eq!(parse("# c\n\nNICE=3\nNICE=4\nword\n").nice, Some(4));
        assert_eq!(
            parse("FOO = YES").remarks,
            ["lrzip.conf: Unrecognized parameter value, FOO = YES. Continuing."]
        );
        for text in ["COMPRESSIONLEVEL = 0", "NICE = 20", "COMPRESSIONMETHOD = x"] {
            assert!(Config::parse(text, Trust::Owner).is_err(), "{text}");
        }
    }

    #[test]
    fn data_is_not_lost_by_a_file_in_the_current_directory() {
        for key in ["DELETEFILES", "REPLACEFILE"] {
            let text = format!("{key} = YES");
            let config = Config::parse(&text, Trust::Stranger).unwrap();
            assert!(!config.deletes && !config.overwrites);
            assert_eq!(config.remarks.len(), 1);
            // Key and value are case-sensitive.
            for text in [
                format!("{key} = yes"),
                format!("{} = YES", key.to_lowercase()),
            ] {
                let config = parse(&text);
                assert!(!config.deletes && !config.overwrites, "{text}");
            }
        }
        let trusts = places(Some(Path::new("/h"))).into_iter();
        let trusts: Vec<_> = trusts.map(|(_, trust)| trust).collect();
        assert_eq!(trusts, [Trust::Stranger, Trust::Owner, Trust::Owner]);
    }
}
