import type { ResultOf } from '#client/api.ts';
import { timeText } from '../texts.ts';
import { pageQuery, usePagedList } from '../use-paged-list.ts';
import { addressOf } from '../use-route.ts';
import { VirtualList } from '../virtual-list.tsx';
import type { WithClient } from './with-client.ts';

type Turn = ResultOf<'GET', '/sessions/{session_id}/turns'>['items'][number];
const REFRESH_MS = 3_000;

/** The turns of a session, newest first, kept up to date. */
export function Turns({ client, sessionId }: WithClient & { sessionId: string }) {
  const path = { session_id: sessionId };
  const list = usePagedList<Turn>(
    ({ trace_id }) => trace_id,
    (cursor) => client.request('GET', '/sessions/{session_id}/turns', { path, query: pageQuery(cursor, 50) }),
    REFRESH_MS,
  );
  return (
    <VirtualList
      label="Turns of the session"
      list={list}
      keyOf={({ trace_id }) => trace_id}
      empty="There are no turns."
      row={({ trace_id, begin_offset, outcome, error, policies, tools, created_at }) => (
        <a class="row" href={addressOf('sessions', sessionId, trace_id)}>
          <span class="number">{begin_offset}</span>
          <span class="badge">{outcome}</span>
          <span class="wide">{error ?? `policies: ${policies.length}, tools: ${tools.length}`}</span>
          <time dateTime={created_at}>{timeText(created_at)}</time>
        </a>
      )}
    />
  );
}
