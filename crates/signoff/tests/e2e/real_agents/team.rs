//! Assigns real programs to the roles, and configures each for the scripted model.

use std::env;
use std::path::PathBuf;

use serde_json::Value;
use signoff_testkit::TestProject;
use signoff_testkit::model::{ModelScript, ScriptedModel};
use signoff_testkit::processes::{self, wait_until};

use crate::PROGRAM;

/// A program under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cli {
    Claude,
    Codex,
    Gemini,
    Opencode,
    /// The same two, over the Agent Client Protocol.
    GeminiAcp,
    OpencodeAcp,
    /// Two that are tested only in `slow`.
    Qwen,
    Copilot,
}

impl Cli {
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::GeminiAcp => "gemini-acp",
            Self::OpencodeAcp => "opencode-acp",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
        }
    }

    /// Whether it reports all tokens that its model used. Over the protocol, opencode reports only the last turn.
    pub fn counts(self) -> bool {
        self != Self::OpencodeAcp
    }

    /// Its kind, its program and the first arguments.
    fn kind(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode | Self::Qwen | Self::Copilot => {
                (self.name(), self.name(), &[])
            }
            Self::GeminiAcp => ("acp", "gemini", &["--acp"]),
            Self::OpencodeAcp => ("acp", "opencode", &["acp"]),
        }
    }

    fn model(self) -> &'static str {
        match self {
            Self::Claude => "claude-sonnet-4-5",
            Self::Codex | Self::Qwen | Self::Copilot => "gpt-5.5",
            Self::Gemini | Self::GeminiAcp => "gemini-2.5-pro",
            Self::Opencode | Self::OpencodeAcp => "scripted/m1",
        }
    }

    /// The price of a million tokens of its model, in thousandths of a dollar: fresh, read from a cache, written to a
    /// cache (reported by Claude Code alone), and output.
    pub fn price(self) -> [u64; 4] {
        match self {
            Self::Claude => [3_000, 300, 3_750, 15_000],
            Self::Codex | Self::Qwen | Self::Copilot => [5_000, 500, 5_000, 30_000],
            Self::Gemini | Self::GeminiAcp => [1_250, 125, 1_250, 10_000],
            // Of the made-up provider below.
            Self::Opencode | Self::OpencodeAcp => [1_000, 100, 1_000, 2_000],
        }
    }

    /// Whether it reports its cost.
    pub fn reports_cost(self) -> bool {
        matches!(self, Self::Claude | Self::Opencode | Self::OpencodeAcp)
    }

    /// Whether it reports tokens read from a cache.
    pub fn reports_cached_tokens(self) -> bool {
        self != Self::GeminiAcp
    }

    /// Its table in `signoff.toml`. Keys are arbitrary words: no provider checks them.
    fn table(self, url: &str) -> String {
        let (name, model, (kind, program, first)) = (self.name(), self.model(), self.kind());
        let command: Vec<PathBuf> =
            [place().join(program)].into_iter().chain(first.iter().map(PathBuf::from)).collect();
        let more = match self {
            Self::Claude => format!(
                "env = {{ ANTHROPIC_BASE_URL = \"{url}\", ANTHROPIC_API_KEY = \"sk-ant-scripted-key\", \
                 CLAUDE_CODE_MAX_RETRIES = \"1\" }}"
            ),
            Self::Codex => format!(
                "env = {{ OPENAI_API_KEY = \"sk-scripted-key\" }}\nargs = [\"-c\", \"model_provider=x\", \"-c\", \
                 'model_providers.x={{name=\"x\",base_url=\"{url}/v1\",env_key=\"OPENAI_API_KEY\",\
                 wire_api=\"responses\",request_max_retries=1,stream_max_retries=1}}']"
            ),
            Self::Gemini | Self::GeminiAcp => {
                format!("env = {{ GOOGLE_GEMINI_BASE_URL = \"{url}\", GEMINI_API_KEY = \"scripted-key-of-gemini\" }}")
            }
            Self::Qwen => {
                format!("env = {{ OPENAI_BASE_URL = \"{url}/v1\", OPENAI_API_KEY = \"sk-scripted-key\" }}")
            }
            Self::Copilot => format!(
                "env = {{ COPILOT_OFFLINE = \"true\", COPILOT_PROVIDER_BASE_URL = \"{url}/v1\", \
                 COPILOT_PROVIDER_TYPE = \"openai\", COPILOT_PROVIDER_API_KEY = \"sk-scripted-key\" }}"
            ),
            Self::Opencode | Self::OpencodeAcp => {
                format!("env = {{ OPENCODE_CONFIG_CONTENT = '''{}''' }}", provider(url))
            }
        };
        format!("[agents.{name}]\nkind = \"{kind}\"\ncommand = {command:?}\nmodel = \"{model}\"\n{more}\n")
    }
}

