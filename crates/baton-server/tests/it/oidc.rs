//! Tokens of an identity provider at a whole server: what the card says, who is let in, and what the others are told.

use std::sync::Arc;

use baton_protocol::domain::security::{SecurityRequirement, SecurityScheme};
use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::auth::introspection::{ClientAuth, Introspection, IntrospectionOptions};
use baton_server::auth::jwt::{Grant, Jwt, JwtOptions, Provider};
use baton_server::auth::{BearerTokens, Chain, KeySet, Scopes};
use baton_server::{Clock, Server};
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::fixtures::TestClock;
use crate::harness::{Answer, TestServer, id, message, serve, with_agent};
use crate::issuer::{AUDIENCE, Answers, INTROSPECT, Issuer, KEYS, fetcher};
use crate::signers::Signer;

fn jwt(issuer: &Issuer, change: impl FnOnce(&mut JwtOptions)) -> Jwt {
    let mut options = JwtOptions::oidc(&issuer.url, AUDIENCE);
    change(&mut options);
    Jwt::new(options, fetcher()).unwrap().clock(TestClock::new() as Arc<dyn Clock>)
}

async fn card(server: &TestServer) -> Value {
    let url = format!("{}/.well-known/agent-card.json", server.url);
    let text = server.http.get(url).send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

async fn call(server: &TestServer, token: &str, method: &str, params: Value) -> Answer {
    server.call_with(method, params, &[("authorization", &format!("Bearer {token}"))]).await
}

fn token(issuer: &Issuer, signer: &Signer, sub: &str, scope: &str) -> String {
    let mut claims = issuer.claims();
    claims["sub"] = json!(sub);
    claims["scope"] = json!(scope);
    signer.token(&claims)
}

#[tokio::test]
async fn p05_openid_connect_is_declared_and_enforced() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let metadata = "https://agent.test/.well-known/oauth-protected-resource";
    let scheme = jwt(&issuer, |options| options.challenge.resource_metadata = Some(metadata.to_owned()));
    let server = serve(with_agent(obedient).auth(Chain::new().scheme("login", scheme))).await;

    let card = card(&server).await;
    let url = format!("{}/.well-known/openid-configuration", issuer.url);
    assert_eq!(
        card["securitySchemes"]["login"]["openIdConnectSecurityScheme"]["openIdConnectUrl"], url,
        "{card}"
    );

    let nobody = server.call("ListTasks", json!({})).await;
    assert_eq!((nobody.status, nobody.error_code()), (401, -32000));
    let challenge = format!("Bearer realm=\"baton\", resource_metadata=\"{metadata}\"");
    assert_eq!(nobody.header("www-authenticate"), Some(challenge.as_str()));

    let (ann, bob) = (token(&issuer, &signer, "ann", ""), token(&issuer, &signer, "bob", ""));
    let sent = call(&server, &ann, "SendMessage", message("complete")).await;
    let params = json!({"id": id(&sent.result()["task"])});
    assert_eq!(call(&server, &ann, "GetTask", params.clone()).await.result()["id"], params["id"]);
    assert_eq!(call(&server, &bob, "GetTask", params).await.error_code(), -32001);

    let mut claims = issuer.claims();
    claims["exp"] = json!(1);
    let refused = call(&server, &signer.token(&claims), "ListTasks", json!({})).await;
    assert_eq!((refused.status, refused.error_code()), (401, -32000));
    let challenge = format!(
        "Bearer realm=\"baton\", error=\"invalid_token\", error_description=\"expired\", \
         resource_metadata=\"{metadata}\""
    );
    assert_eq!(refused.header("www-authenticate"), Some(challenge.as_str()));
}

#[tokio::test]
async fn p05_scopes_of_a_token_are_compared_with_the_card() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let scheme = jwt(&issuer, |_| ());
    let mut card = AgentCard::new("test", "An agent for tests", "1.0.0");
    card.default_input_modes = vec!["*/*".to_owned()];
    card.security_schemes = vec![("login".to_owned(), baton_server::auth::Scheme::declared(&scheme))];
    card.security_requirements =
        vec![SecurityRequirement { schemes: vec![("login".to_owned(), vec!["tasks".to_owned()])] }];
    let builder = Server::builder(card).task_skill(AgentSkill::new("test", "test", "test"), obedient);
    let server = serve(builder.auth(Chain::new().scheme("login", scheme))).await;
    for (scope, status) in [("tasks", 200), ("other tasks", 200), ("", 403), ("tasks2", 403), ("Tasks", 403)]
    {
        let answer = call(&server, &token(&issuer, &signer, "ann", scope), "ListTasks", json!({})).await;
        assert_eq!(answer.status, status, "{scope:?}");
        let challenge = answer.header("www-authenticate").unwrap_or_default().to_owned();
        let missing = challenge.contains(r#"error="insufficient_scope", scope="tasks""#);
        assert_eq!(missing, status == 403, "{challenge}");
    }
}

