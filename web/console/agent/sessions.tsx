import type { Session } from '#client/api.ts';
import { counted, timeText } from '../texts.ts';
import { pageQuery, usePagedList } from '../use-paged-list.ts';
import { addressOf } from '../use-route.ts';
import { VirtualList } from '../virtual-list.tsx';
import type { WithClient } from './with-client.ts';

const REFRESH_MS = 3_000;

/** The sessions, newest first, kept up to date; of one customer, or with one label. */
export function Sessions({ client }: WithClient) {
  const loading =
    (filter: { customer_id?: string; label?: string } = {}) =>
    (cursor: string | undefined) =>
      client.sessions.list({ ...filter, ...pageQuery(cursor) });
  const list = usePagedList<Session>(({ id }) => id, loading(), REFRESH_MS);
  const filter = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const [customer, label] = [String(form.get('customer')), String(form.get('label'))];
    list.reset(loading({ ...(customer !== '' && { customer_id: customer }), ...(label !== '' && { label }) }));
  };
  return (
    <>
      <form class="filters" onSubmit={filter} aria-label="Filter of sessions">
        <input name="customer" aria-label="Customer id" placeholder="Customer id" />
        <input name="label" aria-label="Label" placeholder="Label" />
        <button type="submit">Filter</button>
      </form>
      <VirtualList
        label="Sessions"
        list={list}
        keyOf={({ id }) => id}
        empty="There are no sessions."
        row={({ id, title, customer_id, status, mode, created_at, last_offset }) => (
          <a class="row" href={addressOf('sessions', id)}>
            <span class="wide">{title ?? id}</span>
            <span>{customer_id}</span>
            <span class="badge">{mode === 'manual' ? 'manual' : status}</span>
            <span>{counted(last_offset + 1, 'event', 'events')}</span>
            <time dateTime={created_at}>{timeText(created_at)}</time>
          </a>
        )}
      />
    </>
  );
}
