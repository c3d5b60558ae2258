// Webhooks with the JavaScript `@a2a-js/sdk` 0.3.14. Bindings: `jsonrpc`, `rest`, `grpc`.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { expectDeclared, readTypes } from './declared.mjs';
import { expect, load, readAll } from './harness.mjs';
import { run, tasksAfter } from './webhooks.mjs';

const { AgentCardResolver, ClientFactory, JsonRpcTransportFactory, RestTransportFactory } = await load(
  '@a2a-js/sdk',
  './client',
);
const { GrpcTransportFactory } = await load('@a2a-js/sdk', './client/grpc');
const types = readTypes('@a2a-js/sdk', 'dist');

const configOf = ({ url, token, credentials }, id) => ({
  ...(id && { id }),
  url,
  ...(token && { token }),
  ...(credentials && { authentication: { schemes: ['Bearer'], credentials } }),
});

const shownConfig = ({ pushNotificationConfig: { id, url, token, authentication } }) => ({
  id,
  url,
  token: token ?? '',
  credentials: authentication?.credentials ?? '',
});

function message(text, hook, { taskId, blocking = true } = {}) {
  return {
    message: {
      kind: 'message',
      messageId: randomUUID(),
      role: 'user',
      parts: [{ kind: 'text', text }],
      ...(taskId && { taskId }),
    },
    configuration: { blocking, ...(hook && { pushNotificationConfig: configOf(hook) }) },
  };
}

/** What the SDK's client knows of a task by a stream. */
function seen({ id, contextId, status, artifacts = [] }, binding) {
  // In the proto's form the SDK drops names of files and metadata of parts, and adds `extensions: []`.
  const dropped = (member, value) => {
    if (member === 'extensions') return undefined;
    if (member !== 'parts') return value;
    return value.map(({ metadata, file, ...part }) => ({ ...part, file: file && { ...file, name: undefined } }));
  };
  // Over gRPC it reads every `null` as 0.
  const read = (member, value) => (binding === 'GRPC' && value === null ? 0 : dropped(member, value));
  const text = JSON.stringify({ id, contextId, status, artifacts }, binding === 'JSONRPC' ? undefined : read);
  return JSON.parse(text);
}

class Session {
  protocol = '0.3';

  constructor(client, binding) {
    Object.assign(this, { client, binding });
  }

  async send(text, hook) {
    const reply = await this.client.sendMessage(message(text, hook));
    expect(reply.kind === 'task', `no task in the reply: ${JSON.stringify(reply)}`);
    return reply;
  }

  async start(text) {
    return (await this.client.sendMessage(message(text, undefined, { blocking: false }))).id;
  }

  async stream(text, hook, taskId) {
    const events = await readAll(this.client.sendMessageStream(message(text, hook, { taskId })));
    expect(events[0]?.kind === 'task', 'the stream does not begin with the task');
    const [task, ...updates] = events;
    return { taskId: task.id, shown: tasksAfter(task, updates).map((after) => seen(after, this.binding)) };
  }

  cancel(id) {
    return this.client.cancelTask({ id });
  }

  // The client itself refuses because of a card without webhooks; its transport sends the request.
  async create(taskId, id, hook) {
    const config = { taskId, pushNotificationConfig: configOf(hook, id) };
    return shownConfig(await this.client.transport.setTaskPushNotificationConfig(config));
  }

  async read(id, pushNotificationConfigId) {
    return shownConfig(await this.client.getTaskPushNotificationConfig({ id, pushNotificationConfigId }));
  }

  async list(id) {
    return (await this.client.listTaskPushNotificationConfig({ id })).map(shownConfig);
  }

  remove(id, pushNotificationConfigId) {
    return this.client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId });
  }

  event(body) {
    const task = JSON.parse(body);
    expectDeclared(types, 'Task', task);
    return { taskId: task.id, state: task.status.state, shown: seen(task, this.binding) };
  }

  isAsIn(shown, task) {
    return isDeepStrictEqual(shown, seen(task, this.binding));
  }

  isBadUrl = (error) => error.message.includes('-32602') || this.#tells(error, 'InvalidParamsError');

  // The client has a class of its own for each error and binding; all of them carry the name.
  isNotSupported = (error) =>
    error.constructor.name.startsWith('PushNotificationNotSupported') ||
    this.#tells(error, 'PushNotificationNotSupportedError');

  /** Over gRPC it has a class for few errors, and puts what the server says into the text of others. */
  #tells = (error, name) => this.binding === 'GRPC' && error.message.includes(` ${name}: `);
}

async function connect(baseUrl, binding) {
  const factories = { jsonrpc: JsonRpcTransportFactory, rest: RestTransportFactory, grpc: GrpcTransportFactory };
  const transport = new factories[binding]();
  const card = await AgentCardResolver.default.resolve(baseUrl);
  const client = await new ClientFactory({ transports: [transport] }).createFromAgentCard(card);
  return new Session(client, transport.protocolName);
}

await run(connect);
