//! What the options and the configuration file say together, before files are looked at.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::back_end::BackEnd;
use super::config::Config;
use super::number::leading_number;
use super::options::Choice;
use super::parse::Given;
use super::program::Program;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Compress,
    Decompress,
    Test,
    Info,
}

/// Where the password comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Password {
    /// Asked for, if an archive turns out to be encrypted.
    #[default]
    WhenNeeded,
    /// `-e`.
    Asked,
    /// `--encrypt=PASSWORD`.
    Given(OsString),
    /// `--password-file`, `--password-fd`.
    File(PathBuf),
}

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verbosity {
    /// Only errors.
    pub is_silent: bool,
    /// Progress is shown.
    pub has_progress: bool,
    /// 0 to 2: how much more.
    pub more: u8,
}

/// Everything that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub action: Action,
    pub is_recursive: bool,
    /// `-o`.
    pub outfile: Option<PathBuf>,
    /// lrzcat, and `lrz -c`: to standard output unless `-o` says otherwise.
    pub is_cat: bool,
    pub outdir: Option<PathBuf>,
    pub suffix: OsString,
    /// Overwrite, and use terminals.
    pub force: bool,
    pub deletes: bool,
    pub keeps_broken: bool,
    pub checks: bool,
    pub shows_hash: bool,
    pub verbosity: Verbosity,
    pub back_end: BackEnd,
    pub level: u8,
    /// Hundreds of MiB.
    pub window: Option<u64>,
    pub is_unlimited: bool,
    pub skips_threshold: bool,
    pub is_ultra: bool,
    pub nice: i32,
    pub threads: Option<usize>,
    /// Hundreds of MiB.
    pub maxram: Option<u64>,
    pub encrypts: bool,
    /// AES-256-GCM; else what lrzip 0.6 reads.
    pub is_aes256: bool,
    pub password: Password,
    /// Warnings that do not stop the work.
    pub remarks: Vec<String>,
}

/// Bytes in one unit of `-m` and `-w`.
pub const HUNDRED_MIB: u64 = 100 << 20;

/// The level unless another is asked for.
const LEVEL: u8 = 7;

/// The nice value of lrzip, and that of lrz.
const NICE: i32 = 19;
const NICE_LRZ: i32 = 0;

/// The suffix of archives.
const SUFFIX: &str = ".lrz";

