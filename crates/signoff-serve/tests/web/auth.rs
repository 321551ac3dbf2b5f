//! Authentication on every route: token, host and origin.

use signoff_testkit::web_client::{WebClient, WebRequest};

use crate::web::{WebFixture, check_head, forms, pages};

/// Lists all valid requests as a browser sends them.
fn all(visitor: &WebClient) -> Vec<WebRequest> {
    let (pages, forms) = (pages(), forms());
    let requests = pages.iter().map(|path| visitor.get_request(path));
    let sent = forms.iter().map(|(path, form)| visitor.form_request(path, form));
    requests.chain(sent).chain([visitor.form_request("/nowhere", "")]).collect()
}

/// Lists variants of a valid request with one fault each, and the expected status.
fn faulty_requests(visitor: &WebClient, right: &WebRequest) -> Vec<(&'static str, WebRequest, u16)> {
    let (host, name) = (visitor.host(), format!("signoff-{}", visitor.port));
    let with = |name: &str, value: &str| right.clone().with(name, Some(value));
    let without = |name: &str| right.clone().with(name, None);
    let cut = &visitor.token[..visitor.token.len() - 1];
    let cross_site = |fixture: &str| without("Origin").with_added("Sec-Fetch-Site", fixture);
    vec![
        ("no token", without("Cookie"), 401),
        ("a wrong token", with("Cookie", &format!("{name}={}", "0".repeat(64))), 401),
        ("a part of the token", with("Cookie", &format!("{name}={cut}")), 401),
        ("an empty token", with("Cookie", &format!("{name}=")), 401),
        ("the cookie of another port", with("Cookie", &format!("signoff-1={}", visitor.token)), 401),
        ("a wrong bearer", without("Cookie").with_added("Authorization", "Bearer 1"), 401),
        ("another host", with("Host", "evil.example"), 421),
        ("another host on our port", with("Host", &format!("evil.example:{}", visitor.port)), 421),
        ("another port", with("Host", "127.0.0.1:1"), 421),
        ("a person in the host", with("Host", &format!("me@{host}")), 421),
        ("no host", without("Host"), 421),
        ("two hosts", right.clone().with_added("Host", "evil.example"), 421),
        ("another origin", with("Origin", "http://evil.example"), 403),
        ("no origin to speak of", with("Origin", "null"), 403),
        ("another port's origin", with("Origin", "http://127.0.0.1:1"), 403),
        ("another scheme's origin", with("Origin", &format!("https://{host}")), 403),
        ("an origin that begins as ours", with("Origin", &format!("http://{host}.evil.example")), 403),
        ("two origins", with("Origin", &format!("http://{host}")).with_added("Origin", "http://evil.example"), 403),
        ("another site", cross_site("cross-site"), 403),
        ("another port of this site", cross_site("same-site"), 403),
    ]
}

#[test]
fn faulty_requests_are_refused_on_every_route() {
    let fixture = WebFixture::start();
    for right in all(&fixture.visitor) {
        for (what, asked, status) in faulty_requests(&fixture.visitor, &right) {
            let answer = fixture.visitor.request(&asked);
            // The style sheet is public: the error page uses it too.
            let is_style = right.line == "GET /assets/style.css";
            let status = if is_style && status == 401 { 200 } else { status };
            assert_eq!(answer.status, status, "{what}: {}", right.line);
            assert!(!answer.body.contains(&fixture.visitor.token), "{what}: {}", right.line);
            check_head(&right.line, &answer);
        }
    }
    assert_eq!(*fixture.probe.actions.lock().expect("a lock"), []);
}

#[test]
fn a_form_needs_an_origin_unless_it_has_a_bearer_token() {
    let fixture = WebFixture::start();
    for (path, form) in forms() {
        let nowhere = fixture.visitor.form_request(&path, form).with("Origin", None);
        assert_eq!(fixture.visitor.request(&nowhere).status, 403, "{path}");
        let browser = nowhere.clone().with_added("Sec-Fetch-Site", "same-origin");
        assert_eq!(fixture.visitor.request(&browser).status, 403, "{path}");
    }
    assert_eq!(*fixture.probe.actions.lock().expect("a lock"), []);
    let bearer = format!("Bearer {}", fixture.visitor.token);
    let program = fixture.visitor.form_request("/tasks/1/retry", "").with("Origin", None).with("Cookie", None);
    assert_eq!(fixture.visitor.request(&program.with_added("Authorization", &bearer)).status, 303);
    assert_eq!(fixture.probe.actions.lock().expect("a lock").len(), 1);
}

#[test]
fn valid_requests_are_accepted_on_every_route() {
    let fixture = WebFixture::start();
    for right in all(&fixture.visitor).iter().filter(|request| request.line != "GET /events") {
        for host in [fixture.visitor.host(), format!("localhost:{}", fixture.visitor.port)] {
            let origin = right.headers.iter().any(|(name, _)| name == "Origin");
            let origin = origin.then(|| format!("http://{host}"));
            let request = right.clone().with("Host", Some(&host)).with("Origin", origin.as_deref());
            let answer = fixture.visitor.request(&request);
            assert!([200, 303, 404, 405].contains(&answer.status), "{}: {}", right.line, answer.status);
            check_head(&right.line, &answer);
        }
    }
}

