//! Orders the tasks of a file into groups that may run in parallel.

mod graph;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use super::lines::NEVER_CLOSED;
use super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat};
use graph::TaskGraph;
pub use graph::{cycle, format_cycle};

/// Maximum number of tasks per file.
pub const MAX_TASKS: usize = 50_000;

/// Maximum dependencies per task. It bounds the expansion of ranges.
pub const MAX_DEPENDENCIES: usize = 256;

/// Maximum number of warnings per file.
const MAX_WARNINGS: usize = 100;

impl TaskFile {
    pub(super) fn warn(&mut self, line: u32, message: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(super::Warning { line, message: message.into() });
        }
    }

    pub(super) fn push(&mut self, source: &SourceInput<'_>, task: SourceTask) -> Result<(), SourceError> {
        if self.tasks.len() >= MAX_TASKS {
            return Err(source.error(task.line, format!("more than {MAX_TASKS} tasks")));
        }
        self.tasks.push(task);
        Ok(())
    }
}

/// Whether a task remains to be done. Ignores parents.
fn is_open(format: TaskFormat, task: &SourceTask) -> bool {
    // In a tracker an issue in progress is claimed. In a file it is left over from an interrupted run.
    let is_left_over = task.state == SourceState::InProgress && format != TaskFormat::Beads;
    !task.optional && (task.state == SourceState::Open || is_left_over)
}

/// One task after the other, in the given order of indices.
pub fn chain(file: &mut TaskFile, order: impl IntoIterator<Item = usize>) {
    let tasks = order.into_iter().filter_map(|index| file.tasks.get(index));
    file.groups = tasks.filter(|task| is_open(file.format, task)).map(|task| vec![task.id.clone()]).collect();
}

/// One task after the other, in file order.
pub fn file_order(file: &mut TaskFile) {
    chain(file, 0..file.tasks.len());
}

/// All open tasks in parallel, in the order of `key`.
pub fn all_parallel<K: Ord>(file: &mut TaskFile, key: impl Fn(&SourceTask) -> K) {
    let mut open: Vec<&SourceTask> = file.tasks.iter().filter(|task| is_open(file.format, task)).collect();
    open.sort_by_key(|task| key(task));
    let ids: Vec<String> = open.into_iter().map(|task| task.id.clone()).collect();
    file.groups = if ids.is_empty() { Vec::new() } else { vec![ids] };
}

/// Layer after layer: each task as early as its dependencies allow, each layer in the order of `key`.
pub fn layers<K: Ord>(
    source: &SourceInput<'_>,
    file: &mut TaskFile,
    key: impl Fn(&SourceTask) -> K,
) -> Result<(), SourceError> {
    let graph = TaskGraph::new(source, file)?;
    graph.block_unreachable(file);
    let levels = graph.levels();
    let mut groups: Vec<Vec<&SourceTask>> = Vec::new();
    for (index, task) in file.tasks.iter().enumerate() {
        if graph.is_work(index) && is_open(file.format, task) {
            let level = levels[index];
            if groups.len() <= level {
                groups.resize_with(level + 1, Vec::new);
            }
            groups[level].push(task);
        }
    }
    for group in &mut groups {
        group.sort_by_key(|task| key(task));
    }
    let ids = |group: Vec<&SourceTask>| group.into_iter().map(|task| task.id.clone()).collect::<Vec<_>>();
    file.groups = groups.into_iter().map(ids).filter(|group| !group.is_empty()).collect();
    Ok(())
}

/// In file order, phase after phase. Neighbours marked parallel form one group, and a task that names a later one
/// of its phase waits for it. `phases` gives the phase of each task, in non-decreasing order.
pub fn in_order(source: &SourceInput<'_>, file: &mut TaskFile, phases: &[usize]) -> Result<(), SourceError> {
    let graph = TaskGraph::new(source, file)?;
    graph.block_unreachable(file);
    let work: Vec<bool> =
        (0..file.tasks.len()).map(|index| graph.is_work(index) && is_open(file.format, &file.tasks[index])).collect();
    let mut queue = TaskQueue { waiting: graph.waiting(), ready: BinaryHeap::new(), graph: &graph, work: &work };
    queue.release((0..queue.waiting.len()).filter(|node| queue.waiting[*node] == 0).collect());
    let runs = parallel_runs(file, &graph, phases);
    // The tasks that are left, with their phases.
    let left = (0..phases.len()).filter(|index| work[*index]).map(|index| (phases[index], index));
    let mut left: BTreeSet<(usize, usize)> = left.collect();
    let mut groups = Vec::new();
    while let Some(first) = queue.pop() {
        if let Some((stuck, _)) = left.first().filter(|(phase, _)| *phase < phases[first]) {
            return Err(waits_for_a_later_phase(source, file, phases, *stuck));
        }
        let mut group = vec![first];
        while let Some(next) = queue.pop_if(|next| file.tasks[first].parallel && runs[next] == runs[first]) {
            group.push(next);
        }
        for index in &group {
            left.remove(&(phases[*index], *index));
            let freed = queue.freed_by(*index);
            queue.release(freed);
        }
        groups.push(group.into_iter().map(|index| file.tasks[index].id.clone()).collect());
    }
    file.groups = groups;
    Ok(())
}

