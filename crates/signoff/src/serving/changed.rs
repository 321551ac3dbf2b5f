//! What recorded facts change for those who look.

use signoff_core::ids::LoopId;
use signoff_core::wire::{Fact, QUEUE, Recorded};
use signoff_serve::web::Change;

/// All that these facts are about.
pub fn by(news: &[Recorded]) -> Change {
    let mut change = Change::default();
    for recorded in news {
        if recorded.run != QUEUE {
            change.runs.insert(recorded.run.0);
        }
        match &recorded.fact {
            Fact::Task(task, _) => {
                change.tasks.insert(task.0);
            }
            Fact::Loop(loop_id, _) => change.tasks.extend(task(loop_id)),
            Fact::Run(_) => {}
        }
    }
    change
}

/// The task that a loop works, or looks at; none for one that serves the run.
pub fn task(loop_id: &LoopId) -> Option<u64> {
    let own = loop_id.of_checkpoint().map(|(own, _)| own);
    own.as_ref().unwrap_or(loop_id).as_str().parse().ok()
}
