//! The settings of a run: options and configuration file combined, before any file is accessed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::back_end::BackEnd;
use super::config::Config;
use super::number::leading_number;
use super::options::OptionId;
use super::parse::ParsedOption;
use super::program::Program;
use crate::paths::dash_for_stdout;

/// The action of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Compress,
    Decompress,
    Test,
    Info,
}

/// The source of the password.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Password {
    /// A prompt, if an archive is encrypted.
    #[default]
    WhenNeeded,
    /// A prompt (`-e`).
    Prompt,
    /// The value of `--encrypt=PASSWORD`.
    Given(OsString),
    /// The file of `--password-file` or `--password-fd`.
    File(PathBuf),
}

/// Which messages are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verbosity {
    /// Only errors are printed.
    pub is_silent: bool,
    /// Progress is displayed.
    pub has_progress: bool,
    /// The number of `-v` options, at most 2.
    pub level: u8,
}

/// All settings of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub action: Action,
    pub is_recursive: bool,
    /// `-o`.
    pub outfile: Option<PathBuf>,
    /// Write to standard output unless `-o` is given: lrzcat and `lrz -c`.
    pub to_stdout: bool,
    pub outdir: Option<PathBuf>,
    pub suffix: OsString,
    /// Overwrite files, and read from and write to terminals.
    pub force: bool,
    pub deletes_sources: bool,
    pub keeps_broken: bool,
    pub verifies_output: bool,
    pub shows_hash: bool,
    pub verbosity: Verbosity,
    pub back_end: BackEnd,
    pub level: u8,
    /// In units of 100 MiB.
    pub window: Option<u64>,
    pub is_unlimited: bool,
    pub skips_threshold: bool,
    pub is_ultra: bool,
    pub nice: i32,
    pub threads: Option<usize>,
    /// In units of 100 MiB.
    pub maxram: Option<u64>,
    pub encrypts: bool,
    /// Encrypt with the cipher of lrzip 0.6 instead of AES-256-GCM.
    pub has_legacy_cipher: bool,
    pub password: Password,
    /// A filter before LZMA was requested (`--filter`).
    pub has_filter: bool,
    /// Warnings to print before the work.
    pub warnings: Vec<String>,
}

/// The unit of `-m` and `-w` in bytes.
pub const HUNDRED_MIB: u64 = 100 << 20;

/// The longest password that lrzip accepts, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 503;

/// The default level.
const LEVEL: u8 = 7;

/// The default nice values of lrzip and lrz.
const NICE: i32 = 19;
const NICE_LRZ: i32 = 0;

/// The default suffix of archives.
const SUFFIX: &str = ".lrz";

impl Settings {
    fn defaults(program: Program) -> Settings {
        let is_lrz = program == Program::Lrz;
        Settings {
            action: match program {
                Program::Lrunzip | Program::Lrzcat | Program::Lrzuntar => Action::Decompress,
                Program::Lrzip | Program::Lrz | Program::Lrztar => Action::Compress,
            },
            is_recursive: false,
            outfile: None,
            to_stdout: program == Program::Lrzcat,
            outdir: None,
            suffix: SUFFIX.into(),
            force: false,
            deletes_sources: is_lrz,
            keeps_broken: false,
            verifies_output: false,
            shows_hash: false,
            verbosity: Verbosity {
                is_silent: is_lrz,
                has_progress: !is_lrz,
                level: 0,
            },
            back_end: BackEnd::default(),
            level: LEVEL,
            window: None,
            is_unlimited: false,
            skips_threshold: false,
            is_ultra: false,
            nice: if is_lrz { NICE_LRZ } else { NICE },
            threads: None,
            maxram: None,
            encrypts: false,
            has_legacy_cipher: false,
            password: Password::default(),
            has_filter: false,
            warnings: Vec::new(),
        }
    }

    /// Applies `config`, then `options`, to the defaults.
    ///
    /// # Errors
    /// A message in lrzip's words for an invalid value; lrzip exits with code 1.
    pub fn new(
        program: Program,
        config: &Config,
        options: &[ParsedOption],
    ) -> Result<Settings, String> {
        let mut settings = Settings::defaults(program);
        settings.apply_config(config);
        let mut back_ends = 0;
        for given in options {
            back_ends += u32::from(settings.apply_option(given)?);
        }
        if back_ends > 1 {
            return Err("Can only use one of -l, -b, -g, -z or -n".into());
        }
        settings.resolve_conflicts(config, options)?;
        Ok(settings)
    }

