//! Maps recorded facts to the tasks and runs whose pages they change.

use signoff_core::ids::LoopId;
use signoff_core::wire::{Fact, QUEUE, RecordedFact};
use signoff_serve::web::ChangeSet;

/// Returns the tasks and runs that these facts are about.
pub fn change_of(news: &[RecordedFact]) -> ChangeSet {
    let mut change = ChangeSet::default();
    for recorded in news {
        if recorded.run != QUEUE {
            change.runs.insert(recorded.run.0);
        }
        match &recorded.fact {
            Fact::Task(task, _) => {
                change.tasks.insert(task.0);
            }
            Fact::Loop(loop_id, _) => change.tasks.extend(task_of_loop(loop_id)),
            Fact::Run(_) => {}
        }
    }
    change
}

/// The task that a loop works on or reviews; `None` for a loop of the run itself.
pub fn task_of_loop(loop_id: &LoopId) -> Option<u64> {
    let own = loop_id.checkpoint_target().map(|(own, _)| own);
    own.as_ref().unwrap_or(loop_id).as_str().parse().ok()
}
