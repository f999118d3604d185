import type { CallFailed } from '../tool-loop/types.ts';

/** A result that its turn does not await, as an event that changes nothing there. */
export function notAwaited(callId: string): CallFailed {
  return { type: 'call.failed', callId, failure: { code: 'internal', message: 'a result that is not awaited', details: {} } };
}
