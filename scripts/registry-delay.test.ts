import { once } from 'node:events';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { afterEach, expect, it } from 'vitest';
import { describeRegistryDelay } from './registry-delay.mjs';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A registry that replies to a ping after a delay. */
async function registry(delayMs: number): Promise<string> {
  const server = createServer((_, response) => void setTimeout(() => response.setHeader('content-type', 'application/json').end('{}'), delayMs));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
}

const remarkOn = (url: string) => {
  const env = { ...process.env, npm_config_registry: url, npm_config_cache: tmpdir() };
  return describeRegistryDelay({ command: 'npm', before: [] }, { cwd: tmpdir(), env, signal: new AbortController().signal });
};

it('reports a slow or unreachable registry only when it is', async () => {
  const [slow, fast] = [await registry(2_500), await registry(0)];

  expect(await remarkOn(slow)).toMatch(/^the package registry is slow: it took \d+\.\d s to respond$/);
  expect(await remarkOn('http://127.0.0.1:1/')).toBe('the package registry is unreachable');
  // A busy machine may take longer than the registry; then the outcome is unknown, and the next try reports it.
  await expect.poll(() => remarkOn(fast), { timeout: 60_000 }).toBeNull();
});
