import type { ResultOf } from '#client/api.ts';
import { timeText } from '../texts.ts';
import { pageQuery, usePagedList } from '../use-paged-list.ts';
import { addressOf } from '../use-route.ts';
import { VirtualList } from '../virtual-list.tsx';
import type { WithClient } from './with-client.ts';

type Turn = ResultOf<'GET', '/sessions/{session_id}/turns'>['items'][number];
const REFRESH_MS = 3_000;

/** Messages that came in one trace of a caller begin several turns with its id. */
const turnKey = ({ trace_id, begin_offset }: Turn) => `${trace_id}.${begin_offset}`;

/** The turns of a session, newest first, kept up to date. */
export function Turns({ client, sessionId }: WithClient & { sessionId: string }) {
  const path = { session_id: sessionId };
  const list = usePagedList<Turn>(
    turnKey,
    (cursor) => client.request('GET', '/sessions/{session_id}/turns', { path, query: pageQuery(cursor, 50) }),
    REFRESH_MS,
  );
  return (
    <VirtualList
      label="Turns of the session"
      list={list}
      keyOf={turnKey}
      empty="There are no turns."
      row={(turn) => (
        <a class="row" href={addressOf('sessions', sessionId, turnKey(turn))}>
          <span class="number">{turn.begin_offset}</span>
          <span class="badge">{turn.outcome}</span>
          <span class="wide">{turn.error ?? `policies: ${turn.policies.length}, tools: ${turn.tools.length}`}</span>
          <time dateTime={turn.created_at}>{timeText(turn.created_at)}</time>
        </a>
      )}
    />
  );
}
