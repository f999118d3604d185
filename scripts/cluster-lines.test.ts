import { expect, it } from 'vitest';
import { lineOf } from './cluster-lines.mjs';

const process = { role: 'actor-host', index: 2, pid: 7, managementUrl: 'http://127.0.0.1:9090' } as const;

it('names a process with its id and addresses, for a person that looks at its metrics or kills it', () => {
  expect(lineOf({ event: 'process', ...process })).toBe('actor-host-2 (process 7) is ready; health and metrics at http://127.0.0.1:9090');
  expect(lineOf({ event: 'process', ...process, url: 'http://127.0.0.1:80' })).toContain('is ready at http://127.0.0.1:80; health');
});

it('names the stores, and repeats nothing that stderr says', () => {
  const stores = { natsUrl: 'nats://127.0.0.1:1', databaseUrl: 'postgres://127.0.0.1:2/postgres', redisUrl: 'redis://127.0.0.1:3' };

  expect(lineOf({ event: 'ready', ...stores })).toBe(`stores: ${Object.values(stores).join(' ')}`);
  expect(lineOf({ event: 'exit', ...process, code: 0, signal: null })).toBeNull();
});