#[test]
fn the_token_in_the_url_becomes_a_cookie() {
    let fixture = WebFixture::start();
    let token = &fixture.visitor.token;
    let first = fixture.visitor.get_request(&format!("/tasks/3?all=1&token={token}")).with("Cookie", None);
    let answer = fixture.visitor.request(&first);
    assert_eq!((answer.status, answer.header("location")), (303, "/tasks/3?all=1"));
    let cookie = format!("{}; HttpOnly; SameSite=Strict; Path=/", fixture.visitor.cookie());
    assert_eq!(answer.header("set-cookie"), cookie);
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    assert_eq!(answer.body, "");
    check_head("the first visit", &answer);

    let invalid = fixture.visitor.get_request("/?token=0").with("Cookie", None);
    let answer = fixture.visitor.request(&invalid);
    assert_eq!((answer.status, answer.header("set-cookie")), (401, ""));
    assert!(answer.body.contains("signoff serve"), "{}", answer.body);

    let away = fixture.visitor.get_request(&format!("//evil.example/?token={token}"));
    assert_eq!(fixture.visitor.request(&away).header("location"), "/evil.example/");
    // A form must not carry the token in its URL.
    let form = fixture.visitor.form_request(&format!("/tasks/1/retry?token={token}"), "").with("Cookie", None);
    assert_eq!(fixture.visitor.request(&form).status, 401);
}

#[test]
fn a_one_time_url_works_once() {
    let fixture = WebFixture::start();
    let ticket = WebClient::from_url(&fixture.web.one_time_url()).token;
    assert_ne!(ticket, fixture.visitor.token);
    let visit = fixture.visitor.get_request(&format!("/?token={ticket}")).with("Cookie", None);
    let first = fixture.visitor.request(&visit);
    assert_eq!(first.status, 303);
    assert!(first.header("set-cookie").starts_with(&fixture.visitor.cookie()));
    assert_eq!(fixture.visitor.request(&visit).status, 401);
}

#[test]
fn only_get_and_post_are_allowed() {
    let fixture = WebFixture::start();
    for method in ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
        for path in pages() {
            let mut request = fixture.visitor.get_request(&path);
            request.line = format!("{method} {path}");
            let answer = fixture.visitor.request(&request);
            assert_eq!((answer.status, answer.header("allow")), (405, "GET, POST"), "{method} {path}");
        }
    }
    assert_eq!(fixture.visitor.get("/tasks/1/retry").status, 405);
    assert_eq!(fixture.visitor.post("/tasks/1", "").status, 405);
    assert_eq!(*fixture.probe.actions.lock().expect("a lock"), []);
}

#[test]
fn the_error_page_has_its_style_sheet() {
    let fixture = WebFixture::start();
    let refused = fixture.visitor.request(&fixture.visitor.get_request("/").with("Cookie", None));
    assert!(refused.body.contains("href=\"/assets/style.css\""), "{}", refused.body);
    for asset in ["/assets/live.js", "/assets/icon.svg", "/assets/none"] {
        let answer = fixture.visitor.request(&fixture.visitor.get_request(asset).with("Cookie", None));
        assert_eq!(answer.status, 401, "{asset}");
    }
}

#[test]
fn no_path_leads_to_a_file() {
    let fixture = WebFixture::start();
    for path in [
        "/assets/",
        "/assets/../Cargo.toml",
        "/assets/%2e%2e/Cargo.toml",
        "/assets/..%2fCargo.toml",
        "/assets/..%5cCargo.toml",
        "/assets/%2fetc%2fpasswd",
        "/assets/style.css%00",
        "/assets/style.css/",
        "/etc/passwd",
        "/tasks/..%2f..%2fetc",
        "/tasks/%31%00",
        "/tasks/+1",
        "/tasks/-1",
        "/tasks/99999999999999999999",
        "/runs/%ff",
        "/tasks/%ff",
        "/tasks/%ff/transcript/a1",
        "/assets/%ff",
        "/tasks/1/transcript/..%2f1",
    ] {
        let answer = fixture.visitor.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.status);
        assert!(!answer.body.contains("root:") && !answer.body.contains("[package]"), "{path}");
        assert!(answer.body.contains("there is no such page"), "{path}: {}", answer.body);
        check_head(path, &answer);
    }
}

#[test]
fn assets_are_revalidated_by_etag() {
    let fixture = WebFixture::start();
    let style = fixture.visitor.get("/assets/style.css");
    assert_eq!((style.status, style.header("content-type")), (200, "text/css; charset=utf-8"));
    let again = fixture.visitor.get_request("/assets/style.css").with_added("If-None-Match", style.header("etag"));
    let again = fixture.visitor.request(&again);
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    check_head("/assets/style.css", &again);
}

#[test]
fn a_report_allows_inline_style_but_no_script() {
    let fixture = WebFixture::start();
    let answer = fixture.visitor.get("/runs/1/report.html");
    assert_eq!(answer.status, 200);
    let policy = answer.header("content-security-policy");
    assert!(policy.contains("script-src 'none'; style-src 'unsafe-inline'"), "{policy}");
    assert!(policy.ends_with("; sandbox"), "{policy}");
}
