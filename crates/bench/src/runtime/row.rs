//! A row of the table: one thing to do, some who do it, and what is demanded.

/// One measurement of one contender: sets up, does the thing, returns the cost in the row's unit.
type Measure = Box<dyn FnMut() -> f64>;

/// Somebody who can do what the row asks.
pub struct Contender {
    pub name: &'static str,
    pub measure: Measure,
}

/// What is demanded of the first contender.
#[derive(Clone, Copy)]
pub enum Bar {
    /// At most so much, in the row's unit.
    AtMost(f64),
    /// At most so many times what the second contender took.
    #[expect(dead_code, reason = "for the rows of the pool")]
    OfSecond(f64),
    /// Nothing: the row is for comparison.
    None,
}

pub struct Row {
    /// Short name, for `--only`.
    pub id: &'static str,
    pub what: &'static str,
    pub unit: &'static str,
    pub bar: Bar,
    /// Ours first.
    pub contenders: Vec<Contender>,
}

impl Row {
    pub fn new(id: &'static str, what: &'static str, unit: &'static str, bar: Bar) -> Row {
        Row {
            id,
            what,
            unit,
            bar,
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
