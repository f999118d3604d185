import { afterAll, beforeAll, describe } from 'vitest';
import { effectCases } from './conformance/effect-cases.ts';
import { fenceCases } from './conformance/fence-cases.ts';
import { hostCases } from './conformance/host-cases.ts';
import { outcomeCases } from './conformance/outcome-cases.ts';
import { partitionCases } from './conformance/partition-cases.ts';
import { runCases } from './conformance/run-cases.ts';
import { sessionCases } from './conformance/session-cases.ts';
import type { StoreUnderTest, UnderTest } from './conformance/store-under-test.ts';
import { timerCases } from './conformance/timer-cases.ts';

const suites: readonly ((underTest: UnderTest) => void)[] = [
  partitionCases,
  hostCases,
  fenceCases,
  outcomeCases,
  sessionCases,
  effectCases,
  timerCases,
  runCases,
];

/**
 * The conformance suite of `RuntimeStore` drivers.
 *
 * @param open opens an initialised store, empty otherwise; called once
 */
export function runtimeStoreConformance(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(name, () => {
    let opened: StoreUnderTest;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened?.close());

    for (const cases of suites) cases(() => opened);
  });
}
