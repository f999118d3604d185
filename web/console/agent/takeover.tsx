import { useState } from 'preact/hooks';
import type { Session } from '#client/api.ts';
import { newKey } from '#client/new-key.ts';
import { DangerousButton } from '../dangerous-button.tsx';
import { errorOf } from '../error-of.ts';
import { Problem } from '../problem.tsx';
import type { WithClient } from './with-client.ts';

interface TakeoverProps extends WithClient {
  session: Session;
  onChange(): void;
}

/** Takes a conversation over from the agent, writes in its name, and hands it back. */
export function Takeover({ client, session: { id, mode }, onChange }: TakeoverProps) {
  const change = async (to: 'auto' | 'manual') => {
    await client.sessions.change(id, { mode: to });
    onChange();
  };
  if (mode === 'auto') {
    const consequence = 'The agent no longer answers in this session, until it is handed back. What it is writing now is still sent.';
    return <DangerousButton label="Take over" consequence={consequence} act={() => change('manual')} />;
  }
  return (
    <>
      <DangerousButton label="Hand back" consequence="The agent answers the next message of the customer again." act={() => change('auto')} />
      <WriteAsAgent client={client} sessionId={id} />
    </>
  );
}

function WriteAsAgent({ client, sessionId }: WithClient & { sessionId: string }) {
  const [text, setText] = useState('');
  // One for each text: sent again after a failure, it is appended once.
  const [key, setKey] = useState(newKey);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const body = { kind: 'message', source: 'human_agent_on_behalf_of_ai_agent', message: text } as const;
      await client.request('POST', '/sessions/{session_id}/events', { path: { session_id: sessionId }, body, idempotencyKey: key });
      setText('');
      setKey(newKey());
      setFailure(null);
    } catch (error) {
      setFailure(errorOf(error));
    }
    setBusy(false);
  };
  return (
    <form class="write" onSubmit={(event) => void send(event)}>
      <label for="as-agent">Message in the name of the agent</label>
      <textarea
        id="as-agent"
        rows={3}
        required
        value={text}
        onInput={({ currentTarget: { value } }) => {
          setText(value);
          setKey(newKey());
        }}
      />
      {failure !== null && <Problem error={failure} />}
      <button type="submit" disabled={isBusy || text === ''}>
        Send as agent
      </button>
    </form>
  );
}
