import { Problem } from '../problem.tsx';
import { ms, timeText, usd } from '../texts.ts';
import { useLoaded } from '../use-loaded.ts';
import { addressOf } from '../use-route.ts';
import type { Generation } from './router-api.ts';
import type { WithApi } from './with-api.ts';

/** Why a call went where it went. */
export function Generations({ api, generationId }: WithApi & { generationId: string | null }) {
  const look = (event: SubmitEvent) => {
    event.preventDefault();
    location.hash = addressOf('generations', String(new FormData(event.currentTarget as HTMLFormElement).get('id')).trim());
  };
  return (
    <>
      <form class="filters" onSubmit={look} aria-label="Generation">
        <input name="id" aria-label="Id of a generation" placeholder="gen-…" required defaultValue={generationId ?? ''} />
        <button type="submit">Show</button>
      </form>
      {generationId !== null && <GenerationView key={generationId} api={api} id={generationId} />}
    </>
  );
}

function GenerationView({ api, id }: WithApi & { id: string }) {
  const { value, failure } = useLoaded(id, () => api.generation(id));
  if (failure !== null) return <Problem error={failure} />;
  if (value === null) return <p class="faint">Loading…</p>;
  return (
    <section class="card" aria-label="Record of the generation">
      <h2>
        {value.model} at {value.provider_name ?? 'no provider'}
      </h2>
      <p class="faint">
        {timeText(value.created_at)} · {value.finish_reason ?? 'not finished'} · {value.tokens_prompt} + {value.tokens_completion} tokens ·{' '}
        {usd(value.total_cost)} · first token after {ms(value.latency)}, whole {ms(value.generation_time)}
      </p>
      <h3>Why this provider</h3>
      <Routing routing={value.routing} />
      <h3>Attempts</h3>
      <ol class="plain">
        {value.provider_responses.map((attempt, index) => (
          <li key={index}>
            {attempt.endpoint_id ?? attempt.provider_name} <span class="badge">{attempt.error_type ?? attempt.status}</span>{' '}
            <span class="faint">{ms(attempt.generation_time)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Routing({ routing }: Pick<Generation, 'routing'>) {
  if (routing === null) return <p>No decision is recorded for this call.</p>;
  return (
    <>
      <p>
        {routing.requested === null ? 'There was nothing to decide' : `Asked for ${routing.requested.join(', ')}`}: strategy <code>{routing.strategy}</code>
        {routing.sorted_by !== null && (
          <>
            , sorted by <code>{routing.sorted_by}</code>
          </>
        )}
        .
      </p>
      <ol class="plain">
        {routing.endpoints.available.map(({ endpoint, selected, health, price, sticky, slow }) => (
          <li key={endpoint}>
            <code>{endpoint}</code> {selected && <span class="badge">answered</span>}{' '}
            <span class="faint">
              {[
                health,
                price === null ? null : `${usd(price)} per million tokens`,
                sticky ? 'served the conversation before' : null,
                slow ? 'slower than preferred' : null,
              ]
                .filter((text) => text !== null)
                .join(' · ')}
            </span>
          </li>
        ))}
      </ol>
      {routing.excluded.map(({ filter, total, endpoints }) => (
        <p key={filter}>
          {total} left out by <code>{filter}</code>: {endpoints.join(', ')}
        </p>
      ))}
    </>
  );
}
