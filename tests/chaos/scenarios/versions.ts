import { expect } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { type Environment, TIMEOUT_MS } from '../environment.ts';
import { olderVersion } from '../patched-copy.ts';
import { type Fault, joinHost, killHost, oneOf } from '../scenario.ts';

export const olderBesideNewer: Fault = {
  name: 'a host of an older version runs beside newer ones, one of which is killed',
  extraCalls: 0,
  inject: async (environment) => {
    const newer = environment.hosts();
    const older = await environment.addHost({}, await olderVersion());
    await eventually(() => isKnownAsOlder(environment, older.name), { timeoutMs: TIMEOUT_MS });
    await killHost(environment, oneOf(environment, newer));
    expect(await environment.auditor.ownedBy(older.name), 'a partition is with a host that does not know its snapshots').toBe(0);
    await joinHost(environment);
    await environment.end(older, 'SIGTERM');
  },
};

async function isKnownAsOlder({ database }: Environment, name: string): Promise<boolean> {
  const { rows } = await database.query(
    `select 1 from hosts join chaos.names on names.host_id = hosts.id where names.name = $1 and machine_v < (select max(machine_v) from hosts)`,
    [name],
  );
  return rows.length > 0;
}
