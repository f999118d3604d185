import { expect, it } from 'vitest';
import { printFigures } from '../../scripts/chaos-figures.mjs';
import { openEnvironment } from './environment.ts';
import { builtRelease, formerCommit } from './former-release.ts';
import { checkInvariants } from './invariants.ts';
import { beginLoad } from './load.ts';
import { refusalsBeyond503 } from './refused-streams.ts';
import { replaceServices } from './scenarios/brokers.ts';
import { seededRandom } from './seeded-random.ts';

const TIMEOUT_MS = 900_000;
const UNDER_WAY = 30;

it(
  'DESIGN 3: nothing is lost, and no request is refused but by a 503 with Retry-After, while each process of the release before is replaced under load',
  async () => {
    const former = await builtRelease(await formerCommit());
    const environment = await openEnvironment(seededRandom(1), { folder: former, avoidsEnded: true });
    try {
      const load = beginLoad(environment);
      try {
        await load.more(UNDER_WAY);
        await replaceServices(environment, (some) => load.more(some));
        await load.more(UNDER_WAY);
      } catch (error) {
        load.abandon();
        throw error;
      }
      const accepted = await load.end();
      await checkInvariants(environment, accepted, { extraCalls: 0 });

      expect(accepted.sessions.size).toBeGreaterThan(5);
      expect(refusalsBeyond503(environment, accepted.streams)).toEqual([]);
      expect(environment.refusals).toEqual([]);
      console.info(printFigures(environment.figures));
    } finally {
      await environment.close();
    }
  },
  TIMEOUT_MS,
);

it('a commit that is not in the history is named, and so is what is missing', async () => {
  await expect(builtRelease('0'.repeat(40))).rejects.toThrow(/deploy\/former-release names 0{40}, which is not in git's history here/);
});