    fn apply_config(&mut self, config: &Config) {
        self.window = config
            .window
            .and_then(|window| u64::try_from(window).ok().filter(|&window| window > 0));
        self.level = config.level.unwrap_or(self.level);
        self.is_unlimited = config.is_unlimited;
        self.back_end = config.back_end.unwrap_or_default();
        self.skips_threshold = config.skips_threshold;
        self.verifies_output = config.verifies_output;
        self.shows_hash = config.shows_hash;
        self.outdir.clone_from(&config.output_directory);
        self.verbosity.level = config.verbosity;
        self.verbosity.has_progress &= !config.hides_progress;
        self.nice = config.nice.unwrap_or(self.nice);
        self.keeps_broken = config.keeps_broken;
        self.deletes_sources |= config.deletes_sources;
        self.force = config.overwrites;
        self.encrypts = config.encrypts;
        self.has_legacy_cipher = config.has_legacy_cipher;
        self.warnings.clone_from(&config.warnings);
    }

    /// Applies an option. Returns whether it is a letter that selects a back end.
    fn apply_option(&mut self, given: &ParsedOption) -> Result<bool, String> {
        let value = given.value.as_deref();
        let text = || value.unwrap_or_default().to_string_lossy();
        let path = || PathBuf::from(value.unwrap_or_default());
        match given.id {
            OptionId::Check => self.verifies_output = true,
            OptionId::Stdout => self.to_stdout = true,
            OptionId::Decompress => self.action = Action::Decompress,
            OptionId::Encrypt => {
                self.encrypts = true;
                match value {
                    Some(password) => self.password = self.given_password(password),
                    None if self.password == Password::WhenNeeded => {
                        self.password = Password::Prompt
                    }
                    None => {}
                }
            }
            OptionId::LegacyEncrypt => self.has_legacy_cipher = true,
            OptionId::Aes256 => self.has_legacy_cipher = false,
            OptionId::PasswordFile | OptionId::PasswordFd => {
                self.encrypts = true;
                self.password = Password::File(match given.id {
                    OptionId::PasswordFd => Path::new("/dev/fd").join(path()),
                    _ => path(),
                });
            }
            OptionId::Hash => self.shows_hash = true,
            OptionId::Info => self.action = Action::Info,
            OptionId::Test => self.action = Action::Test,
            OptionId::Recursive => self.is_recursive = true,
            OptionId::Quiet => self.verbosity.has_progress = false,
            OptionId::VeryQuiet => {
                self.verbosity.has_progress = false;
                self.verbosity.is_silent = true;
            }
            OptionId::Progress => self.verbosity.enable_messages(),
            OptionId::Verbose if self.verbosity.has_progress => {
                self.verbosity.level = (self.verbosity.level + 1).min(2);
            }
            OptionId::Verbose => self.verbosity.enable_messages(),
            OptionId::Delete => self.deletes_sources = true,
            OptionId::Keep => self.deletes_sources = false,
            OptionId::KeepBroken => self.keeps_broken = true,
            OptionId::Force => self.force = true,
            OptionId::Outfile => self.outfile = Some(dash_for_stdout(path())),
            OptionId::Outdir => self.outdir = Some(path()),
            OptionId::Suffix if self.outfile.is_some() => {
                let text = "Specified output filename already, can't specify an extension.";
                return Err(text.into());
            }
            OptionId::Suffix => self.suffix = value.unwrap_or_default().to_owned(),
            OptionId::Lzma => self.back_end = BackEnd::Lzma,
            OptionId::Bzip2 => return Ok(self.select_back_end(BackEnd::Bzip2)),
            OptionId::Gzip => return Ok(self.select_back_end(BackEnd::Gzip)),
            OptionId::Lzo => return Ok(self.select_back_end(BackEnd::Lzo)),
            OptionId::NoCompress => return Ok(self.select_back_end(BackEnd::None)),
            OptionId::Zpaq => return Ok(self.select_back_end(BackEnd::Zpaq)),
            OptionId::Level => self.level = level(&text())?,
            OptionId::Fast => self.level = 1,
            OptionId::Best => self.level = 9,
            OptionId::Nice => self.nice = nice(&text())?,
            OptionId::Threads => self.threads = Some(threads(&text())?),
            OptionId::Maxram => self.maxram = maxram(&text())?,
            OptionId::Threshold => self.skips_threshold = true,
            OptionId::Ultra => self.is_ultra = true,
            OptionId::Filter => self.has_filter = is_filter(value.map(|_| text()).as_deref())?,
            OptionId::Unlimited => self.is_unlimited = true,
            OptionId::Window => self.window = Some(window(&text())?),
            // These end the run before settings are computed.
            OptionId::Help | OptionId::Version | OptionId::License => {}
        }
        Ok(false)
    }

