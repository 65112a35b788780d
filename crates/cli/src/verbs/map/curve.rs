//! A monotonic function, as points connected by straight lines, in bounded memory.

/// Points in ascending order. When they are too many, every second one is dropped: the function is
/// then exact at the remaining points and approximate in between.
#[derive(Debug)]
pub struct Curve {
    points: Vec<(u64, u64)>,
    points_max: usize,
    is_exact: bool,
}

impl Curve {
    /// The function that is 0 at 0, with at most `points_max` points.
    pub fn new(points_max: usize) -> Curve {
        Curve {
            points: vec![(0, 0)],
            points_max: points_max.max(8),
            is_exact: true,
        }
    }

    /// Whether no point was dropped.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Adds a point. One that would make the function fall is moved.
    pub fn add(&mut self, x: u64, y: u64) {
        let (last_x, last_y) = self.last();
        let point = (x.max(last_x), y.max(last_y));
        if point == (last_x, last_y) {
            return;
        }
        if self.points.len() >= self.points_max {
            self.thin();
        }
        self.points.push(point);
    }

    /// Adds a straight rise of slope 1 starting at (x, y).
    pub fn rise(&mut self, x: u64, y: u64, length: u64) {
        let end = (x.saturating_add(length), y.saturating_add(length));
        let count = self.points.len();
        if let [.., (before_x, before_y), last] = &mut self.points[count.saturating_sub(2)..]
            && *last == (x, y)
            && x - *before_x == y - *before_y
        {
            *last = end;
            return;
        }
        self.add(x, y);
        self.add(end.0, end.1);
    }

    /// The value at `x`; after the last point, its value.
    pub fn at(&self, x: u64) -> u64 {
        let after = self.points.partition_point(|point| point.0 <= x);
        let Some(&(from_x, from_y)) = self.points.get(after.saturating_sub(1)) else {
            return 0;
        };
        match self.points.get(after) {
            Some(&(to_x, to_y)) => from_y + share(x - from_x, to_x - from_x, to_y - from_y),
            None => from_y,
        }
    }

    /// How much the function rises between two places.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        self.at(to).saturating_sub(self.at(from))
    }

    /// The last place at which the value is `y`.
    pub fn place_of(&self, y: u64) -> u64 {
        let after = self.points.partition_point(|point| point.1 <= y);
        let Some(&(from_x, from_y)) = self.points.get(after.saturating_sub(1)) else {
            return 0;
        };
        match self.points.get(after) {
            Some(&(to_x, to_y)) => from_x + share(y - from_y, to_y - from_y, to_x - from_x),
            None => from_x,
        }
    }

    fn last(&self) -> (u64, u64) {
        self.points.last().copied().unwrap_or_default()
    }

    fn thin(&mut self) {
        self.is_exact = false;
        let last = self.points.pop();
        let mut number = 0;
        self.points.retain(|_| {
            number += 1;
            number % 2 == 1
        });
        self.points.extend(last);
    }
}

/// `part` of `whole` of `amount`.
fn share(part: u64, whole: u64, amount: u64) -> u64 {
    match whole {
        0 => 0,
        // At most `amount`, because `part` is at most `whole`.
        _ => (u128::from(part) * u128::from(amount) / u128::from(whole)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use refrain_testkit::Rng;

    use super::*;

    #[test]
    fn a_curve_of_rises_is_the_naive_count_in_both_directions() {
        let mut random = Rng::new(5);
        let (mut curve, mut is_first) = (Curve::new(10_000), vec![]);
        let mut risen = 0;
        for _ in 0..500 {
            let length = 1 + random.below(40);
            if random.once_in(2) {
                curve.rise(is_first.len() as u64, risen, length);
                risen += length;
                is_first.resize(is_first.len() + length as usize, true);
            } else {
                is_first.resize(is_first.len() + length as usize, false);
            }
        }
        assert!(curve.is_exact());
        let mut count = 0;
        for (x, &first) in is_first.iter().enumerate() {
            assert_eq!(curve.at(x as u64), count);
            if first {
                assert_eq!(curve.place_of(count), x as u64);
                count += 1;
            }
        }
        assert_eq!(curve.at(u64::MAX), risen);
    }

    #[test]
    fn a_full_curve_keeps_its_ends_and_never_falls() {
        let mut curve = Curve::new(16);
        for step in 0..1000 {
            curve.add(step * 7, step * step);
        }
        assert!(!curve.is_exact() && curve.points.len() <= 16);
        assert_eq!((curve.at(0), curve.at(999 * 7)), (0, 999 * 999));
        let values: Vec<u64> = (0..7000).map(|x| curve.at(x)).collect();
        assert!(values.is_sorted());
        let parts = (0..100).map(|part| curve.between(part * 70, (part + 1) * 70));
        assert_eq!(parts.sum::<u64>(), curve.at(7000));
    }
}
