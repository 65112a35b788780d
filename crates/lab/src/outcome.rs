//! Results of an experiment: tables, charts, findings, and values for the machine's profile.

/// The unit of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A size.
    Bytes,
    /// A time.
    Nanoseconds,
    /// A rate of data.
    BytesPerSecond,
    /// A rate of events.
    PerSecond,
    /// A number of things.
    Count,
    /// A ratio.
    Times,
    /// Not a number.
    Text,
}

impl Unit {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Nanoseconds => "ns",
            Unit::BytesPerSecond => "bytes/s",
            Unit::PerSecond => "1/s",
            Unit::Count => "count",
            Unit::Times => "ratio",
            Unit::Text => "text",
        }
    }
}

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The title.
    pub name: &'static str,
    /// The unit of its numbers.
    pub unit: Unit,
}

/// One value of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A measured or chosen number.
    Number(f64),
    /// A name.
    Text(String),
    /// Could not be measured, and why.
    NotAvailable(String),
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        if value.is_finite() {
            Cell::Number(value)
        } else {
            Cell::NotAvailable("no value".into())
        }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        Cell::Number(value as f64)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Cell {
        Cell::Number(value as f64)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl Cell {
    /// The number, if there is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Number(value) => Some(*value),
            _ => None,
        }
    }

    /// A cell with a reason instead of a value.
    pub fn not_available(reason: impl Into<String>) -> Cell {
        Cell::NotAvailable(reason.into())
    }
}

/// How a table is drawn: `x` and `y` are columns.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// The horizontal axis: numbers for lines, texts for bars.
    pub x: usize,
    /// The values.
    pub y: usize,
    /// The column whose texts distinguish the lines, or the bars' colors.
    pub by: Option<usize>,
    /// Whether the axis of values is logarithmic.
    pub is_log_y: bool,
}

/// A table and its chart.
#[derive(Debug, Clone)]
pub struct Section {
    /// What it shows.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows; each has a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// The chart.
    pub chart: Option<Chart>,
}

impl Section {
    /// An empty table.
    pub fn new(title: impl Into<String>, columns: &[(&'static str, Unit)]) -> Section {
        Section {
            title: title.into(),
            columns: columns
                .iter()
                .map(|&(name, unit)| Column { name, unit })
                .collect(),
            rows: Vec::new(),
            chart: None,
        }
    }

    /// Adds a chart.
    #[must_use]
    pub fn with_chart(self, x: usize, y: usize, by: Option<usize>, is_log_y: bool) -> Section {
        let chart = Some(Chart { x, y, by, is_log_y });
        Section { chart, ..self }
    }

    /// Adds a row.
    pub fn push<const COLUMNS: usize>(&mut self, cells: [Cell; COLUMNS]) {
        debug_assert_eq!(COLUMNS, self.columns.len());
        self.rows.push(cells.into());
    }
}

/// Findings in words, one or two sentences each.
pub type Findings = Vec<String>;

/// Values for later runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// The time of a wake-up between two threads through the kernel, in nanoseconds.
    pub park_hop_ns: Option<f64>,
    /// The pipe capacity above which data passes no faster.
    pub pipe_bytes: Option<u64>,
    /// The time of random accesses on ordinary pages, relative to huge pages.
    pub huge_pages_gain: Option<f64>,
    /// How often a thread tries a held lock before it sleeps, at most.
    pub lock_spins_max: Option<u32>,
}

impl Measured {
    /// These values, overridden by those set in `later`.
    #[must_use]
    pub fn and(self, later: Measured) -> Measured {
        Measured {
            park_hop_ns: later.park_hop_ns.or(self.park_hop_ns),
            pipe_bytes: later.pipe_bytes.or(self.pipe_bytes),
            huge_pages_gain: later.huge_pages_gain.or(self.huge_pages_gain),
            lock_spins_max: later.lock_spins_max.or(self.lock_spins_max),
        }
    }
}

/// The results of an experiment.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The tables.
    pub sections: Vec<Section>,
    /// What they show.
    pub findings: Findings,
    /// Values for later runs.
    pub measured: Measured,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_not_available() {
        assert_eq!(Cell::from(2.0).number(), Some(2.0));
        assert!(matches!(Cell::from(f64::NAN), Cell::NotAvailable(_)));
        assert!(matches!(Cell::from(1.0 / 0.0), Cell::NotAvailable(_)));
    }

    #[test]
    fn later_measurements_replace_earlier_ones_where_there_are_some() {
        let first = Measured {
            pipe_bytes: Some(1),
            park_hop_ns: Some(2.0),
            huge_pages_gain: None,
            lock_spins_max: None,
        };
        let second = Measured {
            pipe_bytes: Some(5),
            ..Measured::default()
        };
        let both = first.and(second);
        assert_eq!((both.pipe_bytes, both.park_hop_ns), (Some(5), Some(2.0)));
    }
}
