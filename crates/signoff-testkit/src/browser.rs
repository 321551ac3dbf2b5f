//! A person with a browser: Chromium without a window, driven by ChromeDriver.
//!
//! What is waited for is waited for in the page itself, by whoever is told of every change there; nothing sleeps.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use fantoccini::error::CmdError;
pub use fantoccini::key::Key;
use fantoccini::wd::TimeoutConfiguration;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How long something in a page is waited for before the test has failed.
const PATIENCE_MS: u64 = 30_000;

/// How many pages may follow each other while something is waited for.
const PAGES: usize = 5;

/// A browser of its own, with nothing in it.
pub struct Browser {
    driver: Child,
    runtime: Runtime,
    client: Option<Client>,
    _profile: TempDir,
}

/// How large a window is, and how the person likes it.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
}

impl Window {
    pub const DESK: Self = Self { width: 1280, height: 900, dark: false };
    pub const PHONE: Self = Self { width: 360, height: 740, dark: false };

    pub fn dark(self) -> Self {
        Self { dark: true, ..self }
    }
}

impl fmt::Debug for Browser {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Browser({})", self.driver.id())
    }
}

impl Browser {
    /// Starts one.
    ///
    /// # Panics
    /// If there is none; `scripts/browser prepare` installs it.
    pub fn start(window: Window) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let profile = tempfile::tempdir().expect("a directory");
        let (driver, port) = driver();
        let capabilities = capabilities(window, &profile);
        let connecting = async {
            let mut builder = ClientBuilder::new(HttpConnector::new());
            builder.capabilities(capabilities).connect(&format!("http://127.0.0.1:{port}")).await
        };
        let client = runtime.block_on(connecting).expect("a browser");
        let patience = Some(Duration::from_millis(PATIENCE_MS + 5000));
        let timeouts = TimeoutConfiguration::new(patience, patience, None);
        runtime.block_on(client.update_timeouts(timeouts)).expect("a browser that is told how long to wait");
        Self { driver, runtime, client: Some(client), _profile: profile }
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("a browser that is open")
    }

    fn have<T>(&self, what: &str, doing: impl Future<Output = Result<T, CmdError>>) -> T {
        self.runtime.block_on(doing).unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Goes to an address.
    pub fn open(&self, url: &str) {
        self.have(url, self.client().goto(url));
    }

    /// Opens one more tab, in front of the others, and goes to an address.
    pub fn open_in_a_tab(&self, url: &str) {
        self.have("a tab", async {
            let tab = self.client().new_window(true).await?;
            self.client().switch_to_window(tab.handle).await
        });
        self.open(url);
    }

    /// Opens one more window beside the others, and goes to an address.
    pub fn open_in_a_window(&self, url: &str) {
        self.have("a window", async {
            let window = self.client().new_window(false).await?;
            self.client().switch_to_window(window.handle).await
        });
        self.open(url);
    }

    /// Does something in each window, in the order in which they were opened.
    pub fn in_each_window(&self, mut what: impl FnMut()) {
        for window in self.have("all windows", self.client().windows()) {
            self.have("a window", self.client().switch_to_window(window));
            what();
        }
    }

    /// Holds the mouse down on the element that a selector finds, while something else happens, and lets it go.
    pub fn click_while(&self, selector: &str, meanwhile: impl FnOnce()) {
        let place = self.run(&format!(
            "const one = document.querySelector({selector:?}); one.scrollIntoView({{ block: 'center' }}); \
             const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]"
        ));
        let at = |index: usize| place[index].as_f64().expect("a place");
        let mouse = |actions: MouseActions| self.client().perform_actions(actions);
        let down = MouseActions::new("mouse".to_owned())
            .then(PointerAction::MoveTo { duration: None, x: at(0), y: at(1) })
            .then(PointerAction::Down { button: MOUSE_BUTTON_LEFT });
        self.have(selector, mouse(down));
        meanwhile();
        let up = MouseActions::new("mouse".to_owned()).then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
        self.have(selector, mouse(up));
    }

    /// Closes the tab in front, and looks at the one that was opened first.
    pub fn back_to_the_first_tab(&self) {
        self.have("the first tab", async {
            self.client().close_window().await?;
            let first = self.client().windows().await?.into_iter().next();
            match first {
                Some(first) => self.client().switch_to_window(first).await,
                None => Ok(()),
            }
        });
    }

    pub fn url(&self) -> String {
        self.have("the address", self.client().current_url()).to_string()
    }

    pub fn title(&self) -> String {
        self.have("the title", self.client().title())
    }

    /// The text of the first element that a selector finds, as a person sees it.
    pub fn text(&self, selector: &str) -> String {
        self.have(selector, async { self.client().find(Locator::Css(selector)).await?.text().await })
    }

    pub fn click(&self, selector: &str) {
        // What lies at the edge of the window may be covered.
        self.run(&format!("document.querySelector({selector:?}).scrollIntoView({{ block: 'center' }})"));
        self.click_what(selector, Locator::Css(selector));
    }

    /// Clicks the link or button that says this.
    pub fn click_on(&self, words: &str) {
        let path = format!("//*[self::a or self::button or self::summary][normalize-space()={words:?}]");
        self.click_what(words, Locator::XPath(&path));
    }

    /// The driver looks and clicks in two steps. A person clicks on what is there, also where the page has just put it there
    /// anew.
    fn click_what(&self, what: &str, place: Locator<'_>) {
        self.have(what, async {
            loop {
                match self.client().find(place).await?.click().await {
                    Err(error) if error.is_stale_element_reference() => {}
                    clicked => return clicked,
                }
            }
        });
    }

    /// Types into a field.
    pub fn type_into(&self, selector: &str, text: &str) {
        self.have(selector, async {
            self.client().find(Locator::Css(selector)).await?.send_keys(text).await
        });
    }

    /// Presses a key wherever the focus is.
    pub fn press(&self, key: Key) {
        let key = char::from(key).to_string();
        self.have("a key", async { self.client().active_element().await?.send_keys(&key).await });
    }

    /// What a script of the test's own comes to, run in the page.
    pub fn run(&self, script: &str) -> Value {
        self.have(script, self.client().execute(script, Vec::new()))
    }

    /// The same for one that calls its last argument when it is done.
    pub fn run_until_called(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.have(script, self.client().execute_async(script, arguments))
    }

    /// Waits until an expression about the page is true, looked at again at every change of the page.
    ///
    /// # Panics
    /// If it is not within half a minute.
    pub fn wait_until(&self, expression: &str) -> Value {
        let script = format!("{WAIT}(() => ({expression}), {PATIENCE_MS}, arguments[0]);");
        // Whoever waits in a page is gone with it: then the next one is waited in, which is there at once.
        let waited = (0..PAGES)
            .find_map(|_| self.runtime.block_on(self.client().execute_async(&script, Vec::new())).ok());
        let seen = waited.unwrap_or_default();
        assert!(!seen.is_null(), "waited in vain for {expression}\n{}", self.text("body"));
        seen
    }

    /// Waits until this text is to be seen.
    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("document.body.innerText.includes({text:?})"));
    }

    /// A picture of the window.
    pub fn picture(&self) -> Vec<u8> {
        self.have("a picture", self.client().screenshot())
    }

    /// What axe-core says about the page: the rules that are broken in earnest, each with where.
    ///
    /// # Panics
    /// If axe-core is not there.
    pub fn axe(&self, axe: &str) -> Vec<String> {
        self.run(axe);
        let found = self.run_until_called(AXE, vec![]);
        assert!(found.is_array(), "axe: {found}");
        let told = |one: &Value| one.as_str().unwrap_or_default().to_owned();
        found.as_array().into_iter().flatten().map(told).collect()
    }
}

