import { render } from 'preact';
import { pause } from '#client/abort.ts';
import { createAgentClient } from '#client/agent-client.ts';
import { newKey } from '#client/new-key.ts';
import { Chat } from './chat.ts';
import { ChatPage } from './chat-page.tsx';
import { Outbox } from './outbox.ts';
import { SessionList } from './session-list.ts';

const client = createAgentClient({ baseUrl: location.origin });
const sessions = new SessionList(client);
const chat = new Chat(new URLSearchParams(location.search).get('session'), {
  client,
  outbox: new Outbox(sessionStorage),
  newKey,
  onSession(sessionId) {
    history.replaceState(null, '', `/chat?session=${encodeURIComponent(sessionId)}`);
    void sessions.load();
  },
  pause: (ms) => pause(ms, undefined),
});

const page = document.getElementById('page');
if (page !== null) {
  page.replaceChildren();
  render(<ChatPage agentName={document.title} chat={chat} sessions={sessions} />, page);
}
chat.open();
void sessions.load();
