// Gets tokens from a real identity provider, as clients do, and calls an agent with them.
//
//     node oidc_checks.mjs AGENT_URL ISSUER
//
// Everything that a client needs to know comes from the agent's card and from the provider's own configuration.

import { expect } from './harness.mjs';

const [agent, issuer] = process.argv.slice(2);
const RESOURCE = 'https://agent.test';
const OPAQUE = 'https://agent.test/opaque';

async function json(url, options) {
  const response = await fetch(url, options);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

function form(fields) {
  return { method: 'POST', body: new URLSearchParams(fields) };
}

async function card() {
  return (await json(`${agent}/.well-known/agent-card.json`)).body;
}

/** A scheme of the card by its name in 1.0. */
async function scheme(kind) {
  const schemes = Object.values((await card()).securitySchemes);
  const found = schemes.find((scheme) => scheme[kind] !== undefined);
  expect(found, `the card has no ${kind}`);
  return found[kind];
}

async function configuration() {
  return (await json((await scheme('openIdConnectSecurityScheme')).openIdConnectUrl)).body;
}

async function call(token, method, params) {
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return json(agent, { method: 'POST', headers, body });
}

async function send(token) {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hello' }] };
  const answer = await call(token, 'SendMessage', { message });
  expect(answer.status === 200, `status ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body.result.task.id;
}

async function robotToken(resource, scope = 'tasks') {
  const { flows } = await scheme('oauth2SecurityScheme');
  const fields = { grant_type: 'client_credentials', resource, scope };
  const authorization = `Basic ${btoa('robot:robot-secret')}`;
  const answer = await json(flows.clientCredentials.tokenUrl, { ...form(fields), headers: { authorization } });
  expect(answer.status === 200, `no token: ${JSON.stringify(answer.body)}`);
  return answer.body.access_token;
}

/** As much of a browser as the provider's pages need: cookies, redirects, and the first form of each page. */
async function browse(url, fill) {
  const cookies = new Map();
  let request = { method: 'GET' };
  for (let pages = 0; pages < 20; pages += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { ...request, redirect: 'manual', headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
      if (value === '') cookies.delete(name);
      else cookies.set(name, value);
    }
    if (response.status >= 300 && response.status < 400) {
      url = new URL(response.headers.get('location'), url).href;
      request = { method: 'GET' };
      continue;
    }
    const page = await response.text();
    expect(response.status === 200, `a page with status ${response.status}: ${page}`);
    const action = /<form[^>]*action="([^"]*)"/.exec(page);
    if (action === null) return page;
    const fields = new URLSearchParams();
    for (const [input] of page.matchAll(/<input[^>]*>/g)) {
      const name = /name="([^"]*)"/.exec(input)?.[1];
      if (name !== undefined) fields.set(name, /value="([^"]*)"/.exec(input)?.[1] ?? fill[name] ?? '');
    }
    // The page that asks whether the device is one's own has a button for it.
    if (/name="confirm"/.test(page)) fields.set('confirm', 'yes');
    url = new URL(action[1].replaceAll('&amp;', '&'), url).href;
    request = { method: 'POST', body: fields };
  }
  throw new Error('the pages do not end');
}

async function deviceToken(user) {
  const { device_authorization_endpoint, token_endpoint } = await configuration();
  const started = await json(
    device_authorization_endpoint,
    form({ client_id: 'tv', scope: 'openid tasks', resource: RESOURCE }),
  );
  expect(started.status === 200, `no device code: ${JSON.stringify(started.body)}`);
  const poll = form({
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: started.body.device_code,
    client_id: 'tv',
  });
  const early = await json(token_endpoint, poll);
  expect(early.body.error === 'authorization_pending', `too early: ${JSON.stringify(early.body)}`);
  await browse(started.body.verification_uri_complete, { login: user, password: 'any' });
  const answer = await json(token_endpoint, poll);
  expect(answer.status === 200, `no token: ${JSON.stringify(answer.body)}`);
  return answer.body.access_token;
}

async function p05_discovers_the_provider_from_the_card() {
  const found = await configuration();
  expect(found.issuer === issuer, `the issuer is ${found.issuer}`);
  const { flows, oauth2MetadataUrl } = await scheme('oauth2SecurityScheme');
  expect(flows.clientCredentials.tokenUrl === found.token_endpoint, JSON.stringify(flows));
  expect(oauth2MetadataUrl !== undefined, 'no URL of the metadata');
}

async function s16_refuses_without_a_token() {
  const answer = await call(undefined, 'ListTasks', {});
  expect(answer.status === 401 && answer.body.error.code === -32000, JSON.stringify(answer.body));
  expect(answer.headers.get('www-authenticate').startsWith('Bearer realm="'), 'no challenge');
}

async function p05_client_credentials_with_a_jwt() {
  const token = await robotToken(RESOURCE);
  expect(token.split('.').length === 3, 'not a JWT');
  const task = await send(token);
  const again = await call(await robotToken(RESOURCE), 'GetTask', { id: task });
  expect(again.body.result.id === task, `another token of the same client: ${JSON.stringify(again.body)}`);
}

async function p05_client_credentials_by_introspection() {
  const token = await robotToken(OPAQUE);
  expect(!token.includes('.'), 'not opaque');
  await send(token);
}

async function p05_device_code() {
  const [ann, bob] = [await deviceToken('ann'), await deviceToken('bob')];
  const task = await send(ann);
  const foreign = await call(bob, 'GetTask', { id: task });
  expect(foreign.body.error?.code === -32001, `bob sees ${JSON.stringify(foreign.body)}`);
  const own = await call(ann, 'GetTask', { id: task });
  expect(own.body.result?.id === task, `ann does not see ${JSON.stringify(own.body)}`);
}

async function s16_refuses_tokens_that_were_changed_or_revoked() {
  const jwt = await robotToken(RESOURCE);
  const [header, , signature] = jwt.split('.');
  const claims = { iss: issuer, aud: RESOURCE, sub: 'ann', exp: 4e9 };
  const forged = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`;
  for (const token of [forged, `${jwt}x`, 'made-up']) {
    const answer = await call(token, 'ListTasks', {});
    expect(answer.status === 401, `status ${answer.status} for ${token.slice(0, 9)}`);
    expect(answer.headers.get('www-authenticate').includes('invalid_token'), 'no reason');
  }
  const { revocation_endpoint } = await configuration();
  const opaque = await robotToken(OPAQUE);
  const headers = { authorization: `Basic ${btoa('robot:robot-secret')}` };
  const revoked = await fetch(revocation_endpoint, { ...form({ token: opaque }), headers });
  expect(revoked.status === 200, `revocation: ${revoked.status}`);
  const answer = await call(opaque, 'ListTasks', {});
  expect(answer.status === 401, `status ${answer.status} for a revoked token`);
}

let failed = 0;
for (const check of [
  p05_discovers_the_provider_from_the_card,
  s16_refuses_without_a_token,
  p05_client_credentials_with_a_jwt,
  p05_client_credentials_by_introspection,
  p05_device_code,
  s16_refuses_tokens_that_were_changed_or_revoked,
]) {
  try {
    await check();
    console.log(`ok ${check.name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${check.name}: ${error.message.split('\n')[0]}`);
  }
}
process.exitCode = failed === 0 ? 0 : 1;
