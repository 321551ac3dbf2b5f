//! What the screen wishes for while this program works.

use signoff_term::dialogue::Decided;
use signoff_term::tui::Wish;

use super::{Answers, Clerk, Fulfil, Left, Queue};
use crate::console::say;

/// Answers go to the dispatcher at once; everything else takes the way that it takes from another program.
pub struct Driving {
    pub answers: Answers,
    /// Whether the person may be asked.
    pub attended: bool,
    pub clerk: Clerk,
    /// Until nobody looks at it any more.
    pub queue: Option<Queue>,
}

impl Fulfil for Driving {
    fn fulfil(&mut self, wish: Wish) {
        match wish {
            Wish::Settle(Decided::Answer { run, loop_id, question, choice }) => {
                self.answers.answer((run, loop_id), question, choice);
            }
            Wish::Settle(Decided::Later { run, loop_id, question, how }) => {
                // To be read when the screen is left.
                say(&format!("Left for later: {how}\n"));
                self.answers.later((run, loop_id), question);
            }
            Wish::Interrupt => self.answers.interrupt(),
            Wish::Quit | Wish::Decide(..) | Wish::Look(_) | Wish::Replay(_) => self.clerk.fulfil(wish),
        }
    }

    fn seen(&mut self, seen: bool) {
        self.answers.attended(seen && self.attended);
    }

    /// The work goes on as lines, which ask nobody.
    fn left(&mut self, _left: Left) {
        self.answers.attended(false);
        // Nobody looks at it any more.
        drop(self.queue.take());
    }
}

/// Also when what draws breaks: nobody waits for answers that nobody can give.
impl Drop for Driving {
    fn drop(&mut self) {
        self.answers.attended(false);
    }
}
