//! The way to our own server, where the way to everybody else leads through a proxy.

use crate::process::variables;

/// Variables that name a proxy, and those that name who is reached without it.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const DIRECT: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Where reports are taken.
const HERE: &str = "127.0.0.1";

/// An agent that is told of a proxy is told to reach this machine without it.
pub fn past_proxies(environment: &mut Vec<(String, Option<String>)>) {
    let more = direct(&variables(), environment);
    environment.extend(more);
}

/// What it is told besides, by what it inherits and what it is given.
fn direct(
    inherited: &[(String, String)],
    given: &[(String, Option<String>)],
) -> Vec<(String, Option<String>)> {
    let value = |name: &str| {
        let given = given.iter().rev().find(|(one, _)| one == name);
        let inherits = || inherited.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
        given.map_or_else(inherits, |(_, value)| value.as_deref()).filter(|value| !value.is_empty())
    };
    if PROXIES.iter().all(|name| value(name).is_none()) {
        return Vec::new();
    }
    let either = DIRECT.iter().find_map(|name| value(name));
    let told = |name: &str| (name.to_owned(), Some(with_this_machine(value(name).or(either))));
    DIRECT.map(told).into()
}

fn with_this_machine(direct: Option<&str>) -> String {
    match direct {
        None => HERE.to_owned(),
        Some(all) if all.split(',').any(|one| matches!(one.trim(), "*" | HERE)) => all.to_owned(),
        Some(some) => format!("{some},{HERE}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(inherited: &[(&str, &str)], given: &[(&str, Option<&str>)]) -> String {
        let inherited: Vec<_> =
            inherited.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let given: Vec<_> =
            given.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect();
        let told = direct(&inherited, &given).into_iter();
        told.map(|(name, value)| format!("{name}={}", value.unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn who_has_no_proxy_is_told_nothing() {
        assert_eq!(told(&[], &[]), "");
        assert_eq!(told(&[("NO_PROXY", "intern")], &[("HTTP_PROXY", Some(""))]), "");
        assert_eq!(told(&[("HTTP_PROXY", "http://proxy")], &[("HTTP_PROXY", None)]), "");
    }

    #[test]
    fn this_machine_is_added_to_what_is_reached_without_one() {
        let proxy = ("https_proxy", "http://proxy");
        assert_eq!(told(&[proxy], &[]), "NO_PROXY=127.0.0.1 no_proxy=127.0.0.1");
        assert_eq!(told(&[], &[("ALL_PROXY", Some("socks5://p"))]), "NO_PROXY=127.0.0.1 no_proxy=127.0.0.1");
        let told_of = |direct| told(&[proxy, ("no_proxy", direct)], &[]);
        assert_eq!(told_of("intern"), "NO_PROXY=intern,127.0.0.1 no_proxy=intern,127.0.0.1");
        assert_eq!(told_of("a, 127.0.0.1"), "NO_PROXY=a, 127.0.0.1 no_proxy=a, 127.0.0.1");
        assert_eq!(told_of("*"), "NO_PROXY=* no_proxy=*");
        let both = told(&[proxy, ("no_proxy", "a")], &[("NO_PROXY", Some("b"))]);
        assert_eq!(both, "NO_PROXY=b,127.0.0.1 no_proxy=a,127.0.0.1");
    }
}
