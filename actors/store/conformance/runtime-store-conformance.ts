import { afterAll, beforeAll, describe } from 'vitest';
import { customerCases } from './customer-cases.ts';
import { effectCases } from './effect-cases.ts';
import { fenceCases } from './fence-cases.ts';
import { hostCases } from './host-cases.ts';
import { outcomeCases } from './outcome-cases.ts';
import { partitionCases } from './partition-cases.ts';
import { runCases } from './run-cases.ts';
import { sessionCases } from './session-cases.ts';
import type { StoreUnderTest, UnderTest } from './store-under-test.ts';
import { timerCases } from './timer-cases.ts';
import { turnCases } from './turn-cases.ts';

const suites: readonly ((underTest: UnderTest) => void)[] = [
  partitionCases,
  hostCases,
  fenceCases,
  outcomeCases,
  sessionCases,
  effectCases,
  timerCases,
  runCases,
  turnCases,
  customerCases,
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
