import { expect, it } from 'vitest';
import { eventually, type TestCluster } from './test-cluster.ts';

/** Rows that hosts delete while they run, because no open effect, run or bundle refers to them any more. */
export function unusedRowsCases(open: () => Promise<TestCluster>): void {
  it('unused claims, tool lists and their servers are swept, and used ones stay', async () => {
    const cluster = await open();
    await cluster.rows(`insert into claims (effect_id, claimed_at) values ('old', now() - interval '3 days'), ('young', now() - interval '25 hours')`);
    const lists = { dropped: 2, used: 2, young: null, fresh: 0.5, returned: 2 };
    for (const [hash, hours] of Object.entries(lists)) {
      await cluster.rows(`insert into tool_lists (hash, tools, unused_since) values ($1, '[]', now() - make_interval(mins => $2::int))`, [
        hash,
        hours === null ? null : hours * 60,
      ]);
    }
    await cluster.rows(`insert into tool_servers (bundle_hash, server_id, list_hash, state, checked_at) values
      ('b1', 'shop', 'returned', 'ready', now()), ('b2', 'shop', 'young', 'ready', now()), ('b0', 'shop', 'gone', 'ready', now() - interval '8 days')`);
    // Accepted while 'used' was still in use, and after 'dropped' was not.
    await cluster.rows(`update tool_lists set unused_since = now() - interval '3 hours' where hash = 'dropped'`);
    await cluster.acceptRun({ id: 'run_1', sessionId: 'ses_run' });
    await cluster.rows(`update runs set state = 'running', created_at = now() - interval '150 minutes'`);
    await cluster.host({ purgeEveryMs: 20 });
    await eventually(async () => (await cluster.count('tool_lists', `hash = 'dropped'`)) === 0);

    expect(await cluster.rows('select effect_id from claims')).toEqual([{ effect_id: 'young' }]);
    expect(await cluster.rows('select hash, unused_since is null as "isUsed" from tool_lists order by hash')).toEqual([
      { hash: 'fresh', isUsed: false },
      { hash: 'returned', isUsed: true },
      { hash: 'used', isUsed: false },
      { hash: 'young', isUsed: true },
    ]);
    expect(await cluster.rows('select bundle_hash from tool_servers order by bundle_hash')).toEqual([{ bundle_hash: 'b1' }, { bundle_hash: 'b2' }]);
  });
}
