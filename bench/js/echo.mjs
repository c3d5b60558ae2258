// The echo agent on @a2a-js/sdk, as published: working, one text artifact, completed. `node echo.mjs PORT`; with GRPC=1
// over gRPC.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, jsonRpcHandler } from '@a2a-js/sdk/server/express';

const CHUNKS = 1000;
const port = Number(process.argv[2]);

// Ends with the run that started it.
if (process.env.CONTROLLED) {
  process.stdin.on('end', () => process.exit(0)).resume();
}

const card = {
  name: 'echo',
  description: 'Says what it was told',
  version: '1.0.0',
  supportedInterfaces: [
    {
      url: `http://127.0.0.1:${port}/`,
      protocolBinding: process.env.GRPC ? 'GRPC' : 'JSONRPC',
      protocolVersion: '1.0',
      tenant: '',
    },
  ],
  capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'echo', name: 'echo', description: 'echo', tags: ['echo'], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
  securitySchemes: {},
  securityRequirements: [],
  signatures: [],
};

const executor = {
  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const status = (state) => ({ state, timestamp: new Date().toISOString(), message: undefined });
    const say = (state) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state), metadata: undefined }));
    const artifact = (artifactId, name, value, append, lastChunk) => {
      const part = { content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' };
      const made = { artifactId, name, description: '', parts: [part], metadata: undefined, extensions: [] };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact: made, append, lastChunk, metadata: undefined }));
    };
    // The SDK requires a task as the first event.
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_SUBMITTED),
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      }),
    );
    say(TaskState.TASK_STATE_WORKING);
    const content = userMessage.parts[0]?.content;
    const text = content?.$case === 'text' ? content.value : '';
    if (text === 'hold') {
      await new Promise(() => {});
    } else if (text === 'burst') {
      for (let chunk = 0; chunk < CHUNKS; chunk++) {
        artifact('burst', 'burst', 'chunk of text ', chunk > 0, chunk + 1 === CHUNKS);
      }
    } else {
      artifact(randomUUID(), 'echo', text, false, true);
    }
    say(TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  },
  async cancelTask() {},
};

const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
if (process.env.GRPC) {
  const { Server, ServerCredentials } = await import('@grpc/grpc-js');
  const { A2AService, grpcService, UserBuilder: GrpcUserBuilder } = await import('@a2a-js/sdk/server/grpc');
  const server = new Server();
  server.addService(A2AService, grpcService({ requestHandler: handler, userBuilder: GrpcUserBuilder.noAuthentication }));
  server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
  });
} else {
  const app = express();
  app.use(jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
  app.listen(port, '127.0.0.1');
}
