import { useState } from 'preact/hooks';
import { Problem } from '../problem.tsx';
import { counted, timeText } from '../texts.ts';
import { useLoaded } from '../use-loaded.ts';
import { addressOf } from '../use-route.ts';
import { EventLog } from './event-log.tsx';
import { EventWebhook } from './event-webhook.tsx';
import { Takeover } from './takeover.tsx';
import { TurnView } from './turn-view.tsx';
import { Turns } from './turns.tsx';
import type { WithClient } from './with-client.ts';

interface SessionViewProps extends WithClient {
  sessionId: string;
  /** Of the turn that is shown; null: none. */
  /** As `TurnView` names it; null: the list of turns. */
  turn: string | null;
}

const REFRESH_MS = 2_000;

/** One session: its record, takeover, log and turns. */
export function SessionView({ client, sessionId, turn }: SessionViewProps) {
  const { value: session, failure, reload } = useLoaded(sessionId, () => client.sessions.get(sessionId), REFRESH_MS);
  const [fromOffset, setFromOffset] = useState<number | null>(null);
  const from = (event: SubmitEvent) => {
    event.preventDefault();
    setFromOffset(Number(new FormData(event.currentTarget as HTMLFormElement).get('offset')));
  };
  if (session === null) return failure === null ? null : <Problem error={failure} />;
  return (
    <div class="session">
      {failure !== null && <Problem error={failure} />}
      <section class="card" aria-label="Session">
        <h2>{session.title ?? session.id}</h2>
        <p class="faint">
          Customer {session.customer_id} · {session.status} · {session.mode} · {counted(session.last_offset + 1, 'event', 'events')} · since{' '}
          {timeText(session.created_at)} · <a href={`/chat?session=${encodeURIComponent(sessionId)}`}>chat</a>
        </p>
        <EventWebhook client={client} sessionId={sessionId} />
        <Takeover client={client} session={session} onChange={reload} />
      </section>
      <div class="columns">
        <section class="card" aria-label="Log">
          <div class="head">
            <h2>Log</h2>
            <form class="filters" onSubmit={from} aria-label="Place in the log">
              <input name="offset" type="number" min="0" aria-label="From offset" placeholder="From offset" required />
              <button type="submit" class="quiet">
                Go
              </button>
            </form>
          </div>
          <EventLog key={fromOffset} client={client} sessionId={sessionId} from={fromOffset ?? Math.max(0, session.last_offset - 199)} />
        </section>
        <section class="card" aria-label="Turns">
          <h2>Turns</h2>
          {turn === null ? (
            <Turns client={client} sessionId={sessionId} />
          ) : (
            <>
              <p>
                <a href={addressOf('sessions', sessionId)}>All turns</a>
              </p>
              <TurnView client={client} sessionId={sessionId} turn={turn} />
            </>
          )}
        </section>
      </div>
    </div>
  );
}
