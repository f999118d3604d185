import { Shell } from '../shell.tsx';
import { type TraceSource, Traces } from '../traces.tsx';
import { useSection } from '../use-route.ts';
import { DeadLetters } from './dead-letters.tsx';
import { Deliveries } from './deliveries.tsx';
import { RoutineGraph } from './routine-graph.tsx';
import { Routines } from './routines.tsx';
import { Runs } from './runs.tsx';
import { SessionView } from './session-view.tsx';
import { Sessions } from './sessions.tsx';
import type { WithClient } from './with-client.ts';

const SECTIONS = [
  ['sessions', 'Sessions'],
  ['routines', 'Routines'],
  ['runs', 'Runs'],
  ['deliveries', 'Deliveries'],
  ['dead-letters', 'Dead letters'],
  ['traces', 'Traces'],
] as const;

export function AgentConsole({ client, title }: WithClient & { title: string }) {
  const [section = '', id, detail] = useSection(SECTIONS);
  const logOut = (
    <form method="post" action="/auth/logout">
      <button type="submit" class="quiet">
        Log out
      </button>
    </form>
  );
  return (
    <Shell title={title} sections={SECTIONS} current={section} action={logOut}>
      {section === 'sessions' && id === undefined && <Sessions client={client} />}
      {section === 'sessions' && id !== undefined && <SessionView key={id} client={client} sessionId={id} turn={detail ?? null} />}
      {section === 'routines' && id === undefined && <Routines client={client} />}
      {section === 'routines' && id !== undefined && <RoutineGraph key={`${id} ${detail}`} client={client} journeyId={id} sessionId={detail ?? null} />}
      {section === 'runs' && <Runs client={client} runId={id ?? null} />}
      {section === 'deliveries' && <Deliveries client={client} />}
      {section === 'dead-letters' && <DeadLetters client={client} />}
      {section === 'traces' && <Traces source={tracesOf(client)} traceId={id ?? null} />}
    </Shell>
  );
}

function tracesOf(client: WithClient['client']): TraceSource {
  return {
    list: () => client.request('GET', '/traces', { query: { limit: 200 } }),
    one: (traceId) => client.request('GET', '/traces/{trace_id}', { path: { trace_id: traceId } }),
  };
}
