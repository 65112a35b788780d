//! Values that shells complete, although others can be given too.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Command};

/// Parses values with `parser`, and names some of them for completion.
#[derive(Clone)]
pub struct Completed<P> {
    pub parser: P,
    pub values: fn() -> Vec<&'static str>,
}

impl<P: TypedValueParser> TypedValueParser for Completed<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = (self.values)().into_iter();
        Some(Box::new(values.map(PossibleValue::new)))
    }
}
