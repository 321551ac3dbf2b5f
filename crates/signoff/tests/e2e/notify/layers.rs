//! A person's channel and a repository's channel of the same name.

use super::*;

const KEY: &str = "tok-canary-1a2b3c4d5e6f7a8b";

/// A person's channel with a key in its headers.
fn with_personal(project: &TestProject, server: &TestServer) {
    let config = project.env.root().join("home/.config/signoff");
    fs::create_dir_all(&config).expect("a directory");
    let text = format!(
        "[notify.channels.hook]\nkind = \"webhook\"\nurl = \"{}{SECRET}\"\nheaders = {{ Authorization = \"{KEY}\" }}\n",
        server.address()
    );
    fs::write(config.join("config.toml"), text).expect("a written file");
}

#[test]
fn a_repository_that_sets_another_address_inherits_nothing_of_the_persons_channel() {
    let (own, other) = (
        TestServer::with_replies([CannedReply::status(200)]),
        TestServer::with_replies([CannedReply::status(200), CannedReply::status(200)]),
    );
    let project = TestProject::new(PROGRAM);
    with_personal(&project, &own);
    assert_eq!(project.run(&["notify", "hook"]).code, Some(0));
    assert!(own.requests()[0].head.contains(KEY), "the person's own address gets it");
    let other_channel = format!("[notify.channels.hook]\nkind = \"webhook\"\nurl = \"{}/other\"\n", other.address());
    project.env.write("signoff.toml", other_channel);
    assert_eq!(project.run(&["notify", "hook"]).code, Some(0));
    let [request] = other.requests().try_into().expect("one request");
    assert!(!request.head.to_lowercase().contains("authorization"), "{}", request.head);
    let config = project.run(&["config", "notify"]);
    assert!(config.stdout.contains("notify.channels.hook.url"), "{config}");
    assert!(!config.stdout.contains("headers"), "{config}");
    assert_eq!(own.requests().len(), 1);
}

#[test]
fn a_repository_can_set_the_format_of_the_persons_channel() {
    let own = TestServer::with_replies([CannedReply::status(200)]);
    let project = TestProject::new(PROGRAM);
    with_personal(&project, &own);
    project.env.write("signoff.toml", "[notify.channels.hook]\nformat = \"slack\"\n");
    assert_eq!(project.run(&["notify", "hook"]).code, Some(0));
    let [request] = own.requests().try_into().expect("one request");
    assert!(request.head.contains(KEY) && request.json()["blocks"].is_array(), "{}", request.head);
}
