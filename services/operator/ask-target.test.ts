import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createAgentClient } from '#client/agent-client.ts';
import { API_VERSIONS } from '#shared/contracts/api-versions.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { askTarget } from './ask-target.ts';
import { failureToPrint } from './failures.ts';
import { routerRequest } from './router-api.ts';
import type { FoundTarget } from './targets.ts';

/** A gateway that leads browsers to its page, states its version, if given, and answers all else the same. */
async function gateway(page: string, status: number, body: object, version?: string): Promise<string> {
  const server = createServer((request, response) => {
    const isBrowser = request.url === '/' && request.headers.authorization === undefined;
    const isRoot = request.url === '/' && version !== undefined;
    response.writeHead(isBrowser ? 302 : isRoot ? 200 : status, { 'content-type': 'application/json', ...(isBrowser && { location: page }) });
    response.end(JSON.stringify(isRoot ? { version } : body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

const targetAt = (url: string, server: 'agent' | 'router'): FoundTarget => ({
  server,
  url,
  addressFrom: '--url',
  key: 'a-key',
  keyFrom: 'THE_VARIABLE',
  keyVariables: 'THE_VARIABLE to a key',
});
const byClient = (target: FoundTarget) => askTarget(target, 'look there', () => createAgentClient({ baseUrl: target.url, apiKey: target.key }).sessions.list());
const byApi = (target: FoundTarget) => askTarget(target, 'look there', () => routerRequest(target, 'GET', '/keys'));

async function printed(work: Promise<unknown>) {
  return work.then(
    () => expect.fail('it was not refused'),
    (error: unknown) => failureToPrint(error),
  );
}

it('says where, why and what next when a key is refused, and never the key', async () => {
  const url = await gateway('/chat', 401, { error: 'a valid agent key is required', code: 'unauthorized' });
  const failure = await printed(byClient(targetAt(url, 'agent')));

  expect(failure).toMatchObject({ code: 'unauthorized', message: `${url}: a valid agent key is required`, exitCode: 4 });
  expect(failure?.fix).toContain('from THE_VARIABLE');
  expect(JSON.stringify(failure)).not.toContain('a-key');
});

it('knows the port of the other product, from both sides', async () => {
  const agent = await gateway('/auth/login?next=%2F', 401, { error: 'a valid agent key is required', code: 'unauthorized' });
  const router = await gateway('/console', 404, { error: { code: 404, message: 'There is no such route' } });

  expect(await printed(byApi(targetAt(agent, 'router')))).toMatchObject({
    message: `${agent} is the agent server, not the model router`,
    fix: expect.stringMatching(/^name the model router by .*--url$/),
  });
  expect(await printed(byClient(targetAt(router, 'agent')))).toMatchObject({ message: `${router} is the model router, not the agent server` });
});

it('says why there is no answer', async () => {
  const url = await gateway('/chat', 200, {});
  const free = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => free.once('listening', resolve));
  const { port } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const nothing = `http://127.0.0.1:${port}`;

  for (const ask of [byClient, byApi])
    expect(await printed(ask(targetAt(nothing, ask === byClient ? 'agent' : 'router')))).toMatchObject({
      message: expect.stringMatching(new RegExp(`^GET /\\w+: no answer from ${nothing} \\(nothing listens there\\)$`)),
      fix: expect.stringMatching(/^start the .*, which is from --url$/),
      exitCode: 3,
    });
  // Over HTTP alone.
  expect((await printed(byApi(targetAt(url.replace('http:', 'https:'), 'router'))))?.message).toMatch(/no answer from .* \(\w+/);
});

it('says where ids are found, and leaves other failures as they are', async () => {
  const url = await gateway('/console', 404, { error: { code: 404, message: 'There is no key with this hash' } });
  const other = new SwitchyardError('config.invalid', 'the folder does not exist');

  expect(await printed(byApi(targetAt(url, 'router')))).toMatchObject({ message: `${url}: There is no key with this hash`, fix: 'look there', exitCode: 1 });
  await expect(askTarget(targetAt(url, 'router'), null, () => Promise.reject(other))).rejects.toBe(other);
});

it('says that the server is of another version, where that explains a failure', async () => {
  const newer = await gateway('/chat', 404, { error: 'there is nothing at this address', code: 'not_found' }, '0.99.0');
  const own = await gateway('/chat', 404, { error: 'there is nothing at this address', code: 'not_found' }, API_VERSIONS.agent);
  const router = await gateway('/console', 400, { error: { code: 400, message: 'unknown field' } }, '2');

  expect(await printed(byClient(targetAt(newer, 'agent')))).toMatchObject({
    message: `${newer}: there is nothing at this address`,
    fix: `use the command line of the server's own release: its API has version 0.99.0, and this one was made for ${API_VERSIONS.agent}`,
    exitCode: 1,
  });
  expect(await printed(byClient(targetAt(own, 'agent')))).toMatchObject({ fix: 'look there' });
  expect(await printed(byApi(targetAt(router, 'router')))).toMatchObject({ fix: expect.stringMatching(/has version 2, and this one was made for 1$/) });
});

it('takes an answer of another form for a bug, unless the server is of another version', async () => {
  const read = (target: FoundTarget) =>
    askTarget(target, null, async () => {
      const { items } = await createAgentClient({ baseUrl: target.url, apiKey: target.key }).sessions.list();
      return items.map(({ id }) => id);
    });
  const newer = await gateway('/chat', 200, { sessions: [] }, '0.99.0');
  const own = await gateway('/chat', 200, { sessions: [] }, API_VERSIONS.agent);

  expect(await printed(read(targetAt(newer, 'agent')))).toMatchObject({ code: 'client.bad_answer', fix: expect.stringContaining('has version 0.99.0') });
  await expect(read(targetAt(own, 'agent'))).rejects.toBeInstanceOf(TypeError);
});
