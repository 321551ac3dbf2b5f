//! What is kept of an agent's words while it speaks: no more than anybody needs, however much it says.

use std::collections::VecDeque;

use signoff_core::heard::{Denied, Spent, Tokens};

use super::glance;

/// So many calls are kept that are not answered yet; nobody makes more at once.
const OPEN: usize = 100;

/// What tools were called for, by the names of the calls.
#[derive(Debug, Default)]
pub struct Calls(VecDeque<(String, Denied)>);

impl Calls {
    pub fn begin(&mut self, call: &str, tool: &Denied) {
        if self.0.len() == OPEN {
            self.0.pop_front();
        }
        self.0.push_back((glance(call), tool.clone()));
    }

    pub fn get(&self, call: &str) -> Option<&Denied> {
        let call = glance(call);
        self.0.iter().rev().find(|(known, _)| *known == call).map(|(_, tool)| tool)
    }

    pub fn end(&mut self, call: &str) -> Option<Denied> {
        let call = glance(call);
        let at = self.0.iter().rposition(|(known, _)| *known == call)?;
        self.0.remove(at).map(|(_, tool)| tool)
    }
}

/// What a tool is used for, in a few words.
pub fn tool(name: &str, about: String) -> Denied {
    Denied { tool: glance(name), about }
}

/// So many refusals are kept.
pub const REFUSALS: usize = 1000;

/// Notes a refusal, unless there are more than anybody reads.
pub fn deny(denied: &mut Vec<Denied>, one: &Denied) {
    if denied.len() < REFUSALS {
        denied.push(one.clone());
    }
}

/// So many models are told apart.
const MODELS: usize = 100;

/// Counts tokens to those of the same model.
pub fn add(spent: &mut Vec<Spent>, model: Option<&str>, tokens: Tokens) {
    let model = model.map(glance);
    let known = spent.iter().position(|spent| spent.model == model);
    // The first stands for all that are too many.
    match known.or((spent.len() == MODELS).then_some(0)) {
        Some(known) => spent[known].tokens = spent[known].tokens.and(tokens),
        None => spent.push(Spent { model, tokens, cost_micro_usd: None }),
    }
}

/// Answers of models whose tokens are told more than once: the last word about each counts.
#[derive(Debug, Default)]
pub struct Answers {
    /// Those of which more may be told.
    recent: VecDeque<(String, Option<String>, Tokens)>,
    earlier: Vec<Spent>,
}

impl Answers {
    pub fn note(&mut self, id: &str, model: Option<&str>, tokens: Tokens) {
        let (id, model) = (glance(id), model.map(glance));
        if let Some(known) = self.recent.iter_mut().rev().find(|(known, ..)| *known == id) {
            known.2 = tokens;
            return;
        }
        if self.recent.len() == OPEN
            && let Some((_, model, tokens)) = self.recent.pop_front()
        {
            add(&mut self.earlier, model.as_deref(), tokens);
        }
        self.recent.push_back((id, model, tokens));
    }

    /// Whether more may be told of this one.
    pub fn is_recent(&self, id: &str) -> bool {
        let id = glance(id);
        self.recent.iter().any(|(known, ..)| *known == id)
    }

    /// Leaves out what another tells better; what is not recent is left out anyway then.
    pub fn leave_out(&mut self, id: &str) {
        let id = glance(id);
        self.earlier.clear();
        self.recent.retain(|(known, ..)| *known != id);
    }

    /// By model.
    pub fn all(self) -> Vec<Spent> {
        self.after(Vec::new())
    }

    /// By model, with what came before.
    pub fn after(self, before: Vec<Spent>) -> Vec<Spent> {
        let mut all = before;
        for Spent { model, tokens, .. } in self.earlier {
            add(&mut all, model.as_deref(), tokens);
        }
        for (_, model, tokens) in self.recent {
            // Errors come as answers that used nothing.
            if tokens != Tokens::default() {
                add(&mut all, model.as_deref(), tokens);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_answers_and_refusals_are_bounded() {
        let (mut calls, mut answers, mut denied) = (Calls::default(), Answers::default(), Vec::new());
        for number in 0..10_000 {
            let name = number.to_string();
            calls.begin(&name, &tool(&name.repeat(1000), String::new()));
            answers.note(&name, Some(&name), Tokens { input: 1, output: 1, ..Tokens::default() });
            deny(&mut denied, &tool(&name, String::new()));
        }
        assert!(calls.0.len() <= OPEN && answers.recent.len() <= OPEN && denied.len() == REFUSALS);
        assert!(calls.0.iter().all(|(_, tool)| tool.tool.len() < 200));
        assert_eq!(calls.get("9999").map(|tool| tool.tool.len()), Some(163), "the newest is known");
        let all = answers.all();
        assert!(all.len() <= MODELS, "{}", all.len());
        assert_eq!(all.iter().map(|spent| spent.tokens.input).sum::<u64>(), 10_000, "nothing is lost");
    }

    #[test]
    fn the_last_word_about_an_answer_counts() {
        let mut answers = Answers::default();
        let tokens = |output| Tokens { input: 10, output, ..Tokens::default() };
        answers.note("one", Some("m"), tokens(1));
        answers.note("two", Some("m"), tokens(5));
        answers.note("one", Some("m"), tokens(7));
        let [spent] = &answers.all()[..] else { panic!("one model") };
        assert_eq!(spent.tokens, Tokens { input: 20, output: 12, ..Tokens::default() });
    }
}
