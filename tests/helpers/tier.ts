/**
 * How much of the tests runs. `fast` needs no server and has an answer in minutes; `normal` is `npm test`, with every kind of guarantee in
 * it; `deep` is everything at full count.
 */
export type Tier = 'fast' | 'normal' | 'deep';

const tiers: readonly Tier[] = ['fast', 'normal', 'deep'];

/** That of this run: SWITCHYARD_TEST_TIER, else `normal`. @throws when the variable names no tier */
export const tier = tierOf(process.env['SWITCHYARD_TEST_TIER'] ?? 'normal');

export const isDeep = tier === 'deep';

function tierOf(text: string): Tier {
  const found = tiers.find((one) => one === text);
  if (found === undefined) throw new Error(`SWITCHYARD_TEST_TIER has to be one of ${tiers.join(', ')}, not ${text}`);
  return found;
}
