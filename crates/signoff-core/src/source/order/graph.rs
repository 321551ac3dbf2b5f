//! Who waits for whom.

use std::collections::HashMap;

use super::super::{Format, Source, SourceError, SourceTask, State, TaskFile};

/// The waiting of a file's tasks. Node `i` is task `i`, or its end if it is a parent; node `n + i` is where
/// parent `i` begins: its children wait for that, and its end waits for them. So nothing is multiplied.
pub struct Graph {
    tasks: usize,
    parent: Vec<bool>,
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

impl Graph {
    /// Checks what each task depends on: it must exist, be another task, and lead back nowhere.
    pub fn of(source: &Source<'_>, file: &mut TaskFile) -> Result<Self, SourceError> {
        let before = edges(source, file)?;
        let count = file.tasks.len();
        let after = turned(&before);
        let graph = Self { tasks: count, parent: parents(file), before, after };
        graph.refuse_cycles(source, file)?;
        graph.warn_of_open_parents(file);
        Ok(graph)
    }

    /// Whether this task is worked itself, not a parent that closes with its children.
    pub fn is_work(&self, index: usize) -> bool {
        !self.parent.get(index).copied().unwrap_or(false)
    }

    pub fn after(&self, node: usize) -> &[usize] {
        self.after.get(node).map_or(&[], Vec::as_slice)
    }

    /// For each node, how many it waits for.
    pub fn waiting(&self) -> Vec<usize> {
        self.before.iter().map(Vec::len).collect()
    }

    /// For each node, how many tasks stand before it at least.
    pub fn levels(&self) -> Vec<usize> {
        let mut levels = vec![0; self.before.len()];
        for node in sorted(&self.before, &self.after) {
            let own = usize::from(node < self.tasks && self.is_work(node));
            for after in self.after(node) {
                levels[*after] = levels[*after].max(levels[node] + own);
            }
        }
        levels
    }

    /// Blocks open tasks that wait for one that nobody will do here.
    pub fn block_what_cannot_start(&self, file: &mut TaskFile) {
        let mut cause: Vec<Option<usize>> = vec![None; self.before.len()];
        for node in sorted(&self.before, &self.after) {
            let held = self.before[node].iter().find_map(|need| cause[*need]);
            let Some(task) = file.tasks.get(node) else {
                cause[node] = held;
                continue;
            };
            cause[node] = held.or_else(|| (self.is_work(node) && never_done(task)).then_some(node));
            if let Some(held) = held.filter(|_| self.is_work(node) && starts(task)) {
                let (line, id, state) = (task.line, task.id.clone(), file.tasks[held].state);
                let waits_for = file.tasks[held].id.clone();
                file.tasks[node].state = State::Blocked;
                file.warn(
                    line,
                    format!("{id} waits for {waits_for}, which is {}", state.word().replace('_', " ")),
                );
            }
        }
    }

    fn refuse_cycles(&self, source: &Source<'_>, file: &TaskFile) -> Result<(), SourceError> {
        let Some(cycle) = cycle(&self.before) else { return Ok(()) };
        let task = |node: &usize| &file.tasks[node % self.tasks];
        let names = cycle.iter().map(|node| task(node).id.as_str()).collect();
        let line = cycle.iter().map(|node| task(node).line).min().unwrap_or(1);
        let message = format!("tasks wait for each other: {}; expected no cycle", round(names));
        Err(source.error(line, message))
    }

    fn warn_of_open_parents(&self, file: &mut TaskFile) {
        let mut left = vec![false; self.tasks];
        for (node, needed) in self.before.iter().enumerate().take(self.tasks) {
            left[node] =
                needed.iter().any(|need| *need < self.tasks && file.tasks[*need].state != State::Done);
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
    matches!(task.state, State::Open | State::InProgress)
}

/// Neither done nor to be done. What is optional and left out holds nobody.
fn never_done(task: &SourceTask) -> bool {
    match task.state {
        State::Open | State::InProgress | State::Done => false,
        State::Blocked | State::Deferred | State::Review | State::Cancelled | State::NotWork => {
            !task.optional
        }
    }
}

/// Which tasks are parents that close with their children.
fn parents(file: &TaskFile) -> Vec<bool> {
    let mut parents = vec![false; file.tasks.len()];
    if !matches!(file.format, Format::Kiro | Format::TaskMaster) {
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
    !task.optional && task.state != State::Cancelled
}

fn places(file: &TaskFile) -> HashMap<&str, usize> {
    file.tasks.iter().enumerate().map(|(index, task)| (task.id.as_str(), index)).collect()
}

/// For each node, what it waits for. Tasks that are done wait for nothing and hold nobody.
fn edges(source: &Source<'_>, file: &mut TaskFile) -> Result<Vec<Vec<usize>>, SourceError> {
    let count = file.tasks.len();
    let parent = parents(file);
    let places = places(file);
    let mut before = vec![Vec::new(); 2 * count];
    let mut unknown = Vec::new();
    for (index, task) in file.tasks.iter().enumerate() {
        let entry = if parent[index] { count + index } else { index };
        if let Some(above) =
            task.parent.as_deref().and_then(|id| places.get(id)).filter(|above| parent[**above])
        {
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
                Some(other) if *other == index => return Err(depends_on_itself(source, task)),
                Some(other) if file.tasks[*other].state == State::Done && !parent[*other] => {}
                Some(other) if task.state != State::Done => before[entry].push(*other),
                Some(_) => {}
                None if task.state == State::Done => unknown.push((task.line, task.id.clone(), id.clone())),
                None => return Err(depends_on_nothing(source, task, id)),
            }
        }
    }
    for (line, task, id) in unknown {
        file.warn(line, format!("{task} is done and depends on {id}, which is not in this file"));
    }
    Ok(before)
}

fn depends_on_itself(source: &Source<'_>, task: &SourceTask) -> SourceError {
    source.error(task.line, format!("{0} depends on itself; expected another task", task.id))
}

fn depends_on_nothing(source: &Source<'_>, task: &SourceTask, id: &str) -> SourceError {
    let message = format!(
        "{} depends on {id}, which is not in this file; expected the id of one of its tasks",
        task.id
    );
    source.error(task.line, message)
}

/// For each node, who waits for it.
fn turned(before: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut after = vec![Vec::new(); before.len()];
    for (node, needed) in before.iter().enumerate() {
        for need in needed {
            after[*need].push(node);
        }
    }
    after
}

/// Every node after all it waits for, leaving out those that wait for themselves.
fn sorted(before: &[Vec<usize>], after: &[Vec<usize>]) -> Vec<usize> {
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

/// Nodes that wait for each other in a circle, each for the one after it.
pub fn cycle(before: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut free = vec![false; before.len()];
    for node in sorted(before, &turned(before)) {
        free[node] = true;
    }
    let mut node = (0..free.len()).find(|node| !free[*node])?;
    let mut path = Vec::new();
    let mut place = HashMap::new();
    loop {
        if let Some(first) = place.insert(node, path.len()) {
            return Some(path.split_off(first));
        }
        path.push(node);
        // What is not free waits for something that is not free.
        node = *before[node].iter().find(|need| !free[**need])?;
    }
}

/// A cycle's names in a row that comes back to its start, shortened in the middle if there are many.
pub fn round(mut names: Vec<&str>) -> String {
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
