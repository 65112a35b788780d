//! The jobs of a feed and their results.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_pool::{Lane, Lock};

use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::feed::FeedStep;

/// A feed's jobs in flight, and the results that it has not taken.
pub(crate) struct Jobs<T> {
    results: Arc<Lock<VecDeque<T>>>,
    in_flight: usize,
}

impl<T: Send + 'static> Jobs<T> {
    pub(crate) fn new() -> Jobs<T> {
        Jobs {
            results: Arc::default(),
            in_flight: 0,
        }
    }

    /// The step that starts a job, whose result [`Jobs::take`] returns later.
    pub(crate) fn start(
        &mut self,
        lane: Lane,
        run: impl FnOnce(&PipelineContext) -> T + Send + 'static,
    ) -> FeedStep {
        self.in_flight += 1;
        let results = self.results.clone();
        let job = move |context: &PipelineContext| {
            let result = run(context);
            results.lock().push_back(result);
        };
        FeedStep::Job(lane, Box::new(job))
    }

    /// Takes the result of a finished job, in order of completion.
    pub(crate) fn take(&mut self) -> Option<T> {
        let result = self.results.lock().pop_front()?;
        self.in_flight -= 1;
        Some(result)
    }

    /// Whether a job is in flight or its result was not taken.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight > 0
    }
}
