import { useState } from 'preact/hooks';
import { Problem } from '../problem.tsx';
import { timeText } from '../texts.ts';
import { useLoaded } from '../use-loaded.ts';
import type { WithClient } from './with-client.ts';

const REFRESH_MS = 3_000;

/** How far the events of a session are posted; nothing for a session without event webhook. */
export function EventWebhook({ client, sessionId }: WithClient & { sessionId: string }) {
  const [isMissing, setMissing] = useState(false);
  const load = async () => {
    try {
      return await client.request('GET', '/sessions/{session_id}/event_webhook', { path: { session_id: sessionId } });
    } catch (error) {
      if (Object(error).status !== 404) throw error;
      setMissing(true);
      return null;
    }
  };
  // It is not asked again: most sessions have none.
  const { value, failure } = useLoaded(sessionId, load, isMissing ? null : REFRESH_MS);
  if (value === null) return failure === null ? null : <Problem error={failure} />;
  const { is_on: isOn, url, from_offset: next, attempts, waiting_since: since } = value;
  return (
    <p>
      Event webhook <span class="badge">{isOn ? 'on' : 'off'}</span> {url ?? 'of the deployment'} · next offset {next}
      {since !== null && ` · ${attempts} failed, since ${timeText(since)}`}
    </p>
  );
}
