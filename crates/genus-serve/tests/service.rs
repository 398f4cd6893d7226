//! The service as a process of its own, asked over real connections, and killed in the middle of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use genus::{Features, Silent, Table};
use genus_collection::{AddOptions, Collection, Role, Tokens};
use genus_serve::{Options, Stop, serve};
use serde_json::{Value, json};

const FOLDER: &str = "GENUS_TEST_SERVES";
const DIM: usize = 16;

/// What the other tests start in a process of its own: not a test by itself.
#[test]
fn service() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut options = Options::new(PathBuf::from(folder), "127.0.0.1:0".parse().unwrap());
    options.author = "tester".to_owned();
    options.limits.streams = 1100;
    options.limits.patience = Duration::from_secs(1);
    options.limits.image = 1 << 20;
    options.hosts = vec!["birds.example.org".to_owned()];
    let stop = Stop::default();
    let stopping = stop.clone();
    // The end of standard input ends the service.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopping.stop();
    });
    serve(&options, &stop, |address| {
        println!("\nat {address}");
        std::io::stdout().flush().unwrap();
    })
    .unwrap();
}

struct Service {
    child: Child,
    address: SocketAddr,
}

impl Service {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["service", "--exact", "--nocapture"])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.ok()?.strip_prefix("at ")?.parse().ok());
        // Whoever writes to a pipe that nobody reads is stopped.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address: address.expect("the service says where it is"),
        }
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        Connection::new(self.address).send(method, path, headers, body).unwrap()
    }

    fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    fn act(&self, action: Value) -> Answer {
        self.send("POST", "/v1/actions", JSON, action.to_string().as_bytes())
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    #[track_caller]
    fn is(self, status: u16) -> Self {
        assert_eq!(
            self.status,
            status,
            "{} {}",
            self.head,
            String::from_utf8_lossy(&self.body)
        );
        if status >= 400 {
            assert!(self.head.contains("application/problem+json"), "{}", self.head);
            assert_eq!(self.json()["status"], status);
        }
        self
    }
}

/// A connection that is used again and again.
struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self {
            stream: BufReader::new(stream),
            host: address.to_string(),
        }
    }

    fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> std::io::Result<Answer> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += &format!("host: {}\r\n", self.host);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", body.len());
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.stream.get_mut().write_all(&bytes)?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut body)?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok(Answer { status, head, body })
    }
}

fn row(kind: usize, at: usize) -> Vec<f32> {
    let mut row = vec![0.0; DIM];
    row[kind] = 1.0;
    // Nothing in these numbers repeats, so that a kind is one group.
    for (column, value) in row.iter_mut().enumerate().skip(4) {
        let mixed = (at * 31 + column * 17 + 7) * 2_654_435_761 % 1009;
        *value = 0.2 * mixed as f32 / 1009.0;
    }
    row
}

/// Three kinds of forty things.
fn collection() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("things");
    let things = Table {
        ids: (0..120).map(|at| format!("thing {at}")).collect(),
        labels: vec![None; 120],
        features: Features::from_rows((0..120).map(|at| row(at % 3, at))).unwrap(),
    };
    let mut collection = Collection::create(&path, "tester").unwrap();
    collection.add(things, &AddOptions::default(), &Silent).unwrap();
    (folder, path)
}

fn item(name: &str, kind: usize, at: usize) -> String {
    json!({ "name": name, "features": row(kind, at) }).to_string()
}

