//! Agents that push to a server that accepts it.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;

use signoff_core::sandbox::SandboxBackend;
use signoff_testkit::TestProject;

use crate::sandbox::{attempts, project, ways, work};

/// Starts a git server on this machine that accepts every push; returns its port.
#[expect(clippy::disallowed_methods, reason = "git's own server, one process for each connection")]
fn serve(project: &TestProject) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let base = project.env.root().to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let output: TcpStream = stream.try_clone().unwrap();
            Command::new("git")
                .arg("daemon")
                .args(["--inetd", "--export-all", "--enable=receive-pack"])
                .arg(format!("--base-path={}", base.display()))
                .stdin(Stdio::from(OwnedFd::from(stream)))
                .stdout(Stdio::from(OwnedFd::from(output)))
                .stderr(Stdio::null())
                .status()
                .unwrap();
        }
    });
    port
}

fn branches(project: &TestProject) -> String {
    project.env.shell("git --git-dir=../remote.git for-each-ref --format='%(refname:short)'").stdout
}

fn pushes(port: u16) -> String {
    format!(
        "url=git://127.0.0.1:{port}/remote.git\n\
         try() {{ \"$@\" 2> /dev/null && echo \"could: $*\" >> f.txt; }}\n\
         echo good > f.txt\n\
         try git push -q $url HEAD:refs/heads/by-url\n\
         try git -c core.hooksPath=/dev/null -c push.default=current push -q --no-verify $url HEAD:refs/heads/by-flag\n\
         try git push -q origin HEAD:refs/heads/by-remote\n\
         try git push -q other HEAD:refs/heads/by-pushurl\n\
         try git push -q https://example.invalid/remote.git HEAD:refs/heads/by-rewrite\n\
         git fetch -q $url main && echo fetched >> f.txt\n\
         cat f.txt\n"
    )
}

#[test]
fn every_push_of_an_agent_is_refused_and_noted() {
    for way in [SandboxBackend::None].into_iter().chain(ways()) {
        let sandbox = if way == SandboxBackend::None { "sandbox = false" } else { "sandbox = true" };
        let project = project(sandbox, &[("review", "echo '**Verdict: APPROVED**'\n")]);
        let port = serve(&project);
        project.env.write("write.sh", format!("cat > /dev/null\n{}", pushes(port)));
        let server = format!("git://127.0.0.1:{port}");
        project.git("remote add other ../remote.git");
        project.git(&format!("config remote.other.pushurl {server}/./remote.git"));
        project.git(&format!("config --global url.{server}/.pushInsteadOf https://example.invalid/"));
        // The person can still push.
        project.git(&format!("push -q git://127.0.0.1:{port}/remote.git HEAD:refs/heads/mine"));
        project.git("push -q https://example.invalid/remote.git HEAD:refs/heads/mine-too");
        project.run(&["add", "T"]);
        work(&project, way);
        assert_eq!(branches(&project), "main\nmine\nmine-too\n", "{way:?}");
        let branch = "$(git for-each-ref --format='%(refname)' refs/heads | grep -v main | head -1)";
        assert_eq!(project.git(&format!("grep -h '' {branch} -- f.txt")), "good\nfetched\n", "{way:?}");
        let notes = attempts(&project, "notes");
        assert!(
            notes.contains(&format!("implement tried to push to git://127.0.0.1:{port}/remote.git")),
            "{way:?}: {notes}"
        );
    }
}
