//! Replaces the lrzip command and format in a build without the feature `lrzip`.

use std::ffi::OsString;
use std::process::ExitCode;

/// The programs of lrzip: none in this build.
#[derive(Debug, Clone, Copy)]
pub enum Program {}

impl Program {
    /// Returns `None`: this build does not act as lrzip.
    pub fn from_name(_name: &str) -> Option<Program> {
        None
    }
}

/// Never called: [`Program`] has no values.
pub fn run(program: Program, _arguments: &[OsString]) -> ExitCode {
    match program {}
}

/// Declarations for manual pages: none.
pub fn commands() -> Vec<clap::Command> {
    Vec::new()
}

pub mod links {
    use std::path::Path;

    use crate::failure::{Failure, Result};

    /// Refuses: this build does not act as lrzip.
    pub fn create(_directory: &Path) -> Result<()> {
        let text = "this build does not act as lrzip: it was compiled without the feature lrzip";
        Err(Failure::usage("", text))
    }
}

pub mod format {
    use refrain::MemberInput;
    use refrain::storage::Sink;
    use serde_json::Value;

    use crate::args::CompressArgs;
    use crate::failure::Result;
    use crate::report::{Meter, Sizes};

    /// How to write an lrzip archive: impossible in this build.
    #[derive(Debug)]
    pub enum LrzipFormat {}

    impl LrzipFormat {
        /// Returns `None`, or a refusal if the format was requested.
        pub fn from_args(args: &CompressArgs) -> Result<Option<(LrzipFormat, Option<String>)>> {
            args.lrzip.check().map(|()| None)
        }

        /// Never called.
        pub fn compress(
            &self,
            _members: Vec<MemberInput>,
            _sink: &mut dyn Sink,
            _label: &str,
            _meter: &Meter,
        ) -> Result<(Sizes, Value)> {
            match *self {}
        }
    }
}
