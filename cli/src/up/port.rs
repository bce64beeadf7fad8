//! Where the processes listen.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use anyhow::Context as _;

use super::backoff::chance;

/// Where the MCP server's settings say that it listens; a free port if they don't.
pub(super) fn of_tools(written: &[(String, String, String)]) -> SocketAddr {
    let listen = written.iter().find(|(path, ..)| path == "mcp.listen");
    let listen = listen.and_then(|(_, value, _)| value.trim_matches('"').parse().ok());
    listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

/// Where something on this machine reaches what listens at `address`.
pub(super) fn reached(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, v6.port()).into(),
        address => address,
    }
}

/// `wanted`, which is what the setting `name` says, with a free port if its own is 0.
///
/// Not a port that the system hands out by itself: between two lives of a process
/// somebody's outgoing connection could get it.
pub(super) fn free(name: &str, wanted: SocketAddr) -> anyhow::Result<SocketAddr> {
    let is_free = |address: SocketAddr| TcpListener::bind(address).map(drop);
    if wanted.port() != 0 {
        is_free(wanted).with_context(|| {
            format!("`{name}` is {wanted}, which can't be used: end what has it, or set another")
        })?;
        return Ok(wanted);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "20000 to 31999")]
    let candidates = std::iter::repeat_with(|| 20_000 + (chance() * 12_000.0) as u16)
        .map(|port| SocketAddr::new(wanted.ip(), port));
    let found = candidates.take(200).find(|address| is_free(*address).is_ok());
    found.with_context(|| format!("`{name}`: there is no free port at {}", wanted.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_is_found_and_a_taken_one_is_told() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let found = free("engine.listen", any).unwrap();
        assert!((20_000..32_000).contains(&found.port()));
        let holder = TcpListener::bind(any).unwrap();
        let error = free("engine.listen", holder.local_addr().unwrap()).unwrap_err();
        assert!(error.to_string().contains("`engine.listen` is 127.0.0.1:"), "{error}");
    }

    #[test]
    fn the_tools_listen_where_their_settings_say() {
        let written =
            |value: &str| vec![("mcp.listen".to_owned(), value.to_owned(), String::new())];
        #[rustfmt::skip]
        let cases = [
            (written("127.0.0.1:7411"),      "127.0.0.1:7411"),
            (written("\"127.0.0.1:7411\""),  "127.0.0.1:7411"),
            (written("${WHEREVER}"),         "127.0.0.1:0"),
            (Vec::new(),                     "127.0.0.1:0"),
        ];
        for (written, address) in cases {
            assert_eq!(of_tools(&written).to_string(), address);
        }
    }
}
