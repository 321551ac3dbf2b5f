//! The dependency graph of a file's tasks.

use std::collections::HashMap;

use super::super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat};

/// The dependencies of a file's tasks. Node `i` is task `i`, or the end of a parent. Node `n + i` is the start of
/// parent `i`: its children wait for the start, and its end waits for the children. So the number of edges stays
/// linear.
pub struct TaskGraph {
    tasks: usize,
    parent: Vec<bool>,
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

impl TaskGraph {
    /// Builds the graph. Every dependency must exist, be another task, and not form a cycle.
    pub fn new(source: &SourceInput<'_>, file: &mut TaskFile) -> Result<Self, SourceError> {
        let before = edges(source, file)?;
        let count = file.tasks.len();
        let after = reversed(&before);
        let graph = Self { tasks: count, parent: parents(file), before, after };
        graph.refuse_cycles(source, file)?;
        graph.warn_of_open_parents(file);
        Ok(graph)
    }

    /// Whether this task is work itself, not a parent that closes with its children.
    pub fn is_work(&self, index: usize) -> bool {
        !self.parent.get(index).copied().unwrap_or(false)
    }

    pub fn after(&self, node: usize) -> &[usize] {
        self.after.get(node).map_or(&[], Vec::as_slice)
    }

    /// For each node, the number of nodes it waits for.
    pub fn waiting(&self) -> Vec<usize> {
        self.before.iter().map(Vec::len).collect()
    }

    /// For each node, the length of the longest chain of tasks before it.
    pub fn levels(&self) -> Vec<usize> {
        let mut levels = vec![0; self.before.len()];
        for node in topological_order(&self.before, &self.after) {
            let own = usize::from(node < self.tasks && self.is_work(node));
            for after in self.after(node) {
                levels[*after] = levels[*after].max(levels[node] + own);
            }
        }
        levels
    }

    /// Blocks open tasks that wait for a task that will not be done here.
    pub fn block_unreachable(&self, file: &mut TaskFile) {
        let mut cause: Vec<Option<usize>> = vec![None; self.before.len()];
        for node in topological_order(&self.before, &self.after) {
            let blocker = self.before[node].iter().find_map(|need| cause[*need]);
            let Some(task) = file.tasks.get(node) else {
                cause[node] = blocker;
                continue;
            };
            cause[node] = blocker.or_else(|| (self.is_work(node) && never_done(task)).then_some(node));
            if let Some(blocker) = blocker.filter(|_| self.is_work(node) && starts(task)) {
                let (line, id, state) = (task.line, task.id.clone(), file.tasks[blocker].state);
                let waits_for = file.tasks[blocker].id.clone();
                file.tasks[node].state = SourceState::Blocked;
                file.warn(line, format!("{id} waits for {waits_for}, which is {}", state.into_str().replace('_', " ")));
            }
        }
    }

    fn refuse_cycles(&self, source: &SourceInput<'_>, file: &TaskFile) -> Result<(), SourceError> {
        let Some(cycle) = cycle(&self.before) else { return Ok(()) };
        let task = |node: &usize| &file.tasks[node % self.tasks];
        let names = cycle.iter().map(|node| task(node).id.as_str()).collect();
        let line = cycle.iter().map(|node| task(node).line).min().unwrap_or(1);
        let message = format!("dependency cycle: {}; expected none", format_cycle(names));
        Err(source.error(line, message))
    }

