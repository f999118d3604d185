import type { SessionStatus } from '#shared/contracts/agent/conversation-event.ts';
import type { LoopActions } from './types.ts';

/** A `status` event. @param detail safe to show; the cause is in the logs */
export function statusFact(
  status: SessionStatus,
  { stage = null, detail = null }: { stage?: string | null; detail?: string | null } = {},
): LoopActions['fact'] {
  return { content: { kind: 'status', status, stage, error_detail: detail }, id: null, metadata: {} };
}
