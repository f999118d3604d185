import { useRef, useState } from 'preact/hooks';
import { useChanges } from '../use-changes.ts';
import type { Chat } from './chat.ts';
import { Composer } from './composer.tsx';
import { Failure } from './failure.tsx';
import { Log } from './log.tsx';
import type { SessionList } from './session-list.ts';
import { Sessions } from './sessions.tsx';
import { StatusLine } from './status-line.tsx';

interface ChatPageProps {
  agentName: string;
  chat: Chat;
  sessions: SessionList;
}

export function ChatPage({ agentName, chat, sessions }: ChatPageProps) {
  useChanges(chat.changes);
  const [isListOpen, setListOpen] = useState(false);
  const [draft, setDraft] = useState('');
  const input = useRef<HTMLTextAreaElement>(null);
  const { conversation, failure, unsent } = chat;
  const edit = (key: string, text: string) => {
    chat.discard(key);
    setDraft(text);
    input.current?.focus();
  };
  return (
    <div class="chat">
      <a class="skip" href="#message">
        Skip to the message
      </a>
      <header class="bar">
        <button type="button" class="quiet only-narrow" aria-expanded={isListOpen} aria-controls="sessions" onClick={() => setListOpen(!isListOpen)}>
          Conversations
        </button>
        <h1>{agentName}</h1>
        <form method="post" action="/auth/logout">
          <button type="submit" class="quiet">
            Log out
          </button>
        </form>
      </header>
      <Sessions list={sessions} current={chat.sessionId} isOpen={isListOpen} />
      <main class="talk">
        <Log chat={chat} conversation={conversation} unsent={unsent} onEdit={edit} />
        {failure === null ? <StatusLine activity={conversation.activity} connection={chat.connection} /> : <Failure failure={failure} />}
        <Composer input={input} draft={draft} onDraft={setDraft} onSend={(text) => chat.send(text)} isDisabled={failure !== null && failure.status !== 401} />
        <p class="hidden" aria-live="polite">
          {chat.announced}
        </p>
      </main>
    </div>
  );
}