/// The tasks that are ready, by their position in the file.
struct TaskQueue<'a> {
    graph: &'a TaskGraph,
    work: &'a [bool],
    /// For each node, the number of nodes it still waits for.
    waiting: Vec<usize>,
    ready: BinaryHeap<Reverse<usize>>,
}

impl TaskQueue<'_> {
    fn pop(&mut self) -> Option<usize> {
        self.ready.pop().map(|Reverse(index)| index)
    }

    fn pop_if(&mut self, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let Reverse(index) = *self.ready.peek()?;
        if fits(index) { self.pop() } else { None }
    }

    /// The nodes that waited only for this one.
    fn freed_by(&mut self, node: usize) -> Vec<usize> {
        let mut freed = Vec::new();
        for after in self.graph.after(node) {
            self.waiting[*after] -= 1;
            if self.waiting[*after] == 0 {
                freed.push(*after);
            }
        }
        freed
    }

    /// Queues ready tasks. Nodes that are not work are finished as soon as they are ready.
    fn release(&mut self, mut free: Vec<usize>) {
        while let Some(node) = free.pop() {
            if self.work.get(node).copied().unwrap_or(false) {
                self.ready.push(Reverse(node));
            } else {
                free.extend(self.freed_by(node));
            }
        }
    }
}

/// A number for each task, equal for neighbours that are marked parallel and in one phase.
fn parallel_runs(file: &TaskFile, graph: &TaskGraph, phases: &[usize]) -> Vec<usize> {
    let mut run = 0;
    let mut before: Option<usize> = None;
    let mut runs = Vec::with_capacity(file.tasks.len());
    for (index, task) in file.tasks.iter().enumerate() {
        if graph.is_work(index) && !task.optional {
            let together = before.is_some_and(|before| file.tasks[before].parallel && phases[before] == phases[index]);
            if !(together && task.parallel) {
                run += 1;
            }
            before = Some(index);
        }
        runs.push(run);
    }
    runs
}

fn waits_for_a_later_phase(source: &SourceInput<'_>, file: &TaskFile, phases: &[usize], stuck: usize) -> SourceError {
    let places = graph::places(file);
    let later = |id: &&String| places.get(id.as_str()).is_some_and(|index| phases[*index] > stuck);
    let in_phase = file.tasks.iter().zip(phases).filter(|(_, phase)| **phase == stuck).map(|(task, _)| task);
    for task in in_phase {
        if let Some(dependency) = task.depends_on.iter().find(later) {
            let message = format!(
                "{} depends on {dependency} of a later phase; expected a task of its own phase or an earlier one",
                task.id
            );
            return source.error(task.line, message);
        }
    }
    source.error(1, "a task depends on one of a later phase")
}

/// Returns an error if two tasks have the same id.
pub fn refuse_duplicate_ids(source: &SourceInput<'_>, file: &TaskFile) -> Result<(), SourceError> {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    for task in &file.tasks {
        if let Some(line) = seen.insert(&task.id, task.line) {
            let message = format!("duplicate task id {}, here and in line {line}; expected one of each id", task.id);
            return Err(source.error(task.line, message));
        }
    }
    Ok(())
}

/// Makes duplicate ids unique, for formats in which nothing refers to ids.
pub fn make_ids_unique(file: &mut TaskFile) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut taken: HashSet<String> = file.tasks.iter().map(|task| task.id.clone()).collect();
    let mut renamed = Vec::new();
    for task in &mut file.tasks {
        let count = seen.entry(task.id.clone()).or_insert(0);
        *count += 1;
        if *count == 1 {
            continue;
        }
        let mut id = format!("{}#{count}", task.id);
        while !taken.insert(id.clone()) {
            *count += 1;
            id = format!("{}#{count}", task.id);
        }
        renamed.push((task.line, format!("task {} is there more than once; this one is called {id}", task.id)));
        task.id = id;
    }
    for (line, message) in renamed {
        file.warn(line, message);
    }
}

/// Returns an error if a file in a plan format has no tasks.
pub fn refuse_empty(source: &SourceInput<'_>, file: &TaskFile, expected: &str) -> Result<(), SourceError> {
    if file.tasks.is_empty() {
        // If something hid the whole file, that warning is the most useful one.
        let hid = file.warnings.iter().find(|warning| warning.message.ends_with(NEVER_CLOSED));
        let hint = hid.or(file.warnings.first());
        let line = hint.map_or(1, |warning| warning.line);
        let mut message = format!("no tasks; formats tried: {}; expected {expected}", file.format.name());
        if let Some(warning) = hint {
            message = format!("{message}; {}", warning.message);
        }
        return Err(source.error(line, message));
    }
    Ok(())
}
