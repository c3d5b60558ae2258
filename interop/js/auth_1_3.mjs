// Credentials with the JavaScript `@a2a-js/sdk` 1.3.0. Bindings: `jsonrpc`, `rest`, `grpc`; with `-0.3` its compatibility
// transports.
//
//     cd FOLDER_WITH_NODE_MODULES && CREDENTIALS=credentials.json NODE_EXTRA_CA_CERTS=ca.pem \
//       node auth_1_3.mjs https://127.0.0.1:3000 jsonrpc
//
// `cargo xtask interop --auth` starts the agent and an identity provider, and writes the file. Keys, tokens and passwords
// go the SDK's own way: `createAuthenticatingFetchWithRetry`, which asks a handler for headers, and again after a refusal.
// Over gRPC they are credentials of the channel, which the SDK's transport takes.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

import { cannot, expect, expectError, load, main, readAll } from './harness.mjs';

const { Role, TaskState } = await load('@a2a-js/sdk');
const {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  createAuthenticatingFetchWithRetry,
} = await load('@a2a-js/sdk', './client');
const { GrpcTransportFactory } = await load('@a2a-js/sdk', './client/grpc');
const { TaskNotFoundError } = await load('@a2a-js/sdk', './errors');
// It has no list of what it exports.
const grpc = createRequire(pathToFileURL(join(process.cwd(), 'package.json')))('@grpc/grpc-js');

const TRANSPORTS = { jsonrpc: JsonRpcTransportFactory, rest: RestTransportFactory, grpc: GrpcTransportFactory };

const given = JSON.parse(readFileSync(process.env.CREDENTIALS, 'utf8'));
const beside = (name) => readFileSync(join(dirname(process.env.CREDENTIALS), name));

function message(text) {
  return {
    tenant: '',
    message: {
      messageId: randomUUID(),
      contextId: '',
      taskId: '',
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      historyLength: undefined,
      returnImmediately: false,
    },
    metadata: undefined,
  };
}

/** The SDK's client with one credential. */
class Session {
  constructor(client, lists) {
    Object.assign(this, { client, lists });
  }

  async send(text) {
    const task = await this.client.sendMessage(message(text));
    expect(task.status?.state === TaskState.TASK_STATE_COMPLETED, `the reply is ${JSON.stringify(task)}`);
    return task.id;
  }

  async stream(text) {
    const events = await readAll(this.client.sendMessageStream(message(text)));
    expect(events.length > 1, `${events.length} events`);
    const last = events.at(-1).payload.value.status?.state;
    expect(last === TaskState.TASK_STATE_COMPLETED, 'the stream ended before the task');
    return events[0].payload.value.id;
  }

  async get(id) {
    return (await this.client.getTask({ tenant: '', id, historyLength: undefined })).id;
  }

  /** The ids of the caller's tasks; `undefined` if the SDK has no such operation. */
  async list() {
    if (!this.lists) return undefined;
    const page = await this.client.listTasks({
      tenant: '',
      contextId: '',
      status: TaskState.TASK_STATE_UNSPECIFIED,
      pageSize: 100,
      pageToken: '',
      historyLength: undefined,
      statusTimestampAfter: undefined,
      includeArtifacts: undefined,
    });
    return page.tasks.map((task) => task.id);
  }

  /** The description on the card for callers that are known. */
  async extendedCard() {
    return (await this.client.getAgentCard()).description;
  }
}

const certificate = (name) => ({ cert: beside(`${name}.pem`), key: beside(`${name}.key`) });

/** `fetch` with the connection's own options, which Node's cannot be told: certificates. */
function fetchWith(options) {
  return (url, init = {}) =>
    new Promise((resolve, reject) => {
      const headers = Object.fromEntries(new Headers(init.headers));
      const sent = request(url, { ...options, method: init.method ?? 'GET', headers }, (answer) => {
        const { statusCode: status, headers: got } = answer;
        resolve(new Response(Readable.toWeb(answer), { status, headers: got }));
      });
      sent.on('error', reject);
      sent.end(init.body);
    });
}

