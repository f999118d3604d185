import type { Run } from '#client/api.ts';
import { Choice } from '../choice.tsx';
import { DangerousButton } from '../dangerous-button.tsx';
import { Problem } from '../problem.tsx';
import { counted, json, ms, timeText } from '../texts.ts';
import { useLoaded } from '../use-loaded.ts';
import { pageQuery, usePagedList } from '../use-paged-list.ts';
import { addressOf } from '../use-route.ts';
import { VirtualList } from '../virtual-list.tsx';
import type { WithClient } from './with-client.ts';

type Status = Run['status'];
const STATUSES: readonly Status[] = ['accepted', 'running', 'succeeded', 'failed'];
const REFRESH_MS = 2_000;

/** Runs, newest first; one of them with its steps. */
export function Runs({ client, runId }: WithClient & { runId: string | null }) {
  const loading = (status: string) => (cursor: string | undefined) =>
    client.request('GET', '/runs', { query: { ...pageQuery(cursor), ...(status !== '' && { status: status as Status }) } });
  const list = usePagedList<Run>(({ run_id }) => run_id, loading(''));
  return (
    <div class="columns">
      <section class="card" aria-label="Runs">
        <div class="head">
          <Choice label="Status of the runs" any="Any status" values={STATUSES} onChoice={(status) => list.reset(loading(status))} />
        </div>
        <VirtualList
          label="List of runs"
          list={list}
          keyOf={({ run_id }) => run_id}
          empty="There are no runs."
          row={({ run_id, routine_id, status, created_at }) => (
            <a class="row" href={addressOf('runs', run_id)} aria-current={run_id === runId ? 'true' : undefined}>
              <span class="wide">{routine_id}</span>
              <span class="badge">{status}</span>
              <time dateTime={created_at}>{timeText(created_at)}</time>
            </a>
          )}
        />
      </section>
      {runId !== null && <RunView key={runId} client={client} runId={runId} />}
    </div>
  );
}

function RunView({ client, runId }: WithClient & { runId: string }) {
  const path = { run_id: runId };
  const load = () =>
    Promise.all([
      client.request('GET', '/runs/{run_id}', { path }),
      client.request('GET', '/runs/{run_id}/steps', { path, query: { limit: 200 } }),
      client.request('GET', '/runs/{run_id}/deliveries', { path }),
    ]);
  const { value, failure, reload } = useLoaded(runId, load, REFRESH_MS);
  if (value === null) return failure === null ? null : <Problem error={failure} />;
  const [run, { items: steps }, { items: deliveries }] = value;
  const cancel = async () => {
    await client.request('POST', '/runs/{run_id}/cancel', { path });
    reload();
  };
  return (
    <section class="card" aria-label="Run">
      <h2>{run.run_id}</h2>
      <p>
        <span class="badge">{run.status}</span> {run.routine_id} · <a href={addressOf('sessions', run.session_id)}>its session</a>
      </p>
      {run.completed_at === null && (
        <DangerousButton label="Cancel the run" consequence="The run fails as engine_error, and its callback says so." act={cancel} />
      )}
      <ol class="plain">
        {steps.map(({ step, kind, tool_id, outcome, reason, ms: duration }) => (
          <li key={step}>
            {kind} {tool_id} <span class="badge">{outcome ?? 'in flight'}</span> {reason} <span class="faint">{ms(duration)}</span>
          </li>
        ))}
      </ol>
      {deliveries.map(({ id, url, state, attempts }) => (
        <p key={id}>
          Callback to {url}: <span class="badge">{state}</span> after {counted(attempts, 'try', 'tries')}
        </p>
      ))}
      <h3>Outcome</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by key */}
      <pre tabIndex={0}>{json(run.error ?? run.output)}</pre>
    </section>
  );
}
