import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { CommitPlan } from '../runtime/apply/commit-plan.ts';
import { acquirePartitions, initialisePartitions, type PartitionClaim, releasePartitions } from '../runtime/partitions/ownership.ts';
import { CommitStore } from './commit-store.ts';

const PARTITION = 7;
let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
  await initialisePartitions(database);
}, 60_000);
beforeEach(() => database.query('update parts set owner = null'));
afterAll(() => database.close());

const take = async (hostId: string): Promise<PartitionClaim> => {
  const [claim] = await acquirePartitions(database, { hostId, machineVersion: 1, logCreated: 'log', partitions: [PARTITION], expiresAfterMs: 5_000 });
  return claim ?? expect.fail('the partition was not free');
};
const commitOf = (claim: PartitionClaim): CommitPlan => {
  const plan = new CommitPlan();
  plan.advance(claim, claim.cursor + 1, null);
  return plan;
};
const storeOver = (over: Pick<Database, 'query'>) => new CommitStore({ database: { ...database, ...over }, log: silentLog, metrics: noMetrics });
const query: Database['query'] = (statement, parameters) => database.query(statement, parameters);
const row = async () => (await database.query('select owner, epoch, commit_no, cursor from parts where p = $1', [PARTITION])).rows[0];

/** A restore resets the claim's epoch, and the next owner then reaches the same epoch and commit number. */
const restoredUnder = async (claim: PartitionClaim): Promise<PartitionClaim> => {
  await database.query('update parts set owner = null, epoch = $2::bigint - 1, commit_no = $3 where p = $1', [PARTITION, claim.epoch, claim.commitNo]);
  const next = await take('host-next');
  expect(next).toMatchObject({ epoch: claim.epoch, commitNo: claim.commitNo });
  return next;
};

describe('DESIGN 4: after a restore of the database another owner has reached the same epoch and commit number', () => {
  it('a commit of the owner before the restore stores nothing, and one of the present owner is stored', async () => {
    const before = await take('host-before');
    const next = await restoredUnder(before);
    const store = storeOver({ query });

    expect(await store.store(commitOf(before))).toEqual({ kind: 'committed', owned: new Set() });
    expect(await row()).toMatchObject({ commit_no: next.commitNo, cursor: next.cursor });
    expect(await store.store(commitOf(next))).toEqual({ kind: 'committed', owned: new Set([PARTITION]) });
  });

  it('a commit of unknown outcome does not count the commit of the present owner as its own', async () => {
    const before = await take('host-before');
    const next = await restoredUnder(before);
    expect(await storeOver({ query }).store(commitOf(next))).toMatchObject({ owned: new Set([PARTITION]) });
    let isLost = false;
    const losing: Database['query'] = async (statement, parameters) => {
      if (isLost) return query(statement, parameters);
      isLost = true;
      throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
    };

    expect(await storeOver({ query: losing }).store(commitOf(before))).toEqual({ kind: 'committed', owned: new Set() });
  });

  it('a release by the owner before the restore leaves the partition with the present owner', async () => {
    const before = await take('host-before');
    await restoredUnder(before);
    await releasePartitions(database, [before]);

    expect(await row()).toMatchObject({ owner: 'host-next' });
  });
});