    fn warn_of_open_parents(&self, file: &mut TaskFile) {
        let mut left = vec![false; self.tasks];
        for (node, needed) in self.before.iter().enumerate().take(self.tasks) {
            left[node] = needed.iter().any(|need| *need < self.tasks && file.tasks[*need].state != SourceState::Done);
        }
        for index in (0..self.tasks).filter(|index| self.parent[*index] && !left[*index]) {
            let task = &file.tasks[index];
            if starts(task) {
                let (line, id) = (task.line, task.id.clone());
                file.warn(line, format!("{id} is open although all its children are done"));
            }
        }
    }
}

fn starts(task: &SourceTask) -> bool {
    matches!(task.state, SourceState::Open | SourceState::InProgress)
}

/// Whether it is neither done nor to be done. An optional task that is left out blocks nothing.
fn never_done(task: &SourceTask) -> bool {
    !(task.optional || starts(task) || task.state == SourceState::Done)
}

/// Which tasks are parents that close with their children.
fn parents(file: &TaskFile) -> Vec<bool> {
    let mut parents = vec![false; file.tasks.len()];
    if !matches!(file.format, TaskFormat::Kiro | TaskFormat::TaskMaster) {
        return parents;
    }
    let places = places(file);
    for child in file.tasks.iter().filter(|task| is_required(task)) {
        if let Some(index) = child.parent.as_deref().and_then(|id| places.get(id)) {
            parents[*index] = true;
        }
    }
    parents
}

pub fn is_required(task: &SourceTask) -> bool {
    !task.optional && task.state != SourceState::Cancelled
}

pub fn places(file: &TaskFile) -> HashMap<&str, usize> {
    file.tasks.iter().enumerate().map(|(index, task)| (task.id.as_str(), index)).collect()
}

/// For each node, the nodes it waits for. Done tasks wait for nothing and block nothing.
fn edges(source: &SourceInput<'_>, file: &mut TaskFile) -> Result<Vec<Vec<usize>>, SourceError> {
    let count = file.tasks.len();
    let parent = parents(file);
    let places = places(file);
    let mut before = vec![Vec::new(); 2 * count];
    let mut unknown = Vec::new();
    for (index, task) in file.tasks.iter().enumerate() {
        let entry = if parent[index] { count + index } else { index };
        if let Some(above) = task.parent.as_deref().and_then(|id| places.get(id)).filter(|above| parent[**above]) {
            before[entry].push(count + above);
            if is_required(task) {
                before[*above].push(index);
            }
        }
        if parent[index] {
            before[index].push(entry);
        }
        for id in &task.depends_on {
            match places.get(id.as_str()) {
                Some(other) if *other == index => {
                    let message = format!("{id} depends on itself; expected another task");
                    return Err(source.error(task.line, message));
                }
                Some(other) if file.tasks[*other].state == SourceState::Done && !parent[*other] => {}
                Some(other) if task.state != SourceState::Done => before[entry].push(*other),
                Some(_) => {}
                None if task.state == SourceState::Done => unknown.push((task.line, task.id.clone(), id.clone())),
                None => {
                    let expected = "which is not in this file; expected the id of one of its tasks";
                    return Err(source.error(task.line, format!("{} depends on {id}, {expected}", task.id)));
                }
            }
        }
    }
    for (line, task, id) in unknown {
        file.warn(line, format!("{task} is done and depends on {id}, which is not in this file"));
    }
    Ok(before)
}

/// For each node, the nodes that wait for it.
fn reversed(before: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut after = vec![Vec::new(); before.len()];
    for (node, needed) in before.iter().enumerate() {
        for need in needed {
            after[*need].push(node);
        }
    }
    after
}

/// Every node after all it waits for. Leaves out nodes in cycles.
fn topological_order(before: &[Vec<usize>], after: &[Vec<usize>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut sorted: Vec<usize> = (0..waiting.len()).filter(|node| waiting[*node] == 0).collect();
    let mut next = 0;
    while let Some(node) = sorted.get(next).copied() {
        next += 1;
        for after in &after[node] {
            waiting[*after] -= 1;
            if waiting[*after] == 0 {
                sorted.push(*after);
            }
        }
    }
    sorted
}

/// A cycle of nodes, each waiting for the next.
pub fn cycle(before: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut free = vec![false; before.len()];
    for node in topological_order(before, &reversed(before)) {
        free[node] = true;
    }
    let mut node = (0..free.len()).find(|node| !free[*node])?;
    let mut path = Vec::new();
    let mut first_indexes = HashMap::new();
    loop {
        if let Some(first) = first_indexes.insert(node, path.len()) {
            return Some(path.split_off(first));
        }
        path.push(node);
        // A node that is not free waits for another that is not free.
        node = *before[node].iter().find(|need| !free[**need])?;
    }
}

/// Formats the names of a cycle, ending with the first one again. Shortens a long cycle in the middle.
pub fn format_cycle(mut names: Vec<&str>) -> String {
    const MANY: usize = 12;
    names.dedup();
    if names.len() == 1 || names.first() != names.last() {
        names.extend(names.first().copied());
    }
    if names.len() <= MANY {
        return names.join(" → ");
    }
    let (head, tail) = (&names[..MANY - 2], &names[names.len() - 2..]);
    format!("{} → … → {}", head.join(" → "), tail.join(" → "))
}
