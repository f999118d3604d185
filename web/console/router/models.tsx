import { Problem } from '../problem.tsx';
import { ms } from '../texts.ts';
import { useLoaded } from '../use-loaded.ts';
import { usePagedList } from '../use-paged-list.ts';
import { addressOf } from '../use-route.ts';
import { VirtualList } from '../virtual-list.tsx';
import type { Endpoint, Model } from './router-api.ts';
import type { WithApi } from './with-api.ts';

const PAGE = 200;
const REFRESH_MS = 5_000;
const HEALTH: Readonly<Record<number, string>> = { 0: 'no known fault', [-1]: 'fails often', [-2]: 'asked last' };

/** Models; of one its endpoints with their health. */
export function Models({ api, modelId }: WithApi & { modelId: string | null }) {
  const list = usePagedList<Model>(
    ({ id }) => id,
    async (cursor) => {
      const offset = Number(cursor ?? 0);
      const { data, total_count: total } = await api.models(offset, PAGE);
      return { items: data, next_cursor: offset + data.length < total ? String(offset + data.length) : null };
    },
  );
  return (
    <div class="columns">
      <section class="card" aria-label="Models">
        <h2>Models</h2>
        <VirtualList
          label="List of models"
          list={list}
          keyOf={({ id }) => id}
          empty="There are no models."
          row={({ id, name, context_length }) => (
            <a class="row" href={addressOf('models', id)} aria-current={id === modelId ? 'true' : undefined}>
              <span class="wide">{name}</span>
              <span>{context_length === null ? '' : `${context_length} tokens`}</span>
            </a>
          )}
        />
      </section>
      {modelId !== null && <Endpoints key={modelId} api={api} modelId={modelId} />}
    </div>
  );
}

function Endpoints({ api, modelId }: WithApi & { modelId: string }) {
  const { value, failure } = useLoaded(modelId, () => api.endpoints(modelId), REFRESH_MS);
  return (
    <section class="card" aria-label="Endpoints">
      <h2>{modelId}</h2>
      {failure !== null && <Problem error={failure} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by key */}
      <section class="drawing" aria-label="Figures" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Endpoint</th>
              <th scope="col">Health</th>
              <th scope="col">Uptime, 30 min</th>
              <th scope="col">First token, p50 / p90</th>
              <th scope="col">Tokens per second, p50</th>
            </tr>
          </thead>
          <tbody>
            {value?.map((endpoint) => (
              <EndpointRow key={endpoint.tag} {...endpoint} />
            ))}
          </tbody>
        </table>
      </section>
    </section>
  );
}

function EndpointRow({ name, status, uptime_last_30m: uptime, latency_last_30m: latency, throughput_last_30m: throughput }: Endpoint) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{HEALTH[status] ?? status}</td>
      <td>{uptime === null ? '–' : `${uptime.toFixed(1)} %`}</td>
      <td>{latency === null ? '–' : `${ms(latency.p50)} / ${ms(latency.p90)}`}</td>
      <td>{throughput === null ? '–' : throughput.p50.toFixed(1)}</td>
    </tr>
  );
}
