/**
 * How much of the tests runs. `fast` needs no server and has an answer in minutes; `normal` is `npm test`, with every kind of guarantee in
 * it; `deep` is everything at full count.
 */
export type Tier = 'fast' | 'normal' | 'deep';

const tiers: readonly Tier[] = ['fast', 'normal', 'deep'];

/** The tier of this run: SWITCHYARD_TEST_TIER, else `normal`. @throws when the variable names no tier */
export const tier = tierOf(process.env['SWITCHYARD_TEST_TIER'] ?? 'normal');

/** Decides the cases of the day, and the first seed of the fast tier: SWITCHYARD_TEST_DAY repeats the choice of another day. */
export const day = Number(process.env['SWITCHYARD_TEST_DAY'] ?? Math.floor(Date.now() / 86_400_000));

/** All cases in the deep tier; in the others one of them, another each day. */
export function casesOfToday<Case>(cases: readonly Case[]): readonly Case[] {
  if (tier === 'deep') return cases;
  const index = day % cases.length;
  console.info(`case ${index + 1} of ${cases.length}: SWITCHYARD_TEST_DAY=${day} chooses it again, npm run test:deep runs all`);
  return cases.slice(index, index + 1);
}

function tierOf(text: string): Tier {
  const found = tiers.find((one) => one === text);
  if (found === undefined) throw new Error(`SWITCHYARD_TEST_TIER has to be one of ${tiers.join(', ')}, not ${text}`);
  return found;
}
