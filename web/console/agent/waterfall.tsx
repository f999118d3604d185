import type { ResultOf } from '#client/api.ts';
import { ms, usd } from '../texts.ts';

type Turn = ResultOf<'GET', '/sessions/{session_id}/turns/{trace_id}'>;

/** The model calls of a turn in their order, each from its opening to its end. A call without a record of usage is a point. */
export function Waterfall({ turn: { calls, created_at: createdAt, ended_at: endedAt } }: { turn: Turn }) {
  if (calls.length === 0) return <p class="faint">Its model calls are not stored.</p>;
  const beginMs = Math.min(Date.parse(createdAt), ...calls.map(({ opened_at: openedAt }) => Date.parse(openedAt)));
  const ends = calls.map(({ opened_at: openedAt, ms: duration }) => Date.parse(openedAt) + (duration ?? 0));
  const wholeMs = Math.max(1, ...ends.map((end) => end - beginMs), endedAt === null ? 0 : Date.parse(endedAt) - beginMs);
  const percent = (part: number) => `${(100 * part) / wholeMs}%`;
  return (
    <>
      <h4>Model calls within {ms(wholeMs)}</h4>
      <ol class="waterfall">
        {calls.map(({ id, kind, opened_at: openedAt, ms: duration, model, provider, cost }) => (
          <li key={id}>
            <span>
              {kind} <span class="faint">{[model, provider, ms(duration), usd(cost)].filter((text) => text !== null).join(' · ')}</span>
            </span>
            <span class="track" aria-hidden="true">
              <span style={{ left: percent(Date.parse(openedAt) - beginMs), width: percent(duration ?? 0) }} />
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}