#[test]
fn everything_can_be_asked_and_said() {
    let (_folder, path) = collection();
    let service = Service::start(&path);
    for (path, text) in [
        ("/healthz", "ok"),
        ("/readyz", "ready"),
        ("/", "<!doctype html>"),
        ("/page/main.js", "// "),
        ("/page/base.css", "/* "),
    ] {
        let answer = service.get(path).is(200);
        assert!(
            String::from_utf8_lossy(&answer.body).to_lowercase().starts_with(text),
            "{answer:?}"
        );
    }
    assert_eq!(
        service.get("/openapi.json").is(200).body,
        genus_serve::openapi().as_bytes()
    );
    let status = service.get("/v1/status").is(200).json();
    assert_eq!((&status["items"], &status["name"]), (&json!(120), &json!("things")));
    let groups = service.get("/v1/groups").is(200).json();
    let groups = groups["groups"].as_array().unwrap().clone();
    assert_eq!(groups.len(), 3, "{groups:?}");
    let id = groups[0]["id"].as_i64().unwrap();
    let one = service.get(&format!("/v1/groups/{id}")).is(200).json();
    assert_eq!(one["items"], groups[0]["items"]);
    assert!(!one["typical"].as_array().unwrap().is_empty());
    service.get("/v1/groups/999").is(404);
    service.get("/v1/groups/x").is(404);
    service.get("/nothing").is(404);
    service.send("PUT", "/v1/items", &[], b"").is(405);

    // All items in pages, in every order, each once.
    for sort in ["number", "surest", "least-sure"] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = service
                .get(&format!("/v1/items?limit=50&sort={sort}{after}"))
                .is(200)
                .json();
            assert_eq!(page["total"], 120);
            seen.extend(
                page["items"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|item| item["id"].as_i64().unwrap()),
            );
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (1..=120).collect::<Vec<i64>>(), "{sort}");
    }
    let of_group = service
        .get(&format!("/v1/items?group={id}&kind=group&at_least=0.0"))
        .is(200)
        .json();
    assert_eq!(of_group["total"], groups[0]["items"]);
    assert_eq!(service.get("/v1/items?kind=noise").is(200).json()["total"], 0);
    assert_eq!(service.get("/v1/items?name=THING%2011").is(200).json()["total"], 11);
    service.get("/v1/items?kind=nonsense").is(400);
    service.get("/v1/items?limit=0").is(400);
    service.get("/v1/items?after=x").is(400);
    service.get("/v1/items?colour=red").is(400);
    assert_eq!(service.get("/v1/items/7").is(200).json()["name"], "thing 6");
    service.get("/v1/items/7/thumbnail").is(404);
    service.get("/v1/items/7/thumbnail?side=100000").is(400);
    let unsure = service.get("/v1/unsure?limit=5").is(200).json();
    assert!(
        unsure["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item["candidates"].is_array())
    );

    // The same in columns, and what speaks for each place.
    let sheet = service.get("/v1/sheet?sort=least-sure").is(200).json();
    let page = service.get("/v1/items?sort=least-sure&limit=1000").is(200).json();
    for (at, item) in page["items"].as_array().unwrap().iter().enumerate() {
        assert_eq!(
            (&sheet["ids"][at], &sheet["names"][at], &sheet["groups"][at]),
            (&item["id"], &item["name"], &item["group"])
        );
        let share = item["probability"].as_f64().map(|share| (share * 1000.0).round());
        assert_eq!(sheet["probabilities"][at].as_f64(), share);
    }
    assert_eq!(sheet["states"].as_str().unwrap().replace('w', "s"), "s".repeat(120));
    assert_eq!(sheet["pictures"], "0".repeat(120));
    let own = service.get(&format!("/v1/sheet?group={id}")).is(200).json();
    assert_eq!(
        own["ids"].as_array().unwrap().len() as u64,
        groups[0]["items"].as_u64().unwrap()
    );
    service.get("/v1/sheet?limit=5").is(400);
    service.get("/v1/sheet?group=999").is(404);
    let why = service.get("/v1/items/7").json();
    assert_eq!(
        (&why["candidates"][0]["group"], &why["name"]),
        (&why["group"], &json!("thing 6"))
    );
    assert_eq!(why["candidates"].as_array().unwrap().len(), 3);
    let in_doubt = service
        .get(&format!("/v1/items?group={id}&confirmed=false&limit=1000"))
        .json();
    let in_doubt = in_doubt["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["probability"].as_f64());
    let in_doubt = in_doubt.filter(|share| share.is_some_and(|share| share < 0.9)).count();
    assert_eq!(groups[0]["doubtful"], in_doubt);
    assert!(groups[0]["colour"].as_str().unwrap().starts_with('#'));
    assert_eq!(status["pictures"], false);
    let map = service.get("/v1/map").is(200).json();
    assert_eq!(
        map["ids"].as_array().unwrap().len() * 2,
        map["xy"].as_array().unwrap().len()
    );
    let metrics = service.get("/metrics").is(200);
    assert!(String::from_utf8_lossy(&metrics.body).contains("genus_requests_total"));

    // What a person says, and takes back.
    let done = service
        .act(json!({ "do": "name", "group": id, "name": "Gull" }))
        .is(200)
        .json();
    assert_eq!(done["entry"]["event"], "named");
    let other = groups[1]["id"].as_i64().unwrap();
    service
        .act(json!({ "do": "name", "group": other, "name": "Gull" }))
        .is(409);
    service
        .act(json!({ "do": "name", "group": other, "name": "Tern" }))
        .is(200);
    service.act(json!({ "do": "merge", "groups": [id, other] })).is(409);
    let split = service
        .act(json!({ "do": "split", "group": id, "count": 2, "dry_run": true }))
        .is(200)
        .json();
    assert_eq!(split["parts"].as_array().unwrap().len(), 2);
    service
        .act(json!({ "do": "split", "group": id, "parts": split["parts"] }))
        .is(200);
    service.act(json!({ "do": "undo" })).is(200);
    service
        .act(json!({ "do": "merge", "groups": [id, other], "into": id }))
        .is(200);
    assert_eq!(service.get("/v1/groups").json()["groups"].as_array().unwrap().len(), 2);
    service.act(json!({ "do": "undo" })).is(200);
    service.act(json!({ "do": "redo" })).is(200);
    service.act(json!({ "do": "undo" })).is(200);
    let filter = json!({ "group": id, "kind": "known" });
    service.act(json!({ "do": "confirm", "filter": filter })).is(200);
    let confirmed = service.get(&format!("/v1/items?group={id}&confirmed=true")).json();
    assert_eq!(confirmed["total"], groups[0]["items"]);
    service.act(json!({ "do": "noise", "items": [1] })).is(200);
    service.act(json!({ "do": "reject", "items": [2] })).is(200);
    // Where it was said not to belong it is no longer thought to, and what was said so is in no doubt.
    let [before, after] =
        [&why, &service.get("/v1/items/2").json()].map(|item| item["candidates"].as_array().unwrap().len());
    assert_eq!(before - 1, after);
    assert_eq!(service.get(&format!("/v1/groups/{id}")).json()["doubtful"], 0);
    assert_eq!(&service.get("/v1/sheet").json()["states"].as_str().unwrap()[..2], "nw");
    service
        .act(json!({ "do": "move", "items": [1, 2], "name": "Odd" }))
        .is(200);
    service.act(json!({ "do": "move", "items": [1], "to": other })).is(200);
    service
        .act(json!({ "do": "move", "items": [9999], "to": other }))
        .is(404);
    service.act(json!({ "do": "refresh", "level": "finer" })).is(200);
    service.act(json!({ "do": "dance" })).is(400);
    service.act(json!({ "do": "name", "group": id })).is(400);
    service
        .act(json!({ "do": "noise", "items": [1], "filter": {} }))
        .is(400);
    let log = service.get("/v1/log?limit=2").is(200).json();
    assert_eq!(log["entries"].as_array().unwrap().len(), 2);
    service.end();
    assert!(Collection::open(&path).unwrap().check().unwrap().is_sound());
}

#[test]
fn items_are_decided_and_answered_once() {
    let (_folder, path) = collection();
    let service = Service::start(&path);
    let group = service.get("/v1/items/1").json()["group"].as_i64().unwrap();
    service
        .act(json!({ "do": "name", "group": group, "name": "Gull" }))
        .is(200);
    let answer = service
        .send("POST", "/v1/items", JSON, item("new", 0, 7).as_bytes())
        .is(200)
        .json();
    assert_eq!(
        (&answer["kind"], &answer["group_name"], &answer["new"]),
        (&json!("known"), &json!("Gull"), &json!(true)),
        "{answer}"
    );
    assert!(answer["probability"].as_f64().unwrap() > 0.5);
    assert_ne!(answer["runner_up"]["group"], answer["group"]);
    let again = service
        .send("POST", "/v1/items", JSON, item("new", 0, 7).as_bytes())
        .is(200)
        .json();
    assert_eq!((&again["id"], &again["new"]), (&answer["id"], &json!(false)));

    // What came by itself is not what the next undo takes back.
    service.act(json!({ "do": "undo" })).is(200);
    assert_eq!(service.get("/v1/items?name=new").json()["total"], 1);
    assert_eq!(service.get("/v1/items?kind=known").json()["total"], 0);

    let lines = format!(
        "{}\n\n{}\n{}\n",
        item("a", 1, 3),
        json!({ "name": "b", "features": [1.0] }),
        item("c", 2, 4)
    );
    let kind: &[(&str, &str)] = &[("content-type", "application/x-ndjson")];
    let answer = service.send("POST", "/v1/items", kind, lines.as_bytes()).is(200);
    let lines: Vec<Value> = answer
        .body
        .split(|&b| b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    assert_eq!((&lines[0]["name"], &lines[2]["name"]), (&json!("a"), &json!("c")));
    assert!(lines[1]["error"].as_str().unwrap().contains("1 features"), "{lines:?}");

    for (body, status) in [
        ("{}", 400),
        ("", 400),
        ("{\"features\":[0,0]}", 422),
        ("{\"features\":[1e39]}", 400),
    ] {
        service.send("POST", "/v1/items", JSON, body.as_bytes()).is(status);
    }
    let zero = json!({ "features": vec![0.0; DIM] }).to_string();
    service.send("POST", "/v1/items", JSON, zero.as_bytes()).is(422);
    service
        .send("POST", "/v1/items", &[("content-type", "text/plain")], b"x")
        .is(415);
    service
        .send(
            "POST",
            "/v1/items",
            &[("content-type", "application/vnd.apache.arrow.stream")],
            b"x",
        )
        .is(400);

    // The same key is the same request, also after the service was killed.
    let key: &[(&str, &str)] = &[("content-type", "application/json"), ("idempotency-key", "k1")];
    let name = json!({ "do": "name", "group": group, "name": "Skua" }).to_string();
    let first = service.send("POST", "/v1/actions", key, name.as_bytes()).is(200);
    service.kill();
    let service = Service::start(&path);
    let second = service.send("POST", "/v1/actions", key, name.as_bytes()).is(200);
    assert_eq!(first.body, second.body);
    service.send("POST", "/v1/actions", key, b"{\"do\":\"undo\"}").is(422);

    // Two people do not overwrite each other.
    let log = service.get("/v1/status").json()["log"].as_i64().unwrap();
    let at = |log: i64| format!("\"{log}\"");
    let action = json!({ "do": "name", "group": group, "name": "Auk" }).to_string();
    let stale = service
        .send("POST", "/v1/actions", &[("if-match", &at(log - 1))], action.as_bytes())
        .is(412);
    assert_eq!(stale.json()["log"], log);
    service
        .send("POST", "/v1/actions", &[("if-match", &at(log))], action.as_bytes())
        .is(200);
    service
        .send("POST", "/v1/actions", &[("if-match", "x")], action.as_bytes())
        .is(400);
}

#[test]
fn a_collection_begins_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    drop(Collection::create(&path, "tester").unwrap());
    let service = Service::start(&path);
    for path in [
        "/v1/status",
        "/v1/groups",
        "/v1/items",
        "/v1/map",
        "/v1/log",
        "/v1/unsure",
    ] {
        service.get(path).is(200);
    }
    service.act(json!({ "do": "refresh" })).is(409);
    service.act(json!({ "do": "undo" })).is(409);
    for at in 0..120 {
        let answer = service
            .send(
                "POST",
                "/v1/items",
                JSON,
                item(&format!("i{at}"), at % 3, at).as_bytes(),
            )
            .is(200);
        assert_eq!(answer.json()["kind"], "waiting");
    }
    service.act(json!({ "do": "refresh" })).is(200);
    assert_eq!(service.get("/v1/groups").json()["groups"].as_array().unwrap().len(), 3);
    assert_eq!(
        service
            .send("POST", "/v1/items", JSON, item("late", 0, 5).as_bytes())
            .is(200)
            .json()["kind"],
        "group"
    );
    service.end();
    assert!(Collection::open(&path).unwrap().check().unwrap().is_sound());
}

#[test]
fn nothing_that_was_acknowledged_is_lost() {
    let kills: usize = std::env::var("GENUS_SERVE_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3);
    let (_folder, path) = collection();
    let acknowledged: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut named = None;
    for round in 0..kills {
        let service = Service::start(&path);
        if let Some(name) = named {
            let groups = service.get("/v1/groups").json();
            let names: Vec<&Value> = groups["groups"]
                .as_array()
                .unwrap()
                .iter()
                .map(|group| &group["name"])
                .collect();
            assert!(names.contains(&&Value::String(name)), "{groups}");
        }
        let over = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..6)
            .map(|client| {
                let (acknowledged, over, address) = (acknowledged.clone(), over.clone(), service.address);
                std::thread::spawn(move || {
                    let mut connection = Connection::new(address);
                    for at in 0.. {
                        let name = format!("{round}-{client}-{at}");
                        let body = item(&name, at % 4, at);
                        match connection.send("POST", "/v1/items", JSON, body.as_bytes()) {
                            Ok(answer) => {
                                answer.is(200);
                                acknowledged.lock().unwrap().push(name);
                            }
                            Err(_) => break,
                        }
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(150 + 37 * (round as u64 % 7)));
        let group = service.get("/v1/items/1").json()["group"].as_i64().unwrap();
        let name = format!("Gull {round}");
        service
            .act(json!({ "do": "name", "group": group, "name": name }))
            .is(200);
        named = Some(name);
        service.kill();
        over.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
    }
    let collection = Collection::open(&path).unwrap();
    let acknowledged = acknowledged.lock().unwrap();
    assert!(acknowledged.len() > kills, "{}", acknowledged.len());
    for name in &*acknowledged {
        collection.find_item(name).unwrap();
    }
    assert!(collection.check().unwrap().is_sound());
}

#[test]
fn who_may() {
    let (_folder, path) = collection();
    let tokens = Tokens::open(&path).unwrap();
    let [read, label, admin] =
        [Role::Read, Role::Label, Role::Admin].map(|role| tokens.create(&role.to_string(), role).unwrap());
    assert!(
        tokens
            .list()
            .unwrap()
            .iter()
            .all(|token| !format!("{token:?}").contains(&read))
    );
    let service = Service::start(&path);
    let with = |secret: &str| format!("Bearer {secret}");
    let name = json!({ "do": "name", "group": 1, "name": "Gull" }).to_string();
    let refresh = json!({ "do": "refresh" }).to_string();
    service.get("/v1/groups").is(401);
    service.get("/healthz").is(200);
    service
        .send("GET", "/v1/groups", &[("authorization", "Bearer genus_00")], b"")
        .is(401);
    service
        .send("GET", "/v1/groups", &[("authorization", &with(&read))], b"")
        .is(200);
    service
        .send(
            "POST",
            "/v1/actions",
            &[("authorization", &with(&read))],
            name.as_bytes(),
        )
        .is(403);
    service
        .send(
            "POST",
            "/v1/actions",
            &[("authorization", &with(&label))],
            refresh.as_bytes(),
        )
        .is(403);
    service
        .send(
            "POST",
            "/v1/actions",
            &[("authorization", &with(&admin))],
            refresh.as_bytes(),
        )
        .is(200);

    let sign_in = json!({ "token": label }).to_string();
    let answer = service.send("POST", "/v1/session", JSON, sign_in.as_bytes()).is(204);
    let cookie = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap()
        .to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    service.send("GET", "/v1/groups", &[("cookie", cookie)], b"").is(200);
    service
        .send("POST", "/v1/session", JSON, b"{\"token\":\"genus_x; Path=/\"}")
        .is(401);

    assert_eq!(tokens.revoke("label").unwrap(), 1);
    std::thread::sleep(Duration::from_millis(1200));
    service.send("GET", "/v1/groups", &[("cookie", cookie)], b"").is(401);
    service
        .send("GET", "/v1/groups", &[("authorization", &with(&label))], b"")
        .is(401);
    // Whoever tries again and again waits.
    let mut statuses = (0..40).map(|_| {
        service
            .send("GET", "/v1/groups", &[("authorization", "Bearer genus_00")], b"")
            .status
    });
    assert!(statuses.any(|status| status == 429));
}

#[test]
fn beyond_this_machine_a_token_is_needed() {
    let (_folder, path) = collection();
    let options = Options::new(&path, "0.0.0.0:0".parse().unwrap());
    let error = serve(&options, &Stop::default(), |_| panic!("it started")).unwrap_err();
    assert!(error.to_string().contains("no token"), "{error}");
}

#[test]
fn forged_hosts_and_origins_are_refused() {
    let (_folder, path) = collection();
    let service = Service::start(&path);
    let own = service.address.to_string();
    let undo = b"{\"do\":\"undo\"}";
    service
        .send("GET", "/v1/groups", &[("host", "evil.example")], b"")
        .is(421);
    service
        .send("GET", "/v1/groups", &[("host", "evil.example:7878")], b"")
        .is(421);
    service
        .send("GET", "/v1/groups", &[("host", "birds.example.org")], b"")
        .is(200);
    service
        .send("GET", "/v1/groups", &[("host", "localhost:1")], b"")
        .is(200);
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://evil.example",
    ] {
        service.send("POST", "/v1/actions", &[("origin", origin)], undo).is(403);
    }
    service
        .send("POST", "/v1/actions", &[("sec-fetch-site", "cross-site")], undo)
        .is(403);
    let origin = format!("http://{own}");
    service
        .send("POST", "/v1/actions", &[("origin", &origin)], undo)
        .is(200);
}

#[test]
fn slow_and_half_open_clients_hold_nobody_up() {
    let (_folder, path) = collection();
    let service = Service::start(&path);
    let mut slow: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(service.address).unwrap()).collect();
    for (at, stream) in slow.iter_mut().enumerate() {
        // A head that never ends, a body that never comes, or nothing.
        let text: &[u8] = match at % 3 {
            0 => b"GET /v1/groups HTTP/1.1\r\nhost: loc",
            1 => b"POST /v1/actions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
            _ => b"",
        };
        stream.write_all(text).unwrap();
    }
    let start = Instant::now();
    for _ in 0..20 {
        service.get("/v1/groups").is(200);
    }
    assert!(start.elapsed() < Duration::from_secs(20));
    // Heads are waited for a second here.
    slow[0].set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut rest = Vec::new();
    slow[0].read_to_end(&mut rest).unwrap();
}

#[test]
fn hostile_images_and_names_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("birds");
    drop(Collection::create(&path, "tester").unwrap());
    let service = Service::start(&path);
    let long = "x".repeat(2000);
    service
        .send("POST", "/v1/items", JSON, item(&long, 0, 0).as_bytes())
        .is(400);
    for name in [
        "../../etc/passwd",
        "/etc/passwd",
        "a\0b",
        "<script>alert(1)</script>",
        "\u{202e}gpj.exe",
    ] {
        let answer = service
            .send("POST", "/v1/items", JSON, item(name, 0, 1).as_bytes())
            .is(200);
        assert!(!answer.json()["name"].as_str().unwrap().contains('\0'));
    }
    let files: Vec<String> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        files
            .iter()
            .all(|file| file.starts_with("collection.db") || file == ".genus.lock"),
        "{files:?}"
    );
    service.send("POST", "/v1/items", JSON, &vec![b'['; 1 << 20]).is(400);
}

#[test]
fn events_are_told_and_resumed() {
    let (_folder, path) = collection();
    let service = Service::start(&path);
    let open = |last: Option<i64>| {
        let mut stream = TcpStream::connect(service.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let resumed = last.map_or(String::new(), |last| format!("last-event-id: {last}\r\n"));
        stream
            .write_all(format!("GET /v1/events HTTP/1.1\r\nhost: localhost\r\n{resumed}\r\n").as_bytes())
            .unwrap();
        BufReader::new(stream)
    };
    let until = |stream: &mut BufReader<TcpStream>, wanted: &str| {
        let mut line = String::new();
        while !line.starts_with(wanted) {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "{wanted}");
        }
        line
    };
    let many: usize = std::env::var("GENUS_SERVE_STREAMS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100);
    let mut streams: Vec<_> = (0..many).map(|_| open(None)).collect();
    streams.iter_mut().for_each(|stream| drop(until(stream, ": here")));
    let entry = service
        .act(json!({ "do": "name", "group": 1, "name": "Gull" }))
        .is(200)
        .json();
    let no = entry["entry"]["no"].as_i64().unwrap();
    for stream in &mut streams {
        assert_eq!(until(stream, "id: ").trim(), format!("id: {no}"));
        assert_eq!(until(stream, "event: ").trim(), "event: named");
    }
    drop(streams);
    service.act(json!({ "do": "undo" })).is(200);
    let mut resumed = open(Some(no));
    assert_eq!(until(&mut resumed, "id: ").trim(), format!("id: {}", no + 1));
    assert_eq!(until(&mut resumed, "event: ").trim(), "event: undone");
    // From the beginning, out of the database.
    let mut all = open(Some(0));
    assert_eq!(until(&mut all, "id: ").trim(), "id: 1");
}

/// The interface changes on purpose only: `GENUS_BLESS=1 cargo test -p genus-serve` writes it anew.
#[test]
fn the_interface_is_the_one_that_is_checked_in() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let text = genus_serve::openapi();
    if std::env::var_os("GENUS_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap_or_default(), text);
}
