import type { ResultOf } from '#client/api.ts';
import { Bars } from '../bars.tsx';
import { ms, usd } from '../texts.ts';

type Turn = ResultOf<'GET', '/sessions/{session_id}/turns/{trace_id}'>;

/** The model calls of a turn in their order. A call without a record of usage is a point. */
export function Waterfall({ turn: { calls, created_at: createdAt, ended_at: endedAt } }: { turn: Turn }) {
  if (calls.length === 0) return <p class="faint">Its model calls are not stored.</p>;
  const bars = calls.map(({ id, kind, opened_at: openedAt, ms: duration, model, provider, cost }) => ({
    id,
    name: kind,
    note: [model, provider, ms(duration), usd(cost)].filter((text) => text !== null).join(' · '),
    beginMs: Date.parse(openedAt),
    durationMs: duration ?? 0,
  }));
  return <Bars title="Model calls" bars={bars} fromMs={Date.parse(createdAt)} untilMs={endedAt === null ? 0 : Date.parse(endedAt)} />;
}