/** For channels of gRPC: the same, and the headers with every call. */
function channelCredentials(headers, { ca = beside('ca.pem'), key = null, cert = null }) {
  const metadata = grpc.credentials.createFromMetadataGenerator((_, done) => {
    const made = new grpc.Metadata();
    for (const [name, value] of Object.entries(headers)) made.set(name, value);
    done(null, made);
  });
  return grpc.credentials.combineChannelCredentials(grpc.credentials.createSsl(ca, key, cert), metadata);
}

class Agent {
  constructor(card, name, version) {
    Object.assign(this, { card, name, version });
    // What each scheme is, and its name on the card.
    this.schemes = new Map();
    for (const [name, { scheme }] of Object.entries(card.securitySchemes)) {
      const kind = scheme.$case === 'httpAuthSecurityScheme' ? scheme.value.scheme : scheme.$case;
      this.schemes.set(kind, { name, ...scheme.value });
    }
  }

  /** With a handler of the SDK; `headers` are those of the first request. */
  async session(headers = {}, { connection, retryWith = async () => undefined } = {}) {
    const legacyCompat = { enabled: this.version === '0.3' };
    const handler = { headers: async () => headers, shouldRetryWithHeaders: retryWith };
    const fetchImpl = createAuthenticatingFetchWithRetry(connection ? fetchWith(connection) : fetch, handler);
    const grpcChannelCredentials = channelCredentials(headers, connection ?? {});
    const transport = new TRANSPORTS[this.name]({ legacyCompat, fetchImpl, grpcChannelCredentials });
    const cardResolver = new DefaultAgentCardResolver({ legacyCompat, fetchImpl });
    const client = await new ClientFactory({ transports: [transport], cardResolver }).createFromAgentCard(this.card);
    return new Session(client, this.version === '1.0');
  }

  apiKey(key = given.apiKey) {
    return { [this.schemes.get('apiKeySecurityScheme').name]: key };
  }

  /** From the identity provider, by client credentials. */
  async token(scope = 'tasks') {
    const { tokenUrl } = this.schemes.get('oauth2SecurityScheme').flows.flow.value;
    const { id, secret, resource } = given.oauth;
    const answer = await fetch(tokenUrl, {
      method: 'POST',
      headers: basic(id, secret),
      body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope }),
    });
    expect(answer.status === 200, `no token: ${answer.status}`);
    return (await answer.json()).access_token;
  }
}

const bearer = (token) => ({ authorization: `Bearer ${token}` });
const basic = (user, password) => ({ authorization: `Basic ${btoa(`${user}:${password}`)}` });
const ann = bearer(given.tokens.ann);

/** Everything that a caller does with tasks. */
async function use(session) {
  const sent = await session.send('hello');
  expect((await session.get(sent)) === sent, 'another task came back');
  const streamed = await session.stream('tck-stream-basic hi');
  const listed = await session.list();
  expect(!listed || [sent, streamed].every((id) => listed.includes(id)), 'own tasks are not listed');
}

async function p05_reads_the_schemes_of_the_card(agent) {
  const kinds = [...agent.schemes.keys()].sort().join(' ');
  const wanted = 'apiKeySecurityScheme basic bearer digest mtlsSecurityScheme oauth2SecurityScheme';
  expect(kinds === wanted, `the kinds are ${kinds}`);
}

async function p05_api_key(agent) {
  await use(await agent.session(agent.apiKey()));
}

async function p05_bearer_token(agent) {
  await use(await agent.session(ann));
}

