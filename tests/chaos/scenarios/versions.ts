import { expect } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { PATIENCE_MS, type World } from '../environment.ts';
import { olderVersion } from '../patched-copy.ts';
import { type Fault, joinHost, killHost, oneOf } from '../scenario.ts';

export const olderBesideNewer: Fault = {
  name: 'a host of an older version runs beside newer ones, one of which is killed',
  extraCalls: 0,
  strike: async (world) => {
    const newer = world.hosts();
    const older = await world.addHost({}, await olderVersion());
    await eventually(() => isKnownAsOlder(world, older.name), { timeoutMs: PATIENCE_MS });
    await killHost(world, oneOf(world, newer));
    expect(await world.witness.ownedBy(older.name), 'a partition is with a host that does not know its snapshots').toBe(0);
    await joinHost(world);
    await world.end(older, 'SIGTERM');
  },
};

async function isKnownAsOlder({ database }: World, name: string): Promise<boolean> {
  const { rows } = await database.query(
    `select 1 from hosts join chaos.names on names.host_id = hosts.id where names.name = $1 and machine_v < (select max(machine_v) from hosts)`,
    [name],
  );
  return rows.length > 0;
}
