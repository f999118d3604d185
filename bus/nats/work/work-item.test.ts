import { expect, it } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { workItem } from './work-item.ts';

/** The earliest that a timer fires. */
const EARLY_MS = 2;

it('reports a lease as lost that could not be extended at the broker, though its timer fires a little early', async () => {
  /** A broker that is away for the whole budget. */
  const run = (what: string, budgetMs: number) =>
    new Promise<never>((_, reject) => {
      const endsAt = performance.now() + budgetMs - EARLY_MS;
      const look = () => {
        if (performance.now() >= endsAt) reject(new SwitchyardError('service.unreachable', `did not ${what}`));
        else setImmediate(look);
      };
      look();
    });
  const link = { retries: { run, assertOpen: () => {} }, requests: { ask: () => Promise.reject(new Error('not asked')) } };
  const fields = { kind: 'tool', messageId: 'w1', body: '', delivery: 1, storedAtMs: 0, reply: 'reply', budgetMs: 1_000, log: silentLog } as const;
  const item = workItem({ ...fields, link, deliveredAt: performance.now(), ackWaitMs: 50 });

  await expect(item.working()).rejects.toMatchObject({ code: 'bus.lease_lost' });
});
