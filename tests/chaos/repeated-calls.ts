import { expect } from 'vitest';

/** Each repeat of a call beyond those that are allowed of every call: the call, as often as it was made too often. */
export function repeatsBeyond(allowedOfEach: number, calls: Iterable<string>): string[] {
  const times = new Map<string, number>();
  for (const call of calls) times.set(call, (times.get(call) ?? 0) + 1);
  return [...times].flatMap(([call, count]) => Array.from({ length: Math.max(0, count - 1 - allowedOfEach) }, () => call));
}

/** Of one call, by the leases that a starved worker lost. */
const MOST_REDELIVERIES_OF_ONE = 2;

/**
 * A running worker that got no CPU for seconds loses its leases, and the next delivery may make a call again (docs/guarantees.md, "A call may be made twice").
 * Each delivery makes a call once, so each repeat has a redelivery of its own.
 *
 * @param repeats beyond those that faults explain
 * @param redelivered calls that a running worker got again meanwhile
 * @throws with the calls
 */
export function expectRedelivered(repeats: readonly string[], redelivered: number): void {
  const message = `a model call was made again too often; ${redelivered} were redelivered: ${JSON.stringify(repeats)}`;
  expect(repeats.length, message).toBeLessThanOrEqual(redelivered);
  expect(repeatsBeyond(MOST_REDELIVERIES_OF_ONE - 1, repeats), message).toEqual([]);
}
