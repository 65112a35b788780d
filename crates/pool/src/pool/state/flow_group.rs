//! Flows that were made together.

use std::sync::Arc;

use super::turn_limit::TurnLimit;

pub(crate) struct FlowGroup {
    limit: Option<TurnLimit>,
    /// Counts it in its domain.
    _counted: Arc<()>,
}

impl FlowGroup {
    pub(crate) fn new(turns_max: Option<usize>, counted: Arc<()>) -> FlowGroup {
        FlowGroup {
            limit: turns_max.map(TurnLimit::new),
            _counted: counted,
        }
    }

    /// `None`: the jobs of its flow run one at a time. Otherwise its flows are parallel: within the
    /// limit, any number of workers run them.
    pub(crate) fn limit(&self) -> Option<&TurnLimit> {
        self.limit.as_ref()
    }
}
