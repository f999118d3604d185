import type { ResultOf } from '#client/api.ts';
import { Bars } from './bars.tsx';
import { Problem } from './problem.tsx';
import { ms, timeText } from './texts.ts';
import { useLoaded } from './use-loaded.ts';
import { usePagedList } from './use-paged-list.ts';
import { addressOf } from './use-route.ts';
import { VirtualList } from './virtual-list.tsx';

/** Both gateways have the same. */
export type TraceList = ResultOf<'GET', '/traces'>;
export type Trace = ResultOf<'GET', '/traces/{trace_id}'>;

export interface TraceSource {
  list(): Promise<TraceList>;
  one(traceId: string): Promise<Trace>;
}

const REFRESH_MS = 3_000;

/** The last traces of the gateway's process, newest first; one of them with its spans. */
export function Traces({ source, traceId }: { source: TraceSource; traceId: string | null }) {
  const list = usePagedList<TraceList['traces'][number]>(
    ({ trace_id }) => trace_id,
    async () => ({ items: (await source.list()).traces, next_cursor: null }),
    REFRESH_MS,
  );
  return (
    <div class="columns">
      <section class="card" aria-label="Traces">
        <VirtualList
          label="List of traces"
          list={list}
          keyOf={({ trace_id }) => trace_id}
          empty="There are no traces."
          row={({ trace_id, name, duration_ms, spans, error_type, started_at }) => (
            <a class="row" href={addressOf('traces', trace_id)} aria-current={trace_id === traceId ? 'true' : undefined}>
              <span class="wide">{name}</span>
              <span class="badge">{error_type ?? ms(duration_ms)}</span>
              <span>spans: {spans}</span>
              <time dateTime={started_at}>{timeText(started_at)}</time>
            </a>
          )}
        />
      </section>
      {traceId !== null && <TraceView key={traceId} source={source} traceId={traceId} />}
    </div>
  );
}

function TraceView({ source, traceId }: { source: TraceSource; traceId: string }) {
  const { value, failure } = useLoaded(traceId, () => source.one(traceId), REFRESH_MS);
  const bars = value?.spans.map(({ span_id: id, name, duration_ms: durationMs, started_at: startedAt, error_type: error }) => ({
    ...{ id, name, durationMs },
    note: `${ms(durationMs)} ${error ?? ''}`,
    beginMs: Date.parse(startedAt),
  }));
  return (
    <section class="card" aria-label="Trace">
      <h2>{traceId}</h2>
      {failure !== null && <Problem error={failure} />}
      {bars !== undefined && <Bars title="Spans" bars={bars} fromMs={bars[0]?.beginMs ?? 0} untilMs={0} />}
      {value !== null && value.omitted_spans > 0 && <p class="faint">{value.omitted_spans} more are not kept.</p>}
    </section>
  );
}
