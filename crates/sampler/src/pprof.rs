//! pprof's format: a protocol buffers message (`profile.proto`), compressed with gzip.
//!
//! A location is a function. Its crate stands in for its file, so that `pprof -files` shows crates.
//! Labels give the thread and stage.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::profile::Profile;

/// Field numbers.
mod field {
    pub(super) mod profile {
        pub(in super::super) const SAMPLE_TYPE: u64 = 1;
        pub(in super::super) const SAMPLE: u64 = 2;
        pub(in super::super) const MAPPING: u64 = 3;
        pub(in super::super) const LOCATION: u64 = 4;
        pub(in super::super) const FUNCTION: u64 = 5;
        pub(in super::super) const STRING: u64 = 6;
        pub(in super::super) const TIME_NS: u64 = 9;
        pub(in super::super) const DURATION_NS: u64 = 10;
        pub(in super::super) const PERIOD_TYPE: u64 = 11;
        pub(in super::super) const PERIOD: u64 = 12;
        pub(in super::super) const COMMENT: u64 = 13;
        pub(in super::super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
    }
    pub(super) mod value_type {
        pub(in super::super) const TYPE: u64 = 1;
        pub(in super::super) const UNIT: u64 = 2;
    }
    pub(super) mod sample {
        pub(in super::super) const LOCATION_IDS: u64 = 1;
        pub(in super::super) const VALUES: u64 = 2;
        pub(in super::super) const LABEL: u64 = 3;
    }
    pub(super) mod label {
        pub(in super::super) const KEY: u64 = 1;
        pub(in super::super) const TEXT: u64 = 2;
        pub(in super::super) const NUMBER: u64 = 3;
    }
    pub(super) mod mapping {
        pub(in super::super) const ID: u64 = 1;
        pub(in super::super) const FILE: u64 = 5;
        pub(in super::super) const HAS_FUNCTIONS: u64 = 7;
    }
    pub(super) mod location {
        pub(in super::super) const ID: u64 = 1;
        pub(in super::super) const MAPPING_ID: u64 = 2;
        pub(in super::super) const LINE: u64 = 4;
    }
    pub(super) mod line {
        pub(in super::super) const FUNCTION_ID: u64 = 1;
    }
    pub(super) mod function {
        pub(in super::super) const ID: u64 = 1;
        pub(in super::super) const NAME: u64 = 2;
        pub(in super::super) const SYSTEM_NAME: u64 = 3;
        pub(in super::super) const FILE: u64 = 4;
    }
}

/// The types of values and their units, in the order of each sample's values.
const VALUES: [(&str, &str); 3] = [
    ("samples", "count"),
    ("cpu", "nanoseconds"),
    ("page_faults", "count"),
];
const CPU: (&str, &str) = VALUES[1];

/// The profile in pprof's format.
///
/// # Errors
/// Never in practice: it is written to memory.
pub fn file(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(vec![], Compression::default());
    out.write_all(&message(profile))?;
    out.finish()
}

fn message(profile: &Profile) -> Vec<u8> {
    let mut strings = Strings::default();
    let mut out = Message::default();
    for value in VALUES {
        out.message(
            field::profile::SAMPLE_TYPE,
            &value_type(value, &mut strings),
        );
    }
    samples(profile, &mut strings, &mut out);
    functions(profile, &mut strings, &mut out);
    out.number(field::profile::TIME_NS, profile.start_unix_ns);
    out.number(field::profile::DURATION_NS, profile.elapsed_ns);
    out.message(field::profile::PERIOD_TYPE, &value_type(CPU, &mut strings));
    out.number(field::profile::PERIOD, profile.cpu_ns_per_sample);
    if profile.lost > 0 {
        let text = format!("{} samples were lost", profile.lost);
        out.number(field::profile::COMMENT, strings.number_of(&text));
    }
    out.number(
        field::profile::DEFAULT_SAMPLE_TYPE,
        strings.number_of(CPU.0),
    );
    for text in strings.texts {
        out.bytes(field::profile::STRING, text.as_bytes());
    }
    out.0
}

fn value_type((name, unit): (&str, &str), strings: &mut Strings) -> Message {
    let mut out = Message::default();
    out.number(field::value_type::TYPE, strings.number_of(name));
    out.number(field::value_type::UNIT, strings.number_of(unit));
    out
}

fn samples(profile: &Profile, strings: &mut Strings, out: &mut Message) {
    let names: BTreeMap<u32, &str> = profile
        .threads
        .iter()
        .map(|(id, name)| (*id, name.as_str()))
        .collect();
    for row in &profile.rows {
        let mut sample = Message::default();
        // Locations have the numbers of functions, starting from one.
        let locations = profile.functions_of(row.path);
        let locations = locations.map(|function| u64::from(function) + 1);
        sample.numbers(field::sample::LOCATION_IDS, locations);
        let values = [
            row.count.cpu,
            row.count.cpu.saturating_mul(profile.cpu_ns_per_sample),
            row.count.faults.saturating_mul(profile.faults_per_sample),
        ];
        sample.numbers(field::sample::VALUES, values);
        let mut label = |key: &str, text: &str| {
            let mut label = Message::default();
            label.number(field::label::KEY, strings.number_of(key));
            label.number(field::label::TEXT, strings.number_of(text));
            sample.message(field::sample::LABEL, &label);
        };
        if let Some(stage) = row.stage {
            label("stage", stage);
        }
        if let Some(name) = names.get(&row.thread_id) {
            label("thread", name);
        }
        let mut label = Message::default();
        label.number(field::label::KEY, strings.number_of("thread_id"));
        label.number(field::label::NUMBER, row.thread_id.into());
        sample.message(field::sample::LABEL, &label);
        out.message(field::profile::SAMPLE, &sample);
    }
}

fn functions(profile: &Profile, strings: &mut Strings, out: &mut Message) {
    let mut modules: Vec<&str> = vec![];
    for (id, function) in (1_u64..).zip(&profile.functions) {
        let module = modules.iter().position(|known| *known == function.module);
        let module = module.unwrap_or_else(|| {
            modules.push(&function.module);
            modules.len() - 1
        });
        let mut line = Message::default();
        line.number(field::line::FUNCTION_ID, id);
        let mut location = Message::default();
        location.number(field::location::ID, id);
        location.number(field::location::MAPPING_ID, module as u64 + 1);
        location.message(field::location::LINE, &line);
        out.message(field::profile::LOCATION, &location);

        let mut made = Message::default();
        made.number(field::function::ID, id);
        made.number(field::function::NAME, strings.number_of(&function.name));
        let linker_name = strings.number_of(&function.linker_name);
        made.number(field::function::SYSTEM_NAME, linker_name);
        made.number(field::function::FILE, strings.number_of(&function.origin));
        out.message(field::profile::FUNCTION, &made);
    }
    for (id, module) in (1_u64..).zip(modules) {
        let mut mapping = Message::default();
        mapping.number(field::mapping::ID, id);
        mapping.number(field::mapping::FILE, strings.number_of(module));
        mapping.number(field::mapping::HAS_FUNCTIONS, 1);
        out.message(field::profile::MAPPING, &mapping);
    }
}

/// Numbered texts; the first is empty.
#[derive(Debug)]
struct Strings {
    texts: Vec<String>,
    numbers: BTreeMap<String, u64>,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings {
            texts: vec![String::new()],
            numbers: BTreeMap::from([(String::new(), 0)]),
        }
    }
}

impl Strings {
    fn number_of(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// A protocol buffers message being written.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

/// The two kinds of fields.
const NUMBER: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    /// Seven bits per byte, lowest first.
    fn variable(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Zero is the default of a missing number.
    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.variable(field << 3 | NUMBER);
            self.variable(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.variable(field << 3 | BYTES);
        self.variable(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Message::default();
        values.into_iter().for_each(|value| packed.variable(value));
        self.message(field, &packed);
    }
}
