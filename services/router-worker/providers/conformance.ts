import { afterEach, beforeEach, describe } from 'vitest';
import { earlyFailureCases } from './conformance/early-failures.ts';
import { lateFailureCases } from './conformance/late-failures.ts';
import { leavingCases } from './conformance/leaving.ts';
import { oddUpstreamCases } from './conformance/odd-upstreams.ts';
import { plainAnswerCases } from './conformance/plain-answers.ts';
import { requestCases } from './conformance/requests.ts';
import { silenceAndSizeCases } from './conformance/silence-and-size.ts';
import { type ConformanceTarget, openUnderTest } from './conformance/under-test.ts';

/** Longer than any wait inside, so that each reports its own timeout. */
const CASE_TIMEOUT_MS = 240_000;

/**
 * Conformance suite of adapters, against a loopback server that speaks the upstream's dialect, faults included.
 *
 * @param isVariant a dialect that another run covers, with other fields: leaves out what reads the same bytes whatever the fields
 */
export function adapterConformance(name: string, target: ConformanceTarget, { isVariant = false } = {}): void {
  describe(name, { timeout: CASE_TIMEOUT_MS }, () => {
    let held: Awaited<ReturnType<typeof openUnderTest>>;
    const underTest = () => held;
    beforeEach(async () => {
      held = await openUnderTest(target);
    });
    afterEach(() => held.close());

    earlyFailureCases(underTest);
    lateFailureCases(underTest);
    oddUpstreamCases(underTest);
    plainAnswerCases(underTest);
    requestCases(underTest);
    if (isVariant) return;
    silenceAndSizeCases(underTest);
    leavingCases(underTest);
  });
}
