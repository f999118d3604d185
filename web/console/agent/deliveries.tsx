import type { ResultOf } from '#client/api.ts';
import { Choice } from '../choice.tsx';
import { counted, timeText } from '../texts.ts';
import { pageQuery, usePagedList } from '../use-paged-list.ts';
import { addressOf } from '../use-route.ts';
import { VirtualList } from '../virtual-list.tsx';
import type { WithClient } from './with-client.ts';

type Callback = ResultOf<'GET', '/deliveries'>['items'][number];
type Taken = ResultOf<'GET', '/webhook_deliveries'>['items'][number];
const STATES: readonly Callback['state'][] = ['open', 'delivered', 'dead'];

/** What was posted to callers, and what webhooks have taken. */
export function Deliveries({ client }: WithClient) {
  const loading = (state: string) => (cursor: string | undefined) =>
    client.request('GET', '/deliveries', { query: { ...pageQuery(cursor), ...(state !== '' && { state: state as Callback['state'] }) } });
  const callbacks = usePagedList<Callback>(({ id }) => id, loading(''));
  const taken = usePagedList<Taken>(keyOfTaken, (cursor) => client.request('GET', '/webhook_deliveries', { query: pageQuery(cursor) }));
  return (
    <div class="columns">
      <section class="card" aria-label="Callbacks">
        <div class="head">
          <h2>Callbacks</h2>
          <Choice label="State of the callbacks" any="Any state" values={STATES} onChoice={(state) => callbacks.reset(loading(state))} />
        </div>
        <VirtualList
          label="List of callbacks"
          list={callbacks}
          keyOf={({ id }) => id}
          empty="Nothing was posted."
          row={({ run_id, url, state, attempts, created_at }) => (
            <a class="row" href={addressOf('runs', run_id)}>
              <span class="wide">{url}</span>
              <span class="badge">{state}</span>
              <span>{counted(attempts, 'try', 'tries')}</span>
              <time dateTime={created_at}>{timeText(created_at)}</time>
            </a>
          )}
        />
      </section>
      <section class="card" aria-label="Webhooks">
        <h2>Webhooks</h2>
        <VirtualList
          label="Deliveries to webhooks"
          list={taken}
          keyOf={keyOfTaken}
          empty="No webhook was called."
          row={({ webhook, matched, runs, received_at }) => (
            <div class="row">
              <span class="wide">{webhook}</span>
              <span>{matched.length === 0 ? 'for no routine' : matched.join(', ')}</span>
              {runs[0] !== undefined && <a href={addressOf('runs', runs[0].run_id)}>{runs[0].status}</a>}
              <time dateTime={received_at}>{timeText(received_at)}</time>
            </div>
          )}
        />
      </section>
    </div>
  );
}

function keyOfTaken({ webhook, body_hash: hash }: Taken): string {
  return `${webhook} ${hash}`;
}
