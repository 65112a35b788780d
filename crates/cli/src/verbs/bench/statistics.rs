//! The few statistics the table needs.

/// Median, least and greatest of some measurements.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(super) struct Spread {
    /// The middle value (mean of the middle two for an even count).
    pub(super) median: f64,
    /// The least value.
    pub(super) min: f64,
    /// The greatest value.
    pub(super) max: f64,
}

impl Spread {
    /// `None` without values.
    pub(super) fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let upper = sorted.len() / 2;
        let lower = (sorted.len() - 1) / 2;
        Some(Spread {
            median: (sorted[lower] + sorted[upper]) / 2.0,
            min,
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_odd_and_even_counts() {
        assert_eq!(Spread::from_values([]), None);
        let one = Spread::from_values([4.0]).unwrap();
        assert_eq!((one.min, one.median, one.max), (4.0, 4.0, 4.0));
        let odd = Spread::from_values([9.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.min, odd.median, odd.max), (1.0, 2.0, 9.0));
        let even = Spread::from_values([8.0, 1.0, 2.0, 4.0]).unwrap();
        assert_eq!((even.min, even.median, even.max), (1.0, 3.0, 8.0));
    }
}
