//! The profile: measurements for later runs, as a small JSON document that belongs to one machine.

use std::fmt;

use refrain_pool::Pages;
use refrain_pool::buffer::set_default_pages;
use refrain_sync::set_spins_max;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::outcome::Measured;

/// The version of the document.
const VERSION: u64 = 1;

/// The pipe sizes that a profile may request.
const PIPE_BYTES: std::ops::RangeInclusive<u64> = 4096..=16 << 20;

/// The spin limit that a profile may request: a thousand rounds take some 50 µs.
const LOCK_SPINS_MAX: u64 = 10_000;

/// Huge pages are used unless random accesses are slower on them by more than noise.
const GAIN_LEAST: f64 = 0.95;

/// Settings for later runs. `None` was not measured, and stays at its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The processor model of its machine.
    pub model: String,
    /// The number of processors of its machine.
    pub processors: u64,
    /// The capacity of pipes.
    pub pipe_bytes: Option<u64>,
    /// Whether tables use huge pages.
    pub huge_pages: Option<bool>,
    /// How often a thread tries a held lock before it sleeps, at most.
    pub lock_spins_max: Option<u32>,
}

/// Why a document is not a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileError {
    /// It is not JSON, or lacks valid values.
    Malformed(String),
    /// A later version of Refrain wrote it.
    Version(u64),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::Malformed(reason) => write!(formatter, "not a profile: {reason}"),
            ProfileError::Version(version) => {
                write!(
                    formatter,
                    "a profile of version {version}, this reads {VERSION}"
                )
            }
        }
    }
}

impl std::error::Error for ProfileError {}

impl Profile {
    /// The profile of `machine` from its measurements.
    pub fn new(machine: &Machine, measured: &Measured) -> Profile {
        Profile {
            model: machine.model.clone(),
            processors: machine.processors as u64,
            pipe_bytes: measured.pipe_bytes,
            huge_pages: measured.huge_pages_gain.map(|gain| gain >= GAIN_LEAST),
            lock_spins_max: measured.lock_spins_max,
        }
    }

    /// Whether it was made on this machine, as far as can be told.
    pub fn belongs_to(&self, machine: &Machine) -> bool {
        self.model == machine.model && self.processors == machine.processors as u64
    }

    /// The document.
    pub fn to_json(&self) -> Value {
        json!({
            "version": VERSION,
            "model": self.model,
            "processors": self.processors,
            "pipe_bytes": self.pipe_bytes,
            "huge_pages": self.huge_pages,
            "lock_spins_max": self.lock_spins_max,
        })
    }

    /// Parses a document. Unknown values are ignored.
    ///
    /// # Errors
    /// It is not a profile, or a later version wrote it.
    pub fn from_json(text: &str) -> Result<Profile, ProfileError> {
        let malformed = |reason: String| ProfileError::Malformed(reason);
        let document: Value =
            serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let number = |name: &str| {
            let value = document[name].as_u64();
            value.ok_or_else(|| malformed(format!("{name} is {}", document[name])))
        };
        match number("version")? {
            VERSION => {}
            version => return Err(ProfileError::Version(version)),
        }
        let model = document["model"].as_str();
        let model = model.ok_or_else(|| malformed(format!("model is {}", document["model"])))?;
        let optional = |name: &str| {
            if document[name].is_null() { Ok(None) } else { number(name).map(Some) }
        };
        let pipe_bytes = optional("pipe_bytes")?;
        if let Some(bytes) = pipe_bytes.filter(|bytes| !PIPE_BYTES.contains(bytes)) {
            return Err(malformed(format!("pipe_bytes is {bytes}")));
        }
        let huge_pages = match &document["huge_pages"] {
            Value::Null => None,
            Value::Bool(value) => Some(*value),
            other => return Err(malformed(format!("huge_pages is {other}"))),
        };
        let lock_spins_max = optional("lock_spins_max")?;
        if let Some(spins) = lock_spins_max.filter(|spins| *spins > LOCK_SPINS_MAX) {
            return Err(malformed(format!("lock_spins_max is {spins}")));
        }
        Ok(Profile {
            model: model.to_owned(),
            processors: number("processors")?,
            pipe_bytes,
            huge_pages,
            lock_spins_max: lock_spins_max.and_then(|spins| u32::try_from(spins).ok()),
        })
    }

    /// The kind of pages for tables.
    pub fn pages(&self) -> Option<Pages> {
        self.huge_pages
            .map(|huge| if huge { Pages::Huge } else { Pages::Ordinary })
    }

    /// Applies the settings that belong to the process: the pages of tables, and how long threads
    /// spin for a lock.
    pub fn apply(&self) {
        if let Some(pages) = self.pages() {
            set_default_pages(pages);
        }
        if let Some(spins_max) = self.lock_spins_max {
            set_spins_max(spins_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let measured = Measured {
            pipe_bytes: Some(1 << 18),
            huge_pages_gain: Some(1.7),
            lock_spins_max: Some(300),
            ..Measured::default()
        };
        Profile::new(&Machine::this(3), &measured)
    }

    #[test]
    fn a_profile_is_read_as_it_was_written() {
        let profile = profile();
        assert_eq!(profile.huge_pages, Some(true));
        let text = profile.to_json().to_string();
        assert_eq!(Profile::from_json(&text), Ok(profile.clone()));
        assert!(profile.belongs_to(&Machine::this(3)));
        assert!(!profile.belongs_to(&Machine::this(4)));
        let empty = Profile::new(&Machine::this(3), &Measured::default());
        let text = empty.to_json().to_string();
        assert_eq!(Profile::from_json(&text), Ok(empty));
    }

    #[test]
    fn other_documents_are_refused_with_their_values() {
        let json = profile().to_json();
        for (name, value) in [
            ("model", json!(5)),
            ("processors", json!(-1)),
            ("pipe_bytes", json!(1)),
            ("pipe_bytes", json!(u64::MAX)),
            ("pipe_bytes", json!("64K")),
            ("huge_pages", json!("yes")),
            ("lock_spins_max", json!(1_000_000)),
            ("lock_spins_max", json!(true)),
            ("version", Value::Null),
        ] {
            let mut wrong = json.clone();
            wrong[name] = value;
            let error = Profile::from_json(&wrong.to_string()).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        let mut later = json.clone();
        later["version"] = json!(2);
        let error = Profile::from_json(&later.to_string()).unwrap_err();
        assert_eq!(error, ProfileError::Version(2));
        for text in ["", "[]", "{}", "{\"version\": 1"] {
            assert!(Profile::from_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_cut_of_a_profile_is_refused() {
        let text = profile().to_json().to_string();
        for end in 0..text.len() {
            assert!(Profile::from_json(&text[..end]).is_err());
        }
    }
}