/// Looks at an expression now and at every change, and tells when it was true first; null when the time is up.
const WAIT: &str = "((expression, patience, done) => {
    const holds = () => { try { return expression(); } catch { return false; } };
    const end = (value) => { observer.disconnect(); clearTimeout(timer); done(value); };
    const look = () => { if (holds()) end(Date.now()); };
    const observer = new MutationObserver(look);
    const timer = setTimeout(() => end(null), patience);
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    look();
})";

const AXE: &str = "const done = arguments[0];
axe.run(document, { resultTypes: ['violations'] }).then(
    (found) => done(found.violations
        .filter((one) => one.impact === 'serious' || one.impact === 'critical')
        .map((one) => one.id + ': ' + one.help + '\\n' + one.nodes.map((node) => '  ' + node.html).join('\\n'))),
    (error) => done(String(error)));";

/// Starts ChromeDriver on a free port.
#[expect(clippy::disallowed_methods, reason = "a test's own browser")]
fn driver() -> (Child, u16) {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver: `scripts/browser prepare` installs it");
    let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let port = lines.find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    // It must be able to go on writing.
    std::thread::spawn(move || lines.for_each(drop));
    (driver, port.expect("chromedriver names its port"))
}

fn capabilities(window: Window, profile: &TempDir) -> serde_json::Map<String, Value> {
    let mut arguments = vec![
        format!("--window-size={},{}", window.width, window.height),
        format!("--user-data-dir={}", profile.path().display()),
    ];
    // It knows nobody but this machine: nothing is fetched from elsewhere.
    let quiet = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
    ];
    arguments.extend(quiet.map(str::to_owned));
    if window.dark {
        arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
    }
    let options = json!({ "browserName": "chrome", "goog:chromeOptions": { "args": arguments } });
    options.as_object().cloned().unwrap_or_default()
}

/// A test that fails leaves no browser behind.
impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.runtime.block_on(client.close()).ok();
        }
        self.driver.kill().ok();
        self.driver.wait().ok();
    }
}
