import { expect, it } from 'vitest';
import { silentLog } from '../telemetry/log.ts';
import { reachability } from './reachability.ts';

function watched() {
  const lines: string[] = [];
  const log = {
    ...silentLog,
    warn: (fields: Record<string, unknown>, message: string) => void lines.push(`${message}: ${String(fields.reason)}`),
    info: (_: Record<string, unknown>, message: string) => void lines.push(message),
  };
  return { reached: reachability(log, 'Redis at cache:6379/0'), lines };
}

it('logs each reason of an outage once, and its end once', () => {
  const { reached, lines } = watched();

  reached.found();
  for (const reason of ['refused', 'refused', 'no answer', 'refused']) reached.lost(reason);
  reached.found();
  reached.found();
  reached.lost('refused');

  expect(lines).toEqual([
    'Redis at cache:6379/0 is unreachable: refused',
    'Redis at cache:6379/0 is unreachable: no answer',
    'Redis at cache:6379/0 is reachable again',
    'Redis at cache:6379/0 is unreachable: refused',
  ]);
});

it('does not fill the log with variants of one reason', () => {
  const { reached, lines } = watched();

  for (let attempt = 0; attempt < 1_000; attempt += 1) reached.lost(`refused from port ${attempt}`);

  expect(lines.length).toBeLessThan(10);
});
