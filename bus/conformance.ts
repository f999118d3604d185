import { afterEach, beforeEach, describe } from 'vitest';
import { blobCases, blobClockCases } from './conformance/blobs.ts';
import { bodyCases } from './conformance/bodies.ts';
import { closingCases } from './conformance/closing.ts';
import { commandCases, commandClockCases, commandReopenCases } from './conformance/commands.ts';
import { noticeCases } from './conformance/notices.ts';
import { tokenCases, tokenClockCases } from './conformance/tokens.ts';
import { type BusUnderTest, PATIENCE_MS } from './conformance/under-test.ts';
import { workCases, workClockCases, workReopenCases } from './conformance/work.ts';

/**
 * What every driver of the bus must do, seen through the port alone.
 *
 * @param open a bus on an empty store; called once per case
 * @param without groups that the driver can't be put through, because its harness has no `reopen` or no `advance`
 */
export function busConformance(name: string, open: () => Promise<BusUnderTest>, { without = [] }: { without?: readonly ('reopen' | 'clock')[] } = {}): void {
  // Every wait inside has a bound of its own; the case must not be cut short before that one says what it waited for.
  describe(name, { timeout: 2 * PATIENCE_MS }, () => {
    let held: BusUnderTest;
    const underTest = () => held;
    beforeEach(async () => {
      held = await open();
    });
    afterEach(() => held.close());

    commandCases(underTest);
    workCases(underTest);
    noticeCases(underTest);
    tokenCases(underTest);
    blobCases(underTest);
    bodyCases(underTest);
    closingCases(underTest);
    if (!without.includes('reopen')) {
      commandReopenCases(underTest);
      workReopenCases(underTest);
    }
    if (!without.includes('clock')) {
      commandClockCases(underTest);
      workClockCases(underTest);
      tokenClockCases(underTest);
      blobClockCases(underTest);
    }
  });
}
