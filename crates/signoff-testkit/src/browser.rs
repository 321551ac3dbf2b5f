//! A headless Chromium for tests, driven by ChromeDriver.
//!
//! Waits run in the page itself, with a `MutationObserver`; nothing sleeps.

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

/// Timeout for waits in a page.
const WAIT_TIMEOUT_MS: u64 = 30_000;

/// Maximum number of page loads during one wait.
const MAX_PAGE_LOADS: usize = 5;

/// A browser with an empty profile.
pub struct Browser {
    driver: Child,
    runtime: Runtime,
    client: Option<Client>,
    _profile: TempDir,
}

/// The size and colour scheme of a window.
#[derive(Debug, Clone, Copy)]
pub struct BrowserWindow {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
}

impl BrowserWindow {
    pub const DESKTOP: Self = Self { width: 1280, height: 900, dark: false };
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
    /// Starts a browser.
    ///
    /// # Panics
    /// If none is installed; `scripts/browser prepare` installs it.
    pub fn start(window: BrowserWindow) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let profile = tempfile::tempdir().expect("a directory");
        let (driver, port) = driver();
        let capabilities = capabilities(window, &profile);
        let connecting = async {
            let mut builder = ClientBuilder::new(HttpConnector::new());
            builder.capabilities(capabilities).connect(&format!("http://127.0.0.1:{port}")).await
        };
        let client = runtime.block_on(connecting).expect("a browser");
        let timeout = Some(Duration::from_millis(WAIT_TIMEOUT_MS + 5000));
        let timeouts = TimeoutConfiguration::new(timeout, timeout, None);
        runtime.block_on(client.update_timeouts(timeouts)).expect("a browser that accepts timeouts");
        Self { driver, runtime, client: Some(client), _profile: profile }
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("a browser that is open")
    }

    fn block_on<T>(&self, what: &str, doing: impl Future<Output = Result<T, CmdError>>) -> T {
        self.runtime.block_on(doing).unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Opens a URL.
    pub fn open(&self, url: &str) {
        self.block_on(url, self.client().goto(url));
    }

    /// Opens a URL in a new foreground tab.
    pub fn open_in_tab(&self, url: &str) {
        self.block_on("a tab", async {
            let tab = self.client().new_window(true).await?;
            self.client().switch_to_window(tab.handle).await
        });
        self.open(url);
    }

    /// Opens a URL in a new window.
    pub fn open_in_window(&self, url: &str) {
        self.block_on("a window", async {
            let window = self.client().new_window(false).await?;
            self.client().switch_to_window(window.handle).await
        });
        self.open(url);
    }

    /// Runs a closure in each window, in the order in which they were opened.
    pub fn in_each_window(&self, mut what: impl FnMut()) {
        for window in self.block_on("all windows", self.client().windows()) {
            self.block_on("a window", self.client().switch_to_window(window));
            what();
        }
    }

    /// Presses the mouse button on an element, runs a closure, and releases the button.
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
        self.block_on(selector, mouse(down));
        meanwhile();
        let up = MouseActions::new("mouse".to_owned()).then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
        self.block_on(selector, mouse(up));
    }

    /// Closes the current tab and switches to the first one.
    pub fn switch_to_first_tab(&self) {
        self.block_on("the first tab", async {
            self.client().close_window().await?;
            let first = self.client().windows().await?.into_iter().next();
            match first {
                Some(first) => self.client().switch_to_window(first).await,
                None => Ok(()),
            }
        });
    }

    pub fn url(&self) -> String {
        self.block_on("the address", self.client().current_url()).to_string()
    }

    pub fn title(&self) -> String {
        self.block_on("the title", self.client().title())
    }

    /// The visible text of the first element that matches a selector.
    pub fn text(&self, selector: &str) -> String {
        self.block_on(selector, async { self.client().find(Locator::Css(selector)).await?.text().await })
    }

    pub fn click(&self, selector: &str) {
        // An element at the edge of the window may be covered.
        self.run(&format!("document.querySelector({selector:?}).scrollIntoView({{ block: 'center' }})"));
        self.click_locator(selector, Locator::Css(selector));
    }

    /// Clicks the link or button with this text.
    pub fn click_on(&self, words: &str) {
        let path = format!("//*[self::a or self::button or self::summary][normalize-space()={words:?}]");
        self.click_locator(words, Locator::XPath(&path));
    }

    /// Clicks an element, and retries if the page replaced it between the driver's lookup and its click.
    fn click_locator(&self, what: &str, place: Locator<'_>) {
        self.block_on(what, async {
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
        self.block_on(selector, async { self.client().find(Locator::Css(selector)).await?.send_keys(text).await });
    }

    /// Presses a key on the focused element.
    pub fn press(&self, key: Key) {
        let key = char::from(key).to_string();
        self.block_on("a key", async { self.client().active_element().await?.send_keys(&key).await });
    }

    /// Runs a script in the page and returns its result.
    pub fn run(&self, script: &str) -> Value {
        self.block_on(script, self.client().execute(script, Vec::new()))
    }

    /// Runs an asynchronous script, which calls its last argument when it is done.
    pub fn run_until_called(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.block_on(script, self.client().execute_async(script, arguments))
    }

    /// Waits until a JavaScript expression is true. It is evaluated again on every change of the page.
    ///
    /// # Panics
    /// If it is not true within 30 seconds.
    pub fn wait_until(&self, expression: &str) -> Value {
        let script = format!("{WAIT}(() => ({expression}), {WAIT_TIMEOUT_MS}, arguments[0]);");
        // A navigation aborts the script; then wait in the new page.
        let waited = (0..MAX_PAGE_LOADS)
            .find_map(|_| self.runtime.block_on(self.client().execute_async(&script, Vec::new())).ok());
        let seen = waited.unwrap_or_default();
        assert!(!seen.is_null(), "timed out waiting for {expression}\n{}", self.text("body"));
        seen
    }

    /// Waits until this text is visible.
    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("document.body.innerText.includes({text:?})"));
    }

    /// A screenshot of the window.
    pub fn screenshot(&self) -> Vec<u8> {
        self.block_on("a picture", self.client().screenshot())
    }

    /// Runs axe-core on the page. Returns the serious and critical violations with their elements.
    ///
    /// # Panics
    /// If axe-core fails.
    pub fn axe(&self, axe: &str) -> Vec<String> {
        self.run(axe);
        let found = self.run_until_called(AXE, vec![]);
        assert!(found.is_array(), "axe: {found}");
        let text = |one: &Value| one.as_str().unwrap_or_default().to_owned();
        found.as_array().into_iter().flatten().map(text).collect()
    }
}

/// Evaluates an expression now, on every change and when the page is loaded. Returns the time when it was first true; null
/// on a timeout.
const WAIT: &str = "((expression, patience, done) => {
    const holds = () => { try { return expression(); } catch { return false; } };
    const end = (value) => { observer.disconnect(); clearTimeout(timer); done(value); };
    const look = () => { if (holds()) end(Date.now()); };
    const observer = new MutationObserver(look);
    const timer = setTimeout(() => end(null), patience);
    window.addEventListener('load', look);
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
    // Keep draining its stdout.
    std::thread::spawn(move || lines.for_each(drop));
    (driver, port.expect("chromedriver names its port"))
}

fn capabilities(window: BrowserWindow, profile: &TempDir) -> serde_json::Map<String, Value> {
    let mut arguments = vec![
        format!("--window-size={},{}", window.width, window.height),
        format!("--user-data-dir={}", profile.path().display()),
    ];
    // No network access beyond this machine.
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

/// Ends the browser, also when a test panics.
impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.runtime.block_on(client.close()).ok();
        }
        self.driver.kill().ok();
        self.driver.wait().ok();
    }
}
