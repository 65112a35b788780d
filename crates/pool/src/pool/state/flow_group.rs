//! Flows that were made together.

use std::sync::Arc;

use super::turn_limit::TurnLimit;

pub(crate) struct FlowGroup {
    limit: Option<TurnLimit>,
    /// Counts it in its domain. `None` for a group that never needs a worker soon.
    counted: Option<Arc<()>>,
}

impl FlowGroup {
    pub(crate) fn new(turns_max: Option<usize>, counted: Option<Arc<()>>) -> FlowGroup {
        FlowGroup {
            limit: turns_max.map(TurnLimit::new),
            counted,
        }
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.counted.is_some()
    }

    /// `None`: the jobs of its flow run one at a time. Otherwise its flows are parallel: within the
    /// limit, any number of workers run them.
    pub(crate) fn limit(&self) -> Option<&TurnLimit> {
        self.limit.as_ref()
    }
}
