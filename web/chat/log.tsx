import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Chat } from './chat.ts';
import type { Conversation } from './conversation.ts';
import { EntryView } from './entry-view.tsx';
import { MessageText } from './message-text.tsx';
import type { Unsent } from './outbox.ts';
import { UnsentMessage } from './unsent-message.tsx';

/** Rendered at once: more would make each change of the page slow. */
const WINDOW = 150;
/** So near to the end the page follows what comes. */
const NEAR_END_PIXELS = 80;

interface LogProps {
  chat: Chat;
  conversation: Conversation;
  unsent: readonly Unsent[];
  onEdit(key: string, text: string): void;
}

export function Log({ chat, conversation, unsent, onEdit }: LogProps) {
  const [shown, setShown] = useState(WINDOW);
  const list = useRef<HTMLElement>(null);
  const followsEnd = useRef(true);
  /** Distance from the end, kept while earlier entries are put in front. */
  const kept = useRef<number | null>(null);
  const entries = conversation.entries.slice(-shown);
  const hasEarlier = conversation.entries.length > shown || conversation.hasEarlier;

  useLayoutEffect(() => {
    const box = list.current;
    if (box === null) return;
    if (kept.current !== null) {
      box.scrollTop = box.scrollHeight - kept.current;
      if (!chat.isLoading) kept.current = null;
    } else if (followsEnd.current) box.scrollTop = box.scrollHeight;
  });

  const showEarlier = () => {
    const box = list.current;
    if (box !== null) kept.current = box.scrollHeight - box.scrollTop;
    const isLoaded = conversation.entries.length > shown;
    setShown(shown + WINDOW);
    if (!isLoaded) void chat.loadEarlier();
  };
  const isEmpty = entries.length === 0 && unsent.length === 0 && conversation.openReplies.size === 0;
  return (
    <section
      class="log"
      ref={list}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
      tabIndex={0}
      aria-label="Messages"
      onScroll={({ currentTarget: box }) => {
        followsEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PIXELS;
      }}
    >
      {hasEarlier ? (
        <button type="button" class="quiet earlier" disabled={chat.isLoading} onClick={showEarlier}>
          Show earlier messages
        </button>
      ) : null}
      {isEmpty && chat.sessionId === null ? <p class="empty">Write the first message below.</p> : null}
      <ol>
        {entries.map((entry) => (
          <EntryView key={entry.key} entry={entry} />
        ))}
        {[...conversation.openReplies].map(([messageId, text]) => (
          <li key={messageId} class="message agent open" aria-busy="true">
            <MessageText text={text} isOpen />
          </li>
        ))}
        {unsent.map((message) => (
          <UnsentMessage key={message.key} message={message} onEdit={onEdit} onDiscard={(key) => chat.discard(key)} />
        ))}
      </ol>
    </section>
  );
}
