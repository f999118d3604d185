import { afterEach, beforeEach, describe } from 'vitest';
import { blobCases, blobWindowCases } from './conformance/blobs.ts';
import { bodyCases } from './conformance/bodies.ts';
import { capacityCases } from './conformance/capacity.ts';
import { closingCases } from './conformance/closing.ts';
import { commandCases, commandReopenCases, commandWindowCases } from './conformance/commands.ts';
import { dispatchCases } from './conformance/dispatches.ts';
import { noticeCases } from './conformance/notices.ts';
import { positionCases } from './conformance/positions.ts';
import { tokenCases, tokenWindowCases } from './conformance/tokens.ts';
import { type BusKind, type BusUnderTest, TIMEOUT_MS, type UnderTest } from './conformance/under-test.ts';
import { usageCases, usageReopenCases, usageWindowCases } from './conformance/usage.ts';
import { workCases, workReopenCases, workWindowCases } from './conformance/work.ts';

const casesByKind: Record<BusKind, readonly ((underTest: UnderTest) => void)[]> = {
  ordinary: [
    commandCases,
    positionCases,
    workCases,
    dispatchCases,
    noticeCases,
    tokenCases,
    blobCases,
    bodyCases,
    closingCases,
    commandReopenCases,
    workReopenCases,
    usageCases,
    usageReopenCases,
  ],
  brief: [commandWindowCases, workWindowCases, tokenWindowCases, blobWindowCases, usageWindowCases],
  small: [capacityCases],
};

/**
 * The conformance suite of the bus port; every driver runs every case.
 *
 * @param open opens a bus of the kind on an empty store; called once per case
 */
export function busConformance(name: string, open: (kind: BusKind) => Promise<BusUnderTest>): void {
  // Waits inside have shorter limits and name their condition.
  // Its cases share a bus, also where two suites run side by side.
  describe.sequential(name, { timeout: 2 * TIMEOUT_MS }, () => {
    for (const kind of ['ordinary', 'brief', 'small'] as const) {
      describe(`opened ${kind}`, () => {
        let held: BusUnderTest;
        beforeEach(async () => {
          held = await open(kind);
        });
        afterEach(() => held.close());

        for (const cases of casesByKind[kind]) cases(() => held);
      });
    }
  });
}
