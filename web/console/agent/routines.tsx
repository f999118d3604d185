import { Problem } from '../problem.tsx';
import { useLoaded } from '../use-loaded.ts';
import { addressOf } from '../use-route.ts';
import type { WithClient } from './with-client.ts';

/** The agent's routines. */
export function Routines({ client }: WithClient) {
  const { value, failure } = useLoaded('routines', () => client.request('GET', '/journeys'));
  if (failure !== null) return <Problem error={failure} />;
  return (
    <section class="card" aria-label="Routines">
      {value?.items.length === 0 && <p class="faint">The agent has no routines.</p>}
      <ul class="plain">
        {value?.items.map(({ id, routine_id, title, kind, description }) => (
          <li key={id}>
            <a href={addressOf('routines', routine_id)}>{title}</a> <span class="badge">{kind}</span> <span class="faint">{description}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
