// The JavaScript `@a2a-js/sdk` 1.3.0 client, as a command that `baton test --as-server` can judge.
//
//     cd FOLDER_WITH_NODE_MODULES && baton test --as-server -- node judged_1_3.mjs
//
// It does what A2A_DO says to the agent at A2A_URL, in the binding A2A_BINDING and the version A2A_GENERATION, and
// prints the texts that it gets. The exit code is 0 if the operation succeeded, and 1 if the SDK reported an error;
// nothing here works around the SDK.

import { randomUUID } from 'node:crypto';

import { load } from './harness.mjs';

const { Role, TaskState } = await load('@a2a-js/sdk');
const {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  createAuthenticatingFetchWithRetry,
} = await load('@a2a-js/sdk', './client');

const { A2A_DO, A2A_URL, A2A_BINDING, A2A_GENERATION, A2A_BEARER_TOKEN, A2A_API_KEY } = process.env;

const DONE = ['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED', 'INPUT_REQUIRED', 'AUTH_REQUIRED'].map(
  (name) => TaskState[`TASK_STATE_${name}`],
);

function message(text, task) {
  return {
    tenant: '',
    message: {
      messageId: randomUUID(),
      contextId: task?.contextId ?? '',
      taskId: task?.id ?? '',
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: undefined,
    metadata: undefined,
  };
}

function printParts(parts) {
  for (const { content } of parts) if (content?.$case === 'text') process.stdout.write(content.value.slice(0, 2000));
}

/** Prints texts as they arrive, and keeps the task and its last state. */
class Reader {
  takeTask(task) {
    this.task = task;
    this.state = task.status?.state;
    for (const artifact of task.artifacts) printParts(artifact.parts);
  }

  takeMessage({ parts }) {
    this.replied = true;
    printParts(parts);
  }

  take({ payload }) {
    if (payload?.$case === 'task') this.takeTask(payload.value);
    if (payload?.$case === 'message') this.takeMessage(payload.value);
    if (payload?.$case === 'statusUpdate') this.state = payload.value.status.state;
    if (payload?.$case === 'artifactUpdate') printParts(payload.value.artifact.parts);
  }

  isOver() {
    return this.replied || DONE.includes(this.state);
  }

  mustBeOver() {
    if (!this.isOver()) throw new Error(`this is not the end of it: state ${this.state}`);
    return this;
  }
}

async function send(client, text, task) {
  const reader = new Reader();
  const reply = await client.sendMessage(message(text, task));
  if ('status' in reply) reader.takeTask(reply);
  else reader.takeMessage(reply);
  return reader.mustBeOver();
}

async function stream(client, text) {
  const reader = new Reader();
  for await (const event of client.sendMessageStream(message(text))) reader.take(event);
  reader.mustBeOver();
}

async function follow(client) {
  const reader = new Reader();
  try {
    for await (const event of client.sendMessageStream(message('hello'))) reader.take(event);
  } catch (error) {
    console.error(`the stream broke: ${error}`);
  }
  if (!reader.isOver()) {
    for await (const event of client.resubscribeTask({ tenant: '', id: reader.task.id })) reader.take(event);
  }
  reader.mustBeOver();
}

async function tour(client) {
  const { task } = await send(client, 'hello');
  await client.getTask({ tenant: '', id: task.id, historyLength: 3 });
  if (A2A_GENERATION !== '0.3') {
    const page = (pageToken) => ({
      tenant: '',
      contextId: '',
      status: TaskState.TASK_STATE_UNSPECIFIED,
      pageSize: 1,
      pageToken,
      historyLength: undefined,
      statusTimestampAfter: undefined,
      includeArtifacts: undefined,
    });
    const { nextPageToken } = await client.listTasks(page(''));
    await client.listTasks(page(nextPageToken));
  }
  const config = { tenant: '', id: '', taskId: task.id, url: 'https://example.com/hook', token: '', authentication: undefined };
  const made = await client.createTaskPushNotificationConfig(config);
  const named = { tenant: '', taskId: task.id, id: made.id };
  await client.getTaskPushNotificationConfig(named);
  await client.listTaskPushNotificationConfig({ tenant: '', taskId: task.id, pageSize: 0, pageToken: '' });
  await client.deleteTaskPushNotificationConfig(named);
  await client.cancelTask({ tenant: '', id: task.id, metadata: undefined });
}

/** The SDK's own way to authenticate: a `fetch` with headers. */
function authenticated() {
  const headers = {};
  if (A2A_BEARER_TOKEN) headers.Authorization = `Bearer ${A2A_BEARER_TOKEN}`;
  if (A2A_API_KEY) headers['X-Judge-Key'] = A2A_API_KEY;
  if (Object.keys(headers).length === 0) return fetch;
  return createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => headers,
    shouldRetryWithHeaders: async () => undefined,
  });
}

async function connect() {
  const legacyCompat = { enabled: A2A_GENERATION === '0.3' };
  const factories = { jsonrpc: JsonRpcTransportFactory, rest: RestTransportFactory };
  const transport = new factories[A2A_BINDING]({ legacyCompat, fetchImpl: authenticated() });
  const cardResolver = new DefaultAgentCardResolver({ legacyCompat });
  // With the slash: the SDK resolves the card's path against the address.
  const card = await cardResolver.resolve(`${A2A_URL}/`);
  return new ClientFactory({ transports: [transport], cardResolver }).createFromAgentCard(card);
}

const doing = {
  send: (client) => send(client, 'hello'),
  stream: (client) => stream(client, 'hello'),
  follow,
  talk: async (client) => send(client, 'the second', (await send(client, 'hello')).task),
  get: async (client) => client.getTask({ tenant: '', id: (await send(client, 'hello')).task.id, historyLength: undefined }),
  tour,
  'extended-card': async (client) => process.stdout.write((await client.getAgentCard()).description),
};

try {
  await doing[A2A_DO](await connect());
  console.log();
  process.exit(0);
} catch (error) {
  console.error(`${error?.constructor?.name}: ${error?.message} ${error?.code ?? ''}`);
  process.exit(1);
}
