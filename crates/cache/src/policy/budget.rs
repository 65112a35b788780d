//! How many requests may be added to those that must be sent: a share of them, and a few at once.

/// A token bucket in thousandths of a request.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    share_thousandths: u64,
    most_thousandths: u64,
    left_thousandths: u64,
}

const REQUEST: u64 = 1000;

impl Budget {
    /// A full bucket. Each request adds its share; `burst` may be spent at once.
    pub(super) fn new(share_thousandths: u64, burst: u64) -> Budget {
        Budget {
            share_thousandths,
            most_thousandths: burst * REQUEST,
            left_thousandths: burst * REQUEST,
        }
    }

    /// A request that must be sent was sent.
    pub(super) fn earn(&mut self) {
        let earned = self.left_thousandths + self.share_thousandths;
        self.left_thousandths = earned.min(self.most_thousandths);
    }

    /// Whether one more may be sent, which is then taken as sent.
    pub(super) fn spend(&mut self) -> bool {
        let left = self.left_thousandths.checked_sub(REQUEST);
        self.left_thousandths = left.unwrap_or(self.left_thousandths);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_and_a_burst_are_spent() {
        let mut budget = Budget::new(20, 10);
        assert_eq!((0..100).filter(|_| budget.spend()).count(), 10);
        let mut spent = 0;
        for _ in 0..10_000 {
            budget.earn();
            spent += usize::from(budget.spend());
        }
        assert_eq!(spent, 200);
        (0..100_000).for_each(|_| budget.earn());
        assert_eq!((0..100).filter(|_| budget.spend()).count(), 10);
    }
}
