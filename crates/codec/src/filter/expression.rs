//! Filters by name: `transpose:4|delta:1`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::chain::{FilterChain, MAX_FILTERS};
use super::plugin::{self, FilterDescription, PluginFilter, plugin_filters};
use super::step::FilterStep;
use crate::error::{Error, PluginKind, Result};

/// Why a text names no filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterTextError {
    /// There is no filter with this name.
    Name {
        /// The name.
        name: String,
    },
    /// The parameter is missing, superfluous or out of range.
    Parameter {
        /// The filter with what follows it.
        step: String,
        /// What it takes.
        usage: Cow<'static, str>,
    },
    /// More filters than a block can have.
    TooMany {
        /// Their number.
        count: usize,
    },
}

impl fmt::Display for FilterTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name } => {
                let usages: Vec<_> = filters().map(|(_, _, usage)| usage).collect();
                write!(
                    f,
                    "there is no filter '{name}'; there are {}",
                    usages.join(", ")
                )
            }
            Self::Parameter { step, usage } => write!(f, "'{step}' should be {usage}"),
            Self::TooMany { count } => {
                write!(f, "{count} filters; a block can have {MAX_FILTERS}")
            }
        }
    }
}

impl std::error::Error for FilterTextError {}

/// Number, name, and usage of each filter. Those without a parameter store 0.
const USAGES: &[(u8, &str, &str)] = &[
    (1, "x86", "x86"),
    (2, "arm64", "arm64:PHASE (0 to 3)"),
    (3, "delta", "delta:DISTANCE (1 to 16)"),
    (4, "x86-64", "x86-64"),
    (5, "transpose", "transpose:RECORD (2 to 32)"),
    (6, "xor", "xor:DISTANCE (1 to 255)"),
];

/// Number, name, and usage of each filter, with those of plug-ins.
fn filters() -> impl Iterator<Item = (u8, &'static str, Cow<'static, str>)> {
    let own = USAGES.iter().copied();
    let own = own.map(|(id, name, usage)| (id, name, Cow::Borrowed(usage)));
    own.chain(plugin_filters().map(|filter| {
        let description = filter.describe();
        (description.id, description.name, usage_of(&description))
    }))
}

fn usage_of(description: &FilterDescription) -> Cow<'static, str> {
    let FilterDescription {
        name, parameters, ..
    } = description;
    if !description.has_parameter() {
        return Cow::Borrowed(name);
    }
    let (first, last) = (parameters.start(), parameters.end());
    Cow::Owned(format!("{name}:PARAMETER ({first} to {last})"))
}

/// The name of the filter with this number; `None` when this build does not support it.
#[must_use]
pub fn filter_name(id: u8) -> Option<&'static str> {
    let own = USAGES.iter().find(|(own_id, ..)| *own_id == id);
    own.map(|&(_, name, _)| name)
        .or_else(|| Some(plugin::by_id(id).ok()?.describe().name))
}

/// Adds the filter of a plug-in, for the rest of the process.
///
/// # Errors
/// As [`check_plugin_filter`].
pub fn register_plugin_filter(filter: &'static dyn PluginFilter) -> Result<()> {
    let FilterDescription { id, name, .. } = filter.describe();
    check_plugin_filter(id, name)?;
    plugin::add(filter)
}

/// Checks that a plug-in's filter with this number and name can be added.
///
/// # Errors
/// `PluginNumber`, `PluginNumberTaken`, `PluginNameTaken`.
pub fn check_plugin_filter(id: u8, name: &str) -> Result<()> {
    plugin::check_number(id)?;
    match filters().find(|&(_, other, _)| other == name) {
        Some((_, name, _)) => Err(Error::PluginNameTaken {
            kind: PluginKind::Filter,
            name,
        }),
        None => Ok(()),
    }
}

impl FromStr for FilterChain {
    type Err = FilterTextError;

    /// Parses one or more of `NAME` or `NAME:PARAMETER` with `|` between them, in the order in
    /// which the encoder applies them.
    fn from_str(text: &str) -> std::result::Result<Self, FilterTextError> {
        let mut chain = Self::EMPTY;
        for step in text.split('|') {
            chain.push(parse_step(step.trim())?).ok_or_else(|| {
                let count = text.split('|').count();
                FilterTextError::TooMany { count }
            })?;
        }
        Ok(chain)
    }
}

fn parse_step(text: &str) -> std::result::Result<FilterStep, FilterTextError> {
    let (name, parameter) = match text.split_once(':') {
        Some((name, parameter)) => (name, Some(parameter)),
        None => (text, None),
    };
    let found = filters().find(|(_, found_name, _)| *found_name == name);
    let (id, _, usage) = found.ok_or_else(|| FilterTextError::Name {
        name: name.to_owned(),
    })?;
    let parameter = match (parameter, usage.contains(':')) {
        (Some(parameter), true) => parameter.parse().ok(),
        (None, false) => Some(0),
        _ => None,
    };
    let step = parameter.and_then(|parameter| FilterStep::new(id, parameter).ok());
    step.ok_or_else(|| FilterTextError::Parameter {
        step: text.to_owned(),
        usage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<(u8, u8)> {
        let chain: FilterChain = text.parse().unwrap();
        chain
            .steps()
            .map(|step| (step.id(), step.param()))
            .collect()
    }

    #[test]
    fn parses_names_with_parameters_in_order() {
        assert_eq!(ids("delta:4"), [(3, 4)]);
        assert_eq!(ids("transpose:8|xor:1"), [(5, 8), (6, 1)]);
        assert_eq!(ids("x86-64 | arm64:0"), [(4, 0), (2, 0)]);
    }

    #[test]
    fn every_filter_has_its_name_and_range() {
        for id in 1..*FilterStep::PLUGINS.start() {
            let steps: Vec<_> = (0..=u8::MAX).flat_map(|p| FilterStep::new(id, p)).collect();
            let row = USAGES.iter().find(|row| row.0 == id);
            let Some((_, name, usage)) = row else {
                assert!(steps.is_empty(), "{id}");
                continue;
            };
            let (first, last) = (steps[0], steps[steps.len() - 1]);
            assert!(first.to_string().starts_with(name));
            assert!(usage.starts_with(name));
            let range = format!("({} to {})", first.param(), last.param());
            assert_eq!(usage.ends_with(&range), steps.len() > 1, "{usage}");
        }
    }

    #[test]
    fn names_what_is_wrong() {
        let error = |text: &str| text.parse::<FilterChain>().unwrap_err().to_string();
        assert!(error("").starts_with("there is no filter ''; there are x86, arm64:PHASE"));
        assert_eq!(error("delta"), "'delta' should be delta:DISTANCE (1 to 16)");
        assert_eq!(error("x86:1"), "'x86:1' should be x86");
        for text in [
            "delta:0",
            "delta:17",
            "delta:-1",
            "delta:x",
            "xor:256",
            "delta:1:2",
        ] {
            assert!(error(text).contains("should be"), "{text}");
        }
        assert_eq!(
            error("delta:1|xor:1|delta:2"),
            "3 filters; a block can have 2"
        );
    }
}
