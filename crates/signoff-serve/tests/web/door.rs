//! Who is let in, and who is not: on every route, whatever else is right.

use signoff_testkit::visitor::{Asked, Visitor};

use crate::{Site, check_head, forms, pages};

/// All requests that the server knows, as a browser sends them.
fn all(visitor: &Visitor) -> Vec<Asked> {
    let (pages, forms) = (pages(), forms());
    let asked = pages.iter().map(|path| visitor.asks(path));
    let sent = forms.iter().map(|(path, form)| visitor.sends(path, form));
    asked.chain(sent).chain([visitor.sends("/nowhere", "")]).collect()
}

/// What is wrong with a request that is right otherwise, and what it is refused with.
fn intruders(visitor: &Visitor, right: &Asked) -> Vec<(&'static str, Asked, u16)> {
    let (host, name) = (visitor.host(), format!("signoff-{}", visitor.port));
    let with = |name: &str, value: &str| right.clone().with(name, Some(value));
    let without = |name: &str| right.clone().with(name, None);
    let cut = &visitor.token[..visitor.token.len() - 1];
    let elsewhere = |site: &str| without("Origin").and("Sec-Fetch-Site", site);
    vec![
        ("no token", without("Cookie"), 401),
        ("a wrong token", with("Cookie", &format!("{name}={}", "0".repeat(64))), 401),
        ("a part of the token", with("Cookie", &format!("{name}={cut}")), 401),
        ("an empty token", with("Cookie", &format!("{name}=")), 401),
        ("the cookie of another port", with("Cookie", &format!("signoff-1={}", visitor.token)), 401),
        ("a wrong bearer", without("Cookie").and("Authorization", "Bearer 1"), 401),
        ("another host", with("Host", "evil.example"), 421),
        ("another host on our port", with("Host", &format!("evil.example:{}", visitor.port)), 421),
        ("another port", with("Host", "127.0.0.1:1"), 421),
        ("a person in the host", with("Host", &format!("me@{host}")), 421),
        ("no host", without("Host"), 421),
        ("two hosts", right.clone().and("Host", "evil.example"), 421),
        ("another origin", with("Origin", "http://evil.example"), 403),
        ("no origin to speak of", with("Origin", "null"), 403),
        ("another port's origin", with("Origin", "http://127.0.0.1:1"), 403),
        ("another scheme's origin", with("Origin", &format!("https://{host}")), 403),
        ("an origin that begins as ours", with("Origin", &format!("http://{host}.evil.example")), 403),
        ("two origins", with("Origin", &format!("http://{host}")).and("Origin", "http://evil.example"), 403),
        ("another site", elsewhere("cross-site"), 403),
        ("another port of this site", elsewhere("same-site"), 403),
    ]
}

#[test]
fn strangers_are_refused_everywhere_and_change_nothing() {
    let site = Site::start();
    for right in all(&site.visitor) {
        for (what, asked, status) in intruders(&site.visitor, &right) {
            let answer = site.visitor.request(&asked);
            // How pages look is no secret; the page that refuses somebody looks the same.
            let is_style = right.line == "GET /assets/style.css";
            let status = if is_style && status == 401 { 200 } else { status };
            assert_eq!(answer.status, status, "{what}: {}", right.line);
            assert!(!answer.body.contains(&site.visitor.token), "{what}: {}", right.line);
            check_head(&right.line, &answer);
        }
    }
    assert_eq!(*site.told.wishes.lock().expect("a lock"), []);
}

#[test]
fn a_form_must_say_where_it_comes_from_unless_its_sender_has_the_token_itself() {
    let site = Site::start();
    for (path, form) in forms() {
        let nowhere = site.visitor.sends(&path, form).with("Origin", None);
        assert_eq!(site.visitor.request(&nowhere).status, 403, "{path}");
        let browser = nowhere.clone().and("Sec-Fetch-Site", "same-origin");
        assert_eq!(site.visitor.request(&browser).status, 403, "{path}");
    }
    assert_eq!(*site.told.wishes.lock().expect("a lock"), []);
    let bearer = format!("Bearer {}", site.visitor.token);
    let program = site.visitor.sends("/tasks/1/retry", "").with("Origin", None).with("Cookie", None);
    assert_eq!(site.visitor.request(&program.and("Authorization", &bearer)).status, 303);
    assert_eq!(site.told.wishes.lock().expect("a lock").len(), 1);
}