    /// The password of `--encrypt=PASSWORD`. lrzip uses as much as fits into its buffer.
    fn given_password(&mut self, password: &OsStr) -> Password {
        let bytes = password.as_bytes();
        let used = bytes.get(..PASSWORD_BYTES_MAX).unwrap_or(bytes);
        if used.len() < bytes.len() {
            self.warnings.push(format!(
                "The password has {} bytes; only the first {PASSWORD_BYTES_MAX} are used, as in lrzip.",
                bytes.len()
            ));
        }
        Password::Given(OsStr::from_bytes(used).to_owned())
    }

    fn select_back_end(&mut self, back_end: BackEnd) -> bool {
        self.back_end = back_end;
        true
    }

    /// Handles mutually exclusive options.
    fn resolve_conflicts(
        &mut self,
        config: &Config,
        options: &[ParsedOption],
    ) -> Result<(), String> {
        let has = |id| options.iter().any(|given| given.id == id);
        if self.outdir.is_some() && has(OptionId::Outfile) {
            return Err(match config.output_directory {
                Some(_) => "Cannot have -o and -O together".into(),
                None => "Cannot have options -o and -O together".into(),
            });
        }
        if self.verbosity.level > 0 && !self.verbosity.has_progress {
            self.warnings
                .push("Cannot have -v and -q options. -v wins.".into());
            self.verbosity.enable_messages();
        }
        if self.is_unlimited && self.window.is_some() {
            self.warnings
                .push("If -U used, cannot specify a window size with -w.".into());
            self.window = None;
        }
        if self.has_filter && self.action == Action::Compress {
            if self.back_end != BackEnd::Lzma {
                return Err("Can only use --filter with LZMA compression".into());
            }
            self.warnings
                .push("Filters are not supported for compression.".into());
        }
        // As in lrzip, which compares digests.
        self.shows_hash |= self.verifies_output;
        if self.verifies_output && self.action == Action::Test {
            self.warnings
                .push("Can only check file written on decompression.".into());
            self.verifies_output = false;
        }
        Ok(())
    }
}

impl Verbosity {
    fn enable_messages(&mut self) {
        self.has_progress = true;
        self.is_silent = false;
    }
}

/// Parses a number with nothing after it.
fn number(text: &str, what: &str) -> Result<i64, String> {
    match leading_number(text) {
        (number, "") => Ok(number),
        (_, rest) => Err(format!("Extra characters after {what}: '{rest}'")),
    }
}

/// Parses `--filter`: whether a filter is requested.
fn is_filter(text: Option<&str>) -> Result<bool, String> {
    match text {
        None | Some("auto" | "x86" | "arm64" | "delta1" | "delta2" | "delta3" | "delta4") => {
            Ok(true)
        }
        Some("none") => Ok(false),
        Some(text) => Err(format!(
            "Invalid filter '{text}' (must be auto, x86, arm64, delta1 to delta4 or none)"
        )),
    }
}

fn level(text: &str) -> Result<u8, String> {
    match (u8::try_from(leading_number(text).0), leading_number(text).1) {
        (Ok(level @ 1..=9), "") => Ok(level),
        (Ok(1..=9), rest) => Err(format!(
            "Extra characters after compression level: '{rest}'"
        )),
        _ => Err("Invalid compression level (must be 1-9)".into()),
    }
}

fn nice(text: &str) -> Result<i32, String> {
    match i32::try_from(number(text, "nice level")?) {
        Ok(nice @ -20..=20) => Ok(nice.min(19)),
        _ => Err("Invalid nice value (must be -20...20)".into()),
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match usize::try_from(number(text, "number of threads")?) {
        Ok(threads) if threads > 0 => Ok(threads),
        _ => Err("Must have at least one thread".into()),
    }
}

/// Parses `-m`. 0 selects the default; lrzip fails with 0.
fn maxram(text: &str) -> Result<Option<u64>, String> {
    match u64::try_from(number(text, "ramsize")?) {
        Ok(hundreds) => Ok((hundreds > 0).then_some(hundreds)),
        Err(_) => Err("Memory must be positive".into()),
    }
}

fn window(text: &str) -> Result<u64, String> {
    match u64::try_from(number(text, "window size")?) {
        Ok(window) if window > 0 => Ok(window),
        _ => Err("Window must be positive".into()),
    }
}