#[tokio::test]
async fn s16_a_provider_that_is_down_is_not_the_callers_fault() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    issuer.answer(KEYS, Answers::Status(500));
    let server = serve(with_agent(obedient).auth(Chain::new().scheme("login", jwt(&issuer, |_| ())))).await;
    let answer = call(&server, &token(&issuer, &signer, "ann", ""), "ListTasks", json!({})).await;
    assert_eq!(answer.status, 503);
    assert!(answer.header("retry-after").is_some());
    let shown = answer.body.to_string();
    assert!(!shown.contains("127.0.0.1") && !shown.contains("500"), "{shown}");
    // What is no token at all is refused as ever.
    assert_eq!(call(&server, "rubbish", "ListTasks", json!({})).await.status, 401);
    assert_eq!(server.call("ListTasks", json!({})).await.status, 401);
}

#[tokio::test]
async fn p05_oauth2_flows_come_from_the_provider() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let fetcher = fetcher();
    let provider = Provider::discover(&fetcher, &issuer.url).await.unwrap();
    assert!(Provider::discover(&fetcher, &format!("{}/other", issuer.url)).await.is_err());
    let scopes = [("tasks".to_owned(), "Everything about tasks".to_owned())];
    let url = |path: &str| format!("{}{path}", issuer.url);
    for (grant, name, members) in [
        (Grant::ClientCredentials, "clientCredentials", json!({"tokenUrl": url("/token")})),
        (
            Grant::AuthorizationCode,
            "authorizationCode",
            json!({"tokenUrl": url("/token"), "authorizationUrl": url("/auth"), "pkceRequired": true}),
        ),
        (
            Grant::DeviceCode,
            "deviceCode",
            json!({"tokenUrl": url("/token"), "deviceAuthorizationUrl": url("/device")}),
        ),
    ] {
        let declared: SecurityScheme = provider.oauth2(&[grant], &scopes).unwrap();
        let scheme = jwt(&issuer, |options| options.declared = Some(declared));
        let server = serve(with_agent(obedient).auth(Chain::new().scheme("oauth", scheme))).await;
        let card = card(&server).await;
        let flow = &card["securitySchemes"]["oauth"]["oauth2SecurityScheme"]["flows"][name];
        for (member, value) in members.as_object().unwrap() {
            assert_eq!(&flow[member], value, "{name} {member}: {card}");
        }
        assert_eq!(flow["scopes"]["tasks"], "Everything about tasks");
        let good = token(&issuer, &signer, "ann", "tasks");
        assert_eq!(call(&server, &good, "ListTasks", json!({})).await.status, 200);
    }
}

#[tokio::test]
async fn p05_oauth2_by_introspection_lets_owners_in() {
    let issuer = Issuer::start(&[]).await;
    let provider = Provider::discover(&fetcher(), &issuer.url).await.unwrap();
    let client = ClientAuth::Basic { id: "baton".to_owned(), secret: "secret".into() };
    let mut options = IntrospectionOptions::new(provider.introspection_endpoint.clone().unwrap(), client);
    options.declared = Some(provider.oauth2(&[Grant::ClientCredentials], &[]).unwrap());
    options.claims.owner = "client_id".to_owned();
    let scheme = Introspection::new(options, fetcher()).unwrap();
    let server = serve(with_agent(obedient).auth(Chain::new().scheme("oauth", scheme))).await;
    let known = [("one", "robot-1"), ("two", "robot-2")]
        .map(|(token, client)| (token.to_owned(), json!({"active": true, "client_id": client})));
    issuer.answer(INTROSPECT, Answers::Tokens(known.into()));
    let sent = call(&server, "one", "SendMessage", message("complete")).await;
    let params = json!({"id": id(&sent.result()["task"])});
    assert_eq!(call(&server, "one", "GetTask", params.clone()).await.status, 200);
    assert_eq!(call(&server, "two", "GetTask", params.clone()).await.error_code(), -32001);
    assert_eq!(call(&server, "three", "GetTask", params).await.status, 401);
}

#[tokio::test]
async fn s16_a_token_that_is_known_here_is_not_sent_to_another_server() {
    let signer = Signer::new("es", "ES256");
    let issuer = Issuer::start(&[&signer]).await;
    let other = Issuer::start(&[]).await;
    other.answer(
        INTROSPECT,
        Answers::Tokens([("opaque".to_owned(), json!({"active": true, "sub": "bob"}))].into()),
    );
    let client = ClientAuth::Basic { id: "baton".to_owned(), secret: "secret".into() };
    let options = IntrospectionOptions::new(format!("{}{INTROSPECT}", other.url), client);
    let introspection = Introspection::new(options, fetcher()).unwrap();
    let keys = KeySet::new().unwrap();
    keys.add_chosen("static-and-sixteen", "static", "carol", Scopes::default()).unwrap();
    let chain = Chain::new()
        .scheme("static", BearerTokens::new(Arc::new(keys)))
        .scheme("login", jwt(&issuer, |_| ()))
        .scheme("oauth", introspection);
    let server = serve(with_agent(obedient).auth(chain)).await;
    for token in ["static-and-sixteen", &token(&issuer, &signer, "ann", "")] {
        assert_eq!(call(&server, token, "ListTasks", json!({})).await.status, 200);
        assert!(other.requests().is_empty());
    }
    assert_eq!(call(&server, "opaque", "ListTasks", json!({})).await.status, 200);
    assert_eq!(other.requests().len(), 1);
}
