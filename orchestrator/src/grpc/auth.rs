//! Who may come in: one interceptor, a bearer token for each role.

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// What a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person who runs this, at a terminal.
    Operator,
    /// A chat frontend.
    Frontend,
    /// The MCP server.
    Tools,
}

/// The tokens by which clients are known.
#[derive(Clone)]
pub struct Keys {
    /// [`Role::Operator`]
    pub operator: SecretString,
    /// [`Role::Frontend`]
    pub frontend: SecretString,
    /// [`Role::Tools`]
    pub tools: SecretString,
}

impl Keys {
    /// Every key is compared, whichever fits, and each in constant time.
    fn role(&self, token: &str) -> Option<Role> {
        let keys = [
            (&self.operator, Role::Operator),
            (&self.frontend, Role::Frontend),
            (&self.tools, Role::Tools),
        ];
        let fits =
            |key: &SecretString| bool::from(key.expose_secret().as_bytes().ct_eq(token.as_bytes()));
        keys.iter().fold(None, |found, (key, role)| if fits(key) { Some(*role) } else { found })
    }
}

impl Interceptor for Keys {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let role = bearer(request.metadata()).and_then(|token| self.role(token));
        let role = role.ok_or_else(|| {
            Status::unauthenticated(
                "send `authorization: Bearer TOKEN` with a token from secure/data/keys",
            )
        })?;
        request.extensions_mut().insert(role);
        Ok(request)
    }
}

fn bearer(metadata: &MetadataMap) -> Option<&str> {
    let value = metadata.get("authorization")?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The client's role, if it's one of `allowed`.
pub(super) fn require<T>(request: &Request<T>, allowed: &[Role]) -> Result<Role, Status> {
    match request.extensions().get::<Role>() {
        Some(role) if allowed.contains(role) => Ok(*role),
        role => Err(Status::permission_denied(format!(
            "the token's role {role:?} may not do this: it takes one of {allowed:?}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let [operator, frontend, tools] = ["operator-key", "frontend-key", "tools-key"];
        Keys { operator: operator.into(), frontend: frontend.into(), tools: tools.into() }
    }

    fn let_in(value: Option<&str>) -> Result<Request<()>, Status> {
        let mut request = Request::new(());
        if let Some(value) = value {
            request.metadata_mut().insert("authorization", value.parse().unwrap());
        }
        keys().call(request)
    }

    #[test]
    fn only_known_tokens_come_in_each_with_its_role() {
        let cases = [
            (None, None),
            (Some("Bearer "), None),
            (Some("Bearer operator-ke"), None),
            (Some("Basic operator-key"), None),
            (Some("operator-key"), None),
            (Some("Bearer operator-key"), Some(Role::Operator)),
            (Some("bearer frontend-key"), Some(Role::Frontend)),
            (Some("Bearer tools-key"), Some(Role::Tools)),
        ];
        for (value, role) in cases {
            let got = let_in(value).ok().and_then(|it| it.extensions().get::<Role>().copied());
            assert_eq!(got, role, "{value:?}");
        }
    }

    #[test]
    fn a_role_may_do_only_what_it_is_for() {
        let request = let_in(Some("Bearer tools-key")).unwrap();
        assert!(require(&request, &[Role::Operator, Role::Tools]).is_ok());
        let refused = require(&request, &[Role::Operator]).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    }
}