/** The token is fetched when the agent has refused the first request, as the SDK's handler is made for; gRPC has none. */
async function p05_oauth_client_credentials(agent) {
  let tokens = 0;
  const retryWith = async (_, { status, headers }) => {
    if (status !== 401) return undefined;
    expect(headers.get('www-authenticate').includes('Bearer'), 'no challenge');
    tokens += 1;
    return bearer(await agent.token());
  };
  if (agent.name !== 'grpc') {
    await use(await agent.session({}, { retryWith }));
    expect(tokens > 0, 'no request was refused');
  }
  const session = await agent.session(bearer(await agent.token()));
  await use(session);
  const task = await session.send('for the next token');
  const again = await agent.session(bearer(await agent.token()));
  expect((await again.get(task)) === task, 'another token of the same client does not see the task');
}

async function p05_http_basic(agent) {
  await use(await agent.session(basic(...given.basic)));
}

async function p05_client_certificate(agent) {
  await use(await agent.session({}, { connection: { ca: beside('ca.pem'), ...certificate('build') } }));
}

/** On both sides: the client does not know the server's authority, then the server not the client's. */
async function p05_certificates_of_strangers_are_refused(agent) {
  const strangers = [{ ca: beside('stranger.pem') }, { ca: beside('ca.pem'), ...certificate('intruder') }];
  for (const connection of strangers) {
    const session = await agent.session(agent.apiKey(), { connection });
    const untrusted = (error) => /unable to verify|alert unknown ca|alert decrypt error/i.test(String(error));
    await expectError(session.send('hello'), untrusted, 'a connection with a stranger');
  }
}

async function p05_extended_card(agent) {
  const description = await (await agent.session(ann)).extendedCard();
  expect(description === given.extended, `the description is ${description}`);
}

const refused = (text) => (error) => String(error.message).includes(text);

async function s16_refuses_without_credential(agent) {
  const session = await agent.session();
  const unknown = refused('Authentication required');
  await expectError(session.send('hello'), unknown, 'a send without credential');
  await expectError(session.stream('hello'), unknown, 'a stream without credential');
  await expectError(session.get('some-task'), unknown, 'a get without credential');
}

async function s16_refuses_wrong_credentials(agent) {
  const [head, claims, signature] = (await agent.token()).split('.');
  const wrong = [
    agent.apiKey('not-the-key-0123'),
    bearer('not-a-token-0123'),
    bearer(`${head}.${claims}.x${signature}`),
    basic(given.basic[0], 'not the password'),
  ];
  for (const headers of wrong) {
    const session = await agent.session(headers);
    await expectError(session.send('hello'), refused('The credential was refused'), 'a wrong credential');
  }
}

async function s16_refuses_a_missing_scope(agent) {
  const session = await agent.session(bearer(await agent.token('')));
  await expectError(session.send('hello'), refused('lacks the scope tasks'), 'a send without the scope');
}

async function s16_foreign_tasks_are_not_found(agent) {
  const task = await (await agent.session(ann)).send('private');
  const bob = await agent.session(bearer(given.tokens.bob));
  await expectError(bob.get(task), (error) => error instanceof TaskNotFoundError, 'a foreign task was found');
  const listed = await bob.list();
  expect(!listed || !listed.includes(task), 'a foreign task is listed');
}

async function connect(baseUrl, bindingAndVersion) {
  const [name, version = '1.0'] = bindingAndVersion.split('-');
  const card = await new DefaultAgentCardResolver({ legacyCompat: { enabled: version === '0.3' } }).resolve(baseUrl);
  // The SDK takes the first interface that fits; only a card without 1.0 makes it speak 0.3.
  const supportedInterfaces = card.supportedInterfaces.filter((i) => i.protocolVersion === version);
  return new Agent({ ...card, supportedInterfaces }, name, version);
}

await main(connect, [
  p05_reads_the_schemes_of_the_card,
  p05_api_key,
  p05_bearer_token,
  p05_oauth_client_credentials,
  p05_http_basic,
  cannot('p05_http_digest', 'neither the SDK nor `fetch` has digest authentication'),
  p05_client_certificate,
  p05_certificates_of_strangers_are_refused,
  p05_extended_card,
  s16_refuses_without_credential,
  s16_refuses_wrong_credentials,
  s16_refuses_a_missing_scope,
  s16_foreign_tasks_are_not_found,
]);
