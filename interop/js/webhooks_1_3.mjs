// Webhooks with the JavaScript `@a2a-js/sdk` 1.3.0. Bindings: `jsonrpc`, `rest`, `grpc`; with `-0.3` its
// compatibility transports.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { expectDeclared, readTypes } from './declared.mjs';
import { expect, load, readAll } from './harness.mjs';
import { run, tasksAfter } from './webhooks.mjs';

const { Role, StreamResponse, TaskState } = await load('@a2a-js/sdk');
const {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  ServiceParameters,
  withA2AVersion,
} = await load('@a2a-js/sdk', './client');
const { GrpcTransportFactory } = await load('@a2a-js/sdk', './client/grpc');
const { PushNotificationNotSupportedError, RequestMalformedError } = await load('@a2a-js/sdk', './errors');
// The SDK's own reader for receivers of 0.3.
const { legacyPushNotificationToV1StreamResponse } = await load('@a2a-js/sdk', './compat/v0_3');
const types03 = readTypes('@a2a-js/sdk', 'dist/compat/v0_3/server');

const stateOf = (status) => TaskState[status.state].replace('TASK_STATE_', '').toLowerCase().replace('_', '-');

const configOf = ({ url, token, credentials }, { id = '', taskId = '' } = {}) => ({
  tenant: '',
  id,
  taskId,
  url,
  token,
  authentication: credentials ? { scheme: 'Bearer', credentials } : undefined,
});

const shownConfig = ({ id, url, token, authentication }) => ({
  id,
  url,
  token: token ?? '',
  credentials: authentication?.credentials ?? '',
});

function message(text, hook, { taskId = '', returnImmediately = false } = {}) {
  return {
    tenant: '',
    message: {
      messageId: randomUUID(),
      contextId: '',
      taskId,
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: hook && configOf(hook),
      historyLength: undefined,
      returnImmediately,
    },
    metadata: undefined,
  };
}

/** What the SDK's client knows of a task by a stream, as plain JSON. */
function seen({ id, contextId, status, artifacts }, isOldMessage) {
  const readable = ({ content, mediaType, filename, metadata }) => ({
    content: content?.$case === 'raw' ? Buffer.from(content.value).toString('base64') : content,
    mediaType,
    // Of messages in the proto's form of 0.3 the SDK drops these.
    ...(isOldMessage || { filename, metadata }),
  });
  const whole = artifacts.map((artifact) => ({ ...artifact, parts: artifact.parts.map(readable) }));
  return JSON.parse(JSON.stringify({ id, contextId, status, artifacts: whole }));
}

class Session {
  constructor(client, protocol, isOldMessage) {
    Object.assign(this, { client, protocol, isOldMessage });
    const serviceParameters = ServiceParameters.create(withA2AVersion(protocol));
    this.options = { serviceParameters };
  }

  async send(text, hook) {
    const reply = await this.client.sendMessage(message(text, hook));
    expect('status' in reply, `no task in the reply: ${JSON.stringify(reply)}`);
    return reply;
  }

  async start(text) {
    return (await this.client.sendMessage(message(text, undefined, { returnImmediately: true }))).id;
  }

  async stream(text, hook, taskId) {
    const events = await readAll(this.client.sendMessageStream(message(text, hook, { taskId })));
    expect(events[0]?.payload?.$case === 'task', 'the stream does not begin with the task');
    const [task, ...updates] = events.map((event) => event.payload.value);
    if (this.protocol === '1.0') return { taskId: task.id, shown: events };
    return { taskId: task.id, shown: tasksAfter(task, updates).map((after) => seen(after, this.isOldMessage)) };
  }

  cancel(id) {
    return this.client.cancelTask({ tenant: '', id, metadata: undefined });
  }

  // The client itself refuses because of a card without webhooks; its transport sends the request.
  async create(taskId, id, hook) {
    const { transport } = this.client;
    return shownConfig(await transport.createTaskPushNotificationConfig(configOf(hook, { id, taskId }), this.options));
  }

  async read(taskId, id) {
    return shownConfig(await this.client.getTaskPushNotificationConfig({ tenant: '', taskId, id }));
  }

  async list(taskId) {
    const request = { tenant: '', taskId, pageSize: 0, pageToken: '' };
    return (await this.client.listTaskPushNotificationConfig(request)).configs.map(shownConfig);
  }

  remove(taskId, id) {
    return this.client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id });
  }

  event(body) {
    const came = JSON.parse(body);
    if (this.protocol === '0.3') {
      expectDeclared(types03, 'Task', came);
      const { value } = legacyPushNotificationToV1StreamResponse(came).payload;
      return { taskId: value.id, state: stateOf(value.status), shown: seen(value, this.isOldMessage) };
    }
    const event = StreamResponse.fromJSON(came);
    // The SDK drops members that it does not know.
    const kept = JSON.stringify(StreamResponse.toJSON(event));
    expect(isDeepStrictEqual(JSON.parse(kept), came), `of ${body} the SDK kept ${kept}`);
    const { $case, value } = event.payload;
    return {
      taskId: $case === 'task' ? value.id : value.taskId,
      state: $case === 'artifactUpdate' ? '' : stateOf(value.status),
      shown: event,
    };
  }

  isAsIn(shown, task) {
    if (this.protocol === '0.3') return isDeepStrictEqual(shown, seen(task, this.isOldMessage));
    return isDeepStrictEqual(shown.payload.value.status, task.status);
  }

  isBadUrl = (error) => error instanceof RequestMalformedError;

  isNotSupported = (error) => error instanceof PushNotificationNotSupportedError;
}

async function connect(baseUrl, bindingAndVersion) {
  const [name, version = '1.0'] = bindingAndVersion.split('-');
  const legacyCompat = { enabled: version === '0.3' };
  const factories = { jsonrpc: JsonRpcTransportFactory, rest: RestTransportFactory, grpc: GrpcTransportFactory };
  const cardResolver = new DefaultAgentCardResolver({ legacyCompat });
  const card = await cardResolver.resolve(baseUrl);
  const factory = new ClientFactory({ transports: [new factories[name]({ legacyCompat })], cardResolver });
  // The SDK takes the first interface that fits; only a card without 1.0 makes it speak 0.3.
  const supportedInterfaces = card.supportedInterfaces.filter((i) => i.protocolVersion === version);
  const client = await factory.createFromAgentCard({ ...card, supportedInterfaces });
  return new Session(client, version, version === '0.3' && name !== 'jsonrpc');
}

await run(connect);