/// The scripted model as a provider for opencode.
fn provider(url: &str) -> String {
    serde_json::json!({
        "enabled_providers": ["scripted"],
        "provider": { "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": { "baseURL": format!("{url}/v1"), "apiKey": "scripted-key-of-opencode" },
            "models": { "m1": {
                "name": "m1",
                "cost": { "input": 1, "output": 2, "cache_read": 0.1, "cache_write": 0 },
                "limit": { "context": 200_000, "output": 8_000 },
            } },
        } },
    })
    .to_string()
}

/// The directory in which `scripts/agents` installed the programs.
#[expect(clippy::disallowed_methods, reason = "set by the person who runs the tests")]
fn place() -> PathBuf {
    PathBuf::from(env::var_os("SIGNOFF_TEST_AGENTS").expect("scripts/agents sets SIGNOFF_TEST_AGENTS"))
}

/// A project whose roles are assigned to real programs.
pub struct Team {
    pub project: TestProject,
    pub model: ScriptedModel,
}

impl Team {
    /// A writer without reviewers, with additional configuration.
    pub fn alone(writer: Cli, more: &str, script: ModelScript) -> Self {
        let (project, model) = (TestProject::new(PROGRAM), ScriptedModel::start(script));
        let agent = writer.table(model.url());
        let text = format!("[roles]\nimplement = \"{}\"\n\n{more}\n{agent}", writer.name());
        project.env.write("signoff.toml", text);
        project.commit("Set up");
        Self { project, model }
    }

    /// A writer and two reviewers: `code` reports with a tool, `spec` in XML.
    pub fn new(writer: Cli, [code, spec]: [Cli; 2], script: ModelScript) -> Self {
        let (project, model) = (TestProject::new(PROGRAM), ScriptedModel::start(script));
        let mut used: Vec<Cli> = Vec::new();
        for cli in [writer, code, spec] {
            if !used.contains(&cli) {
                used.push(cli);
            }
        }
        let agents: String = used.iter().map(|cli| cli.table(model.url())).collect();
        project.env.write(
            "signoff.toml",
            format!(
                "review_workspace = \"shared\"\n\n[roles]\nimplement = \"{}\"\n\n[gate]\nreviewers = [\"code\", \"spec\"]\n\n\
                 [reviewers.code]\nkind = \"code\"\nagent = \"{}\"\ncontract = \"tool\"\n\n\
                 [reviewers.spec]\nkind = \"spec\"\nagent = \"{}\"\ncontract = \"xml\"\n\n{agents}",
                writer.name(),
                code.name(),
                spec.name(),
            ),
        );
        project.commit("Set up");
        Self { project, model }
    }

    /// The only task, with all its details.
    pub fn shown(&self) -> Value {
        self.project.run(&["show", "1", "--json"]).json()
    }

    /// No process remains, and no worktree is lost.
    pub fn settled(&self) {
        wait_until("nothing of it runs", || processes::with_root(self.project.env.root()).is_empty());
        let listed = self.project.git("worktree list --porcelain");
        assert!(!listed.contains("prunable"), "{listed}");
        let landed = self.project.env.work().join("greeting.txt").exists();
        assert!(landed || listed.contains("/.signoff/worktrees/task-1\n"), "{listed}");
    }
}