#[test]
fn the_right_ones_are_let_in_everywhere() {
    let site = Site::start();
    for right in all(&site.visitor).iter().filter(|asked| asked.line != "GET /events") {
        for host in [site.visitor.host(), format!("localhost:{}", site.visitor.port)] {
            let origin = right.headers.iter().any(|(name, _)| name == "Origin");
            let origin = origin.then(|| format!("http://{host}"));
            let asked = right.clone().with("Host", Some(&host)).with("Origin", origin.as_deref());
            let answer = site.visitor.request(&asked);
            assert!([200, 303, 404, 405].contains(&answer.status), "{}: {}", right.line, answer.status);
            check_head(&right.line, &answer);
        }
    }
}

#[test]
fn the_address_becomes_a_cookie_and_is_seen_no_more() {
    let site = Site::start();
    let token = &site.visitor.token;
    let first = site.visitor.asks(&format!("/tasks/3?all=1&token={token}")).with("Cookie", None);
    let answer = site.visitor.request(&first);
    assert_eq!((answer.status, answer.header("location")), (303, "/tasks/3?all=1"));
    let cookie = format!("{}; HttpOnly; SameSite=Strict; Path=/", site.visitor.cookie());
    assert_eq!(answer.header("set-cookie"), cookie);
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    assert_eq!(answer.body, "");
    check_head("the first visit", &answer);

    let wrong = site.visitor.asks("/?token=0").with("Cookie", None);
    let answer = site.visitor.request(&wrong);
    assert_eq!((answer.status, answer.header("set-cookie")), (401, ""));
    assert!(answer.body.contains("signoff serve"), "{}", answer.body);

    let away = site.visitor.asks(&format!("//evil.example/?token={token}"));
    assert_eq!(site.visitor.request(&away).header("location"), "/evil.example/");
    // A form cannot bring the token in its address.
    let form = site.visitor.sends(&format!("/tasks/1/retry?token={token}"), "").with("Cookie", None);
    assert_eq!(site.visitor.request(&form).status, 401);
}

#[test]
fn what_is_opened_for_a_person_is_good_for_one_visit() {
    let site = Site::start();
    let ticket = Visitor::of(&site.web.url_for_once()).token;
    assert_ne!(ticket, site.visitor.token);
    let visit = site.visitor.asks(&format!("/?token={ticket}")).with("Cookie", None);
    let first = site.visitor.request(&visit);
    assert_eq!(first.status, 303);
    assert!(first.header("set-cookie").starts_with(&site.visitor.cookie()));
    assert_eq!(site.visitor.request(&visit).status, 401);
}

#[test]
fn only_get_and_post_are_understood() {
    let site = Site::start();
    for method in ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
        for path in pages() {
            let mut asked = site.visitor.asks(&path);
            asked.line = format!("{method} {path}");
            let answer = site.visitor.request(&asked);
            assert_eq!((answer.status, answer.header("allow")), (405, "GET, POST"), "{method} {path}");
        }
    }
    assert_eq!(site.visitor.get("/tasks/1/retry").status, 405);
    assert_eq!(site.visitor.post("/tasks/1", "").status, 405);
    assert_eq!(*site.told.wishes.lock().expect("a lock"), []);
}

#[test]
fn who_is_refused_sees_a_page_with_its_style() {
    let site = Site::start();
    let refused = site.visitor.request(&site.visitor.asks("/").with("Cookie", None));
    assert!(refused.body.contains("href=\"/assets/style.css\""), "{}", refused.body);
    for asset in ["/assets/live.js", "/assets/icon.svg", "/assets/none"] {
        let answer = site.visitor.request(&site.visitor.asks(asset).with("Cookie", None));
        assert_eq!(answer.status, 401, "{asset}");
    }
}

#[test]
fn no_path_leads_to_a_file() {
    let site = Site::start();
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
        let answer = site.visitor.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.status);
        assert!(!answer.body.contains("root:") && !answer.body.contains("[package]"), "{path}");
        assert!(answer.body.contains("there is no such page"), "{path}: {}", answer.body);
        check_head(path, &answer);
    }
}

#[test]
fn files_of_the_page_are_fetched_once() {
    let site = Site::start();
    let style = site.visitor.get("/assets/style.css");
    assert_eq!((style.status, style.header("content-type")), (200, "text/css; charset=utf-8"));
    let again = site.visitor.asks("/assets/style.css").and("If-None-Match", style.header("etag"));
    let again = site.visitor.request(&again);
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    check_head("/assets/style.css", &again);
}

#[test]
fn a_report_may_bring_its_own_style_and_nothing_that_acts() {
    let site = Site::start();
    let answer = site.visitor.get("/runs/1/report.html");
    assert_eq!(answer.status, 200);
    let policy = answer.header("content-security-policy");
    assert!(policy.contains("script-src 'none'; style-src 'unsafe-inline'"), "{policy}");
    assert!(policy.ends_with("; sandbox"), "{policy}");
}
