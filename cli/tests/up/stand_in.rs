//! What runs in place of the MCP server, the orchestrator and the engine.
//!
//! Files in the workspace tell it what to do: `fail-<name>` (an exit code and
//! last words), `not-ready` (why); `bench.rs` has one more. It leaves `started-<name>`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use openpact_proto::control::v1 as wire;
use openpact_proto::control::v1::control_server::{Control, ControlServer};
use tonic::{Request, Response, Status};

#[test]
#[ignore = "not a test: bench.rs starts it in place of other programs"]
fn program() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let (name, args) = (variable("STAND_IN_FOR"), variable("STAND_IN_ARGS"));
    let name = name.trim_start_matches("openpact-");
    let workspace = PathBuf::from(variable("STAND_IN_WORKSPACE"));
    if let Ok(fails) = fs::read_to_string(workspace.join(format!("fail-{name}"))) {
        let (code, words) = fails.split_once(' ').unwrap();
        eprintln!("{words}");
        std::process::exit(code.parse().unwrap());
    }
    if args.contains("--check-") {
        std::process::exit(0);
    }
    let args: Vec<_> = args.split(' ').collect();
    let after = |flag: &str| args[1 + args.iter().position(|arg| *arg == flag).unwrap()];
    let environment: String =
        std::env::vars().map(|(name, value)| format!("{name}={value}\n")).collect();
    fs::write(workspace.join(format!("started-{name}")), environment).unwrap();
    let write_address = |address: &str| {
        fs::write(workspace.join(format!("secure/run/{name}.addr")), format!("{address}\n"))
            .unwrap();
    };
    match name {
        "mcp" => {
            let address = after("--http");
            let listener = TcpListener::bind(address).unwrap();
            write_address(address);
            serve(&listener, "ok");
        }
        "opencode" => {
            let listener = TcpListener::bind(format!("127.0.0.1:{}", after("--port"))).unwrap();
            serve(&listener, &format!("{{\"healthy\":true,\"version\":\"{}\"}}", pinned()));
        }
        _ => orchestrate(workspace.clone(), write_address),
    }
}

fn pinned() -> &'static str {
    openpact_cli::engine::install::pin::version()
}

/// Gives everyone the same answer.
fn serve(listener: &TcpListener, answer: &str) {
    let reply = |mut stream: TcpStream| {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer)?;
        if read > 0 {
            let length = answer.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            stream.write_all(format!("{head}{answer}").as_bytes())?;
        }
        std::io::Result::Ok(())
    };
    for stream in listener.incoming() {
        if let Err(error) = reply(stream.unwrap()) {
            let _written = writeln!(std::io::stderr(), "{error}");
        }
    }
}

fn orchestrate(workspace: PathBuf, write_address: impl Fn(&str)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        write_address(&listener.local_addr().unwrap().to_string());
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        let server =
            tonic::transport::Server::builder().add_service(ControlServer::new(Fake { workspace }));
        server.serve_with_incoming(incoming).await.unwrap();
    });
}

struct Fake {
    workspace: PathBuf,
}

#[tonic::async_trait]
impl Control for Fake {
    async fn get_status(
        &self,
        request: Request<wire::GetStatusRequest>,
    ) -> Result<Response<wire::GetStatusResponse>, Status> {
        let token = fs::read_to_string(self.workspace.join("secure/data/keys/operator.token"))?;
        let shown = request.metadata().get("authorization").and_then(|shown| shown.to_str().ok());
        if shown != Some(&format!("Bearer {}", token.trim())) {
            return Err(Status::unauthenticated("show the operator's token"));
        }
        let reason = fs::read_to_string(self.workspace.join("not-ready")).unwrap_or_default();
        let version = "0.0.0".to_owned();
        Ok(Response::new(wire::GetStatusResponse {
            version,
            ready: reason.is_empty(),
            reason,
            ..wire::GetStatusResponse::default()
        }))
    }

    async fn list_sessions(
        &self,
        _: Request<wire::ListSessionsRequest>,
    ) -> Result<Response<wire::ListSessionsResponse>, Status> {
        Err(Status::unimplemented("not asked by these tests"))
    }

    async fn list_messages(
        &self,
        _: Request<wire::ListMessagesRequest>,
    ) -> Result<Response<wire::ListMessagesResponse>, Status> {
        Err(Status::unimplemented("not asked by these tests"))
    }

    async fn send_text(
        &self,
        _: Request<wire::SendTextRequest>,
    ) -> Result<Response<wire::SendTextResponse>, Status> {
        Err(Status::unimplemented("not asked by these tests"))
    }

    async fn stop_turn(
        &self,
        _: Request<wire::StopTurnRequest>,
    ) -> Result<Response<wire::StopTurnResponse>, Status> {
        Err(Status::unimplemented("not asked by these tests"))
    }

    async fn trace(
        &self,
        _: Request<wire::TraceRequest>,
    ) -> Result<Response<wire::TraceResponse>, Status> {
        Err(Status::unimplemented("not asked by these tests"))
    }

    async fn resolve_caller(
        &self,
        _: Request<wire::ResolveCallerRequest>,
    ) -> Result<Response<wire::ResolveCallerResponse>, Status> {
        Err(Status::unimplemented("not asked by these tests"))
    }
}
