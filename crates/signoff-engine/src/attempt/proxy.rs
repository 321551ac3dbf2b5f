//! Lets agents reach the report server without a proxy.

use crate::process::variables;

/// Variables that name a proxy, and variables that list hosts to reach without it.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const DIRECT: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The host of the report server.
const LOOPBACK: &str = "127.0.0.1";

/// Adds this machine to `NO_PROXY` if the agent uses a proxy.
pub fn bypass_proxies(environment: &mut Vec<(String, Option<String>)>) {
    let more = no_proxy_variables(&variables(), environment);
    environment.extend(more);
}

/// The `NO_PROXY` variables to add, given the inherited and the configured variables.
fn no_proxy_variables(
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
    let variable = |name: &str| (name.to_owned(), Some(with_this_machine(value(name).or(either))));
    DIRECT.map(variable).into()
}

fn with_this_machine(direct: Option<&str>) -> String {
    match direct {
        None => LOOPBACK.to_owned(),
        Some(all) if all.split(',').any(|one| matches!(one.trim(), "*" | LOOPBACK)) => all.to_owned(),
        Some(some) => format!("{some},{LOOPBACK}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added_variables(inherited: &[(&str, &str)], given: &[(&str, Option<&str>)]) -> String {
        let inherited: Vec<_> =
            inherited.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let given: Vec<_> = given.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect();
        let added = no_proxy_variables(&inherited, &given).into_iter();
        added.map(|(name, value)| format!("{name}={}", value.unwrap_or_default())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn without_a_proxy_nothing_is_added() {
        assert_eq!(added_variables(&[], &[]), "");
        assert_eq!(added_variables(&[("NO_PROXY", "intern")], &[("HTTP_PROXY", Some(""))]), "");
        assert_eq!(added_variables(&[("HTTP_PROXY", "http://proxy")], &[("HTTP_PROXY", None)]), "");
    }

    #[test]
    fn loopback_is_added_to_no_proxy() {
        let proxy = ("https_proxy", "http://proxy");
        assert_eq!(added_variables(&[proxy], &[]), "NO_PROXY=127.0.0.1 no_proxy=127.0.0.1");
        assert_eq!(added_variables(&[], &[("ALL_PROXY", Some("socks5://p"))]), "NO_PROXY=127.0.0.1 no_proxy=127.0.0.1");
        let with_no_proxy = |direct| added_variables(&[proxy, ("no_proxy", direct)], &[]);
        assert_eq!(with_no_proxy("intern"), "NO_PROXY=intern,127.0.0.1 no_proxy=intern,127.0.0.1");
        assert_eq!(with_no_proxy("a, 127.0.0.1"), "NO_PROXY=a, 127.0.0.1 no_proxy=a, 127.0.0.1");
        assert_eq!(with_no_proxy("*"), "NO_PROXY=* no_proxy=*");
        let both = added_variables(&[proxy, ("no_proxy", "a")], &[("NO_PROXY", Some("b"))]);
        assert_eq!(both, "NO_PROXY=b,127.0.0.1 no_proxy=a,127.0.0.1");
    }
}
