import { actorIds } from '#shared/telemetry/actor-ids.ts';
import { traceIdIn } from '#shared/telemetry/trace-context.ts';

interface EffectWork {
  effectId: string;
  sessionId: string;
  traceparent: string | null;
  /** The turn or run that waits for the effect. */
  actorId?: string;
}

/** For log lines. */
export function effectIds({ effectId, sessionId, traceparent, actorId }: EffectWork): Record<string, unknown> {
  const ids = { effect_id: effectId, session_id: sessionId, trace_id: traceIdIn(traceparent) };
  return actorId === undefined ? ids : { ...ids, ...actorIds(actorId) };
}
