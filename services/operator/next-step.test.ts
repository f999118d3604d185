import { expect, it } from 'vitest';
import { type FailedRequest, nextStep } from './next-step.ts';

const request: FailedRequest = {
  server: 'agent',
  addressFrom: '--url',
  keyFrom: 'AGENT_API_KEY',
  keyVariables: 'AGENT_API_KEY to a key of this server',
  status: 400,
  found: 'agent',
  versions: null,
  knownIds: null,
};

it.each<[what: string, change: Partial<FailedRequest>, step: RegExp]>([
  ['no answer', { status: null, found: null }, /^start the agent server \(`switchyard start`\), or correct the address, which is from --url$/],
  ['a refused key', { status: 401 }, /^set AGENT_API_KEY to a key of this server, .* --key-file; the refused key is from AGENT_API_KEY$/],
  ['a key that may not do this', { status: 403, found: null }, /--key-file/],
  ['an unknown id', { status: 404, knownIds: 'look there' }, /^look there$/],
  ['a busy server', { status: 429 }, /^repeat it later; the log of the agent server/],
  ['a server that is not ready', { status: 503, found: null }, /^repeat it later/],
  ['the other port', { status: 401, found: 'router' }, /^name the agent server by --url or SWITCHYARD_AGENT_URL; this address is from --url$/],
  [
    'an answer of another version',
    { status: 404, versions: { server: '0.8.0', own: '0.9.0' }, knownIds: 'look there' },
    /^use .* has version 0\.8\.0, .* for 0\.9\.0$/,
  ],
  ['an answer that another version gives', { status: null, versions: { server: '0.8.0', own: '0.9.0' } }, /^use the command line of the server's own release/],
  ['a refused key of another version', { status: 401, versions: { server: '0.8.0', own: '0.9.0' } }, /^set AGENT_API_KEY/],
  ['the other port, of the router', { server: 'router', status: 404 }, /^name the model router by --url or SWITCHYARD_ROUTER_URL; /],
])('knows the next step after %s', (_what, change, step) => {
  expect(nextStep({ ...request, ...change })).toMatch(step);
});

it.each([400, 409, 422])('leaves it to the server’s message after %i', (status) => {
  expect(nextStep({ ...request, status })).toBeNull();
});