impl Settings {
    /// What a program does when nothing says otherwise.
    fn new(program: Program) -> Settings {
        let is_lrz = program == Program::Lrz;
        Settings {
            action: match program {
                Program::Lrunzip | Program::Lrzcat | Program::Lrzuntar => Action::Decompress,
                Program::Lrzip | Program::Lrz | Program::Lrztar => Action::Compress,
            },
            is_recursive: false,
            outfile: None,
            is_cat: program == Program::Lrzcat,
            outdir: None,
            suffix: SUFFIX.into(),
            force: false,
            deletes: is_lrz,
            keeps_broken: false,
            checks: false,
            shows_hash: false,
            verbosity: Verbosity {
                is_silent: is_lrz,
                has_progress: !is_lrz,
                more: 0,
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
            is_aes256: false,
            password: Password::default(),
            remarks: Vec::new(),
        }
    }

    /// What `config` and then `options`, in their order, say.
    ///
    /// # Errors
    /// A value that makes no sense, in lrzip's words; lrzip ends with 1 then.
    pub fn of(program: Program, config: &Config, options: &[Given]) -> Result<Settings, String> {
        let mut settings = Settings::new(program);
        settings.configure(config);
        let mut back_ends = 0;
        for given in options {
            back_ends += u32::from(settings.take(given)?);
        }
        if back_ends > 1 {
            return Err("Can only use one of -l, -b, -g, -z or -n".into());
        }
        settings.settle(config, options)?;
        Ok(settings)
    }

    fn configure(&mut self, config: &Config) {
        self.window = config
            .window
            .and_then(|window| u64::try_from(window).ok().filter(|&window| window > 0));
        self.level = config.level.unwrap_or(self.level);
        self.is_unlimited = config.is_unlimited;
        self.back_end = config.back_end.unwrap_or_default();
        self.skips_threshold = config.skips_threshold;
        self.checks = config.checks;
        self.shows_hash = config.shows_hash;
        self.outdir.clone_from(&config.output_directory);
        self.verbosity.more = config.verbosity;
        self.verbosity.has_progress &= !config.hides_progress;
        self.nice = config.nice.unwrap_or(self.nice);
        self.keeps_broken = config.keeps_broken;
        self.deletes |= config.deletes;
        self.force = config.overwrites;
        self.encrypts = config.encrypts;
        self.remarks.clone_from(&config.remarks);
    }

    /// Takes one option. Returns whether it is one of the letters that name a back end.
    fn take(&mut self, given: &Given) -> Result<bool, String> {
        let value = given.value.as_deref();
        let text = || value.unwrap_or_default().to_string_lossy();
        let path = || PathBuf::from(value.unwrap_or_default());
        match given.choice {
            Choice::Check => self.checks = true,
            Choice::Stdout => self.is_cat = true,
            Choice::Decompress => self.action = Action::Decompress,
            Choice::Encrypt => {
                self.encrypts = true;
                match value {
                    Some(password) => self.password = Password::Given(password.to_owned()),
                    None if self.password == Password::WhenNeeded => {
                        self.password = Password::Asked
                    }
                    None => {}
                }
            }
            Choice::LegacyEncrypt => self.is_aes256 = false,
            Choice::Aes256 => self.is_aes256 = true,
            Choice::PasswordFile | Choice::PasswordFd => {
                self.encrypts = true;
                self.password = Password::File(match given.choice {
                    Choice::PasswordFd => Path::new("/dev/fd").join(path()),
                    _ => path(),
                });
            }
            Choice::Hash => self.shows_hash = true,
            Choice::Info => self.action = Action::Info,
            Choice::Test => self.action = Action::Test,
            Choice::Recursive => self.is_recursive = true,
            Choice::Quiet => self.verbosity.has_progress = false,
            Choice::VeryQuiet => {
                self.verbosity.has_progress = false;
                self.verbosity.is_silent = true;
            }
            Choice::Progress => self.verbosity.speak(),
            Choice::Verbose if self.verbosity.has_progress => {
                self.verbosity.more = (self.verbosity.more + 1).min(2);
            }
            Choice::Verbose => self.verbosity.speak(),
            Choice::Delete => self.deletes = true,
            Choice::Keep => self.deletes = false,
            Choice::KeepBroken => self.keeps_broken = true,
            Choice::Force => self.force = true,
            Choice::Outfile => self.outfile = Some(path()),
            Choice::Outdir => self.outdir = Some(path()),
            Choice::Suffix if self.outfile.is_some() => {
                let text = "Specified output filename already, can't specify an extension.";
                return Err(text.into());
            }
            Choice::Suffix => self.suffix = value.unwrap_or_default().to_owned(),
            Choice::Lzma => self.back_end = BackEnd::Lzma,
            Choice::Bzip2 => return Ok(self.squeeze(BackEnd::Bzip2)),
            Choice::Gzip => return Ok(self.squeeze(BackEnd::Gzip)),
            Choice::Lzo => return Ok(self.squeeze(BackEnd::Lzo)),
            Choice::NoCompress => return Ok(self.squeeze(BackEnd::None)),
            Choice::Zpaq => return Ok(self.squeeze(BackEnd::Zpaq)),
            Choice::Level => self.level = level(&text())?,
            Choice::Fast => self.level = 1,
            Choice::Best => self.level = 9,
            Choice::Nice => self.nice = nice(&text())?,
            Choice::Threads => self.threads = Some(threads(&text())?),
            Choice::Maxram => self.maxram = maxram(&text())?,
            Choice::Threshold => self.skips_threshold = true,
            Choice::Ultra => self.is_ultra = true,
            Choice::Filter => self
                .remarks
                .push("Filters are not used for what is written here.".into()),
            Choice::Unlimited => self.is_unlimited = true,
            Choice::Window => self.window = Some(window(&text())?),
            // These end the run before there are settings.
            Choice::Help | Choice::Version | Choice::License => {}
        }
        Ok(false)
    }

    fn squeeze(&mut self, back_end: BackEnd) -> bool {
        self.back_end = back_end;
        true
    }

    /// Options that exclude each other.
    fn settle(&mut self, config: &Config, options: &[Given]) -> Result<(), String> {
        let has = |choice| options.iter().any(|given| given.choice == choice);
        if self.outdir.is_some() && has(Choice::Outfile) {
            return Err(match config.output_directory {
                Some(_) => "Cannot have -o and -O together".into(),
                None => "Cannot have options -o and -O together".into(),
            });
        }
        if self.verbosity.more > 0 && !self.verbosity.has_progress {
            self.remarks
                .push("Cannot have -v and -q options. -v wins.".into());
            self.verbosity.speak();
        }
        if self.is_unlimited && self.window.is_some() {
            self.remarks
                .push("If -U used, cannot specify a window size with -w.".into());
            self.window = None;
        }
        // Whoever wants the file checked wants to know against what.
        self.shows_hash |= self.checks;
        if self.checks && matches!(self.action, Action::Compress | Action::Test) {
            self.remarks
                .push("Can only check file written on decompression.".into());
            self.checks = false;
        }
        Ok(())
    }
}

impl Verbosity {
    fn speak(&mut self) {
        self.has_progress = true;
        self.is_silent = false;
    }
}

/// A number with nothing behind it.
fn number(text: &str, what: &str) -> Result<i64, String> {
    match leading_number(text) {
        (number, "") => Ok(number),
        (_, rest) => Err(format!("Extra characters after {what}: '{rest}'")),
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

/// 0 is as if nothing was said: lrzip fails at everything with it.
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
