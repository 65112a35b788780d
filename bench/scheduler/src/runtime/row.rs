//! A row of the table: an operation, the contenders, and the target.

/// One measurement of one contender: sets up, runs, and returns the cost in the row's unit.
type Measure = Box<dyn FnMut() -> f64>;

/// An implementation of the row's operation.
pub struct Contender {
    pub name: &'static str,
    pub measure: Measure,
}

/// The target of the first contender.
#[derive(Clone, Copy)]
pub enum Target {
    /// At most this cost, in the row's unit.
    AtMost(f64),
    /// At most this multiple of the second contender's cost.
    OfSecond(f64),
    /// None: the row is for comparison.
    None,
}

pub struct Row {
    /// The short name, for `--only`.
    pub id: &'static str,
    pub what: &'static str,
    pub unit: &'static str,
    pub target: Target,
    /// The contenders; Refrain is the first.
    pub contenders: Vec<Contender>,
}

impl Row {
    pub fn new(id: &'static str, what: &'static str, unit: &'static str, target: Target) -> Row {
        Row {
            id,
            what,
            unit,
            target,
            contenders: Vec::new(),
        }
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, measure: impl FnMut() -> f64 + 'static) -> Row {
        let measure = Box::new(measure);
        self.contenders.push(Contender { name, measure });
        self
    }
}
