// A real identity provider for the interop run: npm `oidc-provider`, with three clients and two resources.
//
//     cd FOLDER_WITH_NODE_MODULES && node oidc_provider.mjs PORT
//
// Tokens for `https://agent.test` are JWTs; tokens for `https://agent.test/opaque` can only be read by introspection.
// Every user name and password is accepted.

import { generateKeyPairSync } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// `import` would look beside the script.
const require = createRequire(join(process.cwd(), 'package.json'));
const { Provider, errors } = await import(pathToFileURL(require.resolve('oidc-provider')));

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;
const AUDIENCE = 'https://agent.test';
const FORMATS = new Map([[AUDIENCE, 'jwt'], [`${AUDIENCE}/opaque`, 'opaque']]);
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';

function signingKey(alg, kind, options) {
  const jwk = generateKeyPairSync(kind, options).privateKey.export({ format: 'jwk' });
  return { ...jwk, alg, use: 'sig', kid: `${alg}-1` };
}

function client(client_id, rest) {
  return { client_id, redirect_uris: [], response_types: [], ...rest };
}

const provider = new Provider(issuer, {
  clients: [
    client('robot', { client_secret: 'robot-secret', grant_types: ['client_credentials'] }),
    client('tv', { token_endpoint_auth_method: 'none', application_type: 'native', grant_types: [DEVICE] }),
    // The agent's own server, which only asks about tokens.
    client('baton', { client_secret: 'baton-secret', grant_types: [] }),
  ],
  jwks: {
    keys: [
      signingKey('ES256', 'ec', { namedCurve: 'P-256' }),
      signingKey('RS256', 'rsa', { modulusLength: 2048 }),
    ],
  },
  scopes: ['openid', 'tasks'],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  ttl: { AccessToken: 600, ClientCredentials: 600, DeviceCode: 600, Grant: 600, Interaction: 600, Session: 600 },
  cookies: { keys: ['only for tests'] },
  features: {
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    devInteractions: { enabled: true },
    introspection: { enabled: true, allowedPolicy: (_, asking) => asking.clientId === 'baton' },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo(_, resource) {
        const accessTokenFormat = FORMATS.get(resource);
        if (accessTokenFormat === undefined) throw new errors.InvalidTarget();
        return { scope: 'tasks', audience: AUDIENCE, accessTokenFormat, jwt: { sign: { alg: 'ES256' } } };
      },
      useGrantedResource: () => true,
    },
  },
});

provider.listen(port, '127.0.0.1', () => console.log(`listening at ${issuer}`));
